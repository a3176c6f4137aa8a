//! Code is made at run time again and again, and compiled each time.

use crate::findings::prelude::*;
use crate::findings::shared::at_start;
use crate::samples::least_part;

pub(super) const RULE: Rule = Rule {
    name: "code_made_again",
    title: "Code is made at run time again and again",
    about: "Methods that are made at run time (compiled regular expressions, expression trees, serializers, `DynamicMethod`) do not come to \
        an end: each is compiled anew, and takes memory until it is collected.",
    measure: "Dynamic methods that the JIT compiled in the second half of the recording, divided by its time: what a program makes when it \
        starts is there by then. In less than five seconds it is no warning. Your method that needed most of them is named.",
    unit: "count/s",
    info: 2.0,
    warning: 10.0,
    needs: &["compilations"],
    record: "jit",
    advice: "Make it once and keep it in a static field or a dictionary by its key: `Regex` with `RegexOptions.Compiled`, the delegate of \
        `Expression.Compile`, `XmlSerializer` with more than a type, `JsonSerializerOptions`.",
    closer: closer::COMPILATIONS,
    causes: &["slow_start"],
    evidence: Evidence { sections: &["jit", "stacks-jit"], sort: None },
    query: "SELECT own_method, method, count(*) AS how_often, sum(jit_ms) AS total_ms FROM jit WHERE {process} AND method LIKE 'dynamicClass.%' \
        GROUP BY ALL ORDER BY how_often DESC LIMIT 20",
    example: Example {
        unrecorded: Some("habits/handles"),
        ..Example::of("habits/formulas", "habits/formulas-clean", Verdict::Warning)
    },
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

/// Seconds with which the figure is taken as it is. Of fewer there is no warning.
const LEAST_SECONDS: f64 = 5.0;

fn judge(look: &Look<'_>) -> Judged {
    let half_ns = look.recording_ns() / 2;
    let later: Vec<u32> =
        look.process.dynamic.iter().filter(|(start, _)| *start >= half_ns).map(|(_, site)| *site).collect();
    let value = later.len() as f64 / (look.seconds() / 2.0).max(1e-9);
    let is_short = look.seconds() < LEAST_SECONDS;
    let lack = look.too_short(LEAST_SECONDS * 1e9, "every program makes code when it starts");
    let few = is_short.then(|| Few { least: at_start(value * least_part(later.len() as u64), &RULE), lack });
    let at_most = is_short.then_some(60.0);
    let most = look.picture.sites.most(later.iter().map(|site| (*site, 1.0)));
    let by = most.as_ref().map_or(String::new(), |most| format!(", most of them for {}{}", most.method, most.inlined));
    let sentence = match later.is_empty() {
        true => "No method was made at run time in the second half of the recording.".to_owned(),
        false => format!(
            "{} methods that were made at run time were compiled in the second half of the recording, {} a second{by}.",
            later.len(),
            words::three(value)
        ),
    };
    let (rows, own_method) = (look.process.compilations.len() as u64, most.map(|most| most.method));
    Figure { value, rows, at_most, few, own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{FactSink, MethodCompilation};

    use crate::findings::tests::story::{MS, Made};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let callsite_id = made.site(&["Shop.Tariff.Price()", "System.Linq.Expressions.Expression.Compile()"]);
        for n in 0..(3000.0 * x) as i64 {
            let start_ts_ns = n * 20 * MS;
            let row = MethodCompilation {
                start_ts_ns,
                end_ts_ns: Some(start_ts_ns + MS / 10),
                process_id: 7,
                callsite_id,
                kind: "jit",
                namespace: "dynamicClass",
                name: "lambda_method",
                ..MethodCompilation::default()
            };
            made.tables.add(&row);
        }
    }
}
