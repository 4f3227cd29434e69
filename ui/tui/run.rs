//! The interactive drill-down: tree → functions → blocks → measured block.
//!
//! | file | concern |
//! |---|---|
//! | `action` | what can happen, and what that asks of the world |
//! | `state` | everything the screens show and remember |
//! | `update` | action → new state and effects; pure |
//! | `view` | state → screen; pure |
//! | `keymap` | the one table of keys |
//! | `events` | keys, signals and results in one queue |
//! | `effects` | measuring, reading and profiling in the background |
//! | `terminal` | taking the terminal and giving it back |
//!
//! Nothing is drawn unless something has happened, and nobody polls: idle costs nothing.

pub mod action;
mod effects;
mod events;
pub mod keymap;
mod state;
mod terminal;
#[cfg(test)]
mod tests;
pub mod theme;
mod update;
mod view;

pub use effects::{Samples, Source};

use crate::cli::Global;
use crate::config;
use action::{Action, Effect};
use effects::World;
use events::Message;
use isa::code::Block;
use state::{Look, State};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use terminal::Screen;
use theme::Theme;
use tma::{Error, Result};
use update::{show_block, update};

/// How often progress is shown while there is any.
const PROGRESS: Duration = Duration::from_millis(250);
/// Most messages that are taken before the next picture.
const AT_ONCE: usize = 1000;

/// Runs until the user quits.
///
/// # Errors
/// The terminal cannot be set up.
pub fn run(global: &Global, source: &Source) -> Result<ExitCode> {
    let library = global.library()?;
    let config = config::load(global.config.as_deref())?;
    let (to, messages) = channel();
    events::catch_signals(to.clone())?;
    let measuring = matches!(source, Source::Command(..));
    let mut screen = Screen::open(measuring)?;
    events::read_terminal(to.clone());
    let world = World::start(source, library, global.uarch.clone(), to);
    let theme = if may_color() { config.theme } else { Theme::Mono };
    let look = Look { theme, ascii: global.ascii || config.ascii };
    let first = match source {
        Source::Block(..) => state::Screen::Block,
        _ => state::Screen::Tree,
    };
    let mut state = State::new(first, look);
    state.config = Some(place(&config));
    state.keys = config.keys;
    if let Source::File(_, samples) | Source::Command(_, samples) = source {
        state.functions.which.threads.clone_from(&samples.threads);
    }
    let mut program = Program { state, world, over: None };
    if let Source::Block(name, bytes, _) = source {
        let mut effects = Vec::new();
        let code = Block::decode(bytes).map(|b| b.instructions).unwrap_or_default();
        let code = code.into_iter().map(|i| i.text).collect();
        show_block(&mut program.state, name.clone(), bytes.clone(), code, &mut effects);
        effects.into_iter().for_each(|e| program.perform(e, &mut screen));
    }
    program.serve(&messages, &mut screen);
    drop(screen);
    let status = program.world.end();
    Ok(ExitCode::from(match program.over {
        Some(Over::Failed(error)) => return Err(error),
        Some(Over::Signal(signal)) => u8::try_from(128 + signal).unwrap_or(1),
        _ => status.unwrap_or(0),
    }))
}

/// Why it is over.
enum Over {
    Quit,
    Signal(i32),
    Failed(Error),
}

struct Program {
    state: State,
    world: World,
    over: Option<Over>,
}

impl Program {
    /// Takes what comes and draws once for all that has come together.
    fn serve(&mut self, messages: &Receiver<Message>, screen: &mut Screen) {
        let mut dirty = true;
        while self.over.is_none() {
            if let Some(size) = screen.size().filter(|s| *s != self.state.size) {
                self.act(Action::Resize(size.0, size.1), screen);
            }
            if std::mem::take(&mut dirty) && screen.draw(&self.state).is_err() {
                self.over = Some(Over::Signal(nix::libc::SIGHUP));
                break;
            }
            let Some(first) = self.next(messages) else {
                dirty = true;
                continue;
            };
            dirty |= self.take(first, screen);
            for message in messages.try_iter().take(AT_ONCE) {
                if self.over.is_none() {
                    dirty |= self.take(message, screen);
                }
            }
        }
    }

    /// The next message. `None`: it was only time to show progress.
    fn next(&mut self, messages: &Receiver<Message>) -> Option<Message> {
        if !self.state.is_busy() {
            return Some(messages.recv().unwrap_or(Message::Gone));
        }
        match messages.recv_timeout(PROGRESS) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Disconnected) => Some(Message::Gone),
            Err(RecvTimeoutError::Timeout) => {
                let progress = self.world.progress(self.state.block.id);
                progress.map(|p| update(&mut self.state, p));
                None
            }
        }
    }

    /// Whether there is something new to see.
    fn take(&mut self, message: Message, screen: &mut Screen) -> bool {
        let action = match message {
            Message::Input(event) => events::action(&event, &self.state),
            Message::Action(action) => Some(action),
            Message::Signal(signal) => {
                self.over = Some(Over::Signal(signal));
                None
            }
            Message::Failed(error) => {
                self.over = Some(Over::Failed(error));
                None
            }
            Message::Gone => {
                self.over = Some(Over::Signal(nix::libc::SIGHUP));
                None
            }
        };
        let Some(action) = action else { return false };
        self.act(action, screen);
        true
    }

    fn act(&mut self, action: Action, screen: &mut Screen) {
        for effect in update(&mut self.state, action) {
            self.perform(effect, screen);
        }
    }

    fn perform(&mut self, effect: Effect, screen: &mut Screen) {
        match effect {
            Effect::Quit => self.over = Some(Over::Quit),
            Effect::Suspend => screen.suspend(),
            Effect::Redraw => screen.redraw(),
            Effect::Profile(which) => self.world.profile(which),
            Effect::Copy(text) => screen.copy(&text),
            Effect::Save(path, content) => self.world.save(path, content),
            Effect::Annotate(index) => self.world.annotate(index),
            Effect::Measure(id, bytes) => self.world.measure(id, bytes),
            Effect::Cancel(id) => self.world.cancel(id),
        }
    }
}

/// Where keys and theme come from, for the `?` screen.
fn place(config: &config::Config) -> String {
    match (&config.read, config::usual_place()) {
        (Some(path), _) => format!("Keys and theme are from {}.", path.display()),
        (None, Some(path)) => format!("{} may change keys and theme.", path.display()),
        (None, None) => String::new(),
    }
}

/// <https://no-color.org>
fn may_color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}
