//! Documents with what search and filter look at. Making that takes tens of milliseconds for 100,000 functions, so
//! it is made where it delays no picture.

use super::{comparison, estimate, functions};
use engine::documents::diff::Diff;
use engine::documents::estimate::Estimate;
use profile::hot::Summary;

/// A document, and the texts of its functions in lower case.
#[derive(Debug, Clone)]
pub struct Searchable<T> {
    pub document: T,
    pub lower: Vec<String>,
}

/// A document with functions.
pub trait Functions {
    /// The text of each that search and filter look at.
    fn texts(&self) -> impl Iterator<Item = String>;
}

impl<T: Functions> Searchable<T> {
    /// Prepares a document.
    pub fn boxed(document: T) -> Box<Self> {
        let lower = document.texts().map(|text| text.to_lowercase()).collect();
        Box::new(Self { document, lower })
    }
}

impl Functions for Summary {
    fn texts(&self) -> impl Iterator<Item = String> {
        self.functions.iter().map(functions::text)
    }
}

impl Functions for Estimate {
    fn texts(&self) -> impl Iterator<Item = String> {
        self.functions.iter().map(estimate::text)
    }
}

impl Functions for Diff {
    fn texts(&self) -> impl Iterator<Item = String> {
        self.code.iter().flat_map(|code| &code.functions).map(comparison::text)
    }
}
