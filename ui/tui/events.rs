//! One queue for keys, new sizes, signals, results and the output of the measured command. Nothing polls.
//!
//! While the screens have the terminal the command's output is caught in a pipe, shown in a pane, and printed on leaving.

use super::action::{Action, BackgroundResult};
use super::state::State;
use crate::keymap::{self, Command};
use crossterm::event::{Event, KeyEventKind, MouseButton, MouseEvent, MouseEventKind};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, Signal};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
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

/// Messages to the event loop. It is no error if the program ends without receiving them.
#[derive(Clone)]
pub struct Queue(pub Sender<Message>);

impl Queue {
    /// Sends a result.
    pub fn send(&self, result: BackgroundResult) {
        self.message(Message::Action(Action::Background(result)));
    }

    /// Sends another message.
    pub fn message(&self, message: Message) {
        let _ = self.0.send(message);
    }
}

/// Bytes that are kept for printing on leaving: the last ones.
const KEPT: usize = 4 << 20;
/// Bytes that a message to the screen has at most.
const SHOWN: usize = 16 << 10;
/// Time between messages to the screen.
const PAUSE: Duration = Duration::from_millis(50);
/// Time that the last bytes have to arrive on leaving.
const LAST: Duration = Duration::from_millis(300);

/// The last bytes written, and how many came before them.
#[derive(Default)]
struct Kept {
    bytes: VecDeque<u8>,
    dropped: u64,
}

impl Kept {
    fn push(&mut self, more: &[u8]) {
        self.bytes.extend(more);
        let excess = self.bytes.len().saturating_sub(KEPT);
        self.bytes.drain(..excess);
        self.dropped += excess as u64;
    }
}

/// Output that is being caught.
pub struct Output {
    kept: Arc<Mutex<Kept>>,
    ended: Receiver<()>,
}

impl Output {
    /// Begins to catch; what is written to the file goes to the screen.
    pub fn catch(to: Sender<Message>) -> Result<(Self, File)> {
        let failed = |e: nix::Error| Error::failed("cannot catch output").because(e.desc());
        let (reader, writer) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC).map_err(failed)?;
        let kept = Arc::new(Mutex::new(Kept::default()));
        let (at_end, ended) = channel();
        let own = kept.clone();
        std::thread::spawn(move || {
            read_output(File::from(reader), &own, &to);
            let _ = at_end.send(());
        });
        Ok((Self { kept, ended }, File::from(writer)))
    }

    /// Prints what was caught, after the terminal was given back and the writer closed.
    pub fn print(self) {
        // A process that goes on in the background may still have it open.
        let _ = self.ended.recv_timeout(LAST);
        let kept = locked(&self.kept);
        let mut out = std::io::stdout().lock();
        if kept.dropped > 0 {
            let _ = writeln!(out, "({} bytes of output before this are not kept)", kept.dropped);
        }
        let (first, second) = kept.bytes.as_slices();
        let _ =
            out.write_all(first).and_then(|()| out.write_all(second)).and_then(|()| out.flush());
    }
}

fn locked(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads until all writers are gone. A command that writes fast must not flood the queue: messages have pauses
/// between them and only the last bytes.
fn read_output(mut from: File, kept: &Mutex<Kept>, to: &Sender<Message>) {
    let mut bytes = vec![0; 1 << 16];
    let mut waiting: Vec<u8> = Vec::new();
    let mut sent = Instant::now();
    loop {
        let pause = if waiting.is_empty() { PollTimeout::NONE } else { PollTimeout::from(50u8) };
        let ready = poll(&mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)], pause);
        let n = match ready {
            Ok(0) | Err(nix::Error::EINTR) => None,
            Err(_) => return,
            Ok(_) => match from.read(&mut bytes) {
                Ok(n) => Some(n),
                Err(_) => return,
            },
        };
        if let Some(n) = n {
            locked(kept).push(&bytes[..n]);
            waiting.extend_from_slice(&bytes[..n]);
            let excess = waiting.len().saturating_sub(SHOWN);
            waiting.drain(..excess);
        }
        let is_end = n == Some(0);
        if !waiting.is_empty() && (is_end || n.is_none() || sent.elapsed() >= PAUSE) {
            sent = Instant::now();
            let text = String::from_utf8_lossy(&std::mem::take(&mut waiting)).into_owned();
            let _ = to.send(Message::Action(Action::Background(BackgroundResult::Output(text))));
        }
        if is_end {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_written_is_kept_and_the_end_of_it_is_sent() {
        let (to, messages) = channel();
        let (output, mut writer) = Output::catch(to).unwrap();
        writer.write_all(&vec![b'a'; 100_000]).unwrap();
        writer.write_all(b"the end\n").unwrap();
        drop(writer);
        let shown: String = messages
            .iter()
            .filter_map(|message| match message {
                Message::Action(Action::Background(BackgroundResult::Output(text))) => Some(text),
                _ => None,
            })
            .collect();
        assert!(shown.ends_with("the end\n"), "{}", shown.len());
        assert_eq!(locked(&output.kept).bytes.len(), 100_008);
    }

    #[test]
    fn only_the_last_bytes_are_kept() {
        let mut kept = Kept::default();
        kept.push(&vec![b'a'; KEPT]);
        kept.push(b"bc");
        assert_eq!((kept.bytes.len(), kept.dropped), (KEPT, 2));
        assert_eq!(kept.bytes.back(), Some(&b'c'));
    }
}
