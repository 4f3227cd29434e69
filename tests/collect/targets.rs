//! Targets of counting, on a scripted kernel: processors, hybrid cores, processes, threads.
//!
//! Expected counts follow from the script: rate × time, nothing else.

use super::script::{SECOND, command, count, group, kernel, near, request, run};
use super::{intel, table};
use nix::errno::Errno;
use pmu::kernel::Subject;
use pmu::scripted::Scripted;
use pmu::{Aggregate, CorePlan, Request, Target, perf};
use std::collections::BTreeMap;
use std::time::Duration;
use tma::quantity::Missing;

#[test]
fn each_cpu_is_scaled_by_its_own_share() {
    // CPU 1 has 2 of 4 counters taken: its groups are multiplexed, those of CPU 0 do not.
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2]), group(&[3, 4])];
    let mut request = request(&machine, &table, &groups, Target::System);
    request.duration = Some(Duration::from_secs(1));
    let mut kernel =
        Scripted { busy: BTreeMap::from([(1, 2)]), lifetime: Duration::from_secs(60), ..kernel() };
    let measured = run(&mut kernel, &request);
    for n in 1..=4 {
        near(count(&measured, 0, n).expect("counted"), 2.0 * f64::from(n) * SECOND, 0.01);
    }
    request.aggregate = Aggregate::Thread;
    let measured = run(&mut kernel, &request);
    let scopes: Vec<_> = measured.counts.iter().map(|c| c.scope.as_deref()).collect();
    assert_eq!(scopes, [Some("cpu0"), Some("cpu1")]);
    near(count(&measured, 1, 4).expect("counted"), 4.0 * SECOND, 0.01);
}

#[test]
fn each_cpu_is_visited_once_an_interval_beginning_where_the_thread_is() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2])];
    let mut request = request(&machine, &table, &groups, Target::System);
    request.duration = Some(Duration::from_secs(1));
    request.interval = Some(Duration::from_millis(250));
    let mut kernel = Scripted { lifetime: Duration::from_secs(60), ..kernel() };
    run(&mut kernel, &request);
    // The beginning, and two intervals: one migration each.
    let expected = [Some(0), Some(1), None, Some(1), Some(0), None, Some(0), Some(1), None];
    assert_eq!(kernel.visited[..9], expected);
}

#[test]
fn time_on_the_other_kind_of_core_does_not_inflate_the_counts() {
    // 0.6 s on a P core (CPU 0), 0.4 s on an E core (CPU 1). Scaled by enabled/running, as a
    // plain reading would be, each would show the counts of a whole second.
    let device = "sys/bus/event_source/devices";
    let files: Vec<(String, &str)> = [("cpu_core", "4", "0"), ("cpu_atom", "10", "1")]
        .iter()
        .flat_map(|(pmu, kind, cpus)| {
            [
                (format!("{device}/{pmu}/type"), *kind),
                (format!("{device}/{pmu}/cpus"), *cpus),
                (format!("{device}/{pmu}/format/event"), "config:0-7"),
            ]
        })
        .collect();
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (p.as_str(), *t)).collect();
    let machine = intel(&files);
    let (p, e) = (table("p", "cpu_core"), table("e", "cpu_atom"));
    let groups = [group(&[1, 2, 3]), group(&[4, 5, 6])];
    let plan = |table, pmu: &str| CorePlan { table, groups: &groups, pmu: Some(pmu.into()) };
    let mut request =
        Request::new(&machine, vec![plan(&p, "cpu_core"), plan(&e, "cpu_atom")], Target::Command);
    request.command = command();
    let mut kernel = Scripted {
        pmu_cpus: BTreeMap::from([(4, vec![0]), (10, vec![1])]),
        task_on: vec![(Duration::ZERO, 0), (Duration::from_millis(600), 1)],
        ..kernel()
    };
    let measured = run(&mut kernel, &request);
    for n in 1..=6 {
        near(count(&measured, 0, n).expect("P"), 0.6 * f64::from(n) * SECOND, 0.02);
        near(count(&measured, 1, n).expect("E"), 0.4 * f64::from(n) * SECOND, 0.02);
    }
    let cores: Vec<_> = measured.counts.iter().map(|c| c.core.as_deref()).collect();
    assert_eq!(cores, [Some("p"), Some("e")]);
    assert_eq!(measured.core_time[0], ("p".into(), Duration::from_millis(600)));
    let share = measured.counts[0].groups[0].running_share().expect("a share");
    near(share, 0.5, 0.05);
}

#[test]
fn all_threads_of_a_process_are_counted_and_its_end_is_the_end() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    let mut kernel = Scripted { threads: vec![10, 11], ..kernel() };
    let mut request = request(&machine, &table, &groups, Target::Process(10));
    request.aggregate = Aggregate::Thread;
    let measured = run(&mut kernel, &request);
    let scopes: Vec<_> = measured.counts.iter().map(|c| c.scope.as_deref()).collect();
    assert_eq!(scopes, [Some("tid 10"), Some("tid 11")]);
    let tasks = kernel.opened.iter().filter(|(e, _)| e.subject == Subject::Task(11));
    assert!(tasks.count() > 0);
}

