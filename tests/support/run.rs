//! Starting tdtool and other programs, and what they leave behind.
//!
//! All of them start with the signal handling that a terminal gives: the test run itself may be in
//! the background of a script, which has SIGINT ignored, and programs inherit that.

use super::child::{Limited as _, Running};
use super::printed;
use nix::sys::signal::{SigHandler, Signal, kill, signal};
use nix::unistd::Pid;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitStatus, Output, Stdio};

/// The program under test.
pub const TDTOOL: &str = env!("CARGO_BIN_EXE_tdtool");

/// A program that has ended.
#[derive(Debug)]
pub struct Ran {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    /// Its exit status; `None` if a signal ended it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The same, of a program that must have succeeded.
    pub fn succeeded(self) -> Self {
        assert!(self.status.success(), "{}: {}{}", self.status, self.stdout, self.stderr);
        self
    }

    /// The JSON document on its standard output.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}{}", self.stdout, self.stderr))
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        [&output.stdout, &output.stderr].iter().for_each(|all| printed::check(&text(all)));
        Self { status: output.status, stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}

/// Runs tdtool with these arguments and nothing on its standard input.
pub fn tdtool(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
    run(&mut command(arguments))
}

/// The same with `input` on its standard input.
pub fn tdtool_reading(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>, input: &[u8]) -> Ran {
    let mut child = start(command(arguments).stdin(Stdio::piped()));
    // It may end before it has read everything.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    ended(child)
}

/// tdtool with these arguments, not yet started.
pub fn command(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = program(TDTOOL);
    // What perf and others have collected here would stand for files that a test has removed.
    // Self-tests are kept from test to test, apart from those of the user.
    command.env("XDG_CACHE_HOME", concat!(env!("CARGO_TARGET_TMPDIR"), "/cache"));
    // Whatever the locale of the test run is.
    command.env("LC_ALL", "C.UTF-8").env_remove("TDTOOL_CHECK_ONLY");
    command.env("PERF_BUILDID_DIR", "/none").env("DEBUGINFOD_CACHE_PATH", "/none");
    command.args(arguments);
    command
}

/// Any program, not yet started.
pub fn program(name: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(name);
    // SAFETY: signal(2) is async-signal-safe, and the handler is the kernel's own.
    unsafe { command.pre_exec(usual_signals) };
    command
}

/// Default signal handling, for a program that would inherit other.
pub fn usual_signals() -> std::io::Result<()> {
    for which in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        // SAFETY: no handler of ours is set, and the default one is safe at any time.
        unsafe { signal(which, SigHandler::SigDfl) }?;
    }
    Ok(())
}

/// Runs it to its end, with nothing on its standard input.
pub fn run(command: &mut Command) -> Ran {
    command.run_limited().unwrap_or_else(|e| panic!("{command:?}: {e}")).into()
}

/// Starts it with both outputs kept for [`ended`].
pub fn start(command: &mut Command) -> Running {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.start_limited().unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

/// Waits for its end.
pub fn ended(child: Running) -> Ran {
    child.wait_with_output().expect("it was started").into()
}

/// Sends it a signal.
pub fn send(child: &Running, signal: Signal) {
    let pid = i32::try_from(child.id()).expect("a process id");
    kill(Pid::from_raw(pid), signal).expect("it runs");
}
