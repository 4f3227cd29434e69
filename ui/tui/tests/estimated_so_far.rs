//! An estimate that is ordered, and changes while further runs go on.

use super::estimated_example::{estimate, parts, sampled};
use super::example::report;
use super::typing::{arrives, picture, types};
use crate::keymap::Screen;
use crate::tui::action::{BackgroundResult, Effect};
use crate::tui::look::Look;
use crate::tui::state::{Searchable, State};
use engine::estimate::Step;
use report::documents::Source;
use report::documents::estimate::{Bottleneck, Estimate};

#[test]
fn without_a_pmu_one_key_estimates_and_the_estimate_becomes_the_first_screen() {
    let mut state = sampled();
    let first = picture(&state);
    assert_eq!(state.screen(), Screen::Functions, "{first}");
    assert!(first.contains("e: estimate top-down without a PMU, up to 5 further runs"), "{first}");
    assert_eq!(types(&mut state, "e"), [Effect::Estimate]);
    assert_eq!(types(&mut state, "e"), [], "only once");
    let step =
        Step { what: "counts".into(), number: 2, of: 9, seconds_left: Some(17.2), runs: true };
    arrives(&mut state, BackgroundResult::Estimating(step));
    let screen = picture(&state);
    assert!(screen.contains("step 2 of 9, about 18 s left: counts"), "{screen}");
    arrives(&mut state, BackgroundResult::Estimated(Searchable::boxed(estimate())));
    assert_eq!(state.path, [Screen::Estimate]);
    let screen = picture(&state);
    for text in [
        "estimated top-down of ./mix",
        "Undecided between Core Bound",
        "94.00 % of the time",
        "Backend Bound",
        "37 to 44 %",
        "measured in isolation",
        "[kernel]",
        "is not analysed",
    ] {
        assert!(screen.contains(text), "{text} in {screen}");
    }
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
    let screen = picture(&state);
    assert_eq!(state.screen(), Screen::Functions, "not an empty tree: {screen}");
    assert!(screen.contains("Sampling.") && screen.contains("e: estimate top-down"), "{screen}");
    assert_eq!(types(&mut state, "e"), [], "not before the command has ended");
    assert!(picture(&state).contains("when the command has ended"), "{}", picture(&state));
    let asked = arrives(&mut state, BackgroundResult::Offer("up to 5 further runs".into()));
    assert_eq!(asked, [Effect::Estimate]);
}

/// The estimate after its counts: nothing but Retiring is known.
fn first_part() -> Estimate {
    let mut document = estimate();
    let rows = document.functions.iter_mut().chain(&mut document.loops);
    for row in rows.chain(&mut document.blocks).chain([&mut document.program]) {
        row.parts = parts(row.parts.retiring.value, 0.0, 0.0);
        row.sentence = "Undecided between Unexplained 98 % and Retiring 2 %.".into();
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
    let screen = picture(&state);
    assert!(screen.contains("So far (step 3 of 9, about 18 s left): Undecided"), "{screen}");
    // To the second block of chase, its code, its source, and the functions.
    let walk = ["Enter", "Enter", "j", "Enter"];
    let mut before = Vec::new();
    for keys in walk {
        types(&mut state, keys);
        before.push((state.path.clone(), picture(&state)));
    }
    assert!(before[3].1.contains("So far") && before[3].1.contains("1147"), "{}", before[3].1);
    arrives(&mut state, BackgroundResult::Estimating(step(4)));
    arrives(&mut state, BackgroundResult::EstimatedSoFar(Searchable::boxed(estimate())));
    let screen = picture(&state);
    assert_eq!(state.path, before[3].0, "nobody is taken away from a block: {screen}");
    assert!(
        screen.contains("Undecided between Core Bound 40 %") && screen.contains("step 4"),
        "{screen}"
    );
    types(&mut state, "Esc");
    let screen = picture(&state);
    assert_eq!(state.estimate.code.list.at, 1, "the cursor stays on its block: {screen}");
    assert!(screen.contains("memory bound"), "{screen}");
    types(&mut state, "Esc");
    assert!(picture(&state).contains("core bound"), "{}", picture(&state));
    arrives(&mut state, BackgroundResult::Estimated(Searchable::boxed(estimate())));
    let screen = picture(&state);
    assert!(!screen.contains("So far") && !screen.contains("estimating"), "{screen}");
    types(&mut state, "e");
    assert_eq!(state.path, [Screen::Tree, Screen::Functions], "back to the samples");
}

#[test]
fn a_newer_estimate_keeps_open_lines_and_follows_functions_that_change_places() {
    let mut state = sampled();
    types(&mut state, "e");
    arrives(&mut state, BackgroundResult::EstimatedSoFar(Searchable::boxed(first_part())));
    types(&mut state, "Enter Enter s Enter");
    let load = "mov rax,qword ptr [rax]";
    assert!(picture(&state).contains(load), "{}", picture(&state));
    let mut newer = estimate();
    newer.functions.swap(0, 1);
    newer.functions[1].lines[1].text = Some("    p = next[p]; // newer".into());
    arrives(&mut state, BackgroundResult::EstimatedSoFar(Searchable::boxed(newer)));
    let screen = picture(&state);
    assert!(screen.contains("// newer") && screen.contains(load), "{screen}");
    assert_eq!(state.estimate.opened().map(|row| row.name.as_str()), Some("chase"), "{screen}");
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
    assert!(picture(&state).contains("e shows it"), "{}", picture(&state));
}

#[test]
fn a_failed_estimate_says_why() {
    let mut state = sampled();
    types(&mut state, "e");
    arrives(&mut state, BackgroundResult::NotEstimated("ptrace is not permitted".into()));
    assert!(picture(&state).contains("ptrace is not permitted"), "{}", picture(&state));
}
