//! Comparisons with a single run on a side: what its errors leave out, and how to measure that.

use super::{Diff, DiffRow, Judgement};
use crate::documents::measured_command::measured;
use crate::documents::report::{Report, Source};
use crate::format;

/// Why a condition on such a row cannot be judged.
pub(super) const UNDECIDED: &str = "one run on a side: run-to-run variation is unknown";

/// Note on functions, loops and blocks, whose samples are of one run.
const OF_CODE: &str = "samples of a side are of one run: how functions and loops vary from run to run is unknown, and not in \
                       their errors; repeat both, then `tdtool diff A1 A2 A3 --to B1 B2 B3`";

impl Diff {
    /// Whether anything of it is of one run on a side.
    pub fn has_single_runs(&self) -> bool {
        self.is_single || self.code.as_ref().is_some_and(|code| code.is_single)
    }
}

/// Limits what single runs of A and B say: a change beyond errors that leave out how runs differ is none of the
/// program yet. A note says how that is measured.
pub fn limit(diff: &mut Diff, [a, b]: [&Report; 2]) {
    let mut rows: Vec<&mut DiffRow> = Vec::new();
    if diff.is_single {
        rows.extend(diff.nodes.iter_mut().chain(&mut diff.info).chain(&mut diff.software));
    }
    let code = diff.code.as_mut().filter(|code| code.is_single);
    let (is_whole, is_any) = (diff.is_single, diff.is_single || code.is_some());
    if let Some(code) = code {
        let functions = code.program.iter_mut().chain(&mut code.functions);
        for row in functions.chain(&mut code.loops).chain(&mut code.blocks) {
            rows.push(&mut row.time);
            rows.extend(&mut row.parts);
        }
    }
    for row in rows.into_iter().filter(|row| row.is_judged()) {
        row.judgement = Judgement::OneRun;
    }
    if is_any {
        diff.notes.insert(0, if is_whole { note(a, b) } else { OF_CODE.to_owned() });
    }
}

/// Note that the spread of runs of one program is not known, and the command that measures it.
fn note(a: &Report, b: &Report) -> String {
    let command = |of: &Report| of.command.as_ref().map(|_| measured(of).to_vec());
    let how = match (command(a), command(b)) {
        // Equal commands are mostly two builds, of which one is there.
        (Some(a), Some(b)) if a != b && !a.is_empty() && !b.is_empty() => {
            format!(
                "`tdtool bench {} -- {}` measures it of the whole programs",
                format::command(&a),
                format::command(&b)
            )
        }
        (a_ran, _) => {
            let again = a_ran.filter(|words| !words.is_empty()).map(|words| again(a, &words));
            let again = again.map_or(String::new(), |again| format!(" (`{again}`)"));
            format!("repeat both{again}, then `tdtool diff A1 A2 A3 --to B1 B2 B3`")
        }
    };
    format!("one run on a side: run-to-run variation is unknown, and not in the errors; {how}")
}

/// The command that makes one more such file.
fn again(of: &Report, words: &[String]) -> String {
    let how = match (of.source, &of.estimate) {
        (_, Some(_)) => "report --estimate --format json",
        (Source::Session, None) => "record",
        _ => "report --format json",
    };
    format!("tdtool {how} -o FILE -- {}", format::command(words))
}
