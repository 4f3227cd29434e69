//! Search and filter.

use memchr::memmem::Finder;

/// A text that is looked for; one in lower case ignores case.
pub struct Wanted<'a> {
    is_exact: bool,
    finder: Finder<'a>,
}

impl<'a> Wanted<'a> {
    /// Prepares the search.
    pub fn new(text: &'a str) -> Self {
        let is_exact = text.chars().any(char::is_uppercase);
        Self { is_exact, finder: Finder::new(text) }
    }

    /// Whether a text contains it.
    pub fn is_in(&self, text: &str) -> bool {
        let is_in = |text: &str| self.finder.find(text.as_bytes()).is_some();
        if self.is_exact { is_in(text) } else { is_in(&text.to_lowercase()) }
    }

    /// Whether it matches, where the text in lower case is at hand, as for lists of thousands of rows.
    pub fn is_in_lower(&self, lower: Option<&str>, text: impl Fn() -> String) -> bool {
        match lower {
            _ if self.finder.needle().is_empty() => true,
            Some(lower) if !self.is_exact => self.finder.find(lower.as_bytes()).is_some(),
            _ => self.is_in(&text()),
        }
    }
}

/// Whether `text` contains `wanted`; a lower-case `wanted` ignores case.
pub fn matches(text: &str, wanted: &str) -> bool {
    Wanted::new(wanted).is_in(text)
}
