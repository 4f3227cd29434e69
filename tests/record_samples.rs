//! `tdtool record` with samples, of real programs on the machine at hand: mostly of the CPU clock,
//! which needs no PMU.
//!
//! Expected numbers follow from what is counted beside the samples: CPU time × frequency. On a
//! busy machine a recording may be unlucky, so what is compared with a number may be tried again.

use profile::record::Record;
use profile::recording::Recording;
use profile::sample::Sample;
use profile::session::{has_samples, load, load_recording};
use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// How often what depends on chance is tried.
const TRIES: usize = 4;
/// Work for some tenths of a second.
const WORK: &str = "40000000";

/// Says why a test cannot run here, and that it did not.
macro_rules! need {
    ($what:expr, $reason:expr) => {
        if !$what {
            eprintln!("skipped: {}", $reason);
            return;
        }
    };
}

/// Whether the kernel opens perf events for us.
fn sampling() -> bool {
    pmu::sampling::ability().is_ok()
}

/// Our own busy program: this one, doing what the variable says (see `busy_program`).
fn busy(threads: usize) -> Vec<String> {
    let us = std::env::current_exe().expect("a path").display().to_string();
    let (work, count) = (format!("BUSY_WORK={WORK}"), format!("BUSY_THREADS={threads}"));
    ["env", &work, &count, &us, "--exact", "busy_program"].map(str::to_owned).to_vec()
}

#[inline(never)]
fn spin(work: u64) -> u64 {
    (0..work).fold(1, |x, i| black_box(x ^ i.wrapping_mul(0x9e37_79b9)))
}

/// No test: what [`busy`] starts.
#[test]
fn busy_program() {
    let number = |name| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let (Some(work), Some(threads)) = (number("BUSY_WORK"), number("BUSY_THREADS")) else { return };
    let all: Vec<_> = (0..threads).map(|_| std::thread::spawn(move || spin(work))).collect();
    all.into_iter().for_each(|t| {
        black_box(t.join().expect("joined"));
    });
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }
    fn session(&self) -> PathBuf {
        self.0.path().join("s.tds")
    }
}

fn tdtool() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tdtool"))
}

/// `tdtool record` with these options and command, and what it told.
fn record(session: &Path, options: &[&str], command: &[String]) -> (Output, String) {
    let mut tdtool = tdtool();
    tdtool.arg("record").arg("-o").arg(session).args(options);
    if !command.is_empty() {
        tdtool.arg("--").args(command);
    }
    let output = tdtool.output().expect("tdtool starts");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, told)
}

/// As [`record`], of a shell's script, with signals as a terminal has them: tests that run in the
/// background of a script inherit that SIGINT is ignored, and then so do tdtool and the command.
fn undisturbed(session: &Path, script: &str) -> Output {
    let mut env = Command::new("env");
    env.args(["--default-signal=INT,TERM,HUP", env!("CARGO_BIN_EXE_tdtool"), "record", "-o"]);
    env.arg(session).args(["--", "sh", "-c", script]).output().expect("env starts")
}

fn samples(recording: &Recording) -> Vec<&Sample> {
    let mut all = Vec::new();
    for record in &recording.records {
        if let Record::Sample { sample, .. } = record {
            all.push(sample);
        }
    }
    all
}

/// CPU seconds that were counted beside the samples.
fn task_clock(session: &Path) -> f64 {
    let session = load(session).expect("a session");
    let whole = session.software.iter().find(|s| s.interval.is_none()).expect("the whole run");
    whole.values["task-clock"].expect("a task clock") * 1e-3
}

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

/// A shell's loop of `n` turns.
fn turns(n: u32) -> String {
    format!("i=0; while [ $i -lt {n} ]; do i=$((i+1)); done")
}

#[test]
fn there_are_as_many_samples_as_cpu_time_has_periods() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    let session = folder.session();
    let mut ratios = Vec::new();
    for frequency in ["999", "4000"].repeat(TRIES) {
        let (output, told) = record(&session, &["-e", "cpu-clock", "-F", frequency], &busy(1));
        assert!(output.status.success(), "{told}");
        let recording = load_recording(&session).expect("a recording");
        let hertz: f64 = frequency.parse().expect("a number");
        let ratio = samples(&recording).len() as f64 / (task_clock(&session) * hertz);
        assert!(recording.events[0].name.starts_with("cpu-clock"), "{:?}", recording.events);
        assert!(told.contains("samples of cpu-clock"), "{told}");
        assert!(told.contains("recording took"), "the overhead is told: {told}");
        ratios.push((frequency, ratio));
        let good = |f: &str| ratios.iter().any(|(g, r)| *g == f && (0.9..1.1).contains(r));
        if good("999") && good("4000") {
            return;
        }
    }
    panic!("samples for each period of CPU time: {ratios:?}");
}

