//! `tdtool record --every`: windows in a ring, through kills, full disks, moves and second recorders.

use crate::documents::unknown_keys;
use crate::support::child::{Limited as _, Running};
use crate::support::files::{Folder, text};
use crate::support::quiet::busy;
use crate::support::run::{Ran, TDTOOL, command, ended, program, send, start, tdtool};
use crate::support::wait::until;
use fleet::ring::{Dropped, read};
use fleet::window::{Function, Owner, Window};
use nix::sys::signal::Signal;
use pmu::sampling::ability;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Short windows, whatever they cost, without the kernel's symbols, which take long to read.
const SHORT: [&str; 7] = ["--user", "--every", "1s", "--for", "200ms", "--budget", "100%"];

/// A program whose hot function is known.
const WORKLOAD: [&str; 5] = ["workload", "run", "dependent-adds", "--seconds", "200"];

/// A program that is busy until it is dropped, and a folder for windows.
struct Busy {
    folder: Folder,
    workload: Running,
}

impl Busy {
    /// A small program, whose symbols are read in no time.
    fn new() -> Self {
        Self::of(program("sh").args(["-c", "while :; do :; done"]))
    }

    fn of(workload: &mut std::process::Command) -> Self {
        Self { folder: Folder::new(), workload: start(workload) }
    }

    fn ring(&self) -> PathBuf {
        self.folder.path().join("ring")
    }

    /// A recorder of the workload, with these options, too; not yet started.
    fn recorder(&self, most: &str, options: &[&str]) -> std::process::Command {
        let pid = self.workload.id().to_string();
        let mut recorder = command(["record", "-p", &pid, "--max-bytes", most, "--ring"]);
        recorder.arg(self.ring()).args(options);
        recorder
    }

    /// Waits until there are so many windows in all.
    fn wait_for(&self, windows: usize) {
        until(|| files(&self.ring()).len() >= windows, || format!("{:?}", files(&self.ring())));
    }
}

/// The windows' files.
fn files(ring: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(ring).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all: Vec<PathBuf> = all.filter(|path| path.extension().is_some()).collect();
    all.sort();
    all
}

/// All windows, of which none is damaged.
fn windows(ring: &Path) -> Vec<Window> {
    read(ring).expect("a folder").map(|window| window.expect("whole")).collect()
}

/// Whether a window has the known hot function; it has no samples while the program starts.
fn is_hot(window: &Window) -> bool {
    window.functions.first().is_some_and(|first| name(first).contains("workload::"))
}

fn stopped(recorder: Running, signal: Signal) -> Ran {
    send(&recorder, signal);
    ended(recorder)
}

fn name(of: &Function) -> String {
    let module = of.owner.binary.as_ref().map_or("", |binary| &binary.module);
    format!("{module} {}", of.name.as_deref().unwrap_or_default())
}

/// No path leads to the program, as to those of containers, and those that an update has replaced.
#[test]
fn the_hot_function_of_a_known_program_is_on_top() {
    need!(ability().is_ok(), "no perf events here");
    let _busy = busy();
    let link = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("gone-{}", std::process::id()));
    fs::hard_link(TDTOOL, &link).expect("linked");
    let all = Busy::of(program(&link).args(WORKLOAD));
    fs::remove_file(&link).expect("removed");
    let options = [&SHORT[..], &["--label", "region=test"]].concat();
    let recorder = start(&mut all.recorder("1M", &options));
    // Its symbols take a while.
    all.wait_for(1);
    until(|| windows(&all.ring()).iter().any(is_hot), || format!("{:?}", all.ring()));
    let ran = stopped(recorder, Signal::SIGTERM).succeeded();
    assert!(ran.stderr.contains("written"), "{}", ran.stderr);
    for window in windows(&all.ring()).iter().filter(|window| is_hot(window)) {
        let first = &window.functions[0];
        assert!(name(first).starts_with("gone-"), "{}", name(first));
        let binary = first.owner.binary.as_ref().expect("a binary");
        assert!(binary.build_id.is_some() && first.owner.cgroup.is_some(), "{first:?}");
        assert!(first.owner.command.as_deref().is_some_and(|command| command.starts_with("gone-")));
        check(window);
    }
}

/// What every window of a running program has.
fn check(window: &Window) {
    assert_eq!(window.busy_seconds, None, "of one process");
    assert!(window.seconds > Some(0.0));
    assert!(window.cost_seconds.is_some_and(|cost| cost > 0.0));
    assert_eq!(window.host.labels["region"], "test");
    assert_eq!(window.host.boot, pmu::machine::boot_id());
    for node in &window.nodes {
        assert_ne!(node.share.is_some(), node.missing.is_some(), "{node:?}");
    }
    assert!(window.counts.iter().any(|count| count.event == "task_clock_ms"));
    let document = serde_json::to_value(window).expect("a document");
    assert_eq!(unknown_keys(&document), BTreeSet::new(), "not in documents.md");
}

