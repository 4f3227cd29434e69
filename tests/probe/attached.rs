//! A live process counted for a while, again and again: it does what it does, and its code is as it was.

use super::attached_programs::{COMMON, CONTEXTS, FORKS, LEADER, SHARING, THREADS};
use super::counts::{function, numbers, with_signals};
use crate::support::child::Running;
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::{Ran, ended, program, send, start};
use crate::support::tools::gcc;
use crate::support::wait::until;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pmu::perf::Signals;
use probe::count::{Counts, Wanted, count, count_process};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

pub fn counted(pid: i32, wanted: &[Wanted], window: Duration) -> Option<Counts> {
    with_signals(|signals| count_process(pid, wanted, window, signals, &mut |_, _| {}))
}

/// The same, or why it was not possible.
pub fn counted_or_not(pid: i32, wanted: &[Wanted], window: Duration) -> Result<Counts, String> {
    let count = |signals: &Signals| {
        Ok(count_process(pid, wanted, window, signals, &mut |_, _| {})
            .map_err(|e| format!("{e:?}")))
    };
    with_signals(count).unwrap()
}

/// A program that runs until a signal ends it.
pub struct Live {
    pub file: PathBuf,
    pub running: Option<Running>,
}

impl Live {
    pub fn start(folder: &Folder, source: &str, options: &[&str]) -> Option<Self> {
        let options = [&["-O2", "-pthread", "-lrt"], options].concat();
        let source = [COMMON, source].concat();
        let file = gcc(folder.path(), &source, &options, "live")?.canonicalize().unwrap();
        let running = start(program(text(&file)).stdin(Stdio::piped()));
        let live = Self { file, running: Some(running) };
        // It has begun to use its processor time: field 14 of proc_pid_stat(5).
        until(|| live.ticks() > 2, || "the program does not run".to_owned());
        Some(live)
    }

    pub fn pid(&self) -> i32 {
        self.running.as_ref().unwrap().id().cast_signed()
    }

    pub fn ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let fields = stat.rsplit_once(')').unwrap().1;
        fields.split_whitespace().nth(11).unwrap().parse().unwrap()
    }

    pub fn wanted<const N: usize>(&self, names: [&str; N]) -> [Wanted; N] {
        names.map(|name| function(&self.file, name))
    }

    /// All of its code is what its file says.
    pub fn assert_restored(&self, round: usize) {
        assert_restored(self.pid(), &self.file, round);
    }

    pub fn end(mut self) {
        let running = self.running.take().unwrap();
        send(&running, Signal::SIGTERM);
        let Ran { status, stdout, stderr } = ended(running);
        assert_eq!((status.code(), stdout.trim()), (Some(4), "right"), "{status} {stderr}");
    }
}

fn assert_restored(pid: i32, file: &Path, round: usize) {
    assert!(is_restored(pid, file), "the code is as it was, round {round}");
}

/// Whether all of the code of a process is what its file says.
pub fn is_restored(pid: i32, file: &Path) -> bool {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"));
    // The exit code, where the program has ended, is the last field (proc_pid_stat(5)).
    let stat = || std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let maps = maps.unwrap_or_else(|e| panic!("{e}: {:?}", stat()));
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let content = std::fs::read(file).unwrap();
    let mut any = false;
    for line in maps.lines().filter(|line| line.ends_with(text(file)) && line.contains(" r-xp ")) {
        let mut fields = line.split_whitespace();
        let (start, end) = fields.next().unwrap().split_once('-').unwrap();
        let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
        let (start, end, offset) = (number(start), number(end), number(fields.nth(1).unwrap()));
        let mut bytes = vec![0; (end - start) as usize];
        memory.read_exact_at(&mut bytes, start).unwrap();
        let of_file = &content[offset as usize..content.len().min((offset + end - start) as usize)];
        if !bytes.starts_with(of_file) {
            return false;
        }
        any = true;
    }
    assert!(any, "{maps}");
    true
}

