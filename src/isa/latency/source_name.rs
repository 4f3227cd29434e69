//! Names of sources in files of latencies.

use serde::Deserialize;

/// The key of a source; once the table is read, its name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name(pub(super) &'static str);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|name| Self(intern(&name)))
    }
}

/// The name of a source for as long as the program runs: there are a few, one text each.
pub(super) fn intern(name: &str) -> &'static str {
    static NAMES: std::sync::Mutex<Vec<&'static str>> = std::sync::Mutex::new(Vec::new());
    let mut names = NAMES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(known) = names.iter().find(|n| **n == name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.push(kept);
    kept
}
