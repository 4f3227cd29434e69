//! Callers and callees of functions.

use super::example::measured;
use super::{arrives, assert_shows, picture, types};
use crate::keymap::Screen;
use crate::tui::action::{Action, BackgroundResult, Effect};
use crate::tui::state::{Failure, State};
use crate::tui::update::update;
use profile::hot::{Caller, Calls, SELF};

/// `multiply`, called by `main` and `test`; 90 % of its samples are its own, the rest of `memset`.
fn calls() -> Calls {
    let of = |name: &str, share: f64| Caller {
        name: name.into(),
        module: "matmul".into(),
        share,
        samples: (share * 3600.0) as u64,
    };
    Calls {
        share: 0.9,
        samples: 3600,
        callers: vec![of("main", 0.75), of("test(int)", 0.25)],
        callees: vec![of(SELF, 0.9), of("memset", 0.1)],
        is_cut: false,
    }
}

fn answered(state: &mut State, name: &str, found: Result<Box<Calls>, Failure>) {
    arrives(state, BackgroundResult::Calls(name.to_owned(), found));
}

#[test]
fn from_a_function_to_its_caller_and_back() {
    let mut state = measured();
    let asked = types(&mut state, "Enter c");
    assert_eq!(asked, [Effect::Calls("multiply".into())]);
    assert_shows("calls-reading", &state);
    answered(&mut state, "memset", Err(Failure::NotYet));
    answered(&mut state, "multiply", Ok(Box::new(calls())));
    assert_shows("calls", &state);
    let asked = types(&mut state, "j Enter");
    assert_eq!(asked, [Effect::Calls("test(int)".into())]);
    assert_shows("calls-of-calls", &state);
    answered(&mut state, "test(int)", Ok(Box::new(calls())));
    let asked = types(&mut state, "Esc");
    assert_eq!(asked, [Effect::Calls("multiply".into())]);
    answered(&mut state, "multiply", Ok(Box::new(calls())));
    assert_eq!(state.list().at, 1, "the cursor is where it was");
    assert_eq!(types(&mut state, "Esc"), []);
    assert_eq!(state.screen(), Screen::Functions);
}

#[test]
fn its_own_code_is_no_function_to_follow_and_a_missing_chain_says_what_to_do() {
    let mut state = measured();
    types(&mut state, "Enter Enter c");
    answered(&mut state, "multiply", Ok(Box::new(calls())));
    assert_eq!(types(&mut state, "j j Enter"), []);
    assert_shows("calls-own-code", &state);
    types(&mut state, "Esc c");
    answered(&mut state, "multiply", Err(Failure::NoChains));
    assert_shows("calls-without-chains", &state);
}

#[test]
fn chains_without_frame_pointers_say_so_at_every_size() {
    for (columns, rows) in (1..90).step_by(7).flat_map(|c| (1..14).map(move |r| (c, r))) {
        let mut state = measured();
        state.look.ascii = columns % 2 == 0;
        update(&mut state, Action::Resize(columns, rows));
        types(&mut state, "Enter c");
        answered(&mut state, "multiply", Ok(Box::new(Calls { is_cut: true, ..calls() })));
        let screen = picture(&state);
        assert!(!state.look.ascii || screen.is_ascii(), "{screen}");
    }
    let mut state = measured();
    types(&mut state, "Enter c");
    answered(&mut state, "multiply", Ok(Box::new(Calls { is_cut: true, ..calls() })));
    assert_shows("calls-cut", &state);
}
