//! The end of a live measurement: its exit status, and a note if there is no tree.

use super::measure::MeasureArgs;
use crate::message;
use engine::topdown::Outcome;
use report::documents::Report;

/// The command's own status; 128 + its number if a signal ended the measurement.
pub fn status(outcome: &Outcome) -> u8 {
    let code = match outcome.interrupted {
        Some(signal) => 128 + signal,
        None => outcome.exit.map_or(0, |e| e.code()),
    };
    u8::try_from(code & 0xff).unwrap_or(1)
}

/// Notes once what becomes of an interrupted measurement: a further signal only ends the command sooner.
pub fn note_interrupted(is_noted: &mut bool, text: &str) {
    if !std::mem::replace(is_noted, true) {
        message::note(text);
    }
}

/// Prints why there is no tree, if there is none, and what to do; `tdtool doctor` has the rest.
pub fn note_blocked(outcome: &Outcome) {
    if let Some(finding) = &outcome.blocked {
        let remedy = finding.remedy.as_deref().map(shortened);
        message::print("note", &finding.what, None, remedy.as_deref());
    }
}

/// As [`note_blocked`], beside a text report: why there is no tree stands in place of the tree.
pub fn note_remedy(outcome: &Outcome) {
    match outcome.blocked.as_ref().and_then(|finding| finding.remedy.as_deref()) {
        Some(remedy) if outcome.report.nodes.iter().any(|node| node.no_pmu) => {
            message::note(&format!("for a measured tree: {}", shortened(remedy)));
        }
        _ => note_blocked(outcome),
    }
}

/// Notes an option that chooses among the nodes of a counted tree, where nothing was counted.
pub fn note_unused(measure: &MeasureArgs, report: &Report) {
    if let (Some(option), false) = (measure.of_counts(), report.is_counted()) {
        message::note(&format!("{option} has no effect: no node of the tree was counted"));
    }
}

/// A remedy of up to two lines, or the first of more and where the others are.
fn shortened(remedy: &str) -> String {
    let mut lines = remedy.lines();
    match (lines.next(), lines.count()) {
        (Some(first), 2..) => {
            format!("{} (`tdtool doctor -v` has the settings)", first.trim_end_matches(':'))
        }
        _ => remedy.to_owned(),
    }
}
