//! Journeys through an estimate, which is ordered and changes while further runs go on.

use super::estimated_example::{estimate, estimated, parts, sampled};
use super::example::{block_report, report};
use super::{arrives, picture, types};
use crate::keymap::Screen;
use crate::tui::action::{Action, BackgroundResult, Effect};
use crate::tui::look::Look;
use crate::tui::state::{Searchable, State};
use crate::tui::update::update;
use engine::estimate::Step;
use report::documents::estimate::{Bottleneck, Estimate, Part};
use report::documents::{Report, Source};

#[test]
fn from_the_program_to_the_instructions_and_a_measured_block() {
    let mut state = estimated();
    types(&mut state, "Enter");
    let screen = picture(&state);
    assert!(screen.contains("Memory Bound: 70 % (67-74 %)"), "the answer first: {screen}");
    assert!(screen.contains("not divided") && screen.contains("core bound"), "{screen}");
    types(&mut state, "Enter");
    let screen = picture(&state);
    assert!(screen.contains("↺ loop 0x1140..0x1147") && screen.contains("212.50"), "{screen}");
    assert_eq!(state.estimate.code.shown.len(), 2, "the loop of one block comes once: {screen}");
    types(&mut state, "Enter");
    let screen = picture(&state);
    for text in [
        "212.50 of an iteration in the program; 4.00 in isolation, bound",
        "by dependency",
        "1,234,567",
        "1,000 iterations of an entry",
        "not known: branches were not recorded",
        "4.00 cycles of an iteration",
        "share Re Sp Fe Be ?    instruction",
        "  2.00 %          █▋    ● 1140  mov rax,qword ptr [rax]    L3 20 %, DRAM 80 %",
    ] {
        assert!(screen.contains(text), "{text} in {screen}");
    }
    let asked = types(&mut state, "Enter");
    assert_eq!(asked, [Effect::Measure(1, vec![0x48, 0x8b, 0x00, 0xff, 0xc9, 0x75, 0xf9])]);
    arrives(&mut state, BackgroundResult::Measured(1, Ok(Box::new(block_report()))));
    let screen = picture(&state);
    let note = "note: 212.50 cycles of an iteration in the program; in isolation its data is in";
    let lines: Vec<&str> = screen.lines().collect();
    let at = lines.iter().position(|line| line.contains("core cycles per iteration")).unwrap();
    assert!(lines[at + 1..at + 8].iter().any(|line| line.contains(note)), "{screen}");
    types(&mut state, "Esc Esc Esc");
    assert_eq!(state.path, [Screen::Estimate, Screen::EstimatedFunctions]);
    types(&mut state, "j j Enter");
    let screen = picture(&state);
    assert!(screen.contains("the kernel's time is not analysed"), "{screen}");
}

#[test]
fn the_cursor_starts_on_the_bottleneck() {
    let mut document = estimate();
    document.program.bottleneck = Bottleneck(Some(Part::MemoryBound));
    let mut state = sampled();
    arrives(&mut state, BackgroundResult::Estimated(Searchable::boxed(document)));
    let screen = picture(&state);
    let row = screen.lines().find(|line| line.contains("◀")).unwrap_or_default();
    assert!(row.contains("Memory Bound") && row.contains("bottleneck"), "{screen}");
    assert_eq!(state.estimate.program.list.at, 7, "the eighth row of the tree: {screen}");
}

/// The first words of the answer, the whole of it where there is room, and the next step.
#[test]
fn every_screen_names_its_bottleneck_and_the_next_step() {
    let walk = |mut state: State, size: (u16, u16), sentences: &[[&str; 2]]| {
        update(&mut state, Action::Resize(size.0, size.1));
        for [first, whole] in sentences {
            let screen = picture(&state);
            let wanted = if size.0 < 80 { first } else { whole };
            assert!(screen.contains(wanted), "{wanted} at {size:?} in {screen}");
            assert!(screen.contains("Enter"), "the next step at {size:?} in {screen}");
            types(&mut state, "Enter");
        }
    };
    for size in [(80, 24), (120, 40), (40, 10)] {
        let counted = [
            ["The bottleneck is DRAM Bound", "DRAM Bound, 44.0 % ±1.2. Enter shows the functions."],
            ["multiply has 90.0 %", "multiply has 90.0 % of the samples; Enter shows"],
            [
                "Block 0x1953 has 97 %",
                "Block 0x1953 has 97 % of the function's samples; Enter measures",
            ],
        ];
        walk(super::example::measured(), size, &counted);
        let estimates = [
            ["Undecided between", "Undecided between Core Bound 40 %"],
            ["Memory Bound: 70 %", "Memory Bound: 70 % (67-74 %) of its time"],
            ["Memory Bound: 70 %", "Memory Bound: 70 % (67-74 %) of its time"],
            ["Memory Bound: 70 %", "next: Enter measures it in isolation"],
        ];
        walk(estimated(), size, &estimates);
        let mut offer = sampled();
        update(&mut offer, Action::Resize(size.0, size.1));
        let screen = picture(&offer);
        assert!(screen.contains("e: estimate top-down"), "at {size:?} in {screen}");
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
    let screen = picture(&state);
    assert!(!screen.contains("measures it in isolation"), "{screen}");
    assert_eq!(types(&mut state, "Enter"), []);
    assert_eq!(state.screen(), Screen::EstimatedBlock);
    assert!(picture(&state).contains("several paths"), "{}", picture(&state));
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
    assert!(!picture(&state).contains("not found"), "{}", picture(&state));
}

#[test]
fn source_lines_have_the_same_bars_and_their_assembly_folded_below() {
    let mut state = estimated();
    types(&mut state, "Enter Enter s");
    let screen = picture(&state);
    assert!(screen.contains("mix.c:7 has 58.0 % of the time: memory bound"), "{screen}");
    assert!(screen.contains("▸    7  p = next[p];") && !screen.contains("mov rax"), "{screen}");
    types(&mut state, "Enter");
    assert!(picture(&state).contains("● 1140  mov rax,qword ptr [rax]"), "{}", picture(&state));
    types(&mut state, "C");
    assert!(!picture(&state).contains("mov rax"), "{}", picture(&state));
    types(&mut state, "s");
    assert_eq!(state.screen(), Screen::EstimatedCode);
    types(&mut state, "Esc j Enter s");
    assert!(picture(&state).contains("no debug info (-g)"), "{}", picture(&state));
}

/// A key of its own saves the evidence for a bug report, once it is there.
#[test]
fn the_evidence_is_saved_by_a_key_of_its_own() {
    let mut state = estimated();
    assert_eq!(types(&mut state, "W"), []);
    assert!(picture(&state).contains("no evidence yet"), "{}", picture(&state));
    arrives(&mut state, BackgroundResult::Evidence("{\"schema\":\"tdtool.evidence/1\"}".into()));
    assert_eq!(types(&mut state, "W"), []);
    assert!(picture(&state).contains("save the evidence as: tdtool-evidence.json"));
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
