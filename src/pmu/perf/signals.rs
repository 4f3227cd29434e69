//! Catches and forwards the signals that end a measurement, and restores their actions afterwards. Reads the
//! control pipe, whose commands, in perf's words, switch counting on and off.

use crate::Control;
use crate::kernel::Order;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU16, Ordering};
use std::time::Duration;
use tma::error::{Error, Result};

/// The signals that end a measurement.
pub(super) const ENDING: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

/// Time until the end of the work is noticed that a signal may stop.
const NOTICE: Duration = Duration::from_millis(20);

/// Where the handler writes; -1 while no measurement runs.
static PIPE: AtomicI32 = AtomicI32::new(-1);
/// A signal that came between measurements, as its two bytes in the pipe; 0 is none.
static HELD: AtomicU16 = AtomicU16::new(0);
/// Whether a second one is held, too.
static LASTS: AtomicBool = AtomicBool::new(false);

/// Catches the ending signals until dropped. One at a time in a process.
pub struct Signals {
    reader: OwnedFd,
    /// Open for the handler.
    writer: OwnedFd,
    old: Vec<(Signal, SigAction)>,
}

/// The signal, and whether the kernel (the terminal driver) sent it.
///
/// # Safety
/// `info` is null, or what the kernel passed to a handler with SA_SIGINFO.
unsafe fn bytes_of(number: libc::c_int, info: *const libc::siginfo_t) -> [u8; 2] {
    // `SI_KERNEL` of asm-generic/siginfo.h: sent to the foreground group by the terminal.
    const SI_KERNEL: libc::c_int = 0x80;
    // SAFETY: as the caller says.
    let from_kernel = unsafe { !info.is_null() && (*info).si_code == SI_KERNEL };
    [number as u8, u8::from(from_kernel)]
}

/// Writes the signal to the pipe.
extern "C" fn note(number: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo; errno is this thread's own.
    let (bytes, errno) = unsafe { (bytes_of(number, info), libc::__errno_location()) };
    // SAFETY: write is async-signal-safe, the pipe does not block, and errno is restored.
    unsafe {
        let saved = *errno;
        libc::write(PIPE.load(Ordering::Relaxed), bytes.as_ptr().cast(), bytes.len());
        *errno = saved;
    }
}

/// Keeps it for the next measurement; a second one ends the program, as whatever runs between measurements may take long.
extern "C" fn hold(number: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid siginfo.
    let bytes = unsafe { bytes_of(number, info) };
    let is_second = HELD.swap(u16::from_ne_bytes(bytes), Ordering::SeqCst) != 0;
    if is_second && !LASTS.load(Ordering::SeqCst) {
        // SAFETY: both are async-signal-safe; it is delivered when the handler returns.
        unsafe {
            libc::signal(number, libc::SIG_DFL);
            libc::raise(number);
        }
    }
}

type Handler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Sets the action of signals, but for those that are ignored (nohup); and what they were.
///
/// # Safety
/// `handler` is async-signal-safe.
unsafe fn handle(signals: &[Signal], handler: Handler) -> nix::Result<Vec<(Signal, SigAction)>> {
    let flags = SaFlags::SA_SIGINFO | SaFlags::SA_RESTART;
    let action = SigAction::new(SigHandler::SigAction(handler), flags, SigSet::empty());
    let one = |&signal: &Signal| {
        // SAFETY: as the caller says.
        let old = unsafe { sigaction(signal, &action) }?;
        if matches!(old.handler(), SigHandler::SigIgn) {
            // SAFETY: restores the previous action.
            let _ = unsafe { sigaction(signal, &old) };
        }
        Ok((signal, old))
    };
    signals.iter().map(one).collect()
}

/// Restores actions.
fn restore(old: &[(Signal, SigAction)]) {
    for (signal, old) in old {
        // SAFETY: restores the previous action.
        let _ = unsafe { sigaction(*signal, old) };
    }
}

/// While it exists, an ending signal that comes between measurements interrupts the next one.
pub struct HeldSignals(Vec<(Signal, SigAction)>);

impl HeldSignals {
    /// Starts, before any measurement catches them.
    ///
    /// # Errors
    /// The actions of signals cannot be set.
    pub fn start() -> Result<Self> {
        HELD.store(0, Ordering::SeqCst);
        // SAFETY: the handler only stores a number.
        let old = unsafe { handle(&ENDING, hold) };
        old.map(Self).map_err(|e| Error::failed("cannot catch signals").because(e.desc()))
    }

    /// From now on a second one does not end the program, nor does SIGQUIT: something is to be restored first.
    ///
    /// # Errors
    /// The actions of signals cannot be set.
    pub fn hold_all(&mut self) -> Result<()> {
        LASTS.store(true, Ordering::SeqCst);
        // SAFETY: the handler only stores a number.
        let old = unsafe { handle(&[Signal::SIGQUIT], hold) };
        let old = old.map_err(|e| Error::failed("cannot catch signals").because(e.desc()))?;
        self.0.extend(old);
        Ok(())
    }

    /// The signal that came after the last measurement.
    pub fn end(self) -> Option<i32> {
        let [signal, _] = HELD.swap(0, Ordering::SeqCst).to_ne_bytes();
        (signal > 0).then_some(i32::from(signal))
    }
}

impl Drop for HeldSignals {
    fn drop(&mut self) {
        LASTS.store(false, Ordering::SeqCst);
        restore(&self.0);
    }
}

