//! The live collector against a scripted kernel: what users of awkward machines get.
//!
//! Expected counts follow from the script: rate × time, nothing else.

mod collect_support;

use collect_support::script::{SECOND, command, count, group, kernel, near, request, run};
use collect_support::{intel, table};
use nix::errno::Errno;
use pmu::kernel::Subject;
use pmu::scripted::Scripted;
use pmu::{Aggregate, CorePlan, Exit, Request, Target, perf};
use std::collections::BTreeMap;
use std::time::Duration;
use tma::counts::GroupCounts;
use tma::quantity::Missing;
use tma::{Error, ErrorKind};

#[test]
fn one_group_counts_exactly_and_gives_enough_readings() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3])];
    let measured = run(&mut kernel(), &request(&machine, &table, &groups, Target::Command));
    assert_eq!(count(&measured, 0, 1), Ok(SECOND));
    assert_eq!(count(&measured, 0, 3), Ok(3.0 * SECOND));
    let GroupCounts::Live { readings, .. } = &measured.counts[0].groups[0] else {
        panic!("not live")
    };
    assert!((8..=64).contains(&readings.len()), "{} readings", readings.len());
    assert_eq!(measured.exit, Some(Exit::Status(0)));
    near(measured.software.task_clock.clone().expect("a clock"), 1.0, 1e-6);
    near(measured.software.cpus_used().expect("a ratio"), 1.0, 1e-6);
}

#[test]
fn a_short_run_and_a_long_one_keep_a_fitting_number_of_readings() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    for (lifetime, least) in [(40, 8), (250, 31), (10_000, 31), (100_000, 31)] {
        let mut kernel = Scripted { lifetime: Duration::from_millis(lifetime), ..kernel() };
        let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
        let GroupCounts::Live { readings, .. } = &measured.counts[0].groups[0] else {
            panic!("not live")
        };
        assert!((least..=64).contains(&readings.len()), "{lifetime} ms: {}", readings.len());
        assert_eq!(count(&measured, 0, 1), Ok(lifetime as f64 * 1e6));
    }
}

#[test]
fn groups_that_take_turns_are_scaled() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3]), group(&[4, 5, 6]), group(&[7, 8, 9])];
    let measured = run(&mut kernel(), &request(&machine, &table, &groups, Target::Command));
    for n in 1..=9 {
        near(count(&measured, 0, n).expect("counted"), f64::from(n) * SECOND, 0.01);
    }
    for group in &measured.counts[0].groups {
        near(group.running_share().expect("a share"), 1.0 / 3.0, 0.05);
    }
}

#[test]
fn without_multiplexing_each_group_has_a_run_of_its_own() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3]), group(&[4, 5, 6])];
    let mut request = request(&machine, &table, &groups, Target::Command);
    request.multiplex = false;
    assert_eq!(request.runs(), 2);
    let mut kernel = kernel();
    let measured = run(&mut kernel, &request);
    assert_eq!(kernel.started, 2);
    for n in 1..=6 {
        assert_eq!(count(&measured, 0, n), Ok(f64::from(n) * SECOND));
    }
    assert!(measured.counts[0].groups.iter().all(|g| g.running_share() == Some(1.0)));
}

#[test]
fn repeats_add_up_and_are_kept_apart() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2])];
    let mut request = request(&machine, &table, &groups, Target::Command);
    request.repeats = 3;
    let measured = run(&mut kernel(), &request);
    assert_eq!(count(&measured, 0, 2), Ok(6.0 * SECOND));
    assert_eq!(measured.repeats.len(), 3);
    assert_eq!(measured.repeats[1][0].groups[0].total(0), Ok(SECOND));
    assert_eq!(measured.counts[0].constants[1], Some(3000.0));
    near(measured.software.task_clock.expect("a clock"), 1.0, 1e-6);
}

#[test]
fn no_pmu_still_runs_the_command_and_says_so_for_every_group() {
    let table = table("t", "cpu");
    let files = collect_support::INTEL.iter().filter(|(p, _)| !p.contains("event_source"));
    let machine = collect_support::machine(&files.copied().collect::<Vec<_>>());
    let groups = [group(&[1, 2])];
    let mut request = request(&machine, &table, &groups, Target::Command);
    request.cores[0].pmu = None;
    let measured = run(&mut Scripted { exit: Exit::Status(3), ..kernel() }, &request);
    assert_eq!(count(&measured, 0, 1), Err(Missing::NoPmu { virtual_machine: false }));
    assert_eq!(measured.exit, Some(Exit::Status(3)));
    assert!(measured.software.task_clock.is_ok());
}

