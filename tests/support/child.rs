//! Child processes of tests: each has a time limit, and none outlives the test run.
//!
//! A child leads a process group of its own. A thread kills the groups whose time is over, whatever the test waits
//! for meanwhile: an end, a pipe, a screen. A shell beside the test run reads which groups there are, and kills them
//! when its pipe closes: when the run has ended, normally, by Ctrl-C or by SIGKILL.

use std::collections::BTreeMap;
use std::io::{Result, Write as _};
use std::ops::{Deref, DerefMut};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Output, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The environment variable with another limit, in seconds.
pub const LIMIT: &str = "TDTOOL_TEST_SECONDS";

/// The limit in seconds. The slowest children take half a minute on an idle machine with two processors.
const USUAL: u64 = 300;

/// Time between two looks for groups whose time is over.
const LOOK: Duration = Duration::from_millis(500);

/// What the shell does: it keeps the last list of groups, and kills those.
const KILLER: &str = "trap '' HUP INT QUIT TERM
while read -r line; do groups=$line; done
[ -z \"$groups\" ] || kill -s KILL -- $groups";

/// Starting a program with a limit: its own `output`, `status` and `spawn` let tests wait for ever.
pub trait Limited {
    /// As `Command::spawn`.
    fn start_limited(&mut self) -> Result<Running>;
    /// As `Command::output`, with nothing on its standard input.
    fn run_limited(&mut self) -> Result<Output>;
    /// As `Command::status`.
    fn end_limited(&mut self) -> Result<ExitStatus> {
        self.start_limited()?.wait()
    }
}

impl Limited for Command {
    fn start_limited(&mut self) -> Result<Running> {
        let lead = || {
            // SAFETY: setpgid(2) only takes numbers. It fails for the leader of a session, which leads its group.
            unsafe { libc::setpgid(0, 0) };
            Ok(())
        };
        // SAFETY: that call is async-signal-safe.
        unsafe { self.pre_exec(lead) };
        // The shell first, which takes a while: a run that is killed before it knows of a child leaves that.
        change(|_| ());
        let child = self.spawn()?;
        let group = i32::try_from(child.id()).expect("a process id");
        change(|all| all.insert(group, Group { due: Instant::now() + limit(), has_leader: true }));
        Ok(Running { child, registered: Registered { group, command: format!("{self:?}") } })
    }

    fn run_limited(&mut self) -> Result<Output> {
        self.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.start_limited()?.wait_with_output()
    }
}

/// A child that was started with a limit. It is killed, with its group, if this goes before its end.
pub struct Running {
    child: Child,
    registered: Registered,
}

impl Running {
    /// As `Child::wait`.
    ///
    /// # Panics
    /// Its time was over, here and below.
    pub fn wait(&mut self) -> Result<ExitStatus> {
        let status = self.child.wait()?;
        self.registered.ended("");
        Ok(status)
    }

    /// As `Child::try_wait`.
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        let status = self.child.try_wait()?;
        if status.is_some() {
            self.registered.ended("");
        }
        Ok(status)
    }

    /// As `Child::wait_with_output`.
    pub fn wait_with_output(self) -> Result<Output> {
        let Self { child, registered } = self;
        let output = child.wait_with_output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        registered.ended(&(text(&output.stdout) + &text(&output.stderr)));
        Ok(output)
    }
}

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

/// The group of a child.
struct Registered {
    group: i32,
    command: String,
}

impl Registered {
    /// The child has ended, and was waited for: fails the test if its time was over. What it has left behind in its
    /// group is still killed at the limit, and at the end of the run.
    fn ended(&self, output: &str) {
        let due = change(|all| {
            let group = all.get_mut(&self.group)?;
            std::mem::replace(&mut group.has_leader, false).then_some(group.due)
        });
        if due.is_some_and(|due| due <= Instant::now()) && !std::thread::panicking() {
            let seconds = limit().as_secs();
            panic!("killed after {seconds} s ({LIMIT}): {}\n{output}", self.command);
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let group = change(|all| all.get(&self.group).copied());
        if group.is_some_and(|group| group.has_leader) {
            kill_group(self.group, libc::SIGKILL);
            // SAFETY: it is a child of this process; nothing is written to a null pointer.
            unsafe { libc::waitpid(self.group, std::ptr::null_mut(), 0) };
            change(|all| all.remove(&self.group));
        }
    }
}

/// How long a child may take.
fn limit() -> Duration {
    let other = std::env::var(LIMIT).ok();
    Duration::from_secs(other.map_or(USUAL, |text| text.parse().expect("a number of seconds")))
}

/// Sends a signal to a group, or 0 to look for it; whether there is one.
fn kill_group(group: i32, signal: i32) -> bool {
    // SAFETY: kill(2) only takes numbers.
    unsafe { libc::kill(-group, signal) == 0 }
}

/// A process group that a test has started.
#[derive(Clone, Copy)]
struct Group {
    due: Instant,
    /// The child that leads it has not been waited for. Without it the group lives as long as any process in it,
    /// and its number belongs to no other until then.
    has_leader: bool,
}

/// All groups that may be there.
type Groups = BTreeMap<i32, Group>;

/// Changes which groups there are, and lets the shell know.
fn change<T>(change: impl FnOnce(&mut Groups) -> T) -> T {
    static GROUPS: OnceLock<Mutex<(Groups, ChildStdin)>> = OnceLock::new();
    let groups = GROUPS.get_or_init(|| {
        std::thread::spawn(watch);
        Mutex::new((Groups::new(), killer()))
    });
    let (all, pipe) = &mut *groups.lock().unwrap_or_else(PoisonError::into_inner);
    let before: Vec<i32> = all.keys().copied().collect();
    let changed = change(all);
    if !all.keys().eq(&before) {
        let list: Vec<String> = all.keys().map(|group| format!("-{group}")).collect();
        let line = list.join(" ") + "\n";
        pipe.write_all(line.as_bytes()).expect("the shell that kills what is left reads");
    }
    changed
}

/// The pipe of a shell that kills what is left.
#[expect(clippy::zombie_processes, reason = "it ends after this process")]
fn killer() -> ChildStdin {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", KILLER]).process_group(0);
    shell.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut shell = shell.spawn().expect("a shell");
    shell.stdin.take().expect("a pipe")
}

/// Kills the groups whose time is over, for ever; forgets those that have ended.
fn watch() {
    loop {
        std::thread::sleep(LOOK);
        change(|all| {
            all.retain(|group, of| of.has_leader || kill_group(*group, 0));
            let now = Instant::now();
            let due = all.iter().filter(|(_, of)| of.due <= now);
            due.for_each(|(group, _)| _ = kill_group(*group, libc::SIGKILL));
        });
    }
}
