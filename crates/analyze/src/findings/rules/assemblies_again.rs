//! The same assembly is loaded again and again.

use crate::findings::prelude::*;

pub(super) const RULE: Rule = Rule {
    name: "assemblies_again",
    title: "The same assembly is loaded again and again",
    about: "One assembly is loaded again and again, each time with code that is compiled anew; what is not unloaded stays in memory for \
        good.",
    measure: "How often the assembly that was loaded most often was loaded during the recording.",
    unit: "count",
    info: 10.0,
    warning: 50.0,
    needs: &["assembly_loads"],
    record: "all",
    advice: "Load it once and keep it (a dictionary by its name), and share one `AssemblyLoadContext`; unload a context that is done with, \
        and let go of all that came from it.",
    evidence: Evidence { sections: &["modules"], sort: None },
    query: "SELECT name, count(*) AS how_often, count(unload_ts_ns) AS unloaded FROM assembly WHERE {process} AND load_ts_ns IS NOT NULL \
        GROUP BY ALL ORDER BY how_often DESC LIMIT 20",
    example: Example {
        unrecorded: Some("habits/handles"),
        ..Example::of("habits/addins", "habits/addins-clean", Verdict::Warning).by("Depot.Addins.Run").about("Ways")
    },
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let process = look.process;
    let most = process.assemblies.iter().max_by_key(|(_, loads)| loads.loaded);
    let name = most.and_then(|(name, _)| look.picture.text(*name)).unwrap_or_default();
    let (place, loads) = most.map(|(place, loads)| (*place, *loads)).unwrap_or_default();
    let asked = process.assembly_asks.iter().filter(|((of, _), _)| *of == place);
    // One that is made at run time is not asked for: who waits for code to be compiled needs it.
    let compiled = process.compilations.iter().map(|(_, start, end, site)| (*site, end.saturating_sub(*start) as f64));
    let sites = &look.picture.sites;
    let most = sites.most(asked.map(|((_, site), count)| (*site, *count as f64))).or_else(|| sites.most(compiled));
    let own_method = most.map(|most| most.method);
    let is_again = loads.loaded > 1;
    let own_method = own_method.filter(|_| is_again);
    let by = own_method.as_ref().map_or(String::new(), |method| format!(" by {method}"));
    let simple = name.split(',').next().unwrap_or_default();
    let sentence = match is_again {
        true => format!(
            "{} was loaded {} times{by}, and unloaded {} times.",
            words::short(simple, 80),
            loads.loaded,
            loads.unloaded
        ),
        false => "No assembly was loaded twice.".to_owned(),
    };
    let subject = is_again.then(|| simple.to_owned());
    let value = if is_again { loads.loaded as f64 } else { 0.0 };
    let rows = process.assemblies.values().map(|loads| loads.loaded).sum();
    Figure { value, rows, subject, own_method, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use tracequet_facts::fact::{Assembly, AssemblyLoad, FactSink};

    use crate::findings::tests::story::{Made, S};

    pub(crate) fn make(made: &mut Made, x: f64) {
        let callsite_id =
            made.site(&["Shop.Addins.Run()", "System.Runtime.Loader.AssemblyLoadContext.LoadFromStream()"]);
        for n in 0..(200.0 * x) as i64 {
            let (name, load_ts_ns) = ("Shop.Prices, Version=1.0.0.0", Some(n * S / 5));
            made.tables.add(&Assembly {
                process_id: 7,
                assembly_id: n.cast_unsigned(),
                name,
                load_ts_ns,
                ..Assembly::default()
            });
            made.tables.add(&AssemblyLoad { process_id: 7, callsite_id, name, ..AssemblyLoad::default() });
        }
    }
}