impl Signals {
    /// Starts catching. A signal that was ignored (nohup) stays ignored.
    pub fn catch() -> Result<Self> {
        let failed = |e: nix::Error| Error::failed("cannot catch signals").because(e.desc());
        let flags = nix::fcntl::OFlag::O_CLOEXEC | nix::fcntl::OFlag::O_NONBLOCK;
        let (reader, writer) = nix::unistd::pipe2(flags).map_err(failed)?;
        if PIPE
            .compare_exchange(-1, writer.as_raw_fd(), Ordering::SeqCst, Ordering::SeqCst)
            .is_err()
        {
            return Err(Error::failed("another measurement is running in this process"));
        }
        let mut signals = Self { reader, writer, old: Vec::new() };
        // SAFETY: the handler only calls write.
        signals.old = unsafe { handle(&ENDING, note) }.map_err(failed)?;
        let held = HELD.swap(0, Ordering::SeqCst);
        if held != 0 {
            nix::unistd::write(&signals.writer, &held.to_ne_bytes()).map_err(failed)?;
        }
        Ok(signals)
    }

    /// Becomes readable when a signal has come.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.reader.as_fd()
    }

    /// The next signal noted: its number, and whether the terminal sent it.
    pub fn next(&self) -> Option<(i32, bool)> {
        let mut bytes = [0; 2];
        match nix::unistd::read(&self.reader, &mut bytes) {
            Ok(2) => Some((i32::from(bytes[0]), bytes[1] != 0)),
            _ => None,
        }
    }

    /// Waits until a signal has come, which stays the next one, for at most this time; whether one has.
    pub fn wait(&self, longest: Duration) -> bool {
        let mut fds = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
        ppoll(&mut fds, Some(longest.into()), None) == Ok(1)
    }

    /// Does `work`, and calls `stop` from another thread if a signal comes meanwhile, which stays the next one
    /// unless `stop` takes it.
    pub fn during<T>(&self, stop: impl FnOnce() + Send, work: impl FnOnce() -> T) -> T {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Also after a panic, as the scope waits for its thread.
            let _done = Done(&done);
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    if self.wait(NOTICE) {
                        return stop();
                    }
                }
            });
            work()
        })
    }

    /// Result of `work`; `None` as soon as a signal comes, which stays the next one. The work then goes on in its
    /// thread, and its result is dropped: it must change nothing that others see.
    pub fn unless_one_comes<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let working = std::thread::spawn(work);
        while !working.is_finished() {
            if self.wait(NOTICE) {
                return None;
            }
        }
        match working.join() {
            Ok(found) => Some(found),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }

    /// Forwards the next signal to process `pid`, unless the terminal has sent it to both, and
    /// returns its number.
    pub fn forward(&self, pid: i32) -> Option<i32> {
        let (signal, from_terminal) = self.next()?;
        if !from_terminal && let Ok(signal) = Signal::try_from(signal) {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal);
        }
        Some(signal)
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        restore(&self.old);
        // One that came after the last look, where signals are held between measurements, is held, too.
        let is_held = |(_, old): &(Signal, SigAction)| match old.handler() {
            SigHandler::SigAction(handler) => handler as usize == hold as Handler as usize,
            _ => false,
        };
        if self.old.iter().any(is_held)
            && let Some((number, is_terminal)) = self.next()
        {
            let bytes = [u8::try_from(number).unwrap_or(0), u8::from(is_terminal)];
            HELD.store(u16::from_ne_bytes(bytes), Ordering::SeqCst);
        }
        PIPE.store(-1, Ordering::SeqCst);
    }
}

struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Longest command; what is longer is none.
const LONGEST: usize = 256;

/// Open pipes.
pub(super) struct Pipe {
    commands: File,
    ack: Option<File>,
    /// Text read that is not yet a whole line.
    text: Vec<u8>,
}

impl Pipe {
    /// Opens them for reading and writing, as perf does: opening does not block, and a writer that goes away ends
    /// nothing.
    pub(super) fn open(control: &Control) -> Result<Self> {
        let ack = control.ack.as_deref().map(pipe).transpose()?;
        Ok(Self { commands: pipe(&control.commands)?, ack, text: Vec::new() })
    }

    /// The next command, if there is one.
    pub(super) fn next(&mut self) -> Option<Order> {
        loop {
            let is_end = |byte: &u8| matches!(byte, b'\n' | 0);
            if let Some(end) = self.text.iter().position(is_end) {
                let line: Vec<u8> = self.text.drain(..=end).collect();
                match line[..end].trim_ascii() {
                    b"" => continue,
                    b"enable" => return Some(Order::Enable),
                    b"disable" => return Some(Order::Disable),
                    b"ping" => return Some(Order::Ping),
                    _ => return Some(Order::Unknown),
                }
            }
            if self.text.len() > LONGEST {
                self.text.clear();
                return Some(Order::Unknown);
            }
            let mut bytes = [0; LONGEST];
            match self.commands.read(&mut bytes) {
                Ok(n @ 1..) => self.text.extend(&bytes[..n]),
                _ => return None,
            }
        }
    }

    /// Writes `ack`. Nobody may read it: then it is lost when the pipe is full.
    pub(super) fn acknowledge(&mut self) {
        let _ = self.ack.as_mut().map(|ack| ack.write_all(b"ack\n"));
    }
}

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.commands.as_fd()
    }
}

fn pipe(path: &Path) -> Result<File> {
    let failed = || Error::failed(format!("cannot open the control pipe {}", path.display()));
    let make = || format!("mkfifo {}", path.display());
    let flags = (OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).bits();
    let opened = File::options().read(true).write(true).custom_flags(flags).open(path);
    let file = opened.map_err(|e| failed().because(e).hint(make()))?;
    match file.metadata() {
        Ok(found) if found.file_type().is_fifo() => Ok(file),
        _ => Err(failed()
            .because("it is no named pipe")
            .hint("`mkfifo PATH` makes one; give a path where nothing is yet")),
    }
}
