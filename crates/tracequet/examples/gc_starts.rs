//! Prints when each garbage collection began and why, without a table:
//! `cargo run -p tracequet --example gc_starts RECORDING`.

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;

use tracequet::trace::error::Problem;
use tracequet::trace::event::{self, Event, EventInfo, EventVisitor};
use tracequet::trace::reader::{Order, TypeId};
use tracequet::trace::source::Input;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args_os().nth(1).ok_or("expected a recording")?;
    run(Path::new(&path)).map(|_| ())
}

/// Prints the collections of a recording; returns how many there are.
pub fn run(path: &Path) -> Result<u64, Box<dyn Error>> {
    let mut starts = GcStarts::default();
    let end = event::read(Input::open(path)?, Order::Time, &mut starts)?;
    if !end.complete {
        println!("the recording is cut");
    }
    Ok(starts.seen)
}

#[derive(Default)]
struct GcStarts {
    seen: u64,
}

impl EventVisitor for GcStarts {
    /// Only events of the kinds that are wanted are delivered; the others cost next to nothing.
    fn event_type(&mut self, _id: TypeId, info: &EventInfo) -> bool {
        info.provider == "Microsoft-Windows-DotNETRuntime" && info.name == "GCStart"
    }

    fn event(&mut self, event: &Event<'_>) -> ControlFlow<()> {
        self.seen += 1;
        let seconds = event.ts_ns as f64 / 1e9;
        match event.fields() {
            Ok((fields, _)) => {
                let number =
                    |name| fields.iter().find(|(field, _)| *field == name).and_then(|(_, value)| value.as_u64());
                println!("{seconds:.6} s: generation {:?}, reason {:?}", number("Depth"), number("Reason"));
            }
            Err(why) => println!("{seconds:.6} s: not decoded: {why}"),
        }
        ControlFlow::Continue(())
    }

    fn problem(&mut self, problem: Problem) {
        println!("{} at byte {}: {}", problem.code, problem.offset, problem.message);
    }
}
