//! Journeys through an estimate, which is ordered and changes while further runs go on.

use super::estimated_example::{estimate, estimated, parts, sampled};
use super::example::{block_report, report};
use super::{arrives, assert_shows, picture, types};
use crate::keymap::Screen;
use crate::tui::action::{Action, BackgroundResult, Effect};
use crate::tui::look::Look;
use crate::tui::state::{Searchable, State};
use crate::tui::update::update;
use engine::estimate::Step;
use report::documents::estimate::{Bottleneck, Estimate, Row};
use report::documents::{Report, Source};

#[test]
fn from_the_program_to_the_instructions_and_a_measured_block() {
    let mut state = estimated();
    types(&mut state, "Enter");
    assert_shows("estimated-functions-first", &state);
    types(&mut state, "Enter");
    assert_shows("estimated-code-of-a-function", &state);
    assert_eq!(state.estimate.code.shown.len(), 2, "the loop of one block comes once");
    types(&mut state, "Enter");
    assert_shows("estimated-block-of-a-function", &state);
    let asked = types(&mut state, "Enter");
    assert_eq!(asked, [Effect::Measure(1, vec![0x48, 0x8b, 0x00, 0xff, 0xc9, 0x75, 0xf9])]);
    arrives(&mut state, BackgroundResult::Measured(1, Ok(Box::new(block_report()))));
    assert_shows("estimated-block-measured", &state);
    types(&mut state, "Esc Esc Esc");
    assert_eq!(state.path, [Screen::Estimate, Screen::EstimatedFunctions]);
    types(&mut state, "j j Enter");
    assert_shows("estimated-code-of-the-kernel", &state);
}

#[test]
fn the_cursor_starts_on_the_bottleneck() {
    let mut document = estimate();
    let name = document.program.name.clone();
    document.program = Row { name, start: None, end: None, ..document.loops[0].clone() };
    let mut state = sampled();
    arrives(&mut state, BackgroundResult::Estimated(Searchable::boxed(document)));
    assert_shows("estimate-with-a-bottleneck", &state);
    assert_eq!(state.estimate.program.list.at, 7, "the eighth row of the tree");
}

#[test]
fn every_screen_names_the_next_step() {
    for size in [(80, 24), (120, 40), (40, 10)] {
        for (mut state, screens) in [(super::example::measured(), 3), (estimated(), 4)] {
            update(&mut state, Action::Resize(size.0, size.1));
            for _ in 0..screens {
                let screen = picture(&state);
                assert!(screen.contains("Enter"), "the next step at {size:?} in {screen}");
                types(&mut state, "Enter");
            }
        }
    }
}

#[test]
fn a_loop_of_several_paths_is_not_offered_to_be_measured_by_its_code_alone() {
    let mut of = estimate();
    for row in of.loops.iter_mut().chain(&mut of.blocks) {
        row.code.iter_mut().for_each(|one| one.text = "jne short 0x1953".to_owned());
    }
    let mut state = sampled();
    arrives(&mut state, BackgroundResult::Estimated(Searchable::boxed(of)));
    types(&mut state, "Enter Enter Enter");
    assert_shows("estimated-block-of-several-paths", &state);
    assert_eq!(types(&mut state, "Enter"), []);
    assert_eq!(state.screen(), Screen::EstimatedBlock);
    assert_shows("estimated-block-not-measured", &state);
}

#[test]
fn a_saved_estimate_is_the_document_of_the_report() {
    let mut state = estimated();
    let asked = types(&mut state, "P");
    assert_eq!(asked, []);
    // The name that is suggested ends in .txt.
    update(&mut state, Action::Edit(crate::keymap::Edit::EraseAll));
    let asked = types(&mut state, "a.json Enter");
    let [Effect::Save(_, text)] = &asked[..] else { panic!("{asked:?}") };
    let read: Report = serde_json::from_str(text).expect("a report");
    assert_eq!(read.estimate, Some(estimate()));
}

