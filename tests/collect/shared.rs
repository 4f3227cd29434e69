//! Counters that other programs use, too: groups wait for their turn, and are split only where they
//! would never get one.
//!
//! Expected counts follow from the script: rate × time, nothing else.

use super::script::{SECOND, count, group, kernel, near, request, run};
use super::{intel, table};
use pmu::Target;
use pmu::kernel::Subject;
use pmu::scripted::Scripted;
use std::time::Duration;

const EVER: Duration = Duration::from_secs(1000);

#[test]
fn a_group_that_only_has_to_wait_for_its_turn_stays_whole() {
    // As `perf stat -a -e '{…four events…}'` beside us: all counters of every CPU, half of the time.
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3, 4])];
    let mut request = request(&machine, &table, &groups, Target::System);
    request.duration = Some(Duration::from_secs(1));
    let others = vec![(Duration::ZERO, EVER, 4)];
    let mut kernel = Scripted { others, lifetime: EVER, ..kernel() };
    let measured = run(&mut kernel, &request);
    assert_eq!(measured.counts[0].groups.len(), 1, "{:?}", measured.notes);
    for n in 1..=4 {
        // Two CPUs.
        near(count(&measured, 0, n).expect("counted"), 2.0 * f64::from(n) * SECOND, 0.01);
    }
    near(measured.counts[0].groups[0].running_share().expect("a share"), 0.5, 0.05);
    assert!(measured.notes.is_empty(), "{:?}", measured.notes);
}

#[test]
fn a_group_waits_for_its_turn_among_twenty_of_another_profiler() {
    // Each of them leaves one counter, so that parts of ours would run at once.
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3, 4])];
    let mut request = request(&machine, &table, &groups, Target::System);
    request.duration = Some(Duration::from_secs(2));
    let others = vec![(Duration::ZERO, EVER, 3); 20];
    let mut kernel = Scripted { others, lifetime: EVER, ..kernel() };
    let measured = run(&mut kernel, &request);
    assert_eq!(measured.counts[0].groups.len(), 1, "{:?}", measured.notes);
    for n in 1..=4 {
        near(count(&measured, 0, n).expect("counted"), 4.0 * f64::from(n) * SECOND, 0.01);
    }
    assert!(measured.notes.is_empty(), "{:?}", measured.notes);
}

#[test]
fn split_groups_are_whole_again_when_counters_become_free() {
    // Events of whole CPUs come before those of tasks: two counters are left, for 4 s of 10.
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3, 4])];
    let others = vec![(Duration::ZERO, Duration::from_secs(4), 2)];
    let lifetime = Duration::from_secs(10);
    let mut kernel = Scripted { others, lifetime, ..kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    for n in 1..=4 {
        near(count(&measured, 0, n).expect("counted"), 10.0 * f64::from(n) * SECOND, 0.01);
        let groups = &measured.counts[0].groups;
        let own = groups.iter().find(|g| g.events().any(|e| e == n - 1)).expect("a group");
        // A third of 4 s, and at least 5 of the other 6 s.
        assert!(own.running_share().expect("a share") > 0.55, "{own:?}");
    }
    let notes = measured.notes.join(" ");
    assert!(notes.contains("split") && notes.contains("whole"), "{notes}");
}

#[test]
fn a_group_that_no_splitting_helps_stays_whole() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3])];
    let others = vec![(Duration::ZERO, Duration::from_millis(500), 4)];
    let mut kernel = Scripted { others, ..kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    assert_eq!(measured.counts[0].groups.len(), 1);
    near(count(&measured, 0, 3).expect("counted in the second half"), 3.0 * SECOND, 0.01);
}

#[test]
fn opening_costs_about_one_call_for_each_event_and_place() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups: Vec<_> = (0..9u16).map(|g| group(&[1, 2 + g, 3, 12])).collect();
    let mut request = request(&machine, &table, &groups, Target::System);
    request.duration = Some(Duration::from_secs(1));
    let mut kernel = Scripted { lifetime: EVER, ..kernel() };
    run(&mut kernel, &request);
    let software = |e: &pmu::kernel::Event| e.encoding.kind == 1;
    let hardware = kernel.opened.iter().filter(|(e, _)| !software(e));
    // Two CPUs, nine groups of four; before, four times that for testing what fits.
    assert_eq!(hardware.count(), 2 * 9 * 4);

    // A command's groups are tested on this process: one of each kind.
    let request = self::request(&machine, &table, &groups, Target::Command);
    let mut kernel = self::kernel();
    run(&mut kernel, &request);
    let tests = kernel.opened.iter().filter(|(e, _)| !software(e) && e.subject == Subject::Task(0));
    assert_eq!(tests.count(), 4);
}
