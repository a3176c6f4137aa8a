//! Requests and other pieces of work: who reports them, and which queries and calls belong to which.
//!
//! The id of an activity is given again to later work: Kestrel gives all requests of a connection the same ones, and children get theirs from
//! their parents. So a piece of work is an id and the time at which it began, and what belongs to it began while it ran. The view
//! `request_part` says the same.

mod listed;
mod logged;
mod route;
mod sources;
mod spent;
mod work;
mod worked;

pub use listed::{Request, each_request, source_of};
pub use logged::{Logged, logged};
pub use route::route;
pub use sources::{source, sources};
pub use spent::{Part, Parts, Share, Spent, spent};
pub(crate) use work::{Activity, Belongs, Id, Piece, TASKS, Work, hashed, id_of};
pub use work::{CLIENT, Kind, SERVER, query_text};
pub use worked::{Asked, Worked};
