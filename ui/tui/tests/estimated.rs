//! An invented estimate, and journeys through it.

use super::example::{block_report, hot, report};
use super::typing::{arrives, picture, types};
use crate::keymap::Screen;
use crate::tui::action::{Action, BackgroundResult, Effect};
use crate::tui::look::Look;
use crate::tui::state::{Searchable, State};
use crate::tui::update::update;
use bench::explain::Class;
use engine::documents::count::LevelShare;
use engine::documents::estimate::{
    Bottleneck, Estimate, Part, Parts, Row, Run, Share, ShareSource,
};
use engine::documents::estimate_code::{Causes, Instruction};
use engine::documents::estimate_lines::SourceLine;
use engine::documents::{Report, Source};
use engine::estimate::Step;
use std::collections::BTreeMap;

fn share(value: f64, source: ShareSource) -> Share {
    let (low, high) = ((value - 0.03_f64).max(0.0), (value + 0.04_f64).min(1.0));
    Share { value, low, high, source, reason: None }
}

fn parts(retiring: f64, core: f64, memory: f64) -> Parts {
    let mut unexplained = share(1.0 - retiring - core - memory, ShareSource::Residual);
    unexplained.reason = Some("stores that miss are not divided".into());
    Parts {
        retiring: share(retiring, ShareSource::Counted),
        bad_speculation: share(0.0, ShareSource::Bounded),
        fetch_bandwidth: share(0.0, ShareSource::Bounded),
        fetch_latency: share(0.0, ShareSource::Bounded),
        core_bound: share(core, ShareSource::Isolated),
        memory_bound: share(memory, ShareSource::Inferred),
        unexplained,
    }
}

fn row(
    name: &str,
    (start, end): (&str, &str),
    of: f64,
    bottleneck: Option<Part>,
    parts: Parts,
) -> Row {
    let sentence = match bottleneck {
        None => "Undecided between Core Bound 40 % (37-44 %) and Memory Bound 38 % (35-42 %).",
        Some(Part::CoreBound) => "Core Bound: 60 % (57-64 %) of its time goes to ports (divider).",
        _ => "Memory Bound: 70 % (67-74 %) of its time goes to loads that miss the first cache.",
    };
    Row {
        name: name.into(),
        module: "/usr/bin/mix".into(),
        start: start.into(),
        end: end.into(),
        share: of,
        bottleneck: Bottleneck(bottleneck),
        parts,
        sentence: sentence.into(),
        next: "tdtool prefetch -- ./mix".into(),
        ..Row::default()
    }
}

