//! Results of what runs in the background.

use super::{comparison, estimate, measure};
use crate::keymap::Screen;
use crate::tui::action::{BackgroundResult, Effect};
use crate::tui::state::{EstimateJob, Job, Load, Progress, Searchable, State, is_same};
use profile::hot::{HotFunction, Summary};
use report::documents::Report;

/// Puts a result into the state.
pub fn take(state: &mut State, result: BackgroundResult, effects: &mut Vec<Effect>) {
    match result {
        BackgroundResult::Explained(explanations) => state.tree.explanations = explanations,
        BackgroundResult::Measuring => state.tree.progress = Progress::Measuring(0),
        BackgroundResult::Interval(report) => interval(state, report),
        BackgroundResult::Report(report) => {
            state.tree.progress = Progress::Done;
            state.tree.fill(report, state.frozen);
            refresh(state);
        }
        BackgroundResult::NoReport(why) => state.tree.progress = Progress::Failed(why),
        BackgroundResult::Functions(hot) => functions(state, *hot, effects),
        BackgroundResult::NoFunctions(why) => {
            state.functions.data = Load::Missing(why);
            state.functions.rebuild();
        }
        BackgroundResult::Threads(threads) => state.functions.threads = threads,
        BackgroundResult::Counts(counts) => state.recorded_counts = counts,
        BackgroundResult::Loads(loads) => state.recorded_loads = loads,
        BackgroundResult::Output(text) => state.output.add(&text),
        BackgroundResult::NotCounted(is_command) => estimate::not_counted(state, is_command),
        BackgroundResult::Offer(cost) => estimate::offered(state, cost, effects),
        BackgroundResult::Estimating(step) => {
            state.estimate.job = EstimateJob::Running(Some(step));
        }
        BackgroundResult::EstimatedSoFar(document) => estimate::so_far(state, *document),
        BackgroundResult::Estimated(document) => estimate::arrived(state, *document),
        BackgroundResult::Evidence(text) => state.estimate.evidence = Some(text),
        BackgroundResult::NotEstimated(why) => state.estimate.job = EstimateJob::Failed(why),
        BackgroundResult::Compared(result) => comparison::arrived(state, result),
        BackgroundResult::Calls(name, found) => {
            state.calls.fill(&name, found.map(|found| *found));
        }
        BackgroundResult::Saved(path, Ok(())) => {
            state.message = Some(format!("saved in {}", path.display()));
        }
        BackgroundResult::Saved(path, Err(why)) => {
            state.message = Some(format!("not saved in {}: {why}", path.display()));
        }
        BackgroundResult::Annotated(index, annotated, texts) => {
            // While the program runs functions change places: what was asked for may be another one now.
            let shown = state.functions.all().get(index);
            let is_it = shown.is_some_and(|f| is_same(f, &annotated.function));
            if state.blocks.index == Some(index) && is_it {
                state.blocks.fill(*annotated, texts);
            }
        }
        BackgroundResult::NotAnnotated(index, why) => {
            if state.blocks.index == Some(index) {
                state.blocks.data = Load::Missing(why);
            }
        }
        BackgroundResult::Progress(id, seconds, passes) => {
            if id == state.block.id && state.block.is_running() {
                state.block.job = Job::Running(seconds, passes);
                measure::wrap(state);
            }
        }
        BackgroundResult::Measured(id, result) => {
            if id == state.block.id && state.block.is_running() {
                state.block.end(result);
                measure::wrap(state);
            }
        }
    }
}

fn interval(state: &mut State, report: Box<Report>) {
    state.tree.history.add(&report);
    state.intervals.add(&report);
    if state.intervals.is_due() {
        refresh(state);
    }
    // A file's intervals are not its tree: the report of all of it follows.
    if let Progress::Measuring(intervals) = &mut state.tree.progress {
        *intervals += 1;
        state.tree.fill(report, state.frozen);
    }
}

/// Finds the phases again, if they are shown.
fn refresh(state: &mut State) {
    if state.path.contains(&Screen::Intervals) && !state.frozen {
        state.intervals.refresh();
    }
}

/// If there are samples and no node has a value, the functions are the screen to begin with.
fn functions(state: &mut State, hot: Searchable<Summary>, effects: &mut Vec<Effect>) {
    let first = state.functions.data.ready().is_none();
    let opened = state.blocks.index.and_then(|i| state.functions.all().get(i)).cloned();
    state.functions.fill(hot, state.frozen);
    if let Some(opened) = opened.filter(|_| !state.frozen) {
        reopened(state, &opened, effects);
    }
    let no_counts =
        state.tree.report.as_ref().is_none_or(|r| r.nodes.iter().all(|node| node.value.is_none()));
    if first && no_counts && state.path == [Screen::Tree] {
        state.path.push(Screen::Functions);
    }
}

/// The function whose blocks are open has another number now, and more samples.
fn reopened(state: &mut State, opened: &HotFunction, effects: &mut Vec<Effect>) {
    let now = state.functions.all().iter().position(|f| is_same(f, opened));
    let samples = now.and_then(|i| state.functions.all().get(i)).map(|f| f.samples);
    state.blocks.index = now;
    if let Some(index) = now.filter(|_| samples != Some(opened.samples)) {
        effects.push(Effect::Annotate(index));
    }
}
