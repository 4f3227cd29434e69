//! The event loop: messages → actions → effects → picture.

use super::action::{Action, Effect};
use super::alternate_screen::AlternateScreen;
use super::background::Background;
use super::events::{self, Message, Output};
use super::look::Look;
use super::state::{Counts, ShownBlock, State};
use super::update::{show_block, update};
use crate::config::{self, Config};
use crate::keymap::Screen;
use crate::settings::{BlockRequest, Settings, Subject};
use crate::terminal::{self, Theme};
use isa::code::{Block, Inst};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use tma::{Error, Result};

/// Time between updates of a measurement's progress.
const PROGRESS: Duration = Duration::from_millis(250);
/// Maximum number of messages handled between two pictures.
const AT_ONCE: usize = 1000;

/// Opens the drill-down and runs it until the user quits.
pub fn run(settings: Settings, subject: &Subject) -> Result<ExitCode> {
    let config = config::load(settings.config.as_deref())?;
    let (to, messages) = channel();
    events::catch_signals(to.clone())?;
    let measuring = matches!(subject, Subject::Command(..));
    let (output, writer) = match measuring {
        true => Output::catch(to.clone()).map(|(output, writer)| (Some(output), Some(writer)))?,
        false => (None, None),
    };
    let mut screen = AlternateScreen::open(writer, config.mouse)?;
    events::read_terminal(to.clone());
    let state = first_state(&settings, config, subject);
    let background = Background::start(subject, settings, to);
    let mut program = Program { state, background, ended: None };
    if let Subject::Block(request) = subject {
        program.show(request, &mut screen);
    }
    program.serve(&messages, &mut screen);
    drop(screen);
    let status = program.background.end();
    if let Some(output) = output {
        output.print();
    }
    Ok(ExitCode::from(match program.ended {
        Some(End::Failed(error)) => return Err(error),
        Some(End::Signal(signal)) => u8::try_from(128 + signal).unwrap_or(1),
        _ => status.unwrap_or(0),
    }))
}

fn first_state(settings: &Settings, config: Config, subject: &Subject) -> State {
    let theme = if terminal::allows_color() { config.theme } else { Theme::Mono };
    let look = Look { theme, ascii: settings.ascii || config.ascii };
    let first = match subject {
        Subject::Block(_) => Screen::Block,
        Subject::Pair(..) => Screen::Comparison,
        _ => Screen::Tree,
    };
    let mut state = State::new(first, look);
    state.config = Some(config_note(&config));
    state.keys = config.keys;
    if let Subject::File(_, samples) | Subject::Command(_, samples) | Subject::Process(_, samples) =
        subject
    {
        state.functions.samples_of.threads.clone_from(&samples.threads);
        state.counts = samples.counts.as_deref().map(Counts::new);
    }
    state
}

/// Where keys and theme are configured, for the `?` screen.
fn config_note(config: &Config) -> String {
    match (&config.read, config::default_place()) {
        (Some(path), _) => format!("Keys, theme and mouse are from {}.", path.display()),
        (None, Some(path)) => format!("Keys, theme and mouse can be set in {}.", path.display()),
        (None, None) => String::new(),
    }
}

/// Why the program ends.
enum End {
    Quit,
    Signal(i32),
    Failed(Error),
}

struct Program {
    state: State,
    background: Background,
    ended: Option<End>,
}

impl Program {
    /// Shows a block from the command line.
    fn show(&mut self, request: &BlockRequest, screen: &mut AlternateScreen) {
        let BlockRequest { title, bytes, notes, options } = request.clone();
        let code = Block::decode(&bytes).map(|b| b.instructions).unwrap_or_default();
        let text = |inst: &Inst| options.address.map_or(inst.text.clone(), |at| inst.text_at(at));
        let code = code.iter().map(text).collect();
        let mut effects = Vec::new();
        let shown = ShownBlock { title, bytes, code, notes };
        show_block(&mut self.state, shown, &mut effects);
        effects.into_iter().for_each(|e| self.perform(e, screen));
    }

    /// Handles messages, and draws once for all that have arrived together.
    fn serve(&mut self, messages: &Receiver<Message>, screen: &mut AlternateScreen) {
        let mut dirty = true;
        while self.ended.is_none() {
            let size = screen.size();
            if size != self.state.size {
                self.act(Action::Resize(size.0, size.1), screen);
            }
            if std::mem::take(&mut dirty) && screen.draw(&self.state).is_err() {
                self.ended = Some(End::Signal(nix::libc::SIGHUP));
                break;
            }
            let Some(first) = self.next(messages) else {
                dirty = true;
                continue;
            };
            dirty |= self.take(first, screen);
            for message in messages.try_iter().take(AT_ONCE) {
                if self.ended.is_none() {
                    dirty |= self.take(message, screen);
                }
            }
        }
    }

    /// The next message; `None` if there was none before progress had to be shown.
    fn next(&mut self, messages: &Receiver<Message>) -> Option<Message> {
        if !self.state.is_busy() {
            return Some(messages.recv().unwrap_or(Message::Gone));
        }
        match messages.recv_timeout(PROGRESS) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Disconnected) => Some(Message::Gone),
            Err(RecvTimeoutError::Timeout) => {
                let progress = self.background.progress(self.state.block.id);
                progress.map(|p| update(&mut self.state, p));
                None
            }
        }
    }

    /// Handles a message; whether the picture may have changed.
    fn take(&mut self, message: Message, screen: &mut AlternateScreen) -> bool {
        match message {
            Message::Input(event) => match events::action(&event, &self.state) {
                Some(action) => self.act(action, screen),
                None => return false,
            },
            Message::Action(action) => self.act(action, screen),
            Message::Stop => screen.stop(),
            Message::Continued => screen.resume(),
            Message::Signal(signal) => self.ended = Some(End::Signal(signal)),
            Message::Failed(error) => self.ended = Some(End::Failed(error)),
            Message::Gone => self.ended = Some(End::Signal(nix::libc::SIGHUP)),
        }
        true
    }

    fn act(&mut self, action: Action, screen: &mut AlternateScreen) {
        for effect in update(&mut self.state, action) {
            self.perform(effect, screen);
        }
    }

    fn perform(&mut self, effect: Effect, screen: &mut AlternateScreen) {
        match effect {
            Effect::Quit => self.ended = Some(End::Quit),
            Effect::Suspend => AlternateScreen::suspend(),
            Effect::Redraw => screen.redraw(),
            Effect::Estimate => self.background.estimate(),
            Effect::Profile(which) => self.background.profile(which),
            Effect::Copy(text) => screen.copy(&text),
            Effect::Save(path, content) => self.background.save(path, content),
            Effect::Calls(name) => self.background.calls(name),
            Effect::Annotate(index) => self.background.annotate(index),
            Effect::Measure(id, bytes) => self.background.measure(id, bytes),
            Effect::Cancel(id) => self.background.cancel(id),
        }
    }
}