#[test]
fn every_screen_of_an_estimate_at_every_small_size() {
    for (columns, rows) in (1..90).step_by(3).flat_map(|c| (1..14).map(move |r| (c, r))) {
        for ascii in [false, true] {
            let mut state = estimated();
            state.look.ascii = ascii;
            update(&mut state, Action::Resize(columns, rows));
            for _ in 0..4 {
                let screen = picture(&state);
                assert!(!ascii || screen.is_ascii(), "{screen}");
                types(&mut state, "Enter");
            }
        }
    }
}

#[test]
fn filters_and_search_find_functions_and_addresses() {
    let mut state = estimated();
    types(&mut state, "Enter f div Enter");
    assert_eq!(state.estimate.functions.shown, [1], "{}", picture(&state));
    types(&mut state, "Enter / 0x1168 Enter");
    assert_eq!(state.message, None, "it was found");
}

#[test]
fn source_lines_have_the_same_bars_and_their_assembly_folded_below() {
    let mut state = estimated();
    types(&mut state, "Enter Enter s");
    assert_shows("estimated-source-folded", &state);
    types(&mut state, "Enter");
    assert_shows("estimated-source-open", &state);
    types(&mut state, "C");
    assert_shows("estimated-source-folded", &state);
    types(&mut state, "s");
    assert_eq!(state.screen(), Screen::EstimatedCode);
    types(&mut state, "Esc j Enter s");
    assert_shows("estimated-source-missing", &state);
}

/// A key of its own saves the evidence for a bug report, once it is there.
#[test]
fn the_evidence_is_saved_by_a_key_of_its_own() {
    let mut state = estimated();
    assert_eq!(types(&mut state, "W"), []);
    assert_shows("estimate-without-evidence", &state);
    arrives(&mut state, BackgroundResult::Evidence("{\"schema\":\"tdtool.evidence/1\"}".into()));
    assert_eq!(types(&mut state, "W"), []);
    assert_shows("estimate-evidence-prompt", &state);
    let saved = types(&mut state, "Enter");
    let text = "{\"schema\":\"tdtool.evidence/1\"}".to_owned();
    assert_eq!(saved, [Effect::Save("tdtool-evidence.json".into(), text)]);
    // A newer document does not take it away.
    arrives(&mut state, BackgroundResult::Estimated(Searchable::boxed(estimate())));
    assert!(state.estimate.evidence.is_some());
}

#[test]
fn without_a_pmu_one_key_estimates_and_the_estimate_becomes_the_first_screen() {
    let mut state = sampled();
    assert_eq!(state.screen(), Screen::Functions);
    assert_shows("sampled-offer", &state);
    assert_eq!(types(&mut state, "e"), [Effect::Estimate]);
    assert_eq!(types(&mut state, "e"), [], "only once");
    let step = Step {
        what: "counts".into(),
        number: 2,
        of: 9,
        seconds_left: Some(17.2),
        runs: true,
        is_plan: false,
    };
    arrives(&mut state, BackgroundResult::Estimating(step));
    assert_shows("sampled-estimating", &state);
    arrives(&mut state, BackgroundResult::Estimated(Searchable::boxed(estimate())));
    assert_eq!(state.path, [Screen::Estimate]);
    assert_shows("estimate-first", &state);
    assert_eq!(types(&mut state, "Esc"), [], "Esc never quits");
    types(&mut state, "e");
    assert_eq!(state.path, [Screen::Tree, Screen::Functions], "back to the samples");
    types(&mut state, "e");
    assert_eq!(state.path, [Screen::Estimate]);
}

#[test]
fn while_a_command_runs_without_a_pmu_functions_come_first_and_the_estimate_can_be_ordered() {
    let mut state = State::new(Screen::Tree, Look::default());
    arrives(&mut state, BackgroundResult::NoFunctions("Sampling.".into()));
    arrives(&mut state, BackgroundResult::Measuring);
    arrives(&mut state, BackgroundResult::NotCounted(true));
    let mut bare = report();
    bare.source = Source::NoPmu;
    bare.nodes.iter_mut().for_each(|node| node.value = None);
    arrives(&mut state, BackgroundResult::Interval(Box::new(bare)));
    assert_eq!(state.screen(), Screen::Functions, "not an empty tree");
    assert_shows("functions-sampling", &state);
    assert_eq!(types(&mut state, "e"), [], "not before the command has ended");
    assert_shows("functions-estimate-ordered", &state);
    let asked = arrives(&mut state, BackgroundResult::Offer("up to 5 further runs".into()));
    assert_eq!(asked, [Effect::Estimate]);
}

