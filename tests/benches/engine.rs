//! Speed of what a user waits for: tables, evaluation of an interval, a report with errors.
//!
//! `cargo bench`; docs/results/speed.md holds the figures. Speed is asserted nowhere else.
#![allow(missing_docs)]

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tma::counts::{Counts, GroupCounts, Reading};
use tma::schedule::{Budget, plan};
use tma::tables::Table;
use tma::tree::{Evaluator, Flags};

/// Live counts of level 6 in the planner's groups, with `readings` readings each.
fn counts(table: &Table, readings: usize) -> Counts {
    let nodes: Vec<u16> = table.tree().map(|(n, _)| n).collect();
    let groups = plan(table, &nodes, false, &Budget::of(table, false, false)).groups;
    let count = groups.len() as u64;
    let mut state = 42u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        1_000_000 + (state >> 40)
    };
    let group = |events: Vec<u16>| {
        let reading = |_| Reading {
            enabled: 1_000_000 * count,
            running: 1_000_000,
            values: events.iter().map(|_| random()).collect(),
        };
        let readings: Vec<Reading> = (0..readings).map(reading).collect();
        let enabled = readings.iter().map(|r| r.enabled).sum();
        GroupCounts::Live { events, readings, enabled }
    };
    let groups = groups.into_iter().map(|g| g.events).map(group).collect();
    Counts {
        groups,
        constants: [Some(0.0), Some(1e3), Some(2e9), Some(1.0), Some(8.0)],
        ..Counts::default()
    }
}

fn tables(c: &mut Criterion) {
    let library = events::library();
    c.bench_function("parse the table skx", |b| b.iter(|| library.load(black_box("skx"))));
    c.bench_function("parse all tables", |b| {
        b.iter(|| {
            library
                .names()
                .map(|n| library.load(n).map(|t| t.nodes.len()))
                .sum::<tma::Result<usize>>()
        })
    });
}

fn evaluation(c: &mut Criterion) {
    for name in ["skx", "icx", "spr"] {
        let table = events::library().load(name).expect("embedded");
        let interval = counts(&table, 2);
        let mut evaluator = Evaluator::new(&table);
        c.bench_function(&format!("values of an interval, level 6, {name}"), |b| {
            b.iter(|| {
                let evaluation = evaluator.values(black_box(&interval));
                Flags::new(&table, &evaluation)
            })
        });
        let whole = counts(&table, 32);
        c.bench_function(&format!("whole run with errors, level 6, {name}"), |b| {
            b.iter(|| evaluator.evaluate(black_box(&whole)))
        });
        let nodes: Vec<u16> = table.tree().map(|(n, _)| n).collect();
        let budget = Budget::of(&table, false, false);
        c.bench_function(&format!("plan level 6, {name}"), |b| {
            b.iter(|| plan(&table, black_box(&nodes), false, &budget))
        });
    }
}

criterion_group!(benches, tables, evaluation);
criterion_main!(benches);
