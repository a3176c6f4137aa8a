//! Ranges that overlap, wrap around the address space, and move onto each other: the command, the SQL macros and a
//! plain search say the same of every address.

use std::collections::BTreeSet;

use crate::support::dataset::{Dataset, survived};
use crate::support::mutate::Random;
use crate::tables::collections::{BACKGROUND, BLOCKING, Story};

const MARK: u32 = 202;

/// A collection as it is recorded: generation, whether it runs in the background, bounds at its start (generation,
/// start, length), ranges that survived and that moved.
#[derive(Debug, Default)]
struct Reported {
    generation: u32,
    background: bool,
    bounds: Vec<(u8, u64, u64)>,
    surviving: Vec<[u64; 2]>,
    moved: Vec<[u64; 3]>,
}

fn holds(start: u64, length: u64, address: u64) -> bool {
    u128::from(start) <= u128::from(address) && u128::from(address) < u128::from(start) + u128::from(length)
}

impl Reported {
    fn at_random(random: &mut Random, base: u64) -> Reported {
        let place = |random: &mut Random| match random.below(12) {
            0 => u64::MAX - random.below(70) as u64,
            1 => random.below(3) as u64,
            _ => base.wrapping_add(random.below(64) as u64),
        };
        let length = |random: &mut Random| match random.below(16) {
            0 => [u64::MAX, 1 << 63, u64::MAX - base][random.below(3)],
            _ => [0, 1, 3, 16, 40][random.below(5)],
        };
        let many = random.below(5);
        Reported {
            generation: random.below(3) as u32,
            background: random.below(4) == 0,
            bounds: (0..many)
                .map(|_| ([0, 1, 2, 3, 4, 5, 5, 5][random.below(8)], place(random), length(random)))
                .collect(),
            surviving: (0..random.below(4)).map(|_| [place(random), length(random)]).collect(),
            moved: (0..random.below(5)).map(|_| [place(random), place(random), length(random)]).collect(),
        }
    }

    /// The fate of an address and where it is then, as docs/TABLES.md and the macros say.
    fn fate(&self, address: u64) -> (&'static str, Option<u64>) {
        let generations: BTreeSet<u8> =
            self.bounds.iter().filter(|(_, start, length)| holds(*start, *length, address)).map(|b| b.0).collect();
        let before = generations.first().copied().filter(|_| generations.len() == 1);
        if self.surviving.iter().any(|[start, length]| holds(*start, *length, address)) {
            return ("alive", Some(address));
        }
        let holders = self.moved.iter().filter(|[start, _, length]| holds(*start, *length, address));
        if let Some([start, new_start, _]) = holders.min() {
            let after = new_start.checked_add(address - start);
            return (if after == Some(address) { "alive" } else { "moved" }, after);
        }
        let background = self.background && self.generation == 2;
        match before {
            Some(5) => ("never_collected", Some(address)),
            None => ("unknown", None),
            Some(before) if self.generation < 2 && u32::from(before) > self.generation => {
                ("not_collected", Some(address))
            }
            Some(before) if background && before < 2 => ("not_collected", Some(address)),
            Some(_) if self.surviving.is_empty() && self.moved.is_empty() => ("unknown", None),
            Some(_) => ("dead", None),
        }
    }
}

fn tell(collections: &[Reported]) -> Dataset {
    let mut story = Story::default();
    for (reported, number) in collections.iter().zip(1..) {
        let at = i64::from(number) * 100;
        let kind = if reported.background && reported.generation == 2 { BACKGROUND } else { BLOCKING };
        story.start(at, 1, number, reported.generation, kind);
        for (generation, start, length) in &reported.bounds {
            story.bound(at + 1, 1, *generation, *start, *length);
        }
        story.simple(at + 2, 1, MARK).surviving(at + 3, 1, &reported.surviving).moved(at + 4, 1, &reported.moved);
        story.end(at + 5, 1, number, reported.generation);
    }
    story.tell()
}

/// Steps from a collection on, as text.
fn followed(collections: &[Reported], first: u32, mut address: u64) -> Vec<String> {
    let mut steps = Vec::new();
    for (reported, gc_id) in collections.iter().zip(1..).filter(|(_, gc_id)| *gc_id >= first) {
        let (fate, after) = reported.fate(address);
        steps.push(text(gc_id, fate, after));
        match after {
            Some(after) => address = after,
            None => break,
        }
    }
    steps
}

fn text(gc_id: u32, fate: &str, after: Option<u64>) -> String {
    format!("{gc_id} {fate} {}", after.map_or("None".into(), |address| format!("{address:#x}")))
}

#[test]
fn command_and_macros_say_what_a_plain_search_says() {
    let python = crate::support::python::python("command_and_macros_say_what_a_plain_search_says");
    let mut fates = BTreeSet::new();
    for seed in 1..=10_u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let base = [0x1000, u64::MAX - 63, 0, (1 << 63) - 32][seed as usize % 4];
        let collections: Vec<Reported> = (0..6).map(|_| Reported::at_random(&mut random, base)).collect();
        let dataset = tell(&collections);
        let mut addresses: Vec<u64> = (0..12).map(|_| base.wrapping_add(random.below(64) as u64)).collect();
        addresses.extend([0, 1, u64::MAX, u64::MAX - 3]);
        let mut expected = Vec::new();
        for address in &addresses {
            let steps = survived(&dataset.path(), None, 1, *address, true).unwrap();
            let seen: Vec<_> = steps.iter().map(|s| text(s.gc_id, s.fate.as_str(), s.address_after)).collect();
            let plain = followed(&collections, 1, *address);
            assert_eq!(seen, plain, "seed {seed}, {address:#x}: {collections:#x?}");
            fates.extend(steps.iter().map(|step| step.fate.as_str()));
            expected.extend(plain);
        }
        // DuckDB takes its time.
        let Some(python) = python.as_ref().filter(|_| seed <= 4) else { continue };
        let mut questions = String::new();
        for gc_id in 1..=collections.len() as u32 {
            for address in &addresses {
                let (fate, after) = collections[gc_id as usize - 1].fate(*address);
                expected.push(format!("{fate} {}", after.map_or("None".into(), |address| address.to_string())));
                questions.push_str(&format!("({}, {gc_id}, '{address}'), ", expected.len()));
            }
        }
        let script = format!(
            "c.execute('SET threads = 1')\n\
             for a in {addresses:?}:\n    for row in c.execute(f\"SELECT * FROM journey(1, '{{a}}')\").fetchall():\n        print(*row)\n\
             for row in c.execute(\"\"\"SELECT survived(gc, o), address_after(gc, o)\n\
             FROM (VALUES {}) q(n, gc, o) ORDER BY n\"\"\").fetchall():\n    print(*row)\n",
            questions.trim_end_matches(", "),
        );
        let run = crate::support::python::ask_views(python, &dataset.path(), &script, "");
        let printed = String::from_utf8_lossy(&run.stdout);
        let errors = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "seed {seed}: {errors}");
        let lines: Vec<_> = printed.lines().collect();
        let different = lines.iter().zip(&expected).position(|(line, expected)| line != expected);
        assert_eq!(different.map(|at| (lines[at], &expected[at])), None, "seed {seed}: {collections:#x?}");
        assert_eq!(lines.len(), expected.len());
    }
    assert_eq!(
        fates.into_iter().collect::<Vec<_>>(),
        ["alive", "dead", "moved", "never_collected", "not_collected", "unknown"]
    );
}