/// The state of a process: the third field of proc_pid_stat(5).
pub fn state(pid: i32) -> char {
    state_of(Path::new(&format!("/proc/{pid}")))
}

/// The same of a folder of a process or a thread; `X` if it has ended.
pub fn state_of(folder: &Path) -> char {
    let stat = std::fs::read_to_string(folder.join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next()).unwrap_or('X')
}

/// Trampolines lie in executable memory without a file, and stand for code of the functions, or for what
/// they call.
fn assert_mapped(pid: i32, counts: &Counts, wanted: &[Wanted]) {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let is_mapped = |address: u64| {
        maps.lines().any(|line| {
            let (range, rest) = line.split_once(' ').unwrap();
            let (start, end) = range.split_once('-').unwrap();
            let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
            (number(start)..number(end)).contains(&address)
                && rest.starts_with("r-xp 00000000 00:00 0")
        })
    };
    let [trampolines] = &counts.trampolines[..] else { panic!("{:?}", counts.trampolines) };
    assert_eq!(trampolines.process, pid);
    let inside = |original: u64| wanted.iter().any(|of| of.range.contains(&original));
    let own = trampolines.all().filter(|(_, original)| inside(*original)).count();
    assert!(2 * own > counts.probes, "{own} of {}", counts.probes);
    for (range, original) in trampolines.all() {
        assert!(is_mapped(range.start) && is_mapped(range.end - 1), "{range:x?}");
        assert_eq!(trampolines.original(range.end - 1), Some(original));
    }
}

#[test]
fn two_hundred_times_threads_under_load_with_signals() {
    let _busy = busy();
    let folder = Folder::new();
    for (options, rounds) in [(["-pie", "-O2"], 150), (["-no-pie", "-O1"], 50)] {
        let Some(live) = Live::start(&folder, THREADS, &options) else { return };
        let wanted = live.wanted(["part", "tight", "work", "on", "check", "main"]);
        for round in 0..rounds {
            let window = Duration::from_millis(if round % 50 == 0 { 100 } else { 3 });
            let Some(counts) = counted(live.pid(), &wanted, window) else { return };
            let part = counts.functions[0].as_ref().unwrap();
            if round % 50 == 0 {
                // All that is between two calls runs as often, but for the calls of each thread at the
                // beginning and at the end.
                let entries = part.blocks[0].count.clone().unwrap();
                let most = *numbers(part).last().unwrap();
                let off = most.abs_diff(1000 * entries);
                assert!(entries > 0 && off <= 6000 + part.slack, "{off} {part:?}");
            }
            live.assert_restored(round);
        }
        live.end();
    }
}

#[test]
fn contexts_that_are_saved_in_the_middle_of_anything() {
    let _busy = busy();
    let folder = Folder::new();
    for options in [["-pie", "-O2"], ["-no-pie", "-O3"]] {
        let Some(live) = Live::start(&folder, CONTEXTS, &options) else { return };
        let wanted = live.wanted(["part", "tight", "work", "check", "next", "on"]);
        let mut kept = 0;
        // How often a context is saved in a trampoline is chance: until one was.
        for round in 0..240 {
            if round >= 60 && kept > 0 {
                break;
            }
            let window = Duration::from_millis(3);
            let Some(counts) = counted(live.pid(), &wanted, window) else { return };
            assert!(counts.probes > 3, "{counts:?}");
            let stays = counts.notes.iter().any(|note| note.contains("stay mapped"));
            kept += usize::from(stays);
            if stays {
                assert_mapped(live.pid(), &counts, &wanted);
            }
            live.assert_restored(round);
        }
        assert!(kept > 0, "contexts were saved in trampolines");
        live.end();
    }
}

