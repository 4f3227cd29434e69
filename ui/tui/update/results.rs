//! Results of what runs in the background.

use super::measure;
use crate::keymap::Screen;
use crate::tui::action::BackgroundResult;
use crate::tui::state::{Job, Load, Progress, State};
use engine::documents::Report;
use profile::hot::Summary;

/// Puts a result into the state.
pub fn take(state: &mut State, result: BackgroundResult) {
    match result {
        BackgroundResult::Explained(explanations) => state.tree.explanations = explanations,
        BackgroundResult::Measuring => state.tree.progress = Progress::Measuring(0),
        BackgroundResult::Interval(report) => interval(state, report),
        BackgroundResult::Report(report) => {
            state.tree.progress = Progress::Done;
            state.tree.fill(report, state.frozen);
        }
        BackgroundResult::NoReport(why) => state.tree.progress = Progress::Failed(why),
        BackgroundResult::Functions(hot) => functions(state, *hot),
        BackgroundResult::NoFunctions(why) => {
            state.functions.data = Load::Missing(why);
            state.functions.rebuild();
        }
        BackgroundResult::Threads(threads) => state.functions.threads = threads,
        // Counts that were asked for stay.
        BackgroundResult::Counts(counts) => {
            state.counts.get_or_insert(*counts);
        }
        BackgroundResult::Loads(loads) => state.loads = Some(*loads),
        BackgroundResult::Saved(path, Ok(())) => {
            state.message = Some(format!("saved in {}", path.display()));
        }
        BackgroundResult::Saved(path, Err(why)) => {
            state.message = Some(format!("not saved in {}: {why}", path.display()));
        }
        BackgroundResult::Annotated(index, annotated, texts) => {
            if state.blocks.index == Some(index) {
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
    if let Progress::Measuring(intervals) = &mut state.tree.progress {
        *intervals += 1;
    }
    state.tree.history.add(&report);
    state.tree.fill(report, state.frozen);
}

/// If there are samples and no node has a value, the functions are the screen to begin with.
fn functions(state: &mut State, hot: Summary) {
    let first = state.functions.data.ready().is_none();
    state.functions.fill(hot, state.frozen);
    let no_counts =
        state.tree.report.as_ref().is_none_or(|r| r.nodes.iter().all(|node| node.value.is_none()));
    if first && no_counts && state.path == [Screen::Tree] {
        state.path.push(Screen::Functions);
    }
}
