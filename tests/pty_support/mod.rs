//! tdtool in a terminal of its own: keys go in, and what is on the screen can be asked for.

use nix::pty::{Winsize, openpty};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// So long anything may take on a busy machine before a test gives up.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program in a terminal.
pub struct Pty {
    child: Child,
    keys: File,
    /// The program's side: keeps the terminal's settings alive for a look afterwards.
    slave: OwnedFd,
    screen: Arc<Mutex<vt100::Parser>>,
}

impl Pty {
    /// Starts `tdtool` with these arguments on a screen of 100 × 30.
    pub fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        let pty = openpty(&size, None).expect("a pseudo terminal");
        let end = || Stdio::from(pty.slave.try_clone().expect("a copy"));
        let mut command = Command::new(env!("CARGO_BIN_EXE_tdtool"));
        command.args(arguments).env("TERM", "xterm-256color").env_remove("NO_COLOR");
        command.envs(environment.iter().copied());
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: both calls are async-signal-safe and touch nothing of this process.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                // Standard input is the terminal by now.
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let child = command.spawn().expect("tdtool starts");
        let screen = Arc::new(Mutex::new(vt100::Parser::new(30, 100, 0)));
        let keys = File::from(pty.master);
        read(keys.try_clone().expect("a copy"), Arc::clone(&screen));
        Self { child, keys, slave: pty.slave, screen }
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
        let start = Instant::now();
        while !self.look(&done) {
            assert!(start.elapsed() < PATIENCE, "no `{what}` on the screen:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("sent");
    }

    /// Waits for its end.
    pub fn end(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("a status") {
                return status;
            }
            assert!(start.elapsed() < PATIENCE, "it does not end:\n{}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Nothing of the program is left in the terminal: no alternate screen, the cursor is seen,
    /// lines are edited and typed letters shown.
    pub fn assert_restored(&self) {
        let ours = |s: &vt100::Screen| !s.alternate_screen() && !s.hide_cursor();
        self.wait_until("restored terminal", ours);
        let settings = nix::sys::termios::tcgetattr(&self.slave).expect("settings");
        let flags = settings.local_flags;
        let cooked = nix::sys::termios::LocalFlags::ICANON | nix::sys::termios::LocalFlags::ECHO;
        assert!(flags.contains(cooked), "still raw: {flags:?}");
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read(mut from: File, into: Arc<Mutex<vt100::Parser>>) {
    std::thread::spawn(move || {
        let mut bytes = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut bytes) {
            into.lock().expect("the screen").process(&bytes[..n]);
        }
    });
}