#[test]
fn every_sample_falls_into_a_mapping_of_its_process() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    let session = folder.session();
    let (_, told) = record(&session, &[], &busy(1));
    let recording = load_recording(&session).expect("a recording");
    let maps: Vec<_> = recording
        .records
        .iter()
        .filter_map(|r| match r {
            Record::Map { mapping, .. } => Some(mapping),
            _ => None,
        })
        .collect();
    let all = samples(&recording);
    let inside = |s: &&&Sample| {
        maps.iter().any(|m| {
            let ip = s.ip.unwrap_or(0);
            Some(m.pid) == s.pid && ip >= m.start && ip - m.start < m.length
        })
    };
    let user: Vec<_> = all.iter().filter(|s| s.user == Some(true)).collect();
    let found = user.iter().copied().filter(inside).count();
    assert!(found * 100 >= user.len() * 95 && found > 10, "{found} of {}: {told}", user.len());
    let us = std::env::current_exe().expect("a path");
    let ours = maps.iter().find(|m| Path::new(&m.path) == us).expect("our program is mapped");
    let id = pmu::build_id::of_file(&us);
    if let (Some(id), Some(recorded)) = (&id, &ours.build_id) {
        assert_eq!(id, recorded);
    }
    let listed = recording.build_ids.iter().find(|(path, _)| Path::new(path) == us);
    assert_eq!(listed.map(|(_, id)| id.clone()), id);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel");
    assert_eq!(recording.kernel.as_deref(), Some(release.trim()));
    assert!(has_samples(&session).expect("a session"));
}

#[test]
fn threads_and_children_are_sampled_each_by_its_share() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    let session = folder.session();
    let (_, told) = record(&session, &[], &busy(3));
    let recording = load_recording(&session).expect("a recording");
    let mut threads: BTreeMap<u32, usize> = BTreeMap::new();
    for sample in samples(&recording) {
        *threads.entry(sample.tid.expect("a thread")).or_default() += 1;
    }
    let total: usize = threads.values().sum();
    let large = threads.values().filter(|n| **n * 6 > total).count();
    assert_eq!(large, 3, "three threads share the work: {threads:?} {told}");

    let work = turns(60_000);
    record(&session, &[], &shell(&format!("({work}) & ({work}); wait")));
    let recording = load_recording(&session).expect("a recording");
    let pids: BTreeSet<_> = samples(&recording).iter().map(|s| s.pid).collect();
    assert!(pids.len() >= 2, "{pids:?}");
    // --no-inherit: the shell alone.
    record(&session, &["--no-inherit"], &shell(&format!("({work}) & {work}; wait")));
    let recording = load_recording(&session).expect("a recording");
    let pids: BTreeSet<_> = samples(&recording).iter().map(|s| s.pid).collect();
    assert_eq!(pids.len(), 1, "{pids:?}");
}

#[test]
fn times_are_in_order_and_names_are_there() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    let session = folder.session();
    record(&session, &[], &busy(2));
    let recording = load_recording(&session).expect("a recording");
    let times: Vec<_> = samples(&recording).iter().map(|s| s.time).collect();
    assert!(times.is_sorted());
    let named = |r: &Record| matches!(r, Record::Name { name, exec: true, .. } if name == "env");
    assert!(recording.records.iter().any(named), "the exec of env has its name");
    assert!(recording.records.iter().any(|r| matches!(r, Record::Exit { .. })));
}

#[test]
fn a_running_process_has_its_mappings() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    let session = folder.session();
    let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
    let pid = child.id();
    let (output, told) = record(&session, &["-p", &pid.to_string(), "--duration", "0.5"], &[]);
    child.kill().expect("killed");
    child.wait().expect("ended");
    assert!(output.status.success(), "{told}");
    let recording = load_recording(&session).expect("a recording");
    let all = samples(&recording);
    assert!(all.len() > 10 && all.iter().all(|s| s.pid == Some(pid)), "{} {told}", all.len());
    let program = |r: &Record| match r {
        Record::Map { mapping, .. } => mapping.pid == pid && mapping.path.starts_with('/'),
        _ => false,
    };
    assert!(recording.records.iter().any(program), "its program is mapped");
    let named =
        |r: &Record| matches!(r, Record::Name { pid: p, name, .. } if *p == pid && name == "sh");
    assert!(recording.records.iter().any(named));
}

