//! When a measurement begins and ends, of its own accord, by time or by a signal, and its
//! intervals.
//!
//! Expected counts follow from the script: rate × time, nothing else.

use super::script::{SECOND, count, group, kernel, near, request, run};
use super::{intel, table, table_of};
use pmu::scripted::Scripted;
use pmu::{Exit, Progress, Target, perf};
use std::time::Duration;
use tma::quantity::Missing;
use tma::tree::Evaluator;

#[test]
fn intervals_partition_the_measurement() {
    let (machine, nodes) =
        (intel(&[]), table_of("[[node]]\nid = \"n\"\nlevel = 1\nformula = \"e02 / e01\"\n"));
    let groups = [group(&[1, 2])];
    let mut request = request(&machine, &nodes, &groups, Target::Command);
    request.interval = Some(Duration::from_millis(300));
    let mut sum = 0.0;
    let mut ends = Vec::new();
    let mut kernel = kernel();
    let measured = perf::measure_with(&mut kernel, &request, &mut |p| {
        let Progress::Interval(interval) = p else { return };
        ends.push(interval.span.1.as_millis());
        sum += interval.counts[0].groups[0].total(1).expect("counted");
        let evaluated = Evaluator::new(&nodes).evaluate(&interval.counts[0]);
        assert_eq!(evaluated.nodes[0].quantity.get(), Some(2.0));
        assert_eq!(evaluated.nodes[0].quantity.error, Ok(0.0), "all of it was counted");
    });
    assert_eq!(ends, [300, 600, 900, 1000]);
    assert_eq!(sum, 2.0 * SECOND);
    assert_eq!(count(&measured.expect("measured"), 0, 2), Ok(2.0 * SECOND));
    // One reading each, as perf stat makes, and one that tells that nothing is multiplexed.
    assert_eq!(kernel.read, 5);
}

#[test]
fn an_interval_lasts_as_long_as_it_was_counted() {
    // Stopped from 250 ms for 500 ms: the interval due at 300 ms is read at 750 ms, those due at
    // 400 to 700 ms are not made up, and the next ends at 800 ms as if nothing had happened.
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    let mut request = request(&machine, &table, &groups, Target::Command);
    request.interval = Some(Duration::from_millis(100));
    let stall = (Duration::from_millis(250), Duration::from_millis(500));
    let mut kernel = Scripted { stalls: vec![stall], ..kernel() };
    let mut spans = Vec::new();
    let measured = perf::measure_with(&mut kernel, &request, &mut |p| {
        let Progress::Interval(interval) = p else { return };
        let (from, to) = interval.span;
        spans.push((from.as_millis(), to.as_millis()));
        let ns = (to - from).as_nanos() as f64;
        assert_eq!(interval.counts[0].groups[0].total(0), Ok(ns), "one count a nanosecond");
        assert_eq!(interval.software.wall, to - from);
        near(interval.software.task_clock.expect("a clock"), ns * 1e-9, 1e-9);
    });
    assert_eq!(spans, [(0, 100), (100, 200), (200, 750), (750, 800), (800, 900), (900, 1000)]);
    assert_eq!(count(&measured.expect("measured"), 0, 1), Ok(SECOND));
}

#[test]
fn a_signal_during_the_delay_ends_all_runs() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    let mut request = request(&machine, &table, &groups, Target::Command);
    request.delay = Duration::from_millis(200);
    request.repeats = 3;
    let signals = vec![(Duration::from_millis(100), libc::SIGTERM, false)];
    let mut kernel = Scripted { signals, ..kernel() };
    let measured = run(&mut kernel, &request);
    assert_eq!((measured.interrupted, kernel.started), (Some(libc::SIGTERM), 1));
    assert_eq!(measured.exit, Some(Exit::Signal(libc::SIGTERM)));
    assert!(matches!(count(&measured, 0, 1), Err(Missing::NotMeasured(_))));
}

#[test]
fn a_signal_the_command_ignores_does_not_cut_the_delay_short() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    let mut request = request(&machine, &table, &groups, Target::Command);
    request.delay = Duration::from_millis(200);
    request.repeats = 3;
    let signals = vec![(Duration::from_millis(100), libc::SIGINT, false)];
    let mut kernel = Scripted { signals: signals.clone(), stubborn: true, ..self::kernel() };
    let measured = run(&mut kernel, &request);
    assert_eq!((measured.interrupted, kernel.started), (Some(libc::SIGINT), 1));
    // The command goes on to its end at 1 s; it is counted from 0.2 s.
    assert_eq!(count(&measured, 0, 1), Ok(0.8 * SECOND));

    // Without a command there is nothing to wait for.
    let mut system = self::request(&machine, &table, &groups, Target::System);
    system.delay = Duration::from_millis(200);
    let mut kernel = Scripted { signals, ..self::kernel() };
    let measured = run(&mut kernel, &system);
    assert_eq!(measured.interrupted, Some(libc::SIGINT));
    assert_eq!(kernel.so_far.now(), Duration::from_millis(100));
}