/// The estimate after its counts: nothing but Retiring is known.
fn first_part() -> Estimate {
    let mut document = estimate();
    let rows = document.functions.iter_mut().chain(&mut document.loops);
    for row in rows.chain(&mut document.blocks).chain([&mut document.program]) {
        row.parts = parts(row.parts.retiring.value, 0.0, 0.0);
        row.sentence = format!(
            "Undecided between Unexplained {:.0} % and Retiring {:.0} %.",
            100.0 * row.parts.unexplained.value,
            100.0 * row.parts.retiring.value
        );
        row.bottleneck = Bottleneck::default();
    }
    document
}

#[test]
fn the_parts_of_an_estimate_change_on_every_screen_while_further_runs_go_on() {
    let mut state = sampled();
    types(&mut state, "e");
    let step = |number| Step {
        what: "loads".into(),
        number,
        of: 9,
        seconds_left: Some(17.2),
        ..Step::default()
    };
    arrives(&mut state, BackgroundResult::Estimating(step(3)));
    arrives(&mut state, BackgroundResult::EstimatedSoFar(Searchable::boxed(first_part())));
    assert_eq!(state.path, [Screen::Estimate], "the first screen as soon as there is something");
    assert_shows("estimate-so-far", &state);
    // To the second block of chase, its code, its source, and the functions.
    types(&mut state, "Enter Enter j Enter");
    assert_shows("estimated-block-so-far", &state);
    let path = state.path.clone();
    arrives(&mut state, BackgroundResult::Estimating(step(4)));
    arrives(&mut state, BackgroundResult::EstimatedSoFar(Searchable::boxed(estimate())));
    assert_eq!(state.path, path, "nobody is taken away from a block");
    assert_shows("estimated-block-renewed", &state);
    types(&mut state, "Esc");
    assert_eq!(state.estimate.code.list.at, 1, "the cursor stays on its block");
    assert_shows("estimated-code-renewed", &state);
    types(&mut state, "Esc");
    assert_shows("estimated-functions-renewed", &state);
    arrives(&mut state, BackgroundResult::Estimated(Searchable::boxed(estimate())));
    assert_shows("estimated-functions-complete", &state);
    types(&mut state, "e");
    assert_eq!(state.path, [Screen::Tree, Screen::Functions], "back to the samples");
}

#[test]
fn a_newer_estimate_keeps_open_lines_and_follows_functions_that_change_places() {
    let mut state = sampled();
    types(&mut state, "e");
    arrives(&mut state, BackgroundResult::EstimatedSoFar(Searchable::boxed(first_part())));
    types(&mut state, "Enter Enter s Enter");
    assert_shows("estimated-source-so-far", &state);
    let mut newer = estimate();
    newer.functions.swap(0, 1);
    newer.functions[1].lines[1].text = Some("    p = next[p]; // newer".into());
    arrives(&mut state, BackgroundResult::EstimatedSoFar(Searchable::boxed(newer)));
    assert_shows("estimated-source-renewed", &state);
    assert_eq!(state.estimate.opened().map(|row| row.name.as_str()), Some("chase"));
    let mut without = estimate();
    without.functions.remove(0);
    (without.loops, without.blocks) = (Vec::new(), Vec::new());
    arrives(&mut state, BackgroundResult::Estimated(Searchable::boxed(without)));
    picture(&state);
    types(&mut state, "Esc Esc j k Enter");
    picture(&state);
}

#[test]
fn an_estimate_does_not_take_the_screen_from_who_reads_code() {
    let mut state = sampled();
    types(&mut state, "Enter");
    arrives(&mut state, BackgroundResult::Estimated(Searchable::boxed(estimate())));
    assert_eq!(state.screen(), Screen::Blocks);
    assert_shows("blocks-estimate-is-here", &state);
}

#[test]
fn a_failed_estimate_says_why() {
    let mut state = sampled();
    types(&mut state, "e");
    arrives(&mut state, BackgroundResult::NotEstimated("ptrace is not permitted".into()));
    assert_shows("functions-estimate-failed", &state);
}
