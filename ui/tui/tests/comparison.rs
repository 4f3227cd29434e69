//! Two measurements side by side.

use super::{arrives, assert_shows, picture, types};
use crate::keymap::Screen;
use crate::tui::action::{Action, BackgroundResult, Effect};
use crate::tui::look::Look;
use crate::tui::state::{Searchable, State};
use crate::tui::update::update;
use report::documents::diff::row::{CodeDiff, CodeRow, Matched, Side};
use report::documents::diff::{Diff, DiffRow, diff};
use report::documents::estimate::Part;
use report::documents::{Report, Source};
use tma::{Address, Error};

/// Times of a row in A and B with an error of 10 ms each.
fn time(name: &str, a: Option<f64>, b: Option<f64>) -> DiffRow {
    let of = |value: f64| Side {
        id: name.into(),
        label: name.into(),
        value: Some(value),
        error: Some(10.0),
        unit: "ms".into(),
        ..Side::default()
    };
    let (a, b) = (a.map(of), b.map(of));
    let named = a.clone().or(b.clone()).unwrap_or_default();
    DiffRow::of(&named, a.as_ref(), b.as_ref())
}

fn row(name: &str, a: Option<f64>, b: Option<f64>) -> CodeRow {
    let both = [a, b];
    CodeRow {
        module: "mix".into(),
        function: None,
        start: both.map(|one| one.map(|_| Address(0x1100))),
        end: [None, None],
        matched: Matched::Name,
        time: time(name, a, b),
        bottleneck: [Part::MemoryBound, Part::Retiring].map(|part| Some(part.into())),
        cycles_per_entry: [Some(212.5), Some(4.25)],
        entries: [Some(1e6), Some(1e6)],
        level1: both.map(|one| one.map(|_| [0.25, 0.0, 0.0, 0.5, 0.25])),
        parts: vec![time("Memory Bound", Some(400.0), Some(20.0))],
    }
}

/// `chase` lost 400 ms; `divide` is the same; `new` is only in B. Loops of `chase`, and of `divide`.
fn compared() -> Diff {
    let report = Report::new(Source::NoPmu);
    let mut all = diff("old.json", &report, "new.json", &report);
    let inner = |of: usize, name: &str, a, b, start: [u64; 2]| CodeRow {
        function: Some(of),
        start: start.map(|at| Some(Address(at))),
        matched: Matched::Shape,
        ..row(name, a, b)
    };
    all.code = Some(CodeDiff {
        program: Some(row("program", Some(1000.0), Some(650.0))),
        functions: vec![
            row("chase(node*)", Some(500.0), Some(100.0)),
            row("new", None, Some(50.0)),
            row("divide", Some(200.0), Some(201.0)),
        ],
        loops: vec![
            inner(0, "chase(node*)", Some(490.0), Some(95.0), [0x1140, 0x2240]),
            inner(2, "divide", Some(200.0), Some(201.0), [0x1180, 0x1180]),
        ],
        blocks: vec![inner(0, "chase(node*)", Some(10.0), Some(5.0), [0x1130, 0x2230])],
        is_single: true,
    });
    all
}

fn opened() -> State {
    let mut state = State::new(Screen::Comparison, Look::default());
    update(&mut state, Action::Resize(110, 24));
    arrives(&mut state, BackgroundResult::Compared(Ok(Searchable::boxed(compared()))));
    state
}

/// A comparison of so many functions.
pub fn compared_functions(count: usize) -> State {
    let mut all = compared();
    let one = |i: usize| row(&format!("function_{i}"), Some(500.0), Some(100.0));
    all.code = Some(CodeDiff {
        program: None,
        functions: (0..count).map(one).collect(),
        ..all.code.take().expect("code")
    });
    let mut state = State::new(Screen::Comparison, Look::default());
    update(&mut state, Action::Resize(110, 24));
    arrives(&mut state, BackgroundResult::Compared(Ok(Searchable::boxed(all))));
    state
}

#[test]
fn from_the_program_to_the_loop_that_gained() {
    let mut state = State::new(Screen::Comparison, Look::default());
    update(&mut state, Action::Resize(110, 24));
    assert_shows("comparison-reading", &state);
    arrives(&mut state, BackgroundResult::Compared(Ok(Searchable::boxed(compared()))));
    assert_shows("comparison", &state);
    types(&mut state, "j Enter");
    assert_shows("compared-code", &state);
    assert_eq!(types(&mut state, "Enter y"), [Effect::Copy("0x1140".into())]);
    types(&mut state, "Esc");
    assert_eq!((state.screen(), state.list().at), (Screen::Comparison, 1));
    types(&mut state, "g Enter");
    assert_shows("compared-code-of-all", &state);
}

#[test]
fn a_filter_finds_functions_and_the_saved_document_is_that_of_diff() {
    let mut state = opened();
    types(&mut state, "f div Enter");
    assert_eq!(state.list().rows, 1, "{}", picture(&state));
    assert_shows("comparison-filtered", &state);
    types(&mut state, "P");
    update(&mut state, Action::Edit(crate::keymap::Edit::EraseAll));
    let asked = types(&mut state, "a.json Enter");
    let [Effect::Save(_, text)] = &asked[..] else { panic!("{asked:?}") };
    let read: serde_json::Value = serde_json::from_str(text).expect("JSON");
    assert_eq!(read["schema"], "tdtool.diff/1");
    assert_eq!(read["code"]["functions"][0]["id"], "chase(node*)");
}

#[test]
fn what_has_no_functions_says_what_has() {
    for (result, name) in [
        (Err(Error::failed("cannot read b.json").into()), "comparison-unreadable"),
        (Ok(Searchable::boxed(Diff { code: None, ..compared() })), "comparison-without-functions"),
    ] {
        let mut state = State::new(Screen::Comparison, Look::default());
        arrives(&mut state, BackgroundResult::Compared(result));
        assert_shows(name, &state);
        assert_eq!(types(&mut state, "Enter y P Esc Esc H"), []);
    }
}

#[test]
fn every_size_shows_what_it_has_room_for() {
    for (columns, rows) in (1..150).step_by(4).flat_map(|c| (1..14).map(move |r| (c, r))) {
        let mut state = opened();
        state.look.ascii = columns % 8 == 1;
        update(&mut state, Action::Resize(columns, rows));
        for _ in 0..2 {
            let screen = picture(&state);
            assert!(!state.look.ascii || screen.is_ascii(), "{screen}");
            types(&mut state, "j Enter");
        }
    }
}
