//! Keys, new sizes, signals and results, in one queue. Nothing polls.

use super::action::Action;
use super::state::State;
use crate::keymap::{self, Command};
use crossterm::event::{Event, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
use nix::sys::signal::{SigSet, Signal};
use std::sync::mpsc::Sender;
use tma::{Error, Result};

/// An entry of the queue.
pub enum Message {
    /// A key, or a new size of the terminal.
    Input(Event),
    /// From the background.
    Action(Action),
    /// A signal that ends the program.
    Signal(i32),
    /// Asked to stop (Ctrl-Z, `kill -TSTP`): the terminal is given back before.
    Stop,
    /// Goes on after a stop, of which it need not have known (`kill -STOP`).
    Continued,
    /// There is nothing to show, for this reason, and the program ends.
    Failed(Error),
    /// The terminal is gone.
    Gone,
}

/// The signals that end the program.
pub fn ending_signals() -> SigSet {
    [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect()
}

/// Turns signals that end, stop and continue the program into messages. Must be called before any other thread starts, because they
/// inherit the blocked signals.
///
/// # Errors
/// The signals cannot be blocked.
pub fn catch_signals(to: Sender<Message>) -> Result<()> {
    let mut caught = ending_signals();
    [Signal::SIGTSTP, Signal::SIGCONT].into_iter().for_each(|signal| caught.add(signal));
    let failed = |e: nix::Error| Error::failed("cannot catch signals").because(e.desc());
    caught.thread_block().map_err(failed)?;
    std::thread::spawn(move || {
        while let Ok(signal) = caught.wait() {
            let message = match signal {
                Signal::SIGTSTP => Message::Stop,
                Signal::SIGCONT => Message::Continued,
                ending => Message::Signal(ending as i32),
            };
            if to.send(message).is_err() {
                break;
            }
        }
    });
    Ok(())
}

/// Turns keys and sizes into messages.
pub fn read_terminal(to: Sender<Message>) {
    std::thread::spawn(move || {
        loop {
            let message = crossterm::event::read().map_or(Message::Gone, Message::Input);
            let last = matches!(message, Message::Gone);
            if to.send(message).is_err() || last {
                break;
            }
        }
    });
}

/// Rows of a notch of the wheel.
const NOTCH: isize = 3;

/// Action of an event in this state, if any.
pub fn action(event: &Event, state: &State) -> Option<Action> {
    match *event {
        Event::Resize(columns, rows) => Some(Action::Resize(columns, rows)),
        Event::Key(key) if key.kind != KeyEventKind::Release => {
            if state.prompt.is_some() {
                return keymap::edit(key).map(Action::Edit);
            }
            let command = state.keys.command(key, state.screen());
            // Any key closes the `?` screen.
            let close = state.help.map(|_| Command::Back);
            command.or(close).map(Action::Command)
        }
        Event::Mouse(mouse) if state.prompt.is_none() => of_mouse(mouse),
        _ => None,
    }
}

fn of_mouse(mouse: MouseEvent) -> Option<Action> {
    match mouse.kind {
        MouseEventKind::ScrollDown => Some(Action::Wheel(NOTCH)),
        MouseEventKind::ScrollUp => Some(Action::Wheel(-NOTCH)),
        MouseEventKind::Down(MouseButton::Left) => Some(Action::Click(mouse.row)),
        _ => None,
    }
}