#[test]
fn a_process_that_ends_or_is_not_there() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    let session = folder.session();
    // On a busy machine it may have ended before we are there; then it sleeps longer.
    let gone = ["0.5", "2", "8"].into_iter().find_map(|seconds| {
        let mut child = Command::new("sleep").arg(seconds).spawn().expect("sleep");
        let (output, _) = record(&session, &["-p", &child.id().to_string()], &[]);
        child.wait().expect("ended");
        output.status.success().then_some(child.id())
    });
    let gone = gone.expect("the recording ends with the process");
    assert!(load(&session).expect("a session").end.is_some());
    let (output, told) = record(&session, &["-p", &gone.to_string()], &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(told.contains(&format!("there is no process {gone}")), "{told}");
    // Attached to while it ends: an error or a recording, never a panic or a hang.
    for _ in 0..10 {
        let mut child = Command::new("true").spawn().expect("true");
        let (output, told) = record(&session, &["-p", &child.id().to_string()], &[]);
        child.wait().expect("ended");
        assert!(output.status.code().is_some_and(|c| c <= 1), "{told}");
        assert!(!told.contains("panicked"), "{told}");
    }
}

#[test]
fn all_cpus_see_everybody() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    let session = folder.session();
    let mut child = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().expect("sh");
    let (output, told) = record(&session, &["-a", "--duration", "0.5"], &[]);
    let pid = child.id();
    child.kill().expect("killed");
    child.wait().expect("ended");
    if !output.status.success() {
        assert!(told.contains("not permitted"), "{told}");
        eprintln!("skipped: this user may not look at whole CPUs");
        return;
    }
    let recording = load_recording(&session).expect("a recording");
    assert!(samples(&recording).iter().any(|s| s.pid == Some(pid)), "{told}");
    let maps = recording.records.iter().filter_map(|r| match r {
        Record::Map { mapping, .. } => Some(mapping.pid),
        _ => None,
    });
    let pids: BTreeSet<u32> = maps.collect();
    assert!(pids.contains(&pid) && pids.len() > 2, "{pids:?}");
}

#[test]
fn a_killed_recorder_leaves_its_samples() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    let session = folder.session();
    let mut recorder = tdtool()
        .args(["record", "-o"])
        .arg(&session)
        .args(["--", "sh", "-c", "while :; do :; done"])
        .stderr(Stdio::null())
        .spawn()
        .expect("tdtool starts");
    while !has_samples(&session).unwrap_or(false) {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    recorder.kill().expect("killed");
    recorder.wait().expect("ended");
    let recording = load_recording(&session).expect("readable");
    let pid = samples(&recording)[0].pid.expect("a process");
    Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill");
    let notes = recording.notes.join("\n");
    assert!(notes.contains("end"), "the missing end is told: {notes}");
}

#[test]
fn what_was_recorded_before_a_signal_is_kept() {
    need!(sampling(), "no perf events here");
    for (signal, number) in [("-INT", 2), ("-TERM", 15)] {
        let folder = Folder::new();
        let session = folder.session();
        // The recorder is the shell's parent; the signal it gets it hands on.
        let script = format!("{}; kill {signal} $PPID; while :; do :; done", turns(100_000));
        let output = undisturbed(&session, &script);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(128 + number), "{told}");
        let recording = load_recording(&session).expect("a recording");
        assert!(samples(&recording).len() > 10, "{told}");
        let end = load(&session).expect("a session").end.expect("an end");
        assert_eq!(end["interrupted"], number);
        assert!(recording.notes.iter().all(|n| !n.contains("stopped before")));
    }
}

#[test]
fn records_without_room_are_counted_and_told() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    let session = folder.session();
    // The recorder stops while its ring of 4 KiB takes some 70 samples, and many more come.
    let script = format!("kill -STOP $PPID; {}; kill -CONT $PPID; {}", turns(200_000), turns(1000));
    let options = ["--ring", "4", "-F", "5000", "-e", "cpu-clock"];
    let (output, told) = record(&session, &options, &shell(&script));
    assert!(output.status.success(), "{told}");
    let recording = load_recording(&session).expect("a recording");
    assert!(recording.lost > 100, "{} lost: {told}", recording.lost);
    assert!(told.contains("records lost") && told.contains("--ring"), "{told}");
    let expected = task_clock(&session) * 5000.0;
    let all = (samples(&recording).len() as u64 + recording.lost) as f64;
    assert!((0.8..1.2).contains(&(all / expected)), "{all} of {expected}");
}

