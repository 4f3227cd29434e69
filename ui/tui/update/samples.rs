//! Chooses which samples the functions are of: of a module, an event, a thread, a phase of the intervals; opens
//! their callers and callees.

use crate::keymap::{Command, Screen};
use crate::tui::action::Effect;
use crate::tui::state::{Blocks, Load, SampleFilter, State, matches, thread_name};
use profile::hot::Thread;

/// Reason that a key has to wait.
const STILL_READ: &str = "samples and symbols are still being read";
/// Threads that an error lists.
const LISTED: usize = 5;
/// How far the view of the intervals moves.
const SHIFT: f64 = 0.5;

/// Says so while the samples are not there yet.
fn is_still_read(state: &mut State) -> bool {
    let is_loading = matches!(state.functions.data, Load::Loading);
    if is_loading {
        state.message = Some(STILL_READ.to_owned());
    }
    is_loading
}

/// Shows only functions of the module at the cursor, or of all modules.
pub fn only_module(state: &mut State) {
    if is_still_read(state) {
        return;
    }
    state.message = Some(match state.functions.only_module() {
        Some(module) => format!("only functions of {module}; shares are still of all samples"),
        None => "functions of all modules".to_owned(),
    });
}

/// Shows the next of several events.
pub fn next_event(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(hot) = state.functions.data.ready() else { return };
    if hot.events.len() < 2 {
        state.message = Some("only one event was sampled".into());
        return;
    }
    let now = state.functions.event();
    let event = Some((now + 1) % hot.events.len());
    ask_for(state, SampleFilter { event, ..state.functions.samples_of.clone() }, effects);
}

/// Shows only samples of a thread, by number, name, or part of its name; of all threads if empty.
pub fn of_thread(state: &mut State, text: &str, effects: &mut Vec<Effect>) {
    if is_still_read(state) {
        return;
    }
    let text = text.trim();
    let threads = if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
    let known = &state.functions.threads;
    let exact = |t: &Thread| t.name == text || t.tid.to_string() == text;
    let threads = match known.iter().find(|t| exact(t) || text.is_empty()) {
        Some(_) => threads,
        None => match known.iter().find(|t| matches(&t.name, text)) {
            Some(thread) => vec![thread.name.clone()],
            None => {
                let some: Vec<String> = known.iter().take(LISTED).map(thread_name).collect();
                let why = format!("no thread {text} has samples; there are {}", some.join(", "));
                state.message = Some(why);
                return;
            }
        },
    };
    ask_for(state, SampleFilter { threads, ..state.functions.samples_of.clone() }, effects);
}

/// Asks for the functions of other samples, and drops the code of the old ones.
fn ask_for(state: &mut State, filter: SampleFilter, effects: &mut Vec<Effect>) {
    state.blocks = Blocks::default();
    state.functions.reload(filter.clone());
    effects.push(Effect::Profile(filter));
}

/// Shows the intervals, in place of the functions that were looked at.
pub fn open_intervals(state: &mut State, effects: &mut Vec<Effect>) {
    state.intervals.refresh();
    if state.intervals.series.is_empty() {
        state.message = Some(
            "fewer than two intervals; `tdtool record --interval 100` has shorter ones".into(),
        );
        return;
    }
    if state.screen() == Screen::Functions {
        state.path.pop();
    }
    match state.screen() {
        Screen::Intervals => leave_phase(state, effects),
        _ => state.path.push(Screen::Intervals),
    }
}

/// Zooms or moves the view of the intervals.
pub fn zoom(state: &mut State, command: Command) {
    match command {
        Command::ZoomIn => state.intervals.zoom_in(),
        Command::ZoomOut => state.intervals.zoom_out(),
        Command::Later => state.intervals.shift(SHIFT),
        Command::Earlier => state.intervals.shift(-SHIFT),
        _ => {}
    }
}

/// The functions of the phase at the cursor.
pub fn open_phase(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(phase) = state.intervals.phase() else { return };
    if let Load::Missing(why) = &state.functions.data {
        state.message = Some(why.clone());
        return;
    }
    let ns = |seconds: f64| (seconds.max(0.0) * 1e9) as u64;
    let time = Some((ns(phase.from), ns(phase.to)));
    state.path.push(Screen::Functions);
    ask_for(state, SampleFilter { time, ..state.functions.samples_of.clone() }, effects);
}

/// Back from the functions of a phase: those of all samples are shown again where they are opened from elsewhere.
pub fn leave_phase(state: &mut State, effects: &mut Vec<Effect>) {
    if state.screen() == Screen::Intervals && state.functions.samples_of.time.is_some() {
        let all = SampleFilter { time: None, ..state.functions.samples_of.clone() };
        ask_for(state, all, effects);
    }
}

/// Opens callers and callees of the function at the cursor, or of the one whose code is shown.
pub fn open_calls(state: &mut State, effects: &mut Vec<Effect>) {
    let name = match state.screen() {
        Screen::Functions => state.functions.row(state.functions.list.at).map(|f| f.name.clone()),
        Screen::Blocks => {
            let function = state.blocks.index.and_then(|i| state.functions.all().get(i));
            function.map(|f| f.name.clone())
        }
        Screen::EstimatedFunctions => {
            let row = state.estimate.function_at(state.estimate.functions.list.at);
            row.filter(|row| row.start.is_some()).map(|row| row.name.clone())
        }
        _ => state.estimate.opened().map(|row| row.name.clone()),
    };
    let Some(name) = name else {
        let is_on_its_way = matches!(state.functions.data, Load::Loading);
        let why = match state.screen() == Screen::Functions && is_on_its_way {
            true => STILL_READ,
            false => "there is no function here",
        };
        state.message = Some(why.to_owned());
        return;
    };
    state.calls.trail.clear();
    show_calls(state, name, effects);
}

/// Opens those of the caller or callee at the cursor.
pub fn follow_call(state: &mut State, effects: &mut Vec<Effect>) {
    let at = state.calls.list.at;
    let Some(row) = state.calls.row(at) else { return };
    match row.name().map(str::to_owned) {
        Some(name) => {
            if let Some(last) = state.calls.trail.last_mut() {
                last.1 = at;
            }
            show_calls(state, name, effects);
        }
        None => {
            state.message = Some(format!("{} is no function to follow", row.function().name));
        }
    }
}

fn show_calls(state: &mut State, name: String, effects: &mut Vec<Effect>) {
    state.calls.trail.push((name.clone(), 0));
    state.calls.data = Load::Loading;
    state.calls.list = Default::default();
    state.path.push(Screen::Calls);
    effects.push(Effect::Calls(name));
}

/// Back to the function from which this one was opened; the screen is the one before.
pub fn leave_calls(state: &mut State, effects: &mut Vec<Effect>) {
    state.calls.trail.pop();
    if let (Screen::Calls, Some((name, _))) = (state.screen(), state.calls.trail.last()) {
        state.calls.data = Load::Loading;
        effects.push(Effect::Calls(name.clone()));
    }
}
