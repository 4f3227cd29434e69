//! Which samples the functions are of, and functions of which module are shown.

use super::calls::STILL_READ;
use crate::tui::action::Effect;
use crate::tui::state::{Blocks, Load, SampleFilter, State, matches, thread_name};
use profile::hot::Thread;

/// Threads that an error lists.
const LISTED: usize = 5;

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
    ask(state, SampleFilter { event, ..state.functions.samples_of.clone() }, effects);
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
    ask(state, SampleFilter { threads, ..state.functions.samples_of.clone() }, effects);
}

/// Asks for the functions of other samples, and drops the code of the old ones.
pub(super) fn ask(state: &mut State, filter: SampleFilter, effects: &mut Vec<Effect>) {
    state.blocks = Blocks::default();
    state.functions.reload(filter.clone());
    effects.push(Effect::Profile(filter));
}
