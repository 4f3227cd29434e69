//! Every screen at four sizes, compared with its snapshot.

use super::estimated_example::{estimated, sampled};
use super::example::{annotated, block_report, measured};
use super::{arrives, assert_shown, assert_shows, picture, types};
use crate::tui::action::{Action, BackgroundResult};
use crate::tui::state::State;
use crate::tui::update::update;
use std::fmt::Write as _;

const SIZES: [(u16, u16); 4] = [(80, 24), (120, 40), (40, 10), (20, 5)];

fn check(name: &str, prepare: impl Fn(&mut State)) {
    check_from(name, measured, prepare);
}

fn check_from(name: &str, first: fn() -> State, prepare: impl Fn(&mut State)) {
    let mut text = String::new();
    for (columns, rows) in SIZES {
        let mut state = first();
        update(&mut state, Action::Resize(columns, rows));
        prepare(&mut state);
        let _ = writeln!(text, "{columns} x {rows}\n{}", picture(&state));
    }
    assert_shown(name, &text);
}

#[test]
fn tree() {
    check("tree", |state| drop(types(state, "H")));
}

#[test]
fn tree_ascii() {
    check("tree-ascii", |state| {
        state.look.ascii = true;
        types(state, "H");
        assert!(picture(state).is_ascii(), "{}", picture(state));
    });
}

#[test]
fn intervals() {
    check("intervals", super::intervals::phased);
}

#[test]
fn intervals_ascii() {
    check("intervals-ascii", |state| {
        state.look.ascii = true;
        super::intervals::phased(state);
        types(state, "+ -");
        assert!(picture(state).is_ascii(), "{}", picture(state));
    });
}

#[test]
fn functions() {
    check("functions", |state| drop(types(state, "Enter j")));
}

#[test]
fn blocks() {
    check("blocks", |state| drop(types(state, "Enter Enter s")));
}

#[test]
fn block() {
    check("block", |state| {
        types(state, "Enter Enter Enter");
        arrives(state, BackgroundResult::Measured(1, Ok(Box::new(block_report()))));
    });
}

/// Samples of loads arrive: functions have their share and mean latency, blocks and instructions all of them.
#[test]
fn loads_are_beside_the_code() {
    use crate::tui::state::Loads;
    use report::documents::loads::{EventRow, LevelsRow, LoadRow, Loads as Document, VariableOf};
    let load = LoadRow {
        module: "/usr/bin/matmul".into(),
        address: tma::Address(0x1953),
        share: 0.75,
        samples: 30,
        latency_mean: Some(320.0),
        levels: LevelsRow { ram: 30, ..LevelsRow::default() },
        class: Some(report::documents::count::Kind::Stride),
        field: Some("b[]".into()),
        variables: vec![VariableOf { name: "heap".into(), samples: 30 }],
        ..LoadRow::default()
    };
    let event = EventRow { loads: 40, name: "mem-loads".into(), ..EventRow::default() };
    let document = Document { events: vec![event], loads: vec![load], ..Document::default() };
    let mut state = measured();
    update(&mut state, Action::Resize(140, 40));
    let loads = Loads::of_events(&document);
    arrives(&mut state, BackgroundResult::Loads(loads));
    types(&mut state, "Enter");
    assert_shows("functions-with-loads", &state);
    types(&mut state, "Enter");
    assert_shows("blocks-with-loads", &state);
}

#[test]
fn an_offer_to_estimate() {
    check_from("estimate-offer", sampled, |_| ());
}

#[test]
fn estimate() {
    check_from("estimate", estimated, |_| ());
}

#[test]
fn estimate_ascii() {
    check_from("estimate-ascii", estimated, |state| {
        state.look.ascii = true;
        types(state, "Enter");
        assert!(picture(state).is_ascii(), "{}", picture(state));
    });
}

#[test]
fn estimated_functions() {
    check_from("estimated-functions", estimated, |state| drop(types(state, "Enter")));
}

#[test]
fn estimated_code() {
    check_from("estimated-code", estimated, |state| drop(types(state, "Enter Enter")));
}

#[test]
fn estimated_source() {
    check_from("estimated-source", estimated, |state| drop(types(state, "Enter Enter s Enter")));
}

#[test]
fn estimated_block() {
    check_from("estimated-block", estimated, |state| drop(types(state, "Enter Enter Enter")));
}

#[test]
fn help() {
    check("help", |state| drop(types(state, "?")));
}

#[test]
fn a_jump_forward_to_the_head_of_its_loop_points_at_it() {
    let mut state = measured();
    types(&mut state, "Enter Enter");
    let mut code = annotated();
    code.blocks[0].back_to = Some(0x1953);
    arrives(&mut state, BackgroundResult::Annotated(0, Box::new(code), Default::default()));
    assert_shows("blocks-with-the-head-last", &state);
}
