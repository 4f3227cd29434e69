//! Notes of documents: on modules whose code is not here, and those that a document does not have yet.

use profile::files::{SearchPaths, missing};
use profile::module::{Module, ModuleKind};
use std::collections::BTreeMap;

/// Rows without code: how many samples, branches or loads each module has.
#[derive(Debug, Default)]
pub(crate) struct WithoutCode(BTreeMap<String, u64>);

impl WithoutCode {
    /// Adds to the rows of a module. The kernel and memory without a file are no programs that could be given.
    pub fn add(&mut self, module: &str, count: u64) {
        if !module.is_empty() && !module.starts_with('[') {
            let sum = self.0.entry(module.to_owned()).or_default();
            *sum = sum.saturating_add(count);
        }
    }

    /// A note on each module. `one` or `many` are counted: `sample`, `samples`; `left_out` is the rest of the sentence. Why its code
    /// is not known follows from `modules` and from the places that were searched.
    pub fn notes(
        &self,
        modules: &[Module],
        search: &SearchPaths,
        one: &str,
        many: &str,
        left_out: &str,
    ) -> Vec<String> {
        let note = |(path, count): (&String, &u64)| {
            let what = if *count == 1 { one } else { many };
            let mut own = modules.iter().filter(|module| module.path == *path);
            let why = own.find_map(|module| Some((missing(search, module)?, module.kind)));
            let why = match why {
                None => String::new(),
                Some((why, ModuleKind::File)) => {
                    format!(", and its addresses are offsets in the file: {why}")
                }
                Some((why, _)) => format!(": {why}"),
            };
            format!("without the code of {path} ({count} {what}) {left_out}{why}")
        };
        self.0.iter().map(note).collect()
    }
}

/// Adds notes that a document does not have yet.
pub(crate) fn add_new(to: &mut Vec<String>, notes: impl IntoIterator<Item = String>) {
    for note in notes {
        if !to.contains(&note) {
            to.push(note);
        }
    }
}
