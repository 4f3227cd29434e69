//! Takes the terminal (raw mode, the alternate screen) and gives it back: on quit, on a panic, on a signal, and
//! while the program is stopped.
//!
//! A measured command must not write over the screen. While one runs, standard input is /dev/null, output and error
//! go where they are caught, as far as they are the terminal.

use super::state::State;
use super::view::view;
use crate::terminal;
use crossterm::cursor::Show;
use crossterm::event::{DisableMouseCapture, EnableMouseCapture};
use crossterm::execute;
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use nix::sys::signal::{SigSet, Signal, kill, raise};
use nix::unistd::{Pid, dup2_stderr, dup2_stdin, dup2_stdout};
use ratatui::backend::CrosstermBackend;
use ratatui::layout::Rect;
use ratatui::{Terminal, TerminalOptions, Viewport};
use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use terminal_size::terminal_size_of;
use tma::{Error, Result};

/// The original streams, to be restored from any thread.
static ORIGINAL: OnceLock<Streams> = OnceLock::new();
/// Whether there is something to restore.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// The standard streams, as far as they are the terminal.
struct Streams {
    output: File,
    input: Option<File>,
    error: Option<File>,
}

/// Where the output of a measured command goes; `None`: none is measured, or its output is not wanted any more.
static CAUGHT: Mutex<Option<File>> = Mutex::new(None);
/// Whether a command is measured, so that the streams are redirected.
static REDIRECT: AtomicBool = AtomicBool::new(false);

/// Whether the mouse is taken, too.
static MOUSE: AtomicBool = AtomicBool::new(false);

/// The screen to draw on.
pub struct AlternateScreen {
    terminal: Terminal<CrosstermBackend<BufWriter<File>>>,
}

impl AlternateScreen {
    /// Takes the terminal, and its `mouse`; other processes can neither write to it nor read from it if their output
    /// goes to `caught`.
    pub fn open(caught: Option<File>, mouse: bool) -> Result<Self> {
        MOUSE.store(mouse, Ordering::SeqCst);
        REDIRECT.store(caught.is_some(), Ordering::SeqCst);
        *CAUGHT.lock().unwrap_or_else(PoisonError::into_inner) = caught;
        let copy = |fd: std::io::Result<std::os::fd::OwnedFd>| fd.map(File::from);
        let output = copy(std::io::stdout().as_fd().try_clone_to_owned()).map_err(failed)?;
        let drawn = output.try_clone().map_err(failed)?;
        let (stdin, stderr) = (std::io::stdin(), std::io::stderr());
        let input = stdin.is_terminal().then(|| stdin.as_fd().try_clone_to_owned());
        let error = stderr.is_terminal().then(|| stderr.as_fd().try_clone_to_owned());
        let streams = Streams {
            output,
            input: input.map(copy).transpose().map_err(failed)?,
            error: error.map(copy).transpose().map_err(failed)?,
        };
        let _ = ORIGINAL.set(streams);
        restore_on_panic();
        take().map_err(failed)?;
        let backend = CrosstermBackend::new(BufWriter::with_capacity(1 << 16, drawn));
        let options = TerminalOptions { viewport: Viewport::Fixed(area()) };
        let terminal = Terminal::with_options(backend, options).map_err(failed)?;
        let mut screen = Self { terminal };
        // A killed program may have left its picture on the alternate screen.
        screen.redraw();
        Ok(screen)
    }

    /// Columns and rows.
    pub fn size(&self) -> (u16, u16) {
        let area = area();
        (area.width, area.height)
    }

    /// Shows the state.
    pub fn draw(&mut self, state: &State) -> std::io::Result<()> {
        let area = area();
        if self.terminal.get_frame().area() != area {
            self.terminal.resize(area)?;
        }
        self.terminal.draw(|frame| view(state, frame)).map(|_| ())
    }

    /// Draws every cell again next time. (Ratatui's `clear` asks the terminal for its cursor, and the
    /// answer would go to the thread that reads keys.)
    pub fn redraw(&mut self) {
        let _ = execute!(self.terminal.backend_mut(), Clear(ClearType::All));
        // Discards the previous picture.
        self.terminal.swap_buffers();
    }

    /// Puts a text on the user's clipboard: OSC 52 of xterm's control sequences,
    /// <https://invisible-island.net/xterm/ctlseqs/ctlseqs.html>.
    pub fn copy(&mut self, text: &str) {
        let out = self.terminal.backend_mut();
        // If the terminal is gone, drawing the next picture fails.
        let _ = write!(out, "\x1b]52;c;{}\x07", base64(text.as_bytes()));
        let _ = std::io::Write::flush(out);
    }

