//! tdtool in a terminal of its own: keys go in, and what is on the screen can be asked for.

use super::child::{Limited as _, Running};
use super::run::command;
use super::wait::until;
use nix::fcntl::{OFlag, open};
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

/// Rows and columns of a screen.
const SIZE: (u16, u16) = (30, 100);

/// A new terminal of 100 × 30: the side that types and looks, and the program's. Programs that
/// other tests start meanwhile inherit neither.
pub fn terminal() -> (File, OwnedFd) {
    terminal_of(SIZE.1)
}

/// The same with this many columns.
fn terminal_of(ws_col: u16) -> (File, OwnedFd) {
    let flags = OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC;
    let master = posix_openpt(flags).expect("a pseudo terminal");
    grantpt(&master).expect("granted");
    unlockpt(&master).expect("unlocked");
    let name = ptsname_r(&master).expect("a name");
    let slave = open(name.as_str(), flags, Mode::empty()).expect("its other side");
    let ws_row = SIZE.0;
    let size = libc::winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the file is a terminal, and the kernel reads one `winsize`.
    let done = unsafe { libc::ioctl(slave.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
    assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    (File::from(OwnedFd::from(master)), slave)
}

/// Runs a program whose standard error is a terminal: its status, and what it wrote there.
pub fn on_terminal(mut command: Command) -> (ExitStatus, String) {
    let (master, slave) = terminal();
    command.stdin(Stdio::null()).stderr(slave);
    shown(command, master)
}

/// Runs a program both of whose outputs are a terminal of so many columns: its status, and what it wrote.
pub fn on_terminal_of(columns: u16, mut command: Command) -> (ExitStatus, String) {
    let (master, slave) = terminal_of(columns);
    command.env("TERM", "xterm-256color").env_remove("NO_COLOR").stdin(Stdio::null());
    command.stdout(slave.try_clone().expect("a copy")).stderr(slave);
    shown(command, master)
}

fn shown(mut command: Command, mut master: File) -> (ExitStatus, String) {
    let mut child = command.start_limited().expect("it starts");
    // This process's copy of the terminal goes with the command, so that reading ends.
    drop(command);
    let mut shown = Vec::new();
    // Reading a terminal whose other side is closed is an error, not an end.
    let _ = master.read_to_end(&mut shown);
    (child.wait().expect("it ends"), String::from_utf8_lossy(&shown).into_owned())
}

/// tdtool in a terminal.
pub struct Pty {
    child: Running,
    keys: File,
    /// The program's side: keeps the terminal's settings alive for a look afterwards.
    slave: OwnedFd,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Pty {
    /// Starts tdtool with these arguments.
    pub fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::open(arguments, environment, true)
    }

    /// As [`start`](Self::start), where the terminal is not that of its session: there is no `/dev/tty`.
    pub fn start_uncontrolled(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::open(arguments, environment, false)
    }

    /// Starts a shell with job control, whose jobs can be stopped.
    pub fn shell() -> Self {
        let mut shell = Command::new("sh");
        shell.arg("-i").env("PS1", "shell> ").env_remove("ENV");
        Self::of(shell, &[], true)
    }

    fn open(arguments: &[&str], environment: &[(&str, &str)], controls: bool) -> Self {
        Self::of(command(arguments), environment, controls)
    }

    fn of(mut command: Command, environment: &[(&str, &str)], controls: bool) -> Self {
        let (keys, slave) = terminal();
        let end = || Stdio::from(slave.try_clone().expect("a copy"));
        command.env("TERM", "xterm-256color").env_remove("NO_COLOR");
        command.envs(environment.iter().copied());
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: both calls are async-signal-safe and touch nothing of this process.
        unsafe {
            command.pre_exec(move || {
                libc::setsid();
                if controls {
                    // Standard input is the terminal by now.
                    libc::ioctl(0, libc::TIOCSCTTY, 0);
                }
                Ok(())
            });
        }
        let child = command.start_limited().expect("tdtool starts");
        let screen = Arc::new(Mutex::new(vt100::Parser::new(SIZE.0, SIZE.1, 0)));
        show(keys.try_clone().expect("a copy"), Arc::clone(&screen));
        Self { child, keys, slave, screen }
    }

    /// Process id of tdtool.
    pub fn pid(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.child.id()).expect("a process id"))
    }

    /// Types.
    pub fn types(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("typed");
    }

    /// What is on the screen.
    pub fn text(&self) -> String {
        self.look(|screen| screen.contents())
    }

    /// Asks the screen.
    pub fn look<T>(&self, ask: impl FnOnce(&vt100::Screen) -> T) -> T {
        ask(self.screen.lock().expect("the screen").screen())
    }

    /// Waits until `wanted` is on the screen.
    pub fn wait_for(&self, wanted: &str) {
        self.wait_until(wanted, |screen| screen.contents().contains(wanted));
    }

    /// Waits until the screen is as it should be.
    pub fn wait_until(&self, what: &str, done: impl Fn(&vt100::Screen) -> bool) {
        until(|| self.look(&done), || format!("no `{what}` on the screen:\n{}", self.text()));
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("sent");
    }

    /// Waits for its end.
    pub fn end(&mut self) -> ExitStatus {
        let Self { child, screen, .. } = self;
        let mut status = None;
        let ended = || {
            status = child.try_wait().expect("a status");
            status.is_some()
        };
        let contents = || screen.lock().expect("the screen").screen().contents();
        until(ended, || format!("it does not end:\n{}", contents()));
        status.expect("it has ended")
    }

    /// Whether typed letters go to the program as they are, unseen.
    pub fn is_raw(&self) -> bool {
        let flags = tcgetattr(&self.slave).expect("settings").local_flags;
        !flags.intersects(LocalFlags::ICANON | LocalFlags::ECHO)
    }

    /// Nothing of the program is left in the terminal: no alternate screen, the cursor is seen,
    /// lines are edited and typed letters shown.
    pub fn assert_restored(&self) {
        let ours = |s: &vt100::Screen| !s.alternate_screen() && !s.hide_cursor();
        self.wait_until("restored terminal", ours);
        let flags = tcgetattr(&self.slave).expect("settings").local_flags;
        assert!(flags.contains(LocalFlags::ICANON | LocalFlags::ECHO), "still raw: {flags:?}");
    }
}

/// Shows what is written on the screen.
fn show(mut from: File, on: Arc<Mutex<vt100::Parser>>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut bytes) {
            on.lock().expect("the screen").process(&bytes[..n]);
        }
    });
}