#[test]
fn an_ordinary_user_records_user_mode() {
    let Ok(paranoid) = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid") else {
        eprintln!("skipped: no perf events here");
        return;
    };
    need!(paranoid.trim() == "2", "perf_event_paranoid is not 2, as it is by default");
    let folder = Folder::new();
    let session = folder.session();
    let arguments = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    // Where others may read it, whatever the folders above the build's allow.
    let copy = folder.0.path().join("tdtool");
    std::fs::copy(env!("CARGO_BIN_EXE_tdtool"), &copy).expect("copied");
    use std::os::unix::fs::PermissionsExt as _;
    for path in [folder.0.path(), &copy] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("set");
    }
    let output = Command::new("setpriv")
        .args(arguments)
        .arg(&copy)
        .args(["record", "-g", "-o"])
        .arg(&session)
        .args(["--", "sh", "-c", &turns(100_000)])
        .output();
    let Ok(output) = output else {
        eprintln!("skipped: no setpriv here");
        return;
    };
    let told = String::from_utf8_lossy(&output.stderr);
    need!(!told.contains("setpriv:"), "only root can become somebody else");
    assert!(output.status.success(), "{told}");
    assert!(told.contains("kernel mode is not sampled"), "{told}");
    let recording = load_recording(&session).expect("a recording");
    assert!(recording.events[0].name.ends_with(":u"), "{:?}", recording.events[0].name);
    let all = samples(&recording);
    assert!(all.len() > 10 && all.iter().all(|s| s.user == Some(true)), "{told}");
}

/// A file system of 512 KiB in a mount namespace of its own. Records come in chunks of half a ring:
/// a small one, so that several fit before the disk is full.
#[test]
fn a_disk_that_fills_up_keeps_what_was_written_and_the_command_goes_on() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    let (small, done) = (folder.0.path().join("small"), folder.0.path().join("done"));
    std::fs::create_dir(&small).expect("a folder");
    let (small, kept) = (small.display().to_string(), folder.session().display().to_string());
    let script = format!(
        "mount -t tmpfs -o size=512k none {small} || exit 99\n\
         {} record -e cpu-clock -F 20000 --ring 64 -o {small}/s -- sh -c '{}; echo > {}'\n\
         status=$?; cp {small}/s {kept}; exit $status",
        env!("CARGO_BIN_EXE_tdtool"),
        turns(3_000_000),
        done.display()
    );
    let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).output();
    let mounted = output.as_ref().is_ok_and(|o| o.status.code() != Some(99) && done.exists());
    need!(mounted, "no file system can be mounted here");
    let output = output.expect("unshare");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert_eq!(told.matches("error:").count(), 1, "{told}");
    assert!(told.contains("No space left"), "{told}");
    assert!(done.exists(), "the command went on");
    let recording = load_recording(&folder.session()).expect("readable");
    assert!(samples(&recording).len() > 100, "{}", samples(&recording).len());
}

#[test]
fn call_chains_and_registers_come_on_request() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    let session = folder.session();
    let (output, told) = record(&session, &["-g", "--registers"], &busy(1));
    assert!(output.status.success(), "{told}");
    let recording = load_recording(&session).expect("a recording");
    let all = samples(&recording);
    let whole = |s: &&&Sample| {
        s.registers.is_some() && s.chain.first().map(|f| f.ip) == s.ip && s.chain.len() > 1
    };
    let user = all.iter().filter(|s| s.user == Some(true));
    assert!(user.filter(whole).count() * 2 > all.len(), "{} samples: {told}", all.len());
    let format = recording.events[0].format;
    // CALLCHAIN and REGS_USER of linux/perf_event.h.
    assert_eq!(format.sample_type & (1 << 5 | 1 << 12), 1 << 5 | 1 << 12);
    if cfg!(target_arch = "x86_64") {
        // AX to IP are 0 to 8, R8 to R15 are 16 to 23 (asm/perf_regs.h): 17 registers.
        assert_eq!(format.regs_user.count_ones(), 17);
    }
}

