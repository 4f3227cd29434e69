//! Requests to the thread that has the samples.

use crate::tui::state::SampleFilter;

/// A request.
pub enum Request {
    /// The code of the function with this index.
    Code(usize),
    /// Callers and callees of the function of this name.
    Calls(String),
    /// The functions of other samples.
    Functions(SampleFilter),
}
