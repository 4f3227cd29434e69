//! Code of a recording that a report does not have, and why.

use crate::record::Note;
use profile::files::Gap;
use profile::hot::{HotBlock, HotFunction, Profile};

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

/// Advice for programs that are not where they were recorded.
pub(super) fn not_here(functions: &[HotFunction]) -> Option<String> {
    let is_away = |row: &&HotFunction| {
        let is_gone = matches!(row.gap, Some(Gap::NoFile(_)));
        row.share >= WORTH_A_NOTE && is_gone && !is_compiled(&row.path)
    };
    let first = functions.iter().find(is_away)?;
    Some(format!(
        "{} has {:.1} % of the samples and is not here: --symfs DIR looks for it under DIR, --binary FILE \
         is it",
        first.module,
        100.0 * first.share
    ))
}

/// Advice for code without names that was compiled while the program ran.
pub(super) fn compiled(profile: &Profile) -> Option<String> {
    let share: f64 =
        profile.functions.iter().filter(|of| is_compiled(&of.path)).map(|of| of.share).sum();
    (share >= WORTH_A_NOTE).then(|| {
        format!(
            "{:.1} % of the samples is in code compiled at run time, without names: node --perf-basic-prof, Java with \
             perf-map-agent and python3 -X perf name it; then measure again",
            100.0 * share
        )
    })
}

/// Whether a mapping is one of memory without a file, as compilers at run time make it.
fn is_compiled(path: &str) -> bool {
    ["//anon", "[anon", "/memfd:", "/dev/zero"].iter().any(|begin| path.starts_with(begin))
}

/// Why there is no tree per function; recording notes it, too.
pub(super) fn no_trees(profile: &Profile) -> Note {
    Note::NoTree(match profile.reads().events.is_empty() {
        true => "the samples hold no counts".to_owned(),
        false => {
            let events = profile.reads().events.join(", ");
            format!("level 1 cannot be computed from {events}")
        }
    })
}