#[test]
fn what_cannot_be_sampled_is_told() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    let session = folder.session();
    let (output, told) = record(&session, &["-e", "cpu-clok"], &shell("true"));
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("did you mean `cpu-clock`"), "{told}");
    let (output, told) = record(&session, &["-e", "cpu-clock:z"], &shell("true"));
    assert_eq!(output.status.code(), Some(2), "{told}");
    let (output, told) = record(&session, &["--node", "Memory_Bond"], &shell("true"));
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("Memory_Bound"), "{told}");
    let (output, told) = record(&session, &["-e", "cpu-clock:u"], &shell("./no-such-program"));
    assert_eq!(output.status.code(), Some(127), "{told}");
    let has_pmu = pmu::machine::Machine::detect().core_pmus().next().is_some();
    need!(!has_pmu, "this machine has a core PMU; the rest is about those without");
    let (output, told) = record(&session, &["-e", "cycles"], &shell("true"));
    assert_eq!(output.status.code(), Some(3), "{told}");
    let nodes = ["--node", "Memory_Bound", "--node", "Frontend_Bound"];
    let (output, told) = record(&session, &nodes, &shell(&turns(20_000)));
    assert!(output.status.success(), "{told}");
    assert!(told.contains("sampled on cpu-clock"), "{told}");
    assert!(told.contains("Memory_Bound") && told.contains("no core PMU"), "{told}");
}

#[test]
fn several_events_share_a_recording() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    let session = folder.session();
    record(&session, &["-e", "cpu-clock", "-e", "page-faults", "-F", "2000"], &busy(1));
    let recording = load_recording(&session).expect("a recording");
    let of = |event: usize| {
        let is = |r: &&Record| matches!(r, Record::Sample { event: e, .. } if *e == event);
        recording.records.iter().filter(is).count()
    };
    assert_eq!(recording.events.len(), 2);
    assert!(of(0) > 10 && of(1) > 0, "{} and {}", of(0), of(1));
}

#[test]
fn counting_alone_writes_no_samples() {
    let folder = Folder::new();
    let session = folder.session();
    let (output, told) = record(&session, &["--no-samples"], &busy(1));
    assert!(output.status.success(), "{told}");
    assert!(!has_samples(&session).expect("a session"));
    assert!(task_clock(&session) > 0.0);
}

#[test]
fn a_session_cut_off_anywhere_is_a_marked_gap_or_one_clear_error() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    let (_, told) = record(&folder.session(), &["-e", "cpu-clock"], &busy(1));
    let whole = std::fs::read(folder.session()).expect(&told);
    let cut = folder.0.path().join("cut.tds");
    for part in [0, 10, 200, whole.len() / 3, whole.len() * 2 / 3, whole.len() - 1] {
        std::fs::write(&cut, &whole[..part]).expect("written");
        let output = tdtool().arg("report").arg(&cut).output().expect("tdtool starts");
        let (out, err) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() {
            assert_eq!(out.matches("ends early").count(), 1, "{part}: {out}");
        } else {
            assert_eq!(output.status.code(), Some(1), "{part}: {err}");
            assert_eq!(err.matches("error:").count(), 1, "{part}: {err}");
            assert!(err.contains("try:"), "{part}: {err}");
        }
    }
}

#[test]
fn a_recording_without_a_single_sample_says_so() {
    need!(sampling(), "no perf events here");
    let folder = Folder::new();
    // A sample a second: true(1) is done long before.
    let (_, told) = record(&folder.session(), &["-e", "cpu-clock", "-F", "1"], &shell("exit 0"));
    need!(!has_samples(&folder.session()).expect(&told), "the first sample came at once");
    let output = tdtool().arg("report").arg(folder.session()).output().expect("tdtool starts");
    let out = String::from_utf8_lossy(&output.stdout);
    assert!(out.contains("no sample was taken"), "{out}");
    assert!(!out.contains("Where the time goes"), "{out}");
}

#[test]
fn a_process_of_another_user_gets_the_remedy_that_helps() {
    need!(sampling(), "no perf events here");
    need!(nix::unistd::Uid::effective().is_root(), "only root can become somebody else");
    let folder = Folder::new();
    let program = folder.0.path().join("tdtool");
    std::fs::copy(env!("CARGO_BIN_EXE_tdtool"), &program).expect("copied");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.0.path(), open).expect("opened");
    let arguments = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let mut somebody = Command::new("setpriv");
    somebody.args(arguments).arg(&program).args(["report", "-p", "1", "--duration", "0.1"]);
    let Ok(output) = somebody.current_dir("/").output() else {
        eprintln!("skipped: there is no setpriv here");
        return;
    };
    let err = String::from_utf8_lossy(&output.stderr);
    need!(err.contains("not permitted"), "anybody may count on process 1 here");
    assert!(err.contains("it runs as root") && err.contains("cap_perfmon"), "{err}");
    assert!(!err.contains("perf_event_paranoid"), "the level does not decide that: {err}");
}
