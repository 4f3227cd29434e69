//! What a report does not have of a recording's code, and why.

use crate::documents::report_code::FunctionRow;
use profile::hot::{HotBlock, Profile};

/// Share of the samples from which a missing program is noted.
const WORTH_A_NOTE: f64 = 0.01;

/// Why the hottest function of a file has no blocks, if so: it is for another processor, say.
pub(super) fn without_blocks(profile: &mut Profile, blocks: &[HotBlock]) -> Option<String> {
    let first = profile.functions.first()?;
    let is_file = first.gap.is_none() && first.path.starts_with('/');
    if !is_file || blocks.iter().any(|block| block.function == 0) {
        return None;
    }
    let name = first.short.clone();
    let found = profile.annotate(0);
    let why = found.notes.first().filter(|_| found.blocks.is_empty())?;
    Some(format!("{name} has no blocks: {why}"))
}

/// What to do about programs that are not where they were recorded.
pub(super) fn not_here(functions: &[FunctionRow]) -> Option<String> {
    let is_away = |row: &&FunctionRow| {
        let gap = row.gap.as_deref().unwrap_or_default();
        row.share >= WORTH_A_NOTE && gap.ends_with("is not here")
    };
    let first = functions.iter().find(is_away)?;
    Some(format!(
        "{} has {:.1} % of the samples and is not here: --symfs DIR looks for it under DIR, --binary FILE \
         is it",
        first.module,
        100.0 * first.share
    ))
}

/// How the note of a missing tree per function begins; recording writes one, too.
pub(super) const NO_TREES: &str = "no tree per function";

/// Why there is no tree per function.
pub(super) fn no_trees(profile: &Profile) -> String {
    match profile.reads().events.is_empty() {
        true => format!("{NO_TREES}: the samples hold no counts"),
        false => {
            let events = profile.reads().events.join(", ");
            format!("{NO_TREES}: level 1 cannot be computed from {events}")
        }
    }
}
