//! What a frame costs.

use super::example::{hot, measured};
use super::typing::{arrives, picture, types};
use crate::tui::action::BackgroundResult;
use crate::tui::state::State;

/// Seconds that this thread has used a processor.
fn processor_time() -> f64 {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike as _;
    let usage = getrusage(UsageWho::RUSAGE_THREAD).expect("usage");
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}

/// Time to draw a frame after a key, as a ratio: it must not grow with the number of functions.
#[test]
fn a_frame_of_100_000_functions_costs_what_one_of_1000_does() {
    let with = |count: usize| {
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
        arrives(&mut state, BackgroundResult::Functions(Box::new(many)));
        types(&mut state, "Enter");
        assert_eq!(state.functions.rows.len(), count);
        state
    };
    let frames = |state: &mut State| {
        let start = processor_time();
        for _ in 0..20 {
            types(state, "j PageDown");
            picture(state);
        }
        processor_time() - start
    };
    // The best of several: caches are shared with other processes.
    let (mut few, mut many) = (with(1000), with(100_000));
    let rounds = (0..8).map(|_| (frames(&mut few), frames(&mut many)));
    let least = |a: (f64, f64), b: (f64, f64)| (a.0.min(b.0), a.1.min(b.1));
    let (few, many) = rounds.reduce(least).expect("rounds");
    println!("20 frames after two keys: {few:.4} s of 1000 functions, {many:.4} s of 100,000");
    assert!(many < 3.0 * few, "{few} s of 1000 functions, {many} s of 100,000");
}
