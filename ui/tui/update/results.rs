//! Takes results of the background; offers an estimate, asks for it, and takes it.

use super::drill;
use crate::keymap::{Command, Screen};
use crate::tui::action::{BackgroundResult, Effect};
use crate::tui::state::{EstimateJob, Failure, Job, Load, Progress, Searchable, State, is_same};
use profile::hot::{HotFunction, Summary};
use report::documents::Report;
use report::documents::diff::Diff;
use report::documents::estimate::Estimate;

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
        BackgroundResult::NotCounted(is_command) => not_counted(state, is_command),
        BackgroundResult::Offer(cost) => estimate_offered(state, cost, effects),
        BackgroundResult::Estimating(step) => {
            state.estimate.job = EstimateJob::Running(Some(step));
        }
        BackgroundResult::EstimatedSoFar(document) => estimated_so_far(state, *document),
        BackgroundResult::Estimated(document) => estimated(state, *document),
        BackgroundResult::Evidence(text) => state.estimate.evidence = Some(text),
        BackgroundResult::NotEstimated(why) => state.estimate.job = EstimateJob::Failed(why),
        BackgroundResult::Compared(result) => compared(state, result),
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
                drill::wrap_block(state);
            }
        }
        BackgroundResult::Measured(id, result) => {
            if id == state.block.id && state.block.is_running() {
                state.block.end(result);
                drill::wrap_block(state);
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

/// The comparison is here, or will not be.
pub fn compared(state: &mut State, result: Result<Box<Searchable<Diff>>, Failure>) {
    match result {
        Ok(diff) if diff.document.code.is_some() => state.comparison.fill(*diff),
        Ok(_) => {
            let why = "One of both has no functions: compare recordings with samples, or reports with an \
                       estimate (`tdtool report --estimate --format json`). `tdtool diff` compares counts.";
            state.comparison.data = Load::Missing(why.to_owned());
        }
        Err(why) => state.comparison.data = Load::Missing(why.to_string()),
    }
}

/// There is no PMU: the samples are the first screen. What is estimated is a command that has ended.
pub fn not_counted(state: &mut State, is_command: bool) {
    if is_command && state.estimate.job == EstimateJob::None {
        state.estimate.job = EstimateJob::Later(false);
    }
    if state.path == [Screen::Tree] {
        state.path.push(Screen::Functions);
    }
}

/// The command has ended and can be estimated.
pub fn estimate_offered(state: &mut State, cost: String, effects: &mut Vec<Effect>) {
    let is_wanted = state.estimate.job == EstimateJob::Later(true);
    state.estimate.job = EstimateJob::Offered(cost);
    if is_wanted {
        ask_estimate(state, effects);
    }
}

/// Asks for the estimate; once it is here, goes between it and the samples.
pub fn ask_estimate(state: &mut State, effects: &mut Vec<Effect>) {
    let message = match &state.estimate.job {
        EstimateJob::Offered(cost) => {
            let message = format!("estimating top-down: {cost}");
            state.estimate.job = EstimateJob::Running(None);
            // The evidence is of a former estimate.
            state.estimate.evidence = None;
            effects.push(Effect::Estimate);
            message
        }
        EstimateJob::Later(is_wanted) => {
            let now = !is_wanted;
            state.estimate.job = EstimateJob::Later(now);
            match now {
                true => "the estimate begins when the command has ended".to_owned(),
                false => "no estimate will be made".to_owned(),
            }
        }
        EstimateJob::Running(_) if state.estimate.document.is_none() => {
            "the estimate is on its way".to_owned()
        }
        EstimateJob::Running(_) | EstimateJob::Done => return switch_to_samples(state, effects),
        EstimateJob::Failed(why) => format!("no estimate: {why}"),
        EstimateJob::None => {
            "nothing to estimate: it is for commands and processes without a PMU".to_owned()
        }
    };
    state.message = Some(message);
}

/// From the estimate to the samples, or back.
fn switch_to_samples(state: &mut State, effects: &mut Vec<Effect>) {
    if state.screen().is_estimate() || state.path[0] == Screen::Estimate {
        if state.functions.data.ready().is_none() {
            state.message = Some("this document has an estimate only, no samples".to_owned());
            return;
        }
        drill::stop_measuring(state, effects);
        state.path = vec![Screen::Tree, Screen::Functions];
    } else {
        drill::stop_measuring(state, effects);
        state.path = vec![Screen::Estimate];
    }
}

/// The estimate is here, complete.
pub fn estimated(state: &mut State, document: Searchable<Estimate>) {
    state.estimate.job = EstimateJob::Done;
    state.message = None;
    estimated_so_far(state, document);
}

/// A first estimate becomes the first screen, unless the user is looking at code; a newer one renews the screens.
pub fn estimated_so_far(state: &mut State, document: Searchable<Estimate>) {
    if state.estimate.document.is_some() {
        state.estimate.renew(document);
        return drill::wrap_estimate(state);
    }
    state.estimate.fill(document);
    if matches!(state.screen(), Screen::Tree | Screen::Functions) {
        state.path = vec![Screen::Estimate];
    } else {
        let key = state.keys.key(Command::Estimate);
        state.message = Some(format!("the estimate is here; {key} shows it"));
    }
}
