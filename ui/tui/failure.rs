//! Errors and panics in the background, and what the screens say of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{fmt, io};
use tma::{Cause, Error};

/// Why work in the background has no result.
#[derive(Debug, Clone)]
pub enum Failure {
    /// An error.
    Error(Error),
    /// A panic, with its message if there was one.
    Panic(Option<String>),
    /// The samples cannot be read before there are more.
    NotYet,
    /// The samples have no call chains.
    NoChains,
    /// The thread that had the samples has ended.
    NoSamples,
    /// The thread that measures blocks has ended.
    NoProfiler,
    /// A file of this name is there.
    Exists,
    /// A file cannot be written.
    Unwritten(Cause<io::Error>),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => f.write_str(&paragraph(error)),
            Self::Panic(text) => {
                write!(f, "internal error: {}", text.as_deref().unwrap_or("a panic"))
            }
            Self::NotYet => f.write_str("The samples cannot be read yet."),
            Self::NoChains => f.write_str(
                "The samples have no call chains; `tdtool record -g` and `perf record -g` record them.",
            ),
            Self::NoSamples => f.write_str("the samples are not available any more"),
            Self::NoProfiler => f.write_str("the block profiler has ended"),
            Self::Exists => f.write_str("the file exists; choose another name"),
            Self::Unwritten(error) => error.fmt(f),
        }
    }
}

/// Runs `work`, and catches a panic in it.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Failure::Panic(text.or_else(|| panic.downcast_ref::<&str>().map(|t| (*t).to_owned())))
    })
}

/// An error, its cause and remedy, in one paragraph.
pub fn paragraph(error: &Error) -> String {
    match error.remedy() {
        Some(remedy) => format!("{error}. Try: {remedy}"),
        None => error.to_string(),
    }
}
