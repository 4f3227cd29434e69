//! Names of sources in latency tables.

use serde::Deserialize;

/// The key of a source in a table's `[sources]`; its full name once the table is parsed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name(pub(super) &'static str);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|name| Self(intern(&name)))
    }
}

/// Interns a source name for the lifetime of the program; there are only a few.
pub(super) fn intern(name: &str) -> &'static str {
    static NAMES: std::sync::Mutex<Vec<&'static str>> = std::sync::Mutex::new(Vec::new());
    let mut names = NAMES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(known) = names.iter().find(|n| **n == name) {
        return known;
    }
    let leaked: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.push(leaked);
    leaked
}