#[test]
fn children_that_are_forked_meanwhile_have_their_code_back() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(live) = Live::start(&folder, FORKS, &[]) else { return };
    let wanted = live.wanted(["part", "main"]);
    let mut entries = 0;
    for round in 0..60 {
        let Some(counts) = counted(live.pid(), &wanted, Duration::from_millis(5)) else { return };
        entries += counts.functions[0].as_ref().unwrap().blocks[0].count.clone().unwrap();
        live.assert_restored(round);
        let children = format!("/proc/{0}/task/{0}/children", live.pid());
        for child in std::fs::read_to_string(children).unwrap_or_default().split_whitespace() {
            let executes = std::fs::read_link(format!("/proc/{child}/exe"));
            let Ok(pid) = child.parse() else { continue };
            // It may end at any time.
            if executes.is_ok_and(|file| file == live.file) {
                let _ = std::panic::catch_unwind(|| assert_restored(pid, &live.file, round));
            }
        }
    }
    assert!(entries > 0);
    live.end();
}

#[test]
fn a_first_thread_that_has_ended_hides_nothing() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(live) = Live::start(&folder, LEADER, &[]) else { return };
    let wanted = live.wanted(["part", "work"]);
    let mut entries = 0;
    for _ in 0..10 {
        let Some(counts) = counted(live.pid(), &wanted, Duration::from_millis(5)) else { return };
        let part = counts.functions[0].as_ref().unwrap();
        entries += part.blocks[0].count.clone().unwrap();
    }
    assert!(entries > 0);
    // As a command: one call before the loop, which is over at once.
    let file = live.file.clone();
    live.end();
    let argv = [text(&file), "over"].map(std::ffi::OsString::from).to_vec();
    let command = pmu::Command { argv, stdout: pmu::Stdout::Stderr, ..pmu::Command::default() };
    let counts = with_signals(|signals| count(&command, &wanted, signals)).unwrap();
    let part = counts.functions[0].as_ref().unwrap();
    assert_eq!((part.blocks[0].count.clone(), numbers(part).contains(&1000)), (Ok(1), true));
}

#[test]
fn a_process_whose_memory_another_one_has_is_left_alone() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(live) = Live::start(&folder, SHARING, &[]) else { return };
    let wanted = live.wanted(["part"]);
    let why = counted_or_not(live.pid(), &wanted, Duration::from_millis(5)).unwrap_err();
    assert!(why.contains("has the same memory") || why.contains("cannot trace"), "{why}");
    live.end();
}

#[test]
fn a_process_that_others_stop_and_continue() {
    let _busy = busy();
    let folder = Folder::new();
    let Some(live) = Live::start(&folder, THREADS, &[]) else { return };
    let wanted = live.wanted(["part", "work"]);
    let pid = live.pid();
    let over = std::sync::atomic::AtomicBool::new(false);
    let is_over = || over.load(std::sync::atomic::Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over() {
                kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
                // `t` if it is traced.
                until(|| matches!(state(pid), 'T' | 't') || is_over(), || "it goes on".to_owned());
                kill(Pid::from_raw(pid), Signal::SIGCONT).unwrap();
                let before = live.ticks();
                until(|| live.ticks() > before || is_over(), || "it does not go on".to_owned());
            }
        });
        let mut counts = 0;
        for round in 0..100 {
            let found = with_signals(|signals| {
                let window = Duration::from_millis(5);
                Ok(count_process(pid, &wanted, window, signals, &mut |_, _| {}))
            });
            match found.unwrap() {
                Ok(_) => counts += 1,
                Err(error) => {
                    assert!(format!("{error:?}").contains("stopped by a signal"), "{error:?}")
                }
            }
            live.assert_restored(round);
        }
        assert!(counts > 0);
        over.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    kill(Pid::from_raw(pid), Signal::SIGCONT).unwrap();
    live.end();
}

#[test]
fn a_process_that_is_not_there() {
    let is_free = |n: &i32| !Path::new(&format!("/proc/{n}")).exists();
    let Some(pid) = (1..1000).map(|n| 4_194_304 - n).find(is_free) else { return };
    let error = with_signals(|signals| {
        Ok(count_process(pid, &[], Duration::ZERO, signals, &mut |_, _| {}).unwrap_err())
    });
    assert!(error.unwrap().to_string().contains("no process"));
}
