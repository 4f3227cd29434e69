//! Rows of samples, by hand.

use super::*;
use profile::hot::ThreadPlace;

fn place(module: usize, address: u64) -> Option<ModuleAddress> {
    Some(ModuleAddress { module, address })
}

fn tally(samples: u64) -> Tally {
    Tally { samples, weight: samples as f64 * 1e9, squares: 0.0 }
}

fn rows(by: &ByThread, event: &str, busy: Option<f64>) -> (Vec<Function>, Vec<String>) {
    let (mut cgroups, mut names) = (Cgroups::default(), Names::new());
    let time = &Time { event: event.to_owned(), busy };
    let known = &mut Known { time, cgroups: &mut cgroups, names: &mut names };
    functions(by, known)
}

/// Samples of this test's process in a file that is not there and in anonymous memory, and of one that has ended.
fn some() -> ByThread {
    let module = |path: &str, kind| Module { path: path.into(), kind, ..Module::default() };
    let mut file = module("/nowhere/prog (deleted)", ModuleKind::File);
    file.build_id = Some(vec![0xab, 1]);
    let own = Some(std::process::id());
    let of = |place, pid, name: &str| ThreadPlace { place, pid, command: Some(name.to_owned()) };
    ByThread {
        sums: [
            (of(place(0, 0x40), own, "work"), tally(5)),
            (of(place(0, 0x40), Some(u32::MAX - 1), "work"), tally(2)),
            (of(place(1, 0x7000), own, "kworker/0:1-events"), tally(1)),
            (of(place(1, 0x8000), own, "kworker/u4:2"), tally(1)),
            (of(None, None, "x"), tally(1)),
        ]
        .into(),
        idle: tally(100),
        modules: vec![file, module("//anon", ModuleKind::Anonymous)],
        ..ByThread::default()
    }
}

#[test]
fn samples_are_summed_by_binary_group_and_command() {
    let (rows, notes) = rows(&some(), "cpu-clock", None);
    let first = &rows[0];
    let binary = first.owner.binary.as_ref().unwrap();
    assert_eq!((binary.build_id.as_deref(), &*binary.module), (Some("ab01"), "prog"));
    assert_eq!((first.samples, first.cpu_seconds, first.start), (5, Some(5.0), Address(0x40)));
    assert!(first.owner.cgroup.is_some());
    let kernel = rows.iter().find(|row| row.owner.command.as_deref() == Some("kworker")).unwrap();
    assert_eq!((kernel.samples, kernel.start), (2, Address(0)), "at any address");
    let total: u64 = rows.iter().map(|row| row.samples).sum();
    assert_eq!(total, 10, "idle samples are no function");
    assert!(notes.iter().any(|note| note.contains("3 samples")), "gone: {notes:?}");
}

#[test]
fn cycles_divide_the_busy_time_and_other_events_tell_no_time() {
    let of = |event, busy| rows(&some(), event, busy).0[0].cpu_seconds;
    assert_eq!(of("cycles:P", Some(4.0)), Some(2.0));
    assert_eq!(of("cycles", None), None);
    assert_eq!(of("branch-misses", Some(4.0)), None);
}
