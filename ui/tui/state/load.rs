//! Data that arrives later, with the text that search and filter look at; or that never arrives: the text of errors
//! and panics in the background.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{fmt, io};
use tma::{Cause, Error};

/// Data, on its way until it arrives or turns out to be missing.
#[derive(Debug, Clone, Default)]
pub enum Load<T> {
    /// Not here yet.
    #[default]
    Loading,
    /// Here.
    Ready(T),
    /// None, for this reason.
    Missing(String),
}

/// The text in place of data.
pub struct InPlace<'a>(pub &'a str);

impl<T> Load<T> {
    /// The data, or the text in place of it; `loading` as long as it is on its way.
    pub fn or_text<'a>(&'a self, loading: &'a str) -> Result<&'a T, InPlace<'a>> {
        match self {
            Load::Ready(value) => Ok(value),
            Load::Loading => Err(InPlace(loading)),
            Load::Missing(why) => Err(InPlace(why)),
        }
    }

    /// The data, once it is here.
    pub fn ready(&self) -> Option<&T> {
        self.or_text("").ok()
    }
}

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

/// A document, and the texts of its functions in lower case.
#[derive(Debug, Clone)]
pub struct Searchable<T> {
    pub document: T,
    pub lower: Texts,
}

/// Texts, one after the other in memory: a search reads them all.
#[derive(Debug, Clone, Default)]
pub struct Texts {
    all: String,
    /// End of each text.
    ends: Vec<usize>,
}

impl Texts {
    /// The text with this number.
    pub fn get(&self, number: usize) -> Option<&str> {
        let before = number.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied());
        self.all.get(before?..*self.ends.get(number)?)
    }
}

impl FromIterator<String> for Texts {
    fn from_iter<I: IntoIterator<Item = String>>(texts: I) -> Self {
        let mut made = Self::default();
        for text in texts {
            made.all.push_str(&text);
            made.ends.push(made.all.len());
        }
        made
    }
}

/// A document with functions.
pub trait HasFunctions {
    /// The text of each that search and filter look at.
    fn texts(&self) -> impl Iterator<Item = String>;
}

impl<T: HasFunctions> Searchable<T> {
    /// Prepares a document.
    pub fn boxed(document: T) -> Box<Self> {
        let lower = document.texts().map(|text| text.to_lowercase()).collect();
        Box::new(Self { document, lower })
    }
}

#[cfg(test)]
mod tests {
    use super::Texts;

    #[test]
    fn each_text_is_found_by_its_number() {
        let texts: Texts = ["ab", "", "c"].map(str::to_owned).into_iter().collect();
        let found: Vec<_> = (0..4).map(|number| texts.get(number)).collect();
        assert_eq!(found, [Some("ab"), Some(""), Some("c"), None]);
    }
}