#[test]
fn a_virtual_machine_is_named_only_where_one_was_detected() {
    let table = table("t", "cpu");
    let machine = intel(&[("proc/cpuinfo", "vendor_id : GenuineIntel\nflags : fpu hypervisor\n")]);
    let groups = [group(&[1])];
    let mut request = request(&machine, &table, &groups, Target::Command);
    request.cores[0].pmu = None;
    let measured = run(&mut kernel(), &request);
    assert_eq!(count(&measured, 0, 1), Err(Missing::NoPmu { virtual_machine: true }));
}

#[test]
fn refusal_of_kernel_mode_falls_back_to_user_only() {
    let machine = intel(&[("proc/sys/kernel/perf_event_paranoid", "2")]);
    let table = table("t", "cpu");
    let groups = [group(&[1, 2])];
    let mut kernel = Scripted { denied: Some(false), ..kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    assert!(measured.user_only);
    assert_eq!(measured.counts[0].notes, ["user mode only: PMU counts leave the kernel out"]);
    assert_eq!(count(&measured, 0, 2), Ok(2.0 * SECOND));
    // Switches happen in the kernel: what wait4 says stands in, migrations have no stand-in.
    assert_eq!(measured.software.context_switches, Ok(7.0));
    assert!(matches!(measured.software.migrations, Err(Missing::NotPermitted(_))));
}

#[test]
fn refusal_of_everything_names_the_cause_and_the_command_still_runs() {
    let machine = intel(&[("proc/sys/kernel/perf_event_paranoid", "3")]);
    let table = table("t", "cpu");
    let groups = [group(&[1, 2])];
    let mut kernel = Scripted { denied: Some(true), ..kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    let Err(Missing::NotPermitted(why)) = count(&measured, 0, 1) else { panic!("counted") };
    assert_eq!(why, "perf_event_paranoid is 3 and this process has no CAP_PERFMON");
    assert_eq!(kernel.started, 1);
    near(measured.software.task_clock.expect("wait4's"), 1.0, 1e-6);
}

#[test]
fn a_group_too_large_is_split_with_the_clock_in_both_parts() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3, 4, 5, 6])];
    let measured = run(&mut kernel(), &request(&machine, &table, &groups, Target::Command));
    for n in 1..=6 {
        near(count(&measured, 0, n).expect("counted"), f64::from(n) * SECOND, 0.01);
    }
    assert_eq!(
        measured.notes,
        ["a group of 6 events is too large for this kernel and was opened in 2 parts"]
    );
}

#[test]
fn counters_taken_by_the_watchdog_split_groups_instead_of_losing_them() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3, 4])];
    let mut kernel = Scripted { busy: BTreeMap::from([(u32::MAX, 1)]), ..kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    for n in 1..=4 {
        near(count(&measured, 0, n).expect("counted"), f64::from(n) * SECOND, 0.01);
    }
    assert!(measured.notes[0].contains("watchdog"), "{:?}", measured.notes);
}

#[test]
fn no_counter_left_is_not_counted_never_0() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2])];
    let mut kernel = Scripted { busy: BTreeMap::from([(u32::MAX, 4)]), ..kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    assert!(matches!(count(&measured, 0, 1), Err(Missing::NotCounted(_))));
}

#[test]
fn an_event_the_kernel_does_not_know_is_missing_alone() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3])];
    let mut kernel = Scripted { absent: [2].into(), ..kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    assert_eq!(count(&measured, 0, 3), Ok(3.0 * SECOND));
    let Err(Missing::NotSupported(what)) = count(&measured, 0, 2) else { panic!("counted") };
    assert!(what.starts_with("e02"), "{what}");
}

#[test]
fn kernels_that_cannot_read_inherited_groups_are_read_event_by_event() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3])];
    let mut kernel = Scripted { no_inherited_groups: true, ..kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    for n in 1..=3 {
        assert_eq!(count(&measured, 0, n), Ok(f64::from(n) * SECOND));
    }
    assert!(kernel.opened.iter().all(|(e, _)| !e.group_read));
}

