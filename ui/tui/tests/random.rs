//! Random actions at random sizes: nothing panics, and the cursor stays in its list.

use super::example::{annotated, block_report, hot, measured, report};
use super::typing::picture;
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
