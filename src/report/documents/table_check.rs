//! Tables validated: what each contains and what is wrong with it.

use std::num::NonZero;
use std::thread;
use tma::Result;
use tma::tables::Library;
use tma::tables::validate::{Finding, Severity, report};

/// A table and what validation found.
#[derive(Debug, Clone)]
pub struct Checked {
    /// Its name.
    pub name: String,
    /// Defects, worst first.
    pub findings: Vec<Finding>,
    /// Tree nodes, bottlenecks, info metrics and events.
    pub counts: [usize; 4],
}

impl Checked {
    /// Whether a finding is an error.
    pub fn has_errors(&self) -> bool {
        self.findings.iter().any(|f| f.severity == Severity::Error)
    }
}

/// Validates the tables called `names`, in order, on all CPUs.
///
/// # Errors
/// There is no such table.
pub fn check(library: &Library, names: &[String]) -> Result<Vec<Checked>> {
    let one = |name: &String| {
        let (text, _) = library.text(name)?;
        let found = report(name, &text, library.texts());
        Ok(Checked { name: name.clone(), findings: found.findings, counts: found.counts })
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = names.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> = names
            .chunks(share)
            .map(|part| (part, scope.spawn(move || part.iter().map(one).collect::<Vec<_>>())))
            .collect();
        parts
            .into_iter()
            // If a thread failed, its part is done here.
            .flat_map(|(part, thread)| {
                thread.join().unwrap_or_else(|_| part.iter().map(one).collect())
            })
            .collect()
    })
}