#[test]
fn every_complete_window_survives_kill_9_and_leftovers_are_removed() {
    need!(ability().is_ok(), "no perf events here");
    let _busy = busy();
    let all = Busy::new();
    let mut last = 0;
    for round in 0..8 {
        let mut recorder = start(&mut all.recorder("1M", &SHORT));
        // At any time of a window.
        all.wait_for(last + round % 2);
        std::thread::sleep(Duration::from_millis(37 * round as u64));
        recorder.kill().expect("killed");
        recorder.wait().expect("ended");
        // As if it had been in the middle of writing.
        fs::create_dir_all(all.ring()).expect("a folder");
        fs::write(all.ring().join(".new-99"), "half").expect("written");
        let now = windows(&all.ring()).len();
        assert!(now >= last, "{now} of {last}");
        last = now;
    }
    let recorder = start(&mut all.recorder("1M", &SHORT));
    all.wait_for(last + 1);
    stopped(recorder, Signal::SIGINT).succeeded();
    assert!(!all.ring().join(".new-99").exists(), "removed at the start");
    let numbers: Vec<PathBuf> = files(&all.ring());
    assert_eq!(numbers.len(), windows(&all.ring()).len());
}

#[test]
fn a_ring_stays_within_its_size() {
    need!(ability().is_ok(), "no perf events here");
    let _busy = busy();
    let all = Busy::new();
    // Sixteen files of one page each.
    fs::create_dir(all.ring()).expect("a folder");
    for number in 1..=16 {
        let old = format!("{number:012}-20200101T000000Z-unknown.json.gz");
        fs::write(all.ring().join(old), "old").expect("written");
    }
    let options = ["--user", "--every", "300ms", "--for", "100ms", "--budget", "100%"];
    let recorder = start(&mut all.recorder("64K", &options));
    let size = || -> u64 {
        let all = files(&all.ring());
        let of = |path: &PathBuf| fs::metadata(path).map_or(0, |of| of.len().div_ceil(4096) * 4096);
        all.iter().map(of).sum()
    };
    let is_new = |path: &PathBuf| !text(path).contains("20200101");
    until(
        || {
            assert!(size() <= 64 << 10);
            files(&all.ring()).iter().filter(|path| is_new(path)).count() > 3
        },
        || format!("{:?}", files(&all.ring())),
    );
    stopped(recorder, Signal::SIGTERM).succeeded();
    let left = files(&all.ring());
    assert!(left.len() < 17 && is_new(left.last().expect("one")), "{left:?}");
}

#[test]
fn a_damaged_window_is_reported_and_a_second_recorder_refused() {
    need!(ability().is_ok(), "no perf events here");
    let _busy = busy();
    let all = Busy::new();
    let recorder = start(&mut all.recorder("1M", &SHORT));
    all.wait_for(2);
    let second = all.recorder("1M", &SHORT).run_limited().expect("started");
    let second = Ran::from(second);
    assert_eq!(second.code(), Some(1), "{}", second.stderr);
    assert!(second.stderr.contains(text(&all.ring())), "{}", second.stderr);
    stopped(recorder, Signal::SIGTERM).succeeded();
    let first = &files(&all.ring())[0];
    let mut bytes = fs::read(first).expect("readable");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(first, bytes).expect("written");
    let found: Vec<_> = read(&all.ring()).expect("a folder").collect();
    assert_eq!(found[0].as_ref().expect_err("damaged").path, *first);
    assert!(found[1..].iter().all(Result::is_ok));
}

#[test]
fn a_small_budget_leaves_windows_out_and_says_so_once() {
    need!(ability().is_ok(), "no perf events here");
    let _busy = busy();
    let all = Busy::new();
    let options = ["--user", "--every", "100ms", "--for", "50ms", "--budget", "5%"];
    let recorder = start(&mut all.recorder("1M", &options));
    all.wait_for(3);
    let ran = stopped(recorder, Signal::SIGTERM).succeeded();
    assert_eq!(ran.stderr.matches("windows are skipped").count(), 1, "{}", ran.stderr);
    let windows = windows(&all.ring());
    let is_told = |window: &Window| window.notes.iter().any(|note| note.contains("budget"));
    assert!(!is_told(&windows[0]) && is_told(&windows[1]), "{:?}", windows[1].notes);
}

#[test]
fn without_a_target_the_whole_system_is_measured() {
    need!(ability().is_ok(), "no perf events here");
    let folder = Folder::new();
    let ring = folder.path().join("ring");
    let arguments = ["record", "--no-samples", "--max-bytes", "1M", "--ring", text(&ring)];
    let recorder = start(command(arguments).args(SHORT));
    until(|| !files(&ring).is_empty(), || "no window".to_owned());
    stopped(recorder, Signal::SIGTERM).succeeded();
    let first = &windows(&ring)[0];
    assert!(first.busy_seconds.is_some_and(
        |busy| busy <= 1.5 * f64::from(first.host.cpus) * first.seconds.expect("a length")
    ));
    assert!(first.nodes.iter().all(|node| node.owner == Owner::default()), "{:?}", first.nodes);
    assert!(first.functions.is_empty());
}

