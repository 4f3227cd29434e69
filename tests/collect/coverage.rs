//! How often the ± of a multiplexed node covers the true value, for programs with phases.
//!
//! The collector counts against the scripted kernel: groups that take turns of 4 ms, a program that
//! alternates between a share of 0.6 and of 0.1. The truth is the mean over the run by the phases'
//! lengths. `--nocapture` prints the table of docs/results/accuracy.md; TDTOOL_COVERAGE=N makes all of
//! its rows, of N times as many runs.

use super::intel;
use super::script::{request, run};
use crate::support::quiet::busy;
use crate::support::random::Random;
use pmu::Target;
use pmu::machine::Machine;
use pmu::scripted::Scripted;
use std::time::Duration;
use tma::tables::{EventId, Table};
use tma::tree::Evaluator;

/// Shares of the nodes in the two kinds of phases.
const SHARES: [f64; 2] = [0.1, 0.6];
/// Mean time from phase to like phase, in milliseconds: from, to.
const PERIODS: [(f64, f64); 5] =
    [(5.0, 20.0), (20.0, 60.0), (60.0, 70.0), (70.0, 200.0), (200.0, 500.0)];
/// Share of the time in phases of the second kind.
const DUTIES: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];

/// A node for each group: an event over the clock.
fn table(groups: usize) -> Table {
    let mut text = "schema = 1\nname = \"t\"\ntitle = \"test\"\nvendor = \"any\"\npmu = \"cpu\"\n\
         source = []\nclocks = \"clk\"\npipeline = { width = 4 }\n\
         counters = { general = 4, general_smt = 4, fixed = 0 }\n[events]\nclk = { code = 1 }\n"
        .to_owned();
    for n in 2..groups + 2 {
        text.push_str(&format!("e{n} = {{ code = {n} }}\n"));
    }
    for n in 2..groups + 2 {
        text.push_str(&format!("[[node]]\nid = \"n{n}\"\nlevel = 1\nformula = \"e{n} / clk\"\n"));
    }
    Table::parse(&text, "test").expect("a table")
}

/// When phases begin: of mean length `duty` of `period`, or the rest of it, each longer or shorter by up
/// to `jitter` of itself. Every second one is of the second kind.
fn phases(random: &mut Random, period: f64, duty: f64, jitter: f64, seconds: u64) -> Vec<Duration> {
    let (mut at, mut begins) = (random.unit() * period, Vec::new());
    while at < seconds as f64 * 1e3 {
        begins.push(Duration::from_secs_f64(at * 1e-3));
        let share = if begins.len() % 2 == 1 { duty } else { 1.0 - duty };
        at += period * share * (1.0 + jitter * (2.0 * random.unit() - 1.0));
    }
    begins
}

/// The share of the run in phases of the second kind.
fn share(phases: &[Duration], run: Duration) -> f64 {
    let time = phases.chunks(2).map(|p| p.get(1).map_or(run, |end| (*end).min(run)) - p[0]);
    time.sum::<Duration>().as_secs_f64() / run.as_secs_f64()
}

/// Nodes inside their ±, all nodes, and the sum of ±, of one run.
fn one(
    (machine, table): (&Machine, &Table),
    phases: Vec<Duration>,
    seconds: u64,
    seed: u64,
) -> Sum {
    let groups: Vec<Vec<EventId>> =
        (1..table.events.len()).map(|e| vec![0, e as EventId]).collect();
    let lifetime = Duration::from_secs(seconds);
    let truth = SHARES[0] + (SHARES[1] - SHARES[0]) * share(&phases, lifetime);
    let rates =
        |share| (1..=table.events.len() as u64).map(move |c| (c, if c == 1 { 1.0 } else { share }));
    let mut kernel = Scripted {
        rates: rates(SHARES[0]).collect(),
        other_rates: rates(SHARES[1]).collect(),
        phases,
        lifetime,
        seed,
        counters: 2,
        ..Scripted::default()
    };
    let measured = run(&mut kernel, &request(machine, table, &groups, Target::Command));
    let (mut inside, mut all, mut width) = (0, 0, 0.0);
    for node in Evaluator::new(table).evaluate(&measured.counts[0]).nodes {
        let (Some(value), Ok(error)) = (node.quantity.get(), node.quantity.error) else { continue };
        // A tenth of a point is printed; half of that is no deviation.
        inside += usize::from((value - truth).abs() <= error + 5e-4);
        all += 1;
        width += error;
    }
    (inside, all, width)
}

/// Nodes inside their ±, all nodes, and the sum of ±.
type Sum = (usize, usize, f64);

fn add(a: Sum, b: Sum) -> Sum {
    (a.0 + b.0, a.1 + b.1, a.2 + b.2)
}

fn percent(sum: Sum) -> f64 {
    100.0 * sum.0 as f64 / sum.1 as f64
}

/// Runs of each kind of program, by the range of its period.
fn row(groups: usize, seconds: u64, runs: usize) -> Vec<Sum> {
    let (machine, table) = (intel(&[]), table(groups));
    let mut random = Random(groups as u64 * 100 + seconds);
    let mut sums = Vec::new();
    for (from, to) in PERIODS {
        let mut sum = (0, 0, 0.0);
        for (duty, jitter) in DUTIES.iter().flat_map(|d| [(*d, 0.0), (*d, 0.1)]) {
            for _ in 0..runs {
                let period = from + (to - from) * random.unit();
                let phases = phases(&mut random, period, duty, jitter, seconds);
                sum = add(sum, one((&machine, &table), phases, seconds, random.next()));
            }
        }
        sums.push(sum);
    }
    sums
}

#[test]
fn intervals_of_95_percent_cover_the_true_value() {
    let _busy = busy();
    let all = std::env::var("TDTOOL_COVERAGE").ok().and_then(|n| n.parse().ok());
    let rows: &[(usize, u64, usize)] = match all {
        None => &[(2, 2, 1), (2, 30, 1), (6, 10, 1), (17, 2, 1), (33, 2, 1)],
        Some(_) => &[
            (2, 2, 4),
            (2, 10, 4),
            (2, 30, 4),
            (6, 2, 2),
            (6, 10, 2),
            (6, 30, 2),
            (17, 2, 1),
            (17, 10, 1),
            (17, 30, 1),
            (33, 2, 1),
            (33, 10, 1),
            (33, 30, 1),
        ],
    };
    let periods = PERIODS.map(|(a, b)| format!("{a}-{b} ms")).join(" | ");
    println!("| groups | run | {periods} | all | mean ± |");
    for (groups, seconds, runs) in rows {
        let sums = row(*groups, *seconds, runs * all.unwrap_or(1));
        let cells: Vec<String> = sums.iter().map(|s| format!("{:.1}", percent(*s))).collect();
        let total = sums.into_iter().fold((0, 0, 0.0), add);
        let width = 100.0 * total.2 / total.1 as f64;
        let cells = cells.join(" | ");
        println!("| {groups} | {seconds} s | {cells} | {:.1} | {width:.1} |", percent(total));
        assert!(percent(total) >= 93.0, "{groups} groups, {seconds} s: {cells}");
    }
}
