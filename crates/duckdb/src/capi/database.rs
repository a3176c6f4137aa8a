//! The database that loads the extension, while it does.

use super::connection::Connection;
use super::function::{self, TableFunction};
use super::slots::Slots;

/// The database that loads the extension.
pub struct Database {
    slots: &'static Slots,
    connection: Connection,
}

impl Database {
    /// The one that is connected to.
    pub fn new(slots: &'static Slots, connection: Connection) -> Database {
        Database { slots, connection }
    }

    /// Adds a table function.
    pub fn register<F: TableFunction>(&self, function: F) -> Result<(), String> {
        function::register(self.slots, self.connection.handle(), function)
    }

    /// The connection that the functions were added by.
    pub fn into_connection(self) -> Connection {
        self.connection
    }
}