/// A pointer chase, a divider loop, the kernel.
pub fn estimate() -> Estimate {
    let line = |address: &str, bytes: &str, text: &str, samples: u64| Instruction {
        address: address.into(),
        bytes: bytes.into(),
        text: text.into(),
        samples,
        share: samples as f64 / 1000.0,
        ..Instruction::default()
    };
    let mut load = line("0x1140", "488b00", "mov rax,qword ptr [rax]", 20);
    load.critical = true;
    let level =
        |level: &str, share| LevelShare { level: level.into(), share, ..LevelShare::default() };
    load.levels = vec![level("L3", 0.2), level("DRAM", 0.8)];
    load.causes = Some(Causes { retiring: 0.01, backend_bound: 0.8, ..Causes::default() });
    let why = |name: &str, why: &str| (name.to_owned(), why.to_owned());
    let chase = Row {
        cycles_per_entry: Some(212.5),
        isolated: Some(4.0),
        entries: Some(1_234_567.0),
        bound: Some(Class::Dependency),
        trips: Some(1000.0),
        critical_cycles: Some(4.0),
        reasons: BTreeMap::from([why("mispredicted", "branches were not recorded")]),
        code: vec![
            load,
            line("0x1143", "ffc9", "dec ecx", 560),
            line("0x1145", "75f9", "jne 0x1140", 20),
        ],
        ..row("chase", ("0x1140", "0x1147"), 0.6, Some(Part::MemoryBound), parts(0.02, 0.1, 0.7))
    };
    let tail = row("chase", ("0x1147", "0x1150"), 0.01, None, parts(0.1, 0.4, 0.38));
    let mut kernel = row("[kernel]", ("", ""), 0.06, None, Parts::default());
    kernel.module.clear();
    kernel.next.clear();
    kernel.parts.unexplained = share(1.0, ShareSource::Residual);
    kernel.parts.unexplained.reason = Some("time in the kernel is not divided".into());
    let mut of_chase =
        row("chase", ("0x1140", "0x1150"), 0.61, Some(Part::MemoryBound), parts(0.02, 0.1, 0.7));
    let source = |number: u32, text: &str, share: f64, code: &[Instruction]| SourceLine {
        file: "/src/mix.c".into(),
        line: number,
        text: Some(text.into()),
        share,
        bottleneck: Bottleneck(Some(Part::MemoryBound)),
        parts: parts(0.02, 0.1, 0.7),
        code: code.to_vec(),
    };
    of_chase.lines = vec![
        source(6, "for (long i = 0; i < n; i++)", 0.02, &chase.code[2..]),
        source(7, "    p = next[p];", 0.58, &chase.code[..2]),
    ];
    Estimate {
        covered: 0.94,
        runs: vec![
            Run { run: "samples".into(), seconds: 1.0 },
            Run { run: "counts".into(), seconds: 1.5 },
        ],
        functions: vec![
            of_chase,
            row(
                "divide(int)",
                ("0x1160", "0x1180"),
                0.33,
                Some(Part::CoreBound),
                parts(0.2, 0.6, 0.0),
            ),
            kernel,
        ],
        loops: vec![
            chase.clone(),
            row(
                "divide(int)",
                ("0x1168", "0x1178"),
                0.33,
                Some(Part::CoreBound),
                parts(0.2, 0.6, 0.0),
            ),
        ],
        blocks: vec![chase, tail],
        program: Row { share: 0.94, ..row("./mix", ("", ""), 0.94, None, parts(0.1, 0.4, 0.38)) },
        deterministic: Some(true),
        ..Estimate::default()
    }
}

/// A command without a PMU, sampled: what `tdtool -- CMD` shows first.
pub fn sampled() -> State {
    let mut state = State::new(Screen::Tree, Look::default());
    update(&mut state, Action::Resize(80, 32));
    let mut bare = report();
    bare.source = Source::NoPmu;
    bare.nodes.iter_mut().for_each(|node| node.value = None);
    arrives(&mut state, BackgroundResult::Report(Box::new(bare)));
    arrives(&mut state, BackgroundResult::Functions(Searchable::boxed(hot())));
    arrives(&mut state, BackgroundResult::Offer("up to 5 further runs and about 24 s".into()));
    state
}

/// The same, estimated.
pub fn estimated() -> State {
    let mut state = sampled();
    arrives(&mut state, BackgroundResult::Estimated(Searchable::boxed(estimate())));
    state
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
        "is not divided",
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
        "4.0 cycles of an iteration",
        "share Re Sp Fe Be ?    instruction",
        "  2.00 %          █▋    ● 1140  mov rax,qword ptr [rax]    L3 20 %, DRAM 80 %",
    ] {
        assert!(screen.contains(text), "{text} in {screen}");
    }
    let asked = types(&mut state, "Enter");
    assert_eq!(asked, [Effect::Measure(1, vec![0x48, 0x8b, 0x00, 0xff, 0xc9, 0x75, 0xf9])]);
    arrives(&mut state, BackgroundResult::Measured(1, Ok(Box::new(block_report()))));
    let screen = picture(&state);
    let note = "note: 212.50 cycles of an iteration in the program; here its data is in the";
    let lines: Vec<&str> = screen.lines().collect();
    let at = lines.iter().position(|line| line.contains("core cycles per iteration")).unwrap();
    assert!(lines[at + 1..at + 8].iter().any(|line| line.contains(note)), "{screen}");
    types(&mut state, "Esc Esc Esc");
    assert_eq!(state.path, [Screen::Estimate, Screen::EstimatedFunctions]);
    types(&mut state, "j j Enter");
    let screen = picture(&state);
    assert!(screen.contains("time in the kernel is not divided"), "{screen}");
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
fn a_failed_estimate_says_why() {
    let mut state = sampled();
    types(&mut state, "e");
    arrives(&mut state, BackgroundResult::NotEstimated("ptrace is not permitted".into()));
    assert!(picture(&state).contains("ptrace is not permitted"), "{}", picture(&state));
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

/// What a bug report needs leaves the screen with a key of its own, once it is there.
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
