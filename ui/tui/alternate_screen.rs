//! The terminal while it is ours: raw mode, the alternate screen, and giving both back — on quit,
//! on a panic, on a signal, and while we are stopped.
//!
//! A measured command gets none of it: its output would be written across the screen, so standard
//! input, output and error are /dev/null while one is measured, as far as they are the terminal.

use super::state::State;
use super::view::view;
use crossterm::cursor::Show;
use crossterm::execute;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use tma::{Error, Result};

/// The terminal and what was moved out of the way, for whoever has to put it back.
static KEPT: OnceLock<Kept> = OnceLock::new();
/// Whether there is something to put back.
static OURS: AtomicBool = AtomicBool::new(false);

struct Kept {
    /// Standard output as it was.
    output: File,
    input: Option<File>,
    error: Option<File>,
    /// Standard input, output and error are redirected while it is ours.
    quiet: bool,
}

/// The screen that we draw on.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<File>>>,
}

impl Screen {
    /// Takes the terminal; `quiet`: nobody else may write to it or read from it.
    ///
    /// # Errors
    /// It is none, or cannot be set up.
    pub fn open(quiet: bool) -> Result<Self> {
        let copy = |fd: std::io::Result<std::os::fd::OwnedFd>| fd.map(File::from);
        let output = copy(std::io::stdout().as_fd().try_clone_to_owned()).map_err(failed)?;
        let drawn = output.try_clone().map_err(failed)?;
        let (stdin, stderr) = (std::io::stdin(), std::io::stderr());
        let input = stdin.is_terminal().then(|| stdin.as_fd().try_clone_to_owned());
        let error = stderr.is_terminal().then(|| stderr.as_fd().try_clone_to_owned());
        let kept = Kept {
            output,
            input: input.map(copy).transpose().map_err(failed)?,
            error: error.map(copy).transpose().map_err(failed)?,
            quiet,
        };
        let _ = KEPT.set(kept);
        restore_on_panic();
        take().map_err(failed)?;
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, drawn));
        let terminal = Terminal::new(backend).map_err(failed)?;
        let mut screen = Self { terminal };
        // Somebody who was killed may have left the alternate screen to us, with what was on it.
        screen.redraw();
        Ok(screen)
    }

    /// Columns and rows.
    pub fn size(&self) -> Option<(u16, u16)> {
        let size = self.terminal.size().ok()?;
        Some((size.width, size.height))
    }

    /// Shows the state.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn draw(&mut self, state: &State) -> std::io::Result<()> {
        self.terminal.draw(|frame| view(state, frame)).map(|_| ())
    }

    /// Every cell is drawn anew next time. (Ratatui's own way asks the terminal where its cursor is,
    /// and the answer would go to the thread that reads keys.)
    pub fn redraw(&mut self) {
        let _ = execute!(self.terminal.backend_mut(), Clear(ClearType::All));
        // Forgets what was drawn last.
        self.terminal.swap_buffers();
    }

    /// Puts a text on the clipboard of whoever sits at the terminal: OSC 52 of xterm's control
    /// sequences, <https://invisible-island.net/xterm/ctlseqs/ctlseqs.html>.
    pub fn copy(&mut self, text: &str) {
        let out = self.terminal.backend_mut();
        // A terminal that is gone is noticed at the next picture.
        let _ = write!(out, "\x1b]52;c;{}\x07", base64(text.as_bytes()));
        let _ = std::io::Write::flush(out);
    }

    /// Stops as Ctrl-Z does, with everything of our process group, and comes back with `fg`.
    pub fn suspend(&mut self) {
        restore();
        let _ = kill(Pid::from_raw(0), Signal::SIGTSTP);
        let _ = take();
        self.redraw();
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |i: usize| u32::from(chunk.get(i).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for i in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * i) & 63) as usize];
            out.push(if i <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    out
}

/// Makes the terminal ours.
fn take() -> std::io::Result<()> {
    let Some(kept) = KEPT.get() else { return Ok(()) };
    enable_raw_mode()?;
    OURS.store(true, Ordering::SeqCst);
    execute!(&kept.output, EnterAlternateScreen)?;
    if kept.quiet {
        let null = File::options().read(true).write(true).open("/dev/null")?;
        dup2_stdout(&null)?;
        if kept.input.is_some() {
            dup2_stdin(&null)?;
        }
        if kept.error.is_some() {
            dup2_stderr(&null)?;
        }
    }
    Ok(())
}

/// Gives the terminal back as it was. May be called at any time, and twice.
pub fn restore() {
    let Some(kept) = KEPT.get() else { return };
    if !OURS.swap(false, Ordering::SeqCst) {
        return;
    }
    if kept.quiet {
        let _ = dup2_stdout(&kept.output);
        let _ = kept.input.as_ref().map(dup2_stdin);
        let _ = kept.error.as_ref().map(dup2_stderr);
    }
    // The terminal may be gone; there is nobody left to tell.
    let _ = execute!(&kept.output, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
    let _ = (&kept.output).flush();
}

/// A panic of this thread is shown on the terminal as it was; those of others are caught by them
/// and told on the screen.
fn restore_on_panic() {
    let ours = std::thread::current().id();
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == ours {
            restore();
            usual(info);
        }
    }));
}

fn failed(e: std::io::Error) -> Error {
    Error::failed("cannot set up the terminal")
        .because(e)
        .hint("`tdtool report` shows the same as text")
}

#[cfg(test)]
mod tests {
    /// The test vectors of RFC 4648, section 10.
    #[test]
    fn base64_is_that_of_the_rfc() {
        for (text, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(super::base64(text.as_bytes()), coded);
        }
    }
}
