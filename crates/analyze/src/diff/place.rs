//! Where something happens: the own method of a call stack, and beside it the innermost one, or a type.

use crate::prelude::*;

/// The names by which rows are distinguished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// The nearest method on the stack that is the user's own.
    #[default]
    Own,
    /// That method, and the innermost one of the stack.
    Method,
    /// That method, and of allocations and exceptions the type.
    Type,
}

/// The place that a row is about.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The nearest own method, as it was written: `own_method` of the view `site`. `None` if the stack has no own
    /// method.
    pub own_method: Option<Arc<str>>,
    /// Whether there is a call stack.
    pub has_stack: bool,
    /// Whether the names of most of its frames were not recorded, so that own methods may be among them.
    pub is_unnamed: bool,
    /// The innermost frame; only with [`By::Method`].
    pub method: Option<Arc<str>>,
    /// The type; only with [`By::Type`], of allocations and exceptions.
    pub type_name: Option<Arc<str>>,
}

/// The methods that the code of a place may belong to instead, where the recording says of most of its rows that it may:
/// `frame.may_belong_to`.
pub(super) type Others = Map<Place, Arc<str>>;
