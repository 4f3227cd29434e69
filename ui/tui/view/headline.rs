//! The sentence above tree, functions and blocks: the bottleneck, and the next step.

use super::names;
use crate::keymap::{Command, Screen};
use crate::tui::state::State;
use report::documents::report::{FindingKind, Place};
use report::documents::{NodeRow, Report, Source};
use report::format;

/// The sentence of the screen that is shown; empty where there is nothing to say yet.
pub fn headline(state: &State) -> String {
    let key = state.keys.key(Command::Drill);
    match state.screen() {
        Screen::Tree => tree(state, &key),
        Screen::Functions => functions(state, &key),
        Screen::Blocks => blocks(state, &key),
        _ => String::new(),
    }
}

fn tree(state: &State, key: &str) -> String {
    let Some(report) = &state.tree.report else { return String::new() };
    let place = state.tree.node(0).map(|node| &node.place);
    match place.and_then(|place| verdict(report, place)) {
        Some(text) => format!("{text} {key} shows the functions."),
        None => String::new(),
    }
}

/// The verdict on a part of a report.
fn verdict(report: &Report, place: &Place) -> Option<String> {
    const VERDICTS: [FindingKind; 3] =
        [FindingKind::Bottleneck, FindingKind::Undecided, FindingKind::Nothing];
    let own = report.findings.iter().filter(|one| one.place == *place);
    let verdict = own.clone().find(|one| VERDICTS.contains(&one.kind));
    if let Some(verdict) = verdict {
        return Some(verdict.text.clone());
    }
    let all = || report.nodes.iter().filter(|node| node.place == *place);
    if let Some(NodeRow { label, value, error, .. }) = all().find(|node| node.bottleneck) {
        return Some(format!("The bottleneck is {label}, {}.", format::share(*value, *error)));
    }
    all().all(|node| node.value.is_none()).then(|| {
        let why = match report.source {
            Source::NoPmu => "no core PMU",
            _ => "its nodes have no values",
        };
        format!("The tree is not counted: {why}.")
    })
}

fn functions(state: &State, key: &str) -> String {
    let Some(hottest) = state.functions.top() else { return String::new() };
    format!(
        "{} has {:.1} % of the samples; {key} shows a function's blocks.",
        names::in_sentence(names::function(hottest)),
        100.0 * hottest.share
    )
}

fn blocks(state: &State, key: &str) -> String {
    let Some(code) = state.blocks.data.ready() else { return String::new() };
    let hottest = code.blocks.iter().max_by_key(|block| block.block.samples);
    let Some(of) = hottest.filter(|_| code.function.samples > 0).map(|block| &block.block) else {
        return String::new();
    };
    format!(
        "Block {:#x} has {:.0} % of the function's samples; {key} measures the block at the cursor in isolation.",
        of.start,
        100.0 * of.samples as f64 / code.function.samples as f64
    )
}
