//! The tables in Parquet files, `FOLDER/TABLE/date=YYYY-MM-DD/host=NAME/part-0.parquet`: one file for each table, day
//! (UTC) and host, which is there whole or not at all. A window that is exported again takes the place of the one there.
//!
//! | file | concern |
//! |---|---|
//! | `place` | the folder of a day and host |
//! | `export` | windows → files |
//! | `partition` | the files of one day and host |
//! | `file` | one file, written |
//! | [`read`] | files → rows |
//! | `schema` | the columns as the format has them |
//! | `absent` | what stands for all of them without the feature `parquet` |

#[cfg(not(feature = "parquet"))]
mod absent;
#[cfg(feature = "parquet")]
mod export;
#[cfg(feature = "parquet")]
mod file;
#[cfg(feature = "parquet")]
mod partition;
mod place;
#[cfg(feature = "parquet")]
mod read;
#[cfg(feature = "parquet")]
mod schema;

#[cfg(not(feature = "parquet"))]
pub use absent::{Export, read};
#[cfg(feature = "parquet")]
pub use export::Export;
#[cfg(feature = "parquet")]
pub use read::read;

/// What was exported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exported {
    /// Windows.
    pub windows: u64,
    /// Files that were written.
    pub files: u64,
    /// Rows in them, with those that were there.
    pub rows: u64,
    /// Their size.
    pub bytes: u64,
}
