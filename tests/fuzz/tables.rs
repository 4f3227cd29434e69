//! Feeds any bytes to the readers of tables: event tables and formulas. Shared by the fuzz target and by the
//! ordinary tests.

use tma::formula;
use tma::tables::Table;

/// Feeds `data` to all of them.
///
/// # Panics
/// An error says nothing.
pub fn feed(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Table::parse(&text, "a table") {
        Ok(_) => {}
        Err(error) => assert!(!error.what().is_empty()),
    }
    for line in text.lines().take(64) {
        if let Err(error) = formula::parse(line) {
            assert!(!error.to_string().is_empty());
        }
    }
}
