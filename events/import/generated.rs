//! A table ready to be written.

use tma::tables::schema::TableFile;

/// A table to write: the folder below EVENTS, the comment at its head, and the table itself.
pub struct Generated {
    /// `intel` or `amd`.
    pub folder: &'static str,
    /// Lines of the comment at the head, without `#`.
    pub heading: Vec<String>,
    /// The table.
    pub table: TableFile,
}