    /// Asks the process group to stop as Ctrl-Z does: this program by [`Self::stop`], a measured command at once.
    pub fn suspend() {
        let _ = kill(Pid::from_raw(0), Signal::SIGTSTP);
    }

    /// Gives the terminal back, stops until `fg`, and takes it again. Without a shell to continue it (an orphaned
    /// process group) the kernel does not stop a program.
    pub fn stop(&mut self) {
        restore();
        let stop = SigSet::from(Signal::SIGTSTP);
        let _ = stop.thread_unblock();
        let _ = raise(Signal::SIGTSTP);
        let _ = stop.thread_block();
        self.resume();
    }

    /// Takes the terminal after a stop: the shell, and whatever ran meanwhile, set it to what they needed.
    pub fn resume(&mut self) {
        // Raw mode that crossterm believes to be in force is not set again. In the background this waits for `fg`.
        let _ = disable_raw_mode();
        let _ = take();
        self.redraw();
    }
}

impl Drop for AlternateScreen {
    fn drop(&mut self) {
        restore();
        // Whoever reads it comes to its end.
        CAUGHT.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

/// The whole terminal. (Ratatui would ask crossterm, which runs `tput` if the terminal does not say its size.)
fn area() -> Rect {
    let size = ORIGINAL.get().and_then(|streams| terminal_size_of(&streams.output));
    let (width, height) = size.map_or((0, 0), |(width, height)| (width.0, height.0));
    match width > 0 && height > 0 {
        true => Rect::new(0, 0, width, height),
        false => Rect::new(0, 0, 80, 24),
    }
}

/// Base64 of RFC 4648, section 4.
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

/// Enters raw mode and the alternate screen.
fn take() -> std::io::Result<()> {
    let Some(original) = ORIGINAL.get() else { return Ok(()) };
    enable_raw_mode()?;
    terminal::draw_on(true);
    ACTIVE.store(true, Ordering::SeqCst);
    execute!(&original.output, EnterAlternateScreen)?;
    if MOUSE.load(Ordering::SeqCst) {
        execute!(&original.output, EnableMouseCapture)?;
    }
    if REDIRECT.load(Ordering::SeqCst) { redirect(original) } else { Ok(()) }
}

/// Redirects the streams that are the terminal.
fn redirect(original: &Streams) -> std::io::Result<()> {
    let null = File::options().read(true).write(true).open("/dev/null")?;
    let caught = CAUGHT.lock().unwrap_or_else(PoisonError::into_inner);
    let output = caught.as_ref().unwrap_or(&null);
    dup2_stdout(output)?;
    // Keys then come from the controlling terminal; without one, only from there.
    if original.input.is_some() && File::open("/dev/tty").is_ok() {
        dup2_stdin(&null)?;
    }
    if original.error.is_some() {
        dup2_stderr(output)?;
    }
    Ok(())
}

/// Further runs of the command may write what they like: it is not shown again.
pub fn silence() {
    CAUGHT.lock().unwrap_or_else(PoisonError::into_inner).take();
    // Streams that are still the terminal stay so: keys are read from standard input then.
    let is_redirected = ACTIVE.load(Ordering::SeqCst) && REDIRECT.load(Ordering::SeqCst);
    if let Some(original) = ORIGINAL.get().filter(|_| is_redirected) {
        // Without it their output would come a second time, which does no harm.
        let _ = redirect(original);
    }
}

/// Restores the terminal. May be called at any time, and repeatedly.
fn restore() {
    let Some(original) = ORIGINAL.get() else { return };
    if !ACTIVE.swap(false, Ordering::SeqCst) {
        return;
    }
    if REDIRECT.load(Ordering::SeqCst) {
        let _ = dup2_stdout(&original.output);
        let _ = original.input.as_ref().map(dup2_stdin);
        let _ = original.error.as_ref().map(dup2_stderr);
    }
    // If the terminal is gone, nothing is left to restore.
    if MOUSE.load(Ordering::SeqCst) {
        let _ = execute!(&original.output, DisableMouseCapture);
    }
    let _ = execute!(&original.output, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
    let _ = (&original.output).flush();
    terminal::draw_on(false);
}

/// Restores the terminal before a panic of this thread is printed; other threads catch their own
/// panics and show them on the screen.
fn restore_on_panic() {
    let this = std::thread::current().id();
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::thread::current().id() == this {
            restore();
            default(info);
        }
    }));
}

fn failed(e: std::io::Error) -> Error {
    Error::failed("cannot set up the terminal")
        .because(e)
        .hint("`tdtool report` prints the same as text")
}

#[cfg(test)]
mod tests {
    /// The test vectors of RFC 4648, section 10.
    #[test]
    fn base64_passes_the_test_vectors() {
        for (text, coded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(super::base64(text.as_bytes()), coded);
        }
    }
}
