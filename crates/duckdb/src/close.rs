//! `CALL tracequet_close()`: forgets the recordings, and lets the database close.

use std::sync::Arc;

use arrow_array::{RecordBatch, UInt64Array};

use crate::capi::{Asked, Columns, Rows, TableFunction, Type};
use crate::open::{Kept, once, take};
use crate::session;

/// The table function `tracequet_close`.
pub struct Close(Kept);

impl Close {
    /// Closes this connection, too.
    pub fn new(connection: Kept) -> Close {
        Close(connection)
    }
}

impl TableFunction for Close {
    type Bound = ();

    const NAME: &'static str = "tracequet_close";
    const PARAMETERS: u64 = 0;
    const OPTIONS: &'static [&'static str] = &[];

    fn bind(&self, _: &Asked) -> Result<((), Columns, Option<u64>), String> {
        Ok(((), vec![("recordings".into(), Type::NUMBER)], Some(1)))
    }

    fn scan(&self, (): &(), columns: &[usize]) -> Result<Box<dyn Rows>, String> {
        let forgotten = session::forget();
        drop(take(&self.0));
        let column = Arc::new(UInt64Array::from(vec![forgotten])) as _;
        let batch = RecordBatch::try_from_iter([("recordings", column)]).map_err(|error| error.to_string())?;
        once(&batch, columns)
    }
}
