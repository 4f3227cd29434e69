//! The unmodelled instructions of a batch as CSV.

use super::csv;
use crate::documents::deps::Census;

/// A header and one row per instruction and reason, the most frequent first.
pub fn rows(census: &Census) -> String {
    let row = |(name, reason, count): (&str, &str, usize)| {
        csv::row([name, reason, &count.to_string()]) + "\n"
    };
    let rows: String = census.counts().into_iter().map(row).collect();
    format!("instruction,reason,count\n{rows}")
}