#[test]
fn an_interrupt_from_the_terminal_is_not_sent_twice_and_still_gives_counts() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    let at = Duration::from_millis(400);
    let mut kernel = Scripted { signals: vec![(at, libc::SIGINT, true)], ..kernel() };
    let mut request = request(&machine, &table, &groups, Target::Command);
    request.repeats = 5;
    let measured = run(&mut kernel, &request);
    assert_eq!(measured.interrupted, Some(libc::SIGINT));
    assert_eq!(measured.exit, Some(Exit::Signal(libc::SIGINT)));
    assert_eq!(count(&measured, 0, 1), Ok(0.4 * SECOND));
    assert!(kernel.sent.is_empty(), "{:?}", kernel.sent);
    assert_eq!(kernel.started, 1, "no further repeat");
}

#[test]
fn an_interrupt_for_us_alone_is_handed_on_and_a_second_one_ends_a_stubborn_command() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    let (first, second) = (Duration::from_millis(100), Duration::from_millis(300));
    let mut kernel = Scripted {
        signals: vec![(first, libc::SIGINT, false), (second, libc::SIGINT, false)],
        stubborn: true,
        ..kernel()
    };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    assert_eq!(kernel.sent, [libc::SIGINT, libc::SIGTERM]);
    assert_eq!(count(&measured, 0, 1), Ok(0.3 * SECOND));
}

#[test]
fn a_delay_leaves_the_beginning_out_and_a_duration_the_end() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    let mut request = request(&machine, &table, &groups, Target::Command);
    request.delay = Duration::from_millis(200);
    request.duration = Some(Duration::from_millis(500));
    let mut kernel = kernel();
    let measured = run(&mut kernel, &request);
    assert_eq!(count(&measured, 0, 1), Ok(0.5 * SECOND));
    assert_eq!(kernel.sent, [libc::SIGTERM]);
    assert_eq!(measured.exit, None, "ended by us: not the command's failure");
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_and_that_is_said() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    let mut request = request(&machine, &table, &groups, Target::Command);
    request.duration = Some(Duration::from_millis(500));
    let mut kernel = Scripted { deaf: true, lifetime: Duration::from_secs(60), ..kernel() };
    let measured = run(&mut kernel, &request);
    assert_eq!(kernel.sent, [libc::SIGTERM, libc::SIGKILL]);
    assert_eq!(kernel.so_far.now(), Duration::from_millis(2500));
    assert_eq!((measured.exit, measured.interrupted), (None, None));
    let killed = measured.notes.iter().any(|n| n.contains("SIGTERM") && n.contains("killed"));
    assert!(killed, "{:?}", measured.notes);
}

#[test]
fn an_unknown_exit_status_is_not_made_up() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    let mut kernel = Scripted { reaped_elsewhere: true, ..kernel() };
    let measured = run(&mut kernel, &request(&machine, &table, &groups, Target::Command));
    assert_eq!(measured.exit, None);
    assert!(measured.notes[0].contains("unknown"), "{:?}", measured.notes);
    assert_eq!(count(&measured, 0, 1), Ok(SECOND));
}

#[test]
fn the_cpu_time_of_whole_cpus_leaves_idle_time_out() {
    // 2 s from 0.5 s on; CPU 0 busy for a quarter, CPU 1 for a half of them: 0.5 + 1.0 s.
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    let mut request = request(&machine, &table, &groups, Target::System);
    request.delay = Duration::from_millis(500);
    request.duration = Some(Duration::from_secs(2));
    let lifetime = Duration::from_secs(60);
    let mut known = Scripted { loads: [(0, 0.25), (1, 0.5)].into(), lifetime, ..kernel() };
    let software = run(&mut known, &request).software;
    near(software.task_clock.clone().expect("busy time"), 1.5, 1e-9);
    near(software.cpus_used().expect("a ratio"), 0.75, 1e-9);
    let mut unknown = Scripted { lifetime, ..kernel() };
    let software = run(&mut unknown, &request).software;
    assert!(matches!(software.task_clock, Err(Missing::NotMeasured(_))), "{software:?}");
    assert_eq!(software.context_switches, Ok(0.0));
}

#[test]
fn software_counts_and_wall_time_are_of_the_same_window() {
    // One thread that runs all the time, and readings that take 30 ms: one CPU is used, not more.
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1]), group(&[2]), group(&[3])];
    let ms = Duration::from_millis;
    let mut request = request(&machine, &table, &groups, Target::Process(10));
    request.duration = Some(ms(200));
    request.interval = Some(ms(100));
    let lifetime = Duration::from_secs(60);
    let mut kernel = Scripted { threads: vec![10], reading: ms(10), lifetime, ..kernel() };
    let measured = perf::measure_with(&mut kernel, &request, &mut |p| {
        let Progress::Interval(interval) = p else { return };
        near(interval.software.cpus_used().expect("a ratio"), 1.0, 1e-6);
    });
    near(measured.expect("measured").software.cpus_used().expect("a ratio"), 1.0, 1e-6);
}

#[test]
fn costly_readings_are_made_once_an_interval() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    // Four counters: they take turns.
    let groups = [group(&[1, 2, 3]), group(&[1, 4, 5]), group(&[1, 6, 7])];
    let mut request = request(&machine, &table, &groups, Target::Command);
    request.interval = Some(Duration::from_millis(100));
    let reads = |reading| {
        let mut kernel = Scripted { reading, ..kernel() };
        run(&mut kernel, &request);
        kernel.read / groups.len()
    };
    // Ten intervals of 100 ms: 16 readings each where that costs little, else one as perf stat makes.
    assert!(reads(Duration::from_micros(2)) >= 150);
    assert!(reads(Duration::from_millis(2)) <= 12);
}
