//! Random actions at random sizes: nothing panics, and the cursor stays in its list. The cost of a frame does not grow
//! with the functions.

use super::comparison::compared_functions;
use super::estimated_example::{estimate, sampled};
use super::example::{annotated, block_report, hot, measured, report};
use super::{arrives, picture, types};
use crate::keymap::{Command, Edit};
use crate::tui::action::{Action, BackgroundResult};
use crate::tui::state::{Failure, Searchable, State};
use crate::tui::update::update;
use profile::hot::Thread;
use proptest::prelude::*;

const COMMANDS: [Command; 48] = [
    Command::Help,
    Command::Drill,
    Command::Callers,
    Command::Back,
    Command::Up,
    Command::Down,
    Command::PageUp,
    Command::PageDown,
    Command::HalfUp,
    Command::HalfDown,
    Command::Top,
    Command::Bottom,
    Command::Search,
    Command::NextMatch,
    Command::PreviousMatch,
    Command::Filter,
    Command::Sort,
    Command::Invert,
    Command::Toggle,
    Command::Expand,
    Command::Collapse,
    Command::ExpandAll,
    Command::CollapseAll,
    Command::Hottest,
    Command::NextHot,
    Command::PreviousHot,
    Command::NextSymbol,
    Command::PreviousSymbol,
    Command::Source,
    Command::Offsets,
    Command::Samples,
    Command::Details,
    Command::DetailsDown,
    Command::DetailsUp,
    Command::NextPart,
    Command::Freeze,
    Command::Module,
    Command::Thread,
    Command::NextEvent,
    Command::Intervals,
    Command::ZoomIn,
    Command::ZoomOut,
    Command::Earlier,
    Command::Later,
    Command::Copy,
    Command::Export,
    Command::Again,
    Command::Cancel,
];

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        "[a-zA-Z ±名]".prop_map(|s: String| Edit::Insert(s.chars().next().unwrap_or('x'))),
        Just(Edit::Erase),
        Just(Edit::EraseWord),
        Just(Edit::EraseAll),
        Just(Edit::Accept),
        Just(Edit::Abort),
    ]
}

fn result() -> impl Strategy<Value = BackgroundResult> {
    prop_oneof![
        any::<bool>().prop_map(|less| {
            let mut one = report();
            if less {
                one.nodes.truncate(5);
            }
            BackgroundResult::Interval(Box::new(one))
        }),
        (0_u32..20).prop_map(|second| {
            let mut one = report();
            one.interval = Some((f64::from(second), f64::from(second) + 1.0));
            one.nodes[second as usize % 4].value = Some(0.9);
            BackgroundResult::Interval(Box::new(one))
        }),
        any::<bool>().prop_map(|less| {
            let mut one = hot();
            if less {
                one.functions.remove(0);
            }
            BackgroundResult::Functions(Searchable::boxed(one))
        }),
        (0usize..6).prop_map(|i| {
            BackgroundResult::Annotated(i, Box::new(annotated()), Default::default())
        }),
        (0u64..6).prop_map(|id| BackgroundResult::Measured(id, Ok(Box::new(block_report())))),
        (0u64..6).prop_map(|id| BackgroundResult::Progress(id, 1.5, 7)),
        Just(BackgroundResult::NoFunctions("for some reason".into())),
        Just(BackgroundResult::Threads(vec![Thread { tid: 7, name: "worker".into(), samples: 3 }])),
        Just(BackgroundResult::Saved("a.txt".into(), Err(Failure::Exists))),
        Just(BackgroundResult::NoReport("for another reason".into())),
    ]
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        12 => prop::sample::select(&COMMANDS[..]).prop_map(Action::Command),
        4 => edit().prop_map(Action::Edit),
        2 => (1u16..160, 1u16..60).prop_map(|(w, h)| Action::Resize(w, h)),
        1 => (1u16..6, 1u16..6).prop_map(|(w, h)| Action::Resize(w, h)),
        9 => result().prop_map(Action::Background),
    ]
}

fn check(state: &State) {
    let list = state.list();
    assert!(list.at < list.rows.max(1) && list.top <= list.at, "{list:?}");
    assert!(!state.path.is_empty());
    picture(state);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(actions in prop::collection::vec(action(), 1..80), ascii: bool) {
        let mut state = measured();
        state.look.ascii = ascii;
        for action in actions {
            // As in the program, keys reach an open prompt only as edits.
            let typed = matches!(action, Action::Command(_));
            if typed && state.prompt.is_some() {
                update(&mut state, Action::Edit(Edit::Insert('m')));
            } else {
                update(&mut state, action);
            }
            check(&state);
        }
    }
}

#[test]
fn every_screen_at_every_small_size() {
    for (columns, rows) in (1..24).flat_map(|c| (1..12).map(move |r| (c, r))) {
        let mut state = measured();
        update(&mut state, Action::Resize(columns, rows));
        for command in [Command::Drill, Command::Drill, Command::Drill, Command::Help] {
            check(&state);
            update(&mut state, Action::Command(command));
        }
        check(&state);
    }
}

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
