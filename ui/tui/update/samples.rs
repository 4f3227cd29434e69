//! Which samples count: of one thread, of another event; and functions of one module.

use crate::tui::action::Effect;
use crate::tui::state::{State, Which, matches};
use profile::hot::Thread;

/// Functions of the row's module alone, or of all.
pub fn only_module(state: &mut State) {
    state.message = Some(match state.functions.only_module() {
        Some(module) => format!("functions of {module} alone; shares are still of all samples"),
        None => "functions of all modules".to_owned(),
    });
}

/// The next of several events.
pub fn next_event(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(hot) = state.functions.data.ready() else { return };
    if hot.events.len() < 2 {
        state.message = Some("one event was sampled".into());
        return;
    }
    let now = state.functions.which.event.unwrap_or(0);
    let event = Some((now + 1) % hot.events.len());
    ask(state, Which { event, ..state.functions.which.clone() }, effects);
}

/// Samples of one thread, by its number, its name, or a part of the name; of all if empty.
pub fn of_thread(state: &mut State, text: &str, effects: &mut Vec<Effect>) {
    let text = text.trim();
    let threads = if text.is_empty() { Vec::new() } else { vec![text.to_owned()] };
    let known = &state.functions.threads;
    let exact = |t: &Thread| t.name == text || t.tid.to_string() == text;
    let threads = match known.iter().find(|t| exact(t) || text.is_empty()) {
        Some(_) => threads,
        None => match known.iter().find(|t| matches(&t.name, text)) {
            Some(thread) => vec![thread.name.clone()],
            None => {
                let some: Vec<String> = known.iter().take(5).map(name).collect();
                let why = format!("no samples of a thread {text}; there are {}", some.join(", "));
                state.message = Some(why);
                return;
            }
        },
    };
    ask(state, Which { threads, ..state.functions.which.clone() }, effects);
}

/// `worker (4711)`.
pub fn name(thread: &Thread) -> String {
    match thread.name.as_str() {
        "" => thread.tid.to_string(),
        name => format!("{name} ({})", thread.tid),
    }
}

/// The functions come anew; code that is shown belongs to the old ones.
fn ask(state: &mut State, which: Which, effects: &mut Vec<Effect>) {
    state.blocks = crate::tui::state::Blocks::default();
    state.functions.reload(which.clone());
    effects.push(Effect::Profile(which));
}