/// A file system of 256 KiB in a mount namespace of its own, full but for one page, then emptied.
#[test]
fn recording_goes_on_after_the_disk_was_full() {
    need!(ability().is_ok(), "no perf events here");
    let _busy = busy();
    let all = Busy::new();
    let (small, kept) = (all.folder.file("small"), all.folder.file("kept"));
    fs::create_dir(&small).expect("a folder");
    let pid = all.workload.id();
    let script = format!(
        "mount -t tmpfs -o size=256k none {small} || exit 99\n\
         {TDTOOL} record -p {pid} {} --ring {small}/ring --max-bytes 1M 2>{kept}.err &\n\
         recorder=$!\n\
         wait_for() {{ i=0; until $1 || [ $i -gt 600 ]; do sleep 0.1; i=$((i+1)); done; }}\n\
         has_some() {{ ls {small}/ring/*.gz >/dev/null 2>&1; }}\n\
         is_lost() {{ grep -q 'no window' {kept}.err; }}\n\
         wait_for has_some; cp {small}/ring/*.gz {kept}-1; dd if=/dev/zero of={small}/fill bs=4096 2>/dev/null\n\
         rm -f {small}/ring/*.gz; dd if=/dev/zero of={small}/more bs=4096 2>/dev/null\n\
         wait_for is_lost; rm -f {small}/fill {small}/more; wait_for has_some\n\
         kill $recorder; wait $recorder; status=$?; cp -r {small}/ring {kept}; exit $status",
        SHORT.join(" ")
    );
    let output = program("unshare").args(["-m", "sh", "-c", &script]).run_limited();
    let mounted = output.as_ref().is_ok_and(|output| output.status.code() != Some(99));
    need!(mounted && Path::new(&kept).exists(), "no file system can be mounted here");
    let stderr = all.folder.read("kept.err");
    assert_eq!(output.expect("unshare").status.code(), Some(0), "{stderr}");
    let full = Dropped::Full.to_string();
    assert_eq!(stderr.matches(&full).count(), 1, "{stderr}");
    let windows = windows(Path::new(&kept));
    let notes = &windows.first().expect("a window after that").notes;
    assert!(notes.iter().any(|note| note.contains(&full)), "{notes:?}");
}

#[test]
fn a_folder_that_is_moved_is_made_again() {
    need!(ability().is_ok(), "no perf events here");
    let _busy = busy();
    let all = Busy::new();
    let recorder = start(&mut all.recorder("1M", &SHORT));
    all.wait_for(1);
    let moved = all.folder.path().join("moved");
    fs::rename(all.ring(), &moved).expect("moved");
    all.wait_for(1);
    stopped(recorder, Signal::SIGTERM).succeeded();
    assert!(!windows(&moved).is_empty() && !windows(&all.ring()).is_empty());
}

#[test]
fn windows_of_a_command_end_with_it() {
    need!(ability().is_ok(), "no perf events here");
    let _busy = busy();
    let folder = Folder::new();
    let ring = folder.file("ring");
    let script = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; exit 7";
    let options = ["record", "--max-bytes", "1M", "--ring", &ring];
    let ran = tdtool([&options[..], &SHORT, &["--", "sh", "-c", script]].concat());
    assert_eq!(ran.code(), Some(7), "{}", ran.stderr);
    let windows = windows(Path::new(&ring));
    need!(!windows.is_empty() && !windows[0].functions.is_empty(), "it ended before a sample");
    assert!(windows[0].functions.iter().all(|one| one.owner.command.as_deref() == Some("sh")));
}

#[test]
fn options_that_make_no_sense_together_are_refused() {
    let folder = Folder::new();
    let ring = folder.file("ring");
    for (options, named) in [
        (&["--every", "1s"][..], "--max-bytes"),
        (&["--every", "1s", "--for", "2s", "--ring", &ring, "--max-bytes", "1M"], "--for"),
        (&["--every", "5d", "--for", "2s", "--ring", &ring, "--max-bytes", "1M"], "5m"),
        (&["--every", "5s", "--for", "2s", "--ring", &ring, "--max-bytes", "1K"], "--max-bytes"),
        (&["--every", "5s", "--for", "2s", "--ring", &ring, "--max-bytes", "1M", "-g"], "-g"),
        (&["--ring", &ring, "--", "true"], "--every"),
        (
            &[
                "-a",
                "--every",
                "5s",
                "--for",
                "2s",
                "--ring",
                &ring,
                "--max-bytes",
                "1M",
                "--",
                "true",
            ],
            "-a",
        ),
    ] {
        let ran = tdtool([&["record"], options].concat());
        assert_eq!(ran.code(), Some(2), "{options:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(named), "{options:?}: {}", ran.stderr);
        assert!(!Path::new(&ring).exists(), "{options:?}");
    }
}
