//! Counting that a control pipe turns on and off, against the scripted kernel.

use super::script::{SECOND, count, group, kernel, near, request};
use super::{intel, table};
use pmu::kernel::Order;
use pmu::scripted::Scripted;
use pmu::{Control, Measurement, Progress, Request, Target, perf};
use std::time::Duration;
use tma::quantity::Missing;

const fn ms(number: u64) -> Duration {
    Duration::from_millis(number)
}

fn control() -> Option<Control> {
    Some(Control { commands: "ctl".into(), ack: None })
}

fn run(kernel: &mut Scripted, request: &Request<'_>) -> (Measurement, Vec<(u64, f64)>) {
    let mut intervals = Vec::new();
    let mut see = |progress: Progress| {
        if let Progress::Interval(interval) = progress {
            let counted = interval.counts[0].groups[0].total(0).expect("counted");
            intervals.push((interval.software.wall.as_millis() as u64, counted));
        }
    };
    let measured = perf::measure_with(kernel, request, &mut see).expect("a measurement");
    (measured, intervals)
}

/// By hand: from 200 to 500 ms, and from 700 ms to the end at 1 s.
#[test]
fn only_what_is_enabled_is_counted() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3])];
    let orders = vec![
        (ms(200), Order::Enable),
        (ms(300), Order::Ping),
        (ms(350), Order::Unknown),
        (ms(500), Order::Disable),
        (ms(600), Order::Disable),
        (ms(700), Order::Enable),
    ];
    let mut kernel = Scripted { orders, ..kernel() };
    let request = Request {
        control: control(),
        interval: Some(ms(250)),
        ..request(&machine, &table, &groups, Target::Command)
    };
    let (measured, intervals) = run(&mut kernel, &request);
    assert_eq!(count(&measured, 0, 1), Ok(0.6 * SECOND));
    assert_eq!(count(&measured, 0, 3), Ok(1.8 * SECOND));
    assert_eq!(measured.software.wall, ms(600));
    near(measured.software.task_clock.clone().expect("a clock"), 0.6, 1e-6);
    // What was no command is not acknowledged.
    assert_eq!(kernel.acknowledged, 5);
    // 200 to 250, 250 to 500, 700 to 750 and 750 to 1000; each counts 1 a nanosecond.
    assert_eq!(intervals, [(50, 0.05e9), (250, 0.25e9), (50, 0.05e9), (250, 0.25e9)]);
    assert_shown!("notes_of_a_controlled_run", measured.notes.join("\n"));
}

#[test]
fn what_is_never_enabled_is_not_0() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1]), group(&[2])];
    let request =
        Request { control: control(), ..request(&machine, &table, &groups, Target::Command) };
    let (measured, _) = run(&mut kernel(), &request);
    let why = count(&measured, 0, 1).expect_err("not counted");
    assert!(!matches!(why, Missing::NotPermitted(_)), "{why:?}");
    assert!(matches!(measured.software.task_clock, Err(Missing::NotMeasured(_))));
    assert_shown!("notes_of_a_run_never_enabled", measured.notes.join("\n"));
}

/// Short pieces make readings of equal length, so that errors are known; groups that take turns go on where they were.
#[test]
fn many_short_pieces_count_as_one() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1, 2, 3]), group(&[4, 5, 6]), group(&[7, 8, 9])];
    let piece = |i: u64| [(ms(10 * i), Order::Enable), (ms(10 * i + 3), Order::Disable)];
    let orders = (1..200).flat_map(piece).collect();
    let mut kernel = Scripted { orders, lifetime: ms(2000), ..kernel() };
    let request =
        Request { control: control(), ..request(&machine, &table, &groups, Target::Command) };
    let (measured, _) = run(&mut kernel, &request);
    for n in 1..=9 {
        near(count(&measured, 0, n).expect("counted"), f64::from(n) * 0.597 * SECOND, 0.05);
    }
    let tma::counts::GroupCounts::Live { readings, .. } = &measured.counts[0].groups[0] else {
        panic!("not live")
    };
    assert!((8..=64).contains(&readings.len()), "{} readings", readings.len());
}

#[test]
fn one_run_only() {
    let (machine, table) = (intel(&[]), table("t", "cpu"));
    let groups = [group(&[1])];
    let plain =
        || Request { control: control(), ..request(&machine, &table, &groups, Target::Command) };
    for refused in [
        Request { repeats: 2, ..plain() },
        Request { delay: ms(1), ..plain() },
        Request { multiplex: false, ..plain() },
    ] {
        perf::measure_with(&mut kernel(), &refused, &mut |_| {}).expect_err("refused");
    }
}
