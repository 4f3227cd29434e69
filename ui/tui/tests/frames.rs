//! Cost of a frame.

use super::comparison::compared_functions;
use super::estimated_example::{estimate, sampled};
use super::example::{hot, measured};
use super::typing::{arrives, picture, types};
use crate::tui::action::BackgroundResult;
use crate::tui::state::{Searchable, State};

/// Seconds that this thread has used a processor.
fn processor_time() -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike as _;
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("usage");
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}

/// Functions, in a list that `with` shows.
const FEW: usize = 1000;
const MANY: usize = 100_000;

/// Time to draw a frame after a key, as a ratio: it must not grow with the number of functions.
fn costs_the_same(with: impl Fn(usize) -> State) {
    let frames = |state: &mut State| {
        let start = processor_time();
        for _ in 0..20 {
            types(state, "j PageDown");
            picture(state);
        }
        processor_time() - start
    };
    // The best of several: caches are shared with other processes.
    let (mut few, mut many) = (with(FEW), with(MANY));
    assert_eq!((few.list().rows, many.list().rows), (FEW, MANY));
    let rounds = (0..8).map(|_| (frames(&mut few), frames(&mut many)));
    let least = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.min(b.1));
    let (few, many) = rounds.reduce(least).expect("rounds");
    println!("20 frames after two keys: {few:.4} s of {FEW} functions, {many:.4} s of {MANY}");
    assert!(many < 3.0 * few, "{few} s of {FEW} functions, {many} s of {MANY}");
}

#[test]
fn a_frame_of_100_000_functions_costs_what_one_of_1000_does() {
    costs_the_same(|count| {
        let mut state = measured();
        let mut many = hot();
        let first = many.functions[0].clone();
        let one = |i: usize| profile::hot::HotFunction {
            name: format!("function_{i}"),
            share: 1.0 / count as f64,
            start: i as u64,
            ..first.clone()
        };
        many.functions = (0..count).map(one).collect();
        arrives(&mut state, BackgroundResult::Functions(Searchable::boxed(many)));
        types(&mut state, "Enter");
        state
    });
}

#[test]
fn a_frame_of_100_000_estimated_functions_costs_what_one_of_1000_does() {
    costs_the_same(|count| {
        let mut state = sampled();
        let mut many = estimate();
        let first = many.functions[0].clone();
        let one = |i: usize| report::documents::estimate::Row {
            name: format!("function_{i}"),
            start: Some(tma::Address(i as u64)),
            ..first.clone()
        };
        many.functions = (0..count).map(one).collect();
        arrives(&mut state, BackgroundResult::Estimated(Searchable::boxed(many)));
        types(&mut state, "Enter");
        state
    });
}

#[test]
fn a_frame_of_a_comparison_of_100_000_functions_costs_what_one_of_1000_does() {
    costs_the_same(compared_functions);
}
