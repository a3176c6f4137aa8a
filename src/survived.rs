//! `tracequet survived`: the fate of an object.

use tracequet::analyze::survived::{Fate, Step, TABLES, survived};

use super::prelude::*;

#[derive(Debug, Args)]
pub struct SurvivedArgs {
    /// Dataset (a directory) or recording
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// Collection: its gc_id
    #[arg(value_name = "GC", value_parser = collection)]
    pub gc: u32,
    /// Address before the collection, as 0x7f00... or in decimal
    #[arg(value_name = "ADDRESS", value_parser = values::address)]
    pub address: u64,
    /// Continue with later collections, as long as the address of the object is known
    #[arg(long)]
    pub follow: bool,
    #[command(flatten)]
    pub asked: AskedArgs,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// Answers from a dataset, or from a recording that is converted for it.
pub fn run(args: &SurvivedArgs) -> anyhow::Result<Outcome> {
    let opened = opened::open(&args.input, &TABLES, &args.asked, args.asked.request())?;
    let recording = opened.dataset.recording(args.asked.trace())?;
    match survived(&recording, args.gc, args.address, args.follow) {
        Ok(steps) => args.format.print(&Fates(steps), Outcome::with_losses(opened.losses)),
        Err(error) => match u32::try_from(args.address) {
            // A low address of a small heap can be typed as a collection.
            Ok(gc) if survived(&recording, gc, args.gc.into(), false).is_ok() => {
                Err(Error::Usage(format!("{error}; {SWAPPED} {gc} is a collection, which comes before the address"))
                    .into())
            }
            _ => Err(error.into()),
        },
    }
}

/// The message when an address stands where the collection belongs.
const SWAPPED: &str = "the arguments seem to be swapped:";

/// Reads the number of a collection.
fn collection(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| match values::number(text) {
        Ok(_) => format!("{SWAPPED} an address comes behind the number of the collection"),
        Err(_) => "expected the number of a collection, its gc_id".to_owned(),
    })
}

/// The fates of an object, one in each collection.
struct Fates(Vec<Step>);

impl Answer for Fates {
    fn document(&self) -> Document {
        let mut out = Document::default();
        out.table(self.rows());
        if let Some(Step { fate: Fate::Unknown(why), .. }) = self.0.last() {
            out.gap();
            out.note(format!("unknown: {}", why.text()));
        }
        out
    }

    fn rows(&self) -> Table {
        let or_dash = |g: Option<u8>| g.map_or_else(|| "-".to_owned(), |g| g.to_string());
        table!("fates", &self.0, |s| {
            let reason = if let Fate::Unknown(why) = s.fate { Cell::words(why.text()) } else { Cell::Missing };
            let generation = |generation: Option<u8>| Cell::number(generation, Unit::Id);
        } {
            numbers("gc", "").key("gc_id") => Cell::number(Some(s.gc_id), Unit::Id),
            numbers("collects", "").key("generation") => generation(s.generation),
            words("kind", "").key("kind") => Cell::optional(s.kind.as_deref()),
            numbers("start s", "").key("start_ts_ns") => Cell::moment(s.start_ns),
            numbers("address", "").key("address") => Cell::number(Some(s.address), Unit::Address),
            words("fate", "").key("fate") =>
                Cell::words(s.fate.as_str()).shown_as(Cell::words(s.fate.as_str().replace('_', " "))),
            numbers("now", "").key("address_after") => Cell::number(s.address_after, Unit::Address),
            words("generation", "") =>
                Cell::words(format!("{} -> {}", or_dash(s.generation_before), or_dash(s.generation_after))),
            Column::raw("generation_before") => generation(s.generation_before),
            Column::raw("generation_after") => generation(s.generation_after),
            Column::raw("reason") => reason,
        })
    }
}