#[test]
fn too_many_events_raise_the_limit_on_open_files_or_say_how_many_are_needed() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3])];
    let mut enough = Scripted { files: (4, 64), ..kernel() };
    let measured = run(&mut enough, &request(&machine, &table, &groups, Target::Command));
    assert_eq!(count(&measured, 0, 3), Ok(3.0 * SECOND));
    let mut short = Scripted { files: (2, 2), ..kernel() };
    let request = request(&machine, &table, &groups, Target::Command);
    let error = perf::measure_with(&mut short, &request, &mut |_| {}).expect_err("too many");
    assert!(error.remedy().expect("a remedy").contains("ulimit -n 67"), "{error:?}");
    assert_eq!(short.started, 0, "the command must not run when the measurement failed");
}

#[test]
fn each_cpu_is_scaled_by_its_own_share() {
    // CPU 1 has 2 of 4 counters taken: its groups take turns, those of CPU 0 do not.
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
    assert_eq!(measured.notes, ["threads that had ended before counting began: 10"]);

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
    assert_eq!(measured.notes, ["CPUs that are offline and were not counted: 0"]);

    // CPU 1 does not have the event: a sum over both CPUs cannot be told, that of CPU 0 can.
    let refusals = vec![(1, 2, Errno::EOPNOTSUPP)];
    let mut kernel = Scripted { refusals, lifetime, ..self::kernel() };
    let measured = run(&mut kernel, &request);
    let Err(Missing::NotSupported(why)) = count(&measured, 0, 2) else { panic!("counted") };
    assert!(why.starts_with("e02") && why.contains("not supported"), "{why}");
    request.aggregate = Aggregate::Thread;
    let measured = run(&mut kernel, &request);
    assert_eq!(count(&measured, 0, 2), Ok(2.0 * SECOND));
    assert!(matches!(count(&measured, 1, 2), Err(Missing::NotSupported(_))));
}

#[test]
fn a_group_that_cannot_be_read_at_the_end_is_missing_with_the_cause() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2]), group(&[3, 4])];
    let request = request(&machine, &table, &groups, Target::Command);
    let ms = Duration::from_millis;
    let unreadable = |from, to| Scripted { unreadable: vec![(3, ms(from), ms(to))], ..kernel() };
    // From 900 ms on, or never: what came in is not known.
    for from in [900, 0] {
        let measured = run(&mut unreadable(from, 9000), &request);
        assert_eq!(count(&measured, 0, 2), Ok(2.0 * SECOND));
        let Err(Missing::NotMeasured(why)) = count(&measured, 0, 4) else { panic!("counted") };
        assert!(why.contains("Input/output error") || why.contains("I/O error"), "{why}");
        assert!(measured.notes.is_empty(), "{:?}", measured.notes);
    }
    // For some time: later readings have it all.
    let measured = run(&mut unreadable(300, 400), &request);
    assert_eq!(count(&measured, 0, 4), Ok(4.0 * SECOND));
    assert!(measured.notes[0].contains("came in with the next"), "{:?}", measured.notes);
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

#[test]
fn requests_that_make_no_sense_are_refused_as_wrong_usage() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    let mut kernel = kernel();
    let mut refused = |request: &Request<'_>| {
        let error = perf::measure_with(&mut kernel, request, &mut |_| {}).expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    };
    let mut no_command = request(&machine, &table, &groups, Target::Command);
    no_command.command = None;
    refused(&no_command);
    let mut again = request(&machine, &table, &groups, Target::System);
    again.repeats = 2;
    refused(&again);
    let mut cores = request(&machine, &table, &groups, Target::Command);
    cores.aggregate = Aggregate::Core;
    refused(&cores);
    // A command's threads do not exist when counting starts: all of it would be "tid N".
    cores.aggregate = Aggregate::Thread;
    refused(&cores);
    refused(&request(&machine, &table, &groups, Target::Cpus(vec![0, 7])));
}

#[test]
fn what_does_not_exist_is_an_error_and_nothing_runs() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    let mut kernel = Scripted {
        exec_error: Some(Error::failed("cannot start work").because("No such file")),
        ..kernel()
    };
    let mut fails = |target: Target| {
        let request = request(&machine, &table, &groups, target);
        perf::measure_with(&mut kernel, &request, &mut |_| {}).expect_err("fails").to_string()
    };
    assert_eq!(fails(Target::Command), "cannot start work: No such file");
    assert!(fails(Target::Process(5)).contains("no process 5"));
    assert!(fails(Target::Thread(5)).contains("no thread 5"));
    assert!(fails(Target::Cgroup("absent".into())).contains("control group absent"));
}