#[test]
fn children_are_left_out_when_asked() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    for inherit in [true, false] {
        let mut request = request(&machine, &table, &groups, Target::Command);
        request.inherit = inherit;
        let mut kernel = kernel();
        run(&mut kernel, &request);
        let mut of_command = kernel.opened.iter().filter(|(e, _)| e.subject == Subject::Task(4711));
        assert!(of_command.all(|(e, _)| e.inherit == inherit && e.enable_on_exec));
    }
}

#[test]
fn a_process_whose_main_thread_has_ended_is_counted_by_its_others() {
    // As after pthread_exit in main: the leader is a zombie that /proc still lists.
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2])];
    let mut kernel =
        Scripted { threads: vec![10, 11], ended_threads: [10].into(), ..self::kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Process(10)));
    assert_eq!(count(&measured, 0, 2), Ok(2.0 * SECOND));
    assert!(measured.notes[0].ends_with(" 10"), "{:?}", measured.notes);

    let mut kernel = Scripted { threads: vec![10], ended_threads: [10].into(), ..self::kernel() };
    let request = request(&machine, &table, &groups, Target::Process(10));
    let error = perf::measure_with(&mut kernel, &request, &mut |_| {}).expect_err("all ended");
    assert!(error.cause().expect("a cause").contains("ended"), "{error:?}");
}

#[test]
fn a_cpu_that_went_offline_is_left_out_aloud_and_one_that_refuses_gives_a_reason() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2])];
    let mut request = request(&machine, &table, &groups, Target::System);
    request.duration = Some(Duration::from_secs(1));
    let lifetime = Duration::from_secs(60);
    let mut kernel = Scripted { offline: [0].into(), lifetime, ..self::kernel() };
    let measured = run(&mut kernel, &request);
    assert_eq!(count(&measured, 0, 2), Ok(2.0 * SECOND), "one CPU is left");
    assert!(measured.notes[0].ends_with(" 0"), "{:?}", measured.notes);

    // CPU 1 does not have the event: a sum over both CPUs is not known, that of CPU 0 can.
    let refusals = vec![(1, 2, Errno::EOPNOTSUPP)];
    let mut kernel = Scripted { refusals, lifetime, ..self::kernel() };
    let measured = run(&mut kernel, &request);
    let Err(Missing::NotSupported(why)) = count(&measured, 0, 2) else { panic!("counted") };
    assert!(why.starts_with("e02"), "{why}");
    request.aggregate = Aggregate::Thread;
    let measured = run(&mut kernel, &request);
    assert_eq!(count(&measured, 0, 2), Ok(2.0 * SECOND));
    assert!(matches!(count(&measured, 1, 2), Err(Missing::NotSupported(_))));
}

#[test]
fn a_cpu_that_goes_offline_counts_for_the_time_it_was_there() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3])];
    let mut request = request(&machine, &table, &groups, Target::System);
    request.duration = Some(Duration::from_secs(3));
    let lifetime = Duration::from_secs(60);
    let leaving = vec![(Duration::from_millis(1204), 1)];
    let loads = [(0, 0.5), (1, 1.0)].into();
    let mut kernel = Scripted { leaving, loads, lifetime, ..self::kernel() };
    let measured = run(&mut kernel, &request);
    // CPU 0 for 3 s and CPU 1 for 1.204 s: every event, not only the first of its group.
    for n in 1..=3 {
        near(count(&measured, 0, n).expect("counted"), 4.204 * f64::from(n) * SECOND, 1e-9);
    }
    assert!(measured.notes[0].contains("offline"), "{measured:?}");
    near(measured.software.task_clock.expect("busy time"), 1.5 + 1.204, 1e-9);
}

#[test]
fn an_event_of_the_whole_core_is_not_taken_from_one_of_its_threads() {
    let mut table = table("t", "cpu");
    table.events[1].spec.percore = true;
    let groups = [group(&[1, 2])];
    let siblings = "sys/devices/system/cpu/cpu1/topology/core_id";
    let (with_smt, without) = (intel(&[(siblings, "0")]), intel(&[]));
    let measured = run(&mut kernel(), &request(&with_smt, &table, &groups, Target::Command));
    assert_eq!(count(&measured, 0, 1), Ok(SECOND));
    let Err(Missing::NotMeasured(why)) = count(&measured, 0, 2) else { panic!("counted") };
    assert_eq!(why, "e02 needs the sum over both threads of the core");
    // A core of one thread is that thread.
    let measured = run(&mut kernel(), &request(&without, &table, &groups, Target::Command));
    assert_eq!(count(&measured, 0, 2), Ok(2.0 * SECOND));
}
