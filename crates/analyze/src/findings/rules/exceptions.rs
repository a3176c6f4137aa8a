//! Exceptions are thrown so often that they are a way of the program to decide.

use std::cmp::Reverse;

use tracequet_facts::code::written;

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "exceptions",
    title: "Exceptions are thrown all the time",
    about: "Exceptions are thrown as a way to decide, not because something failed.",
    measure: "Exceptions a second in the worst five seconds. The most frequent type with its throwing and catching method is \
        named.",
    unit: "count/s",
    info: 100.0,
    warning: 1000.0,
    source: "JDK Mission Control has 5,000 and 10,000; exceptions of .NET cost some 10 to 50 µs each: limits tracequet's \
        own.",
    needs: &["exceptions"],
    record: "exceptions",
    advice: "Use `TryParse`, `TryGetValue` and the like, or check before, in place of throwing and catching.",
    closer: closer::EXCEPTIONS,
    evidence: Evidence { sections: &["exceptions"], sort: None },
    query: "SELECT type_name, own_method, thrown_in, caught_in, sum(how_often) AS how_often, any_value(for_example) AS for_example \
        FROM exceptions WHERE {process} GROUP BY ALL ORDER BY how_often DESC LIMIT 10",
    example: Example::of("bugs/exceptions", "bugs/exceptions-clean", Verdict::Warning)
        .by("Shop.Orders.Read")
        .about("System.FormatException"),
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let Look { picture, process, .. } = look;
    let value = process.exception_times.busiest_per_second(look.recording_ns());
    let rows: u64 = process.exceptions.values().map(|thrown| thrown.count).sum();
    let most = process.exceptions.iter().max_by_key(|(key, thrown)| (thrown.count, Reverse(**key)));
    let subject = most.and_then(|((_, kind), _)| picture.text(*kind)).map(str::to_owned);
    let method = most.and_then(|((site, _), _)| picture.sites.most([(*site, 1.0)]));
    let catcher = most.and_then(|(_, thrown)| picture.text(thrown.catcher));
    let thrown = method.as_ref().map_or(String::new(), |most| format!(", most in {}{}", most.method, most.inlined));
    let caught = catcher.map_or(String::new(), |method| format!(", caught in {}", words::short(&named(method), 80)));
    let kind = subject.as_deref().unwrap_or("exceptions");
    let sentence = match rows {
        0 => "No exception was thrown.".to_owned(),
        _ => format!("{} exceptions a second in the worst five: {kind}{thrown}{caught}.", words::three(value)),
    };
    let own_method = method.map(|most| most.method);
    Figure { value, rows, subject, own_method, sentence, ..Figure::default() }.into()
}

/// A method as other methods are named: the runtime writes `void [Shop] Shop.Orders::Read(int32)`, and `Shop.Orders+<Load>d__5::MoveNext()` of
/// what was written as `Shop.Orders.Load`.
fn named(method: &str) -> String {
    let name = method.rsplit_once("] ").map_or(method, |(_, name)| name);
    let Some((of_type, method)) = name.split('(').next().unwrap_or(name).split_once("::") else {
        return name.to_owned();
    };
    let mut text = String::new();
    written::push(&mut text, of_type, method);
    text
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn who_catches_is_named_as_it_was_written() {
        for (given, written) in [
            ("void [Shop] Shop.Orders::Read(int32)", "Shop.Orders.Read"),
            ("instance void [Shop] Shop.Orders+<Load>d__5::MoveNext()", "Shop.Orders.Load"),
            (
                "instance int32 [Shop] Shop.Orders+<>c::<Load>b__0_2(class [System.Runtime]System.Action)",
                "Shop.Orders.Load.<lambda_2>",
            ),
            ("nothing like it", "nothing like it"),
        ] {
            assert_eq!(named(given), written);
        }
    }
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{Exception, FactSink};

    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let site = made.site(&["Shop.Orders.Read(string)", "System.Runtime.EH.RhThrowEx()"]);
        (0..(x * 10_000.0) as i64).for_each(|n| {
            let row = Exception {
                ts_ns: n * S / 2000,
                process_id: 7,
                callsite_id: site,
                type_name: "System.FormatException",
                ..Exception::default()
            };
            made.tables.add(&row);
        });
    }
}
