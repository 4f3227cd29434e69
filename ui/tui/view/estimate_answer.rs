//! The answer above a screen of an estimate: the bottleneck in a sentence, and the next step.

use super::{info, names};
use crate::keymap::{Command, Screen};
use crate::tui::state::{EstimateJob, ProgramRow, SourceRow, State};
use report::documents::estimate::SourceLine;
use report::documents::estimate::{Bottleneck, Estimate, Row};
use report::format;

/// The bottleneck of what the cursor is on, and the next step.
pub fn answer(state: &State) -> String {
    let Some(document) = state.estimate.document.as_deref() else { return String::new() };
    let at = state.list().at;
    if state.screen() == Screen::EstimatedSource {
        return on_source(state);
    }
    let (row, below) = match state.screen() {
        Screen::Estimate => (on_program(state, document, at), "its functions"),
        Screen::EstimatedFunctions => (state.estimate.function_at(at), "its loops and blocks"),
        _ => (state.estimate.piece_at(at).map(|(_, row)| row), "its instructions"),
    };
    let Some(row) = row else { return String::new() };
    let mut text = so_far(state) + &said(row);
    text += &format!(" {} shows {below}", state.keys.key(Command::Drill));
    text += &match row.next.is_empty() {
        true => ".".to_owned(),
        false => format!("; or `{}`.", row.next),
    };
    if state.screen() == Screen::Estimate {
        text += &format!(" {}", basis(document));
    }
    text
}

/// `So far (step 3 of 10, about 12 s left): `; nothing of a complete estimate.
pub fn so_far(state: &State) -> String {
    match &state.estimate.job {
        EstimateJob::Running(step) => {
            let step =
                step.as_ref().map_or(String::new(), |step| format!(" ({})", info::step(step)));
            format!("So far{step}: ")
        }
        _ => String::new(),
    }
}

/// Row that the program's screen speaks of: all of it, or the time that is not divided.
fn on_program<'a>(state: &State, document: &'a Estimate, at: usize) -> Option<&'a Row> {
    match state.estimate.program.shown.get(at) {
        Some(ProgramRow::Other(i)) => document.functions.get(*i),
        _ => Some(&document.program),
    }
}

/// The bottleneck of a row in a sentence.
fn said(row: &Row) -> String {
    match (&row.parts.unexplained.reason, row.start.is_none() && row.name.starts_with('[')) {
        (Some(why), true) => format!("{}: {why}.", row.name),
        _ => row.sentence.clone(),
    }
}

/// Basis of the estimate.
fn basis(document: &Estimate) -> String {
    let seconds: f64 = document.runs.iter().map(|run| run.seconds).sum();
    let same = match document.deterministic {
        Some(true) => "; the program is deterministic: two runs entered all blocks equally often",
        Some(false) => {
            "; the program is not deterministic: two runs entered blocks differently often"
        }
        None => "",
    };
    format!(
        "Estimated from {} measurements of {} in all{same}.",
        document.runs.len(),
        format::seconds(seconds)
    )
}

/// The lines of the function that is open.
pub fn lines(state: &State) -> &[SourceLine] {
    state.estimate.opened().map_or(&[], |of| &of.lines)
}

/// The hottest line in a sentence, and the next step.
fn on_source(state: &State) -> String {
    let all = lines(state);
    let at = match state.estimate.source.rows.get(state.estimate.source.list.at) {
        Some(SourceRow::Line(i) | SourceRow::Instruction(i, _)) => all.get(*i),
        None => None,
    };
    let Some(of) = at else { return String::new() };
    let why = match of.bottleneck {
        Bottleneck(None) => "undecided between several parts".to_owned(),
        known => known.words(),
    };
    let key = state.keys.key(Command::Drill);
    format!(
        "{}:{} has {:.1} % of the time: {why}. {key} shows its assembly. Timer samples are often of the \
         instruction after, and then of its line.",
        names::file(&of.file),
        of.line,
        100.0 * of.share
    )
}
