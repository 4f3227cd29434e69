//! The texts above tree, functions and blocks: the bottleneck and the next step in a sentence; which samples the rows are
//! of, and how exact these are; how far an estimate is.

use super::names;
use crate::keymap::{Command, Screen};
use crate::tui::state::{EstimateJob, Order, State, WITH_LINES};
use engine::estimate::Step;
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
        "Block {:#x} has {:.0} % of its function's samples, {:.0} % of all; {key} measures the block at the cursor in isolation.",
        of.start,
        100.0 * of.samples as f64 / code.function.samples as f64,
        100.0 * of.share
    )
}

/// The samples that the functions are of.
pub fn about_functions(state: &State) -> String {
    let functions = &state.functions;
    let Some(hot) = functions.data.ready() else { return String::new() };
    let mut parts =
        vec![hot.event.clone(), format!("{} samples", format::count(hot.samples as f64))];
    if hot.events.len() > 1 {
        let number = functions.event() + 1;
        parts[0] += &format!(" (event {number} of {})", hot.events.len());
    }
    if !functions.samples_of.threads.is_empty() {
        parts.push(format!("only thread {}", functions.samples_of.threads.join(", ")));
    }
    if let Some((from, to)) = functions.samples_of.time {
        let seconds = |ns: u64| format::seconds(ns as f64 / 1e9);
        parts.push(format!("only from {} to {}", seconds(from), seconds(to)));
    }
    if hot.lost > 0 {
        parts.push(format!("{} lost", format::count(hot.lost as f64)));
    }
    parts.push(format!("{} of {} functions", functions.rows.len(), hot.functions.len()));
    if functions.order == Order::Line && hot.functions.len() > WITH_LINES {
        parts.push(format!("source lines only of the {WITH_LINES} hottest"));
    }
    if let Some(module) = &functions.module {
        parts.push(format!("only {module}"));
    }
    parts.push(hot.skid.explain().to_owned());
    parts.extend(hot.notes.iter().cloned());
    parts.join(" · ")
}

/// How far the estimate is, or that one can be made; `None` where none can.
pub fn estimate_job(state: &State) -> Option<String> {
    let key = state.keys.key(Command::Estimate);
    Some(match &state.estimate.job {
        EstimateJob::None => return None,
        EstimateJob::Later(false) => {
            format!(
                "{key}: estimate top-down without a PMU, in further runs when the command has ended"
            )
        }
        EstimateJob::Later(true) => "top-down is estimated when the command has ended".to_owned(),
        EstimateJob::Offered(cost) => format!("{key}: estimate top-down without a PMU, {cost}"),
        EstimateJob::Running(None) => "estimating top-down …".to_owned(),
        EstimateJob::Running(Some(of)) => format!("estimating top-down: {}: {}", step(of), of.what),
        EstimateJob::Done => format!("{key}: back to the estimated top-down"),
        EstimateJob::Failed(why) => format!("no estimated top-down: {why}"),
    })
}

/// `step 3 of 10, about 12 s left`.
pub fn step(step: &Step) -> String {
    let left = step.seconds_left.map(|s| format!(", about {:.0} s left", s.ceil()));
    format!("step {} of {}{}", step.number, step.of, left.unwrap_or_default())
}

/// `So far (step 3 of 10, about 12 s left): `; nothing of a complete estimate.
pub fn so_far(state: &State) -> String {
    match &state.estimate.job {
        EstimateJob::Running(now) => {
            let step = now.as_ref().map_or(String::new(), |one| format!(" ({})", step(one)));
            format!("So far{step}: ")
        }
        _ => String::new(),
    }
}

/// The function whose blocks are shown, and its samples.
pub fn about_blocks(state: &State) -> String {
    let Some(annotated) = state.blocks.data.ready() else { return String::new() };
    let f = &annotated.function;
    let mut parts = vec![
        f.module.clone(),
        format!("{:.2} % of all samples", 100.0 * f.share),
        format!("{} samples", format::count(f.samples as f64)),
        format!("{} blocks", annotated.blocks.len()),
    ];
    if let (Some(file), Some(line)) = (&f.file, f.line) {
        parts.push(format!("{file}:{line}"));
    }
    if let Some(counts) = state.counts() {
        let command = state.tree.report.as_ref().and_then(|r| r.command.as_deref());
        let is_same = counts.is_recorded || counts.is_of(command);
        let no_time = if is_same { "" } else { ", not of this command: no time per entry" };
        parts.push(format!("{}{no_time}", counts.source));
    }
    if let Some(loads) = state.loads() {
        parts.push(loads.source.clone());
    }
    parts.extend(annotated.skid.map(|skid| skid.explain().to_owned()));
    parts.extend(annotated.notes.iter().cloned());
    parts.join(" · ")
}
