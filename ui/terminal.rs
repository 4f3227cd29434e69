//! How wide the terminal is.

use std::os::fd::AsFd;

/// Columns of the terminal that `stream` goes to; `None`: it goes elsewhere, or does not say.
pub fn columns(stream: &impl AsFd) -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(stream)?;
    (width.0 > 0).then_some(usize::from(width.0))
}
