//! Journeys: what a user types, and where that leads.

use super::example::{annotated, block_report, hot, measured, report};
use super::{arrives, assert_shows, picture, types};
use crate::keymap::{KEYMAP, Screen};
use crate::tui::action::{Action, BackgroundResult, Effect};
use crate::tui::look::Look;
use crate::tui::state::{Searchable, State};
use crate::tui::update::update;
use profile::hot::HotFunction;

#[test]
fn from_the_tree_to_the_measured_block_and_back_to_every_cursor() {
    let mut state = measured();
    types(&mut state, "H");
    assert_eq!(state.tree.node(state.tree.list.at).expect("a node").id, "DRAM_Bound");
    types(&mut state, "Enter j k Enter");
    assert_eq!(state.screen(), Screen::Blocks);
    let line = state.blocks.line(state.blocks.list.at).expect("an instruction");
    assert_eq!(
        line.text, "mulsd xmm0,qword ptr [rsi]",
        "the cursor starts on the hottest instruction"
    );
    types(&mut state, "j");
    let asked = types(&mut state, "Enter");
    // The whole loop body: mulsd, add, dec, jne, as objdump would print its bytes.
    let bytes = vec![0xf2, 0x0f, 0x59, 0x06, 0x48, 0x01, 0xd6, 0xff, 0xc9, 0x75, 0xf5];
    assert_eq!(asked, [Effect::Measure(1, bytes)]);
    assert_shows("block-measuring", &state);
    arrives(&mut state, BackgroundResult::Measured(1, Ok(Box::new(block_report()))));
    assert_shows("block-measured", &state);

    assert_eq!(types(&mut state, "Esc"), []);
    assert_eq!(state.blocks.line(state.blocks.list.at).expect("a line").text, "add rsi,rdx");
    types(&mut state, "h");
    assert_eq!(state.functions.row(state.functions.list.at).expect("one").name, "multiply");
    types(&mut state, "Esc");
    assert_eq!(state.tree.node(state.tree.list.at).expect("a node").id, "DRAM_Bound");
    assert_eq!(types(&mut state, "Esc Esc"), [], "Esc never quits");
    assert_eq!(types(&mut state, "q"), [Effect::Quit]);
}

#[test]
fn the_wheel_moves_and_a_click_selects_then_drills() {
    use crate::tui::view::layout;
    let mut state = measured();
    types(&mut state, "g");
    update(&mut state, Action::Wheel(2));
    assert_eq!(state.tree.list.at, 2);
    update(&mut state, Action::Wheel(-9));
    assert_eq!(state.tree.list.at, 0);
    let top = layout(&state).list.y;
    update(&mut state, Action::Click(top + 1));
    assert_eq!((state.screen(), state.tree.list.at), (Screen::Tree, 1));
    update(&mut state, Action::Click(0));
    assert_eq!(
        (state.screen(), state.tree.list.at),
        (Screen::Tree, 1),
        "the line at the top is no row"
    );
    update(&mut state, Action::Click(top + 1));
    assert_eq!(state.screen(), Screen::Functions, "a second click drills");
    types(&mut state, "?");
    update(&mut state, Action::Wheel(1));
    assert_eq!(state.help, Some(1), "the wheel scrolls the keys");
    update(&mut state, Action::Click(0));
    assert_eq!((state.help, state.screen()), (None, Screen::Functions));
}

#[test]
fn a_measured_block_is_cached() {
    let mut state = measured();
    types(&mut state, "Enter Enter Enter");
    arrives(&mut state, BackgroundResult::Measured(1, Ok(Box::new(block_report()))));
    assert_eq!(types(&mut state, "Esc Enter"), []);
    assert_shows("block-measured", &state);
    assert!(matches!(types(&mut state, "r")[..], [Effect::Measure(2, _)]), "r measures again");
}

#[test]
fn leaving_or_cancelling_stops_the_measurement_and_drops_its_result() {
    let mut state = measured();
    types(&mut state, "Enter Enter Enter");
    assert_eq!(types(&mut state, "c"), [Effect::Cancel(1)]);
    assert_shows("block-cancelled", &state);
    arrives(&mut state, BackgroundResult::Measured(1, Ok(Box::new(block_report()))));
    assert_shows("block-cancelled", &state);
    types(&mut state, "r");
    assert_eq!(types(&mut state, "Esc"), [Effect::Cancel(2)]);
}

#[test]
fn the_cursor_stays_on_its_function_when_numbers_and_order_change() {
    let mut state = measured();
    types(&mut state, "Enter j j");
    assert_eq!(state.functions.row(2).expect("one").name, "memset");
    let mut newer = hot();
    newer.functions[2].share = 0.99;
    newer.functions.sort_by(|a, b| b.share.total_cmp(&a.share));
    arrives(&mut state, BackgroundResult::Functions(Searchable::boxed(newer)));
    let now = state.functions.row(state.functions.list.at).expect("one");
    assert_eq!((now.name.as_str(), state.functions.list.at), ("memset", 0));
    types(&mut state, "s");
    let now = state.functions.row(state.functions.list.at).expect("one");
    assert_eq!(now.name, "memset", "sorting keeps it too");
}

#[test]
fn freezing_holds_the_numbers_and_the_cursor() {
    let mut state = measured();
    types(&mut state, "H");
    let mut newer = report();
    newer.nodes[8].value = Some(0.123);
    types(&mut state, "z");
    arrives(&mut state, BackgroundResult::Measuring);
    arrives(&mut state, BackgroundResult::Interval(Box::new(newer)));
    assert_shows("tree-frozen", &state);
    types(&mut state, "z");
    assert_shows("tree-unfrozen", &state);
    assert_eq!(state.tree.node(state.tree.list.at).expect("a node").id, "DRAM_Bound");
}

#[test]
fn intervals_make_a_history() {
    let mut state = measured();
    types(&mut state, "H");
    for (i, value) in [0.1, 0.2, 0.4].into_iter().enumerate() {
        let mut one = report();
        one.interval = Some((i as f64, i as f64 + 1.0));
        one.nodes[8].value = Some(value);
        arrives(&mut state, BackgroundResult::Interval(Box::new(one)));
    }
    assert_shows("tree-history", &state);
}

#[test]
fn search_follows_the_keystrokes_and_n_wraps_around() {
    let mut state = measured();
    types(&mut state, "Enter /");
    types(&mut state, "fil");
    let name =
        |state: &State| state.functions.row(state.functions.list.at).expect("one").name.clone();
    assert_eq!(name(&state), "fill");
    types(&mut state, "Esc");
    assert_eq!(name(&state), "multiply", "Esc restores the cursor");
    types(&mut state, "/ mat Enter n");
    assert_eq!(name(&state), "std::vector<double>::operator[]");
    types(&mut state, "N N");
    assert_eq!(name(&state), "fill", "backwards, wrapping around");
    types(&mut state, "/ nothing Enter");
    assert_shows("functions-not-found", &state);
}

#[test]
fn a_filter_hides_rows_and_is_in_the_footer() {
    let mut state = measured();
    types(&mut state, "Enter f libc Enter");
    assert_shows("functions-filtered", &state);
    types(&mut state, "f Esc");
    assert_eq!(state.functions.rows.len(), 1, "Esc restores the filter");
    types(&mut state, "Esc f dram Enter");
    assert_shows("tree-filtered", &state);
}

#[test]
fn folding_and_flagged_nodes() {
    let mut state = measured();
    let rows = state.tree.rows.len();
    assert_eq!(rows, 8, "all but the children of Frontend Bound, which is not flagged");
    let first = state.tree.node(state.tree.list.at).expect("a node");
    assert_eq!(first.id, "DRAM_Bound", "the cursor starts on the bottleneck");
    types(&mut state, "g Space");
    assert_eq!(state.tree.rows.len(), 9);
    types(&mut state, "C");
    assert_eq!(state.tree.rows.len(), 4);
    types(&mut state, "H");
    assert_eq!(state.tree.node(state.tree.list.at).expect("a node").id, "DRAM_Bound");
    types(&mut state, "E g ]");
    assert_eq!(state.tree.node(state.tree.list.at).expect("a node").id, "Backend_Bound");
    types(&mut state, "] ] [");
    assert_eq!(state.tree.node(state.tree.list.at).expect("a node").id, "Memory_Bound");
}

#[test]
fn details_have_the_meaning_and_why_the_node_is_flagged_or_not() {
    let mut state = measured();
    update(&mut state, Action::Resize(120, 40));
    types(&mut state, "H");
    assert_shows("tree-details", &state);
    types(&mut state, "k");
    assert_shows("tree-details-not-flagged", &state);
    types(&mut state, "d");
    assert_shows("tree-without-details", &state);
}

#[test]
fn source_offsets_and_samples_are_toggled() {
    let mut state = measured();
    types(&mut state, "Enter Enter");
    assert_shows("blocks-without-source", &state);
    types(&mut state, "s");
    assert_shows("blocks-with-source", &state);
    let line = state.blocks.line(state.blocks.list.at).expect("a line").text.clone();
    assert_eq!(line, "mulsd xmm0,qword ptr [rsi]", "the cursor has not moved");
    types(&mut state, "o t");
    assert_shows("blocks-offsets-and-samples", &state);
}

#[test]
fn the_next_function_without_going_back() {
    let mut state = measured();
    types(&mut state, "Enter Enter >");
    assert_eq!(state.blocks.index, Some(1));
    types(&mut state, "> > >");
    assert_shows("blocks-unreadable", &state);
    types(&mut state, ">");
    assert_shows("blocks-last-function", &state);
    types(&mut state, "Esc");
    assert_eq!(state.functions.list.at, 4, "the cursor of the list has followed");
}

#[test]
fn code_that_arrives_late_is_not_shown_for_another_function() {
    let mut state = measured();
    types(&mut state, "Enter Enter >");
    let mut other = annotated();
    other.blocks.clear();
    arrives(&mut state, BackgroundResult::Annotated(0, Box::new(other), Default::default()));
    assert!(!state.blocks.rows.is_empty(), "function 1 is still shown");
}

#[test]
fn a_recording_without_counts_opens_with_its_functions() {
    let mut state = State::new(Screen::Tree, Look::default());
    let empty = report::documents::Report::new(report::documents::Source::Imported);
    arrives(&mut state, BackgroundResult::Report(Box::new(empty)));
    arrives(&mut state, BackgroundResult::Functions(Searchable::boxed(hot())));
    assert_eq!(state.path, [Screen::Tree, Screen::Functions]);
}

#[test]
fn without_a_pmu_nodes_have_the_reason_and_software_counts_are_shown() {
    let mut state = State::new(Screen::Tree, Look::default());
    let mut bare = report();
    bare.source = report::documents::Source::NoPmu;
    for node in &mut bare.nodes {
        node.value = None;
        node.error = None;
        node.over = None;
        node.flagged = false;
        node.bottleneck = false;
        node.missing = Some("not measured: no core PMU in this virtual machine".into());
    }
    bare.software.insert("task_clock_ms".into(), Some(1500.0));
    bare.software.insert("cpus_used".into(), Some(0.5));
    arrives(&mut state, BackgroundResult::Report(Box::new(bare)));
    assert_shows("tree-without-pmu", &state);
    let screen = picture(&state);
    assert!(!screen.contains(" 0.0 %"), "not measured is never 0: {screen}");
    arrives(&mut state, BackgroundResult::Functions(Searchable::boxed(hot())));
    assert_eq!(state.path, [Screen::Tree, Screen::Functions], "what there is comes first");
}

#[test]
fn help_lists_every_key_of_the_screen() {
    let mut state = measured();
    update(&mut state, Action::Resize(120, 60));
    types(&mut state, "Enter ?");
    let screen = picture(&state);
    for binding in KEYMAP.iter().filter(|b| b.screens.contains(&Screen::Functions)) {
        let first = binding.help.split(&[',', ';'][..]).next().unwrap_or_default();
        assert!(screen.contains(first), "{first} in {screen}");
    }
    assert_eq!(types(&mut state, "Esc"), []);
    assert_eq!((state.help, state.screen()), (None, Screen::Functions));
    assert_eq!(types(&mut state, "? q"), [], "other key closes help, and does not quit");
    assert_eq!((state.help, state.screen()), (None, Screen::Functions));
}

#[test]
fn the_commands_output_is_in_a_pane_that_a_key_hides() {
    let mut state = measured();
    arrives(&mut state, BackgroundResult::Output("one\ntwo \u{1b}[31mred\n".into()));
    assert_shows("tree-with-output", &state);
    types(&mut state, "O");
    assert_shows("tree-output-hidden", &state);
}

#[test]
fn the_hottest_functions_stay_visible_while_the_program_runs() {
    let mut state = measured();
    types(&mut state, "Enter");
    let many = |first: &str| {
        let mut hot = hot();
        let one = hot.functions[0].clone();
        let name =
            |i: usize| HotFunction { name: format!("f{i}"), short: format!("f{i}"), ..one.clone() };
        hot.functions = (0..40).map(name).collect();
        hot.functions.sort_by_key(|f| f.name != first);
        Searchable::boxed(hot)
    };
    arrives(&mut state, BackgroundResult::Functions(many("f39")));
    arrives(&mut state, BackgroundResult::Functions(many("f7")));
    let name =
        |state: &State| state.functions.row(state.functions.list.at).expect("one").name.clone();
    let top = |state: &State| state.functions.list.top;
    assert_eq!((name(&state).as_str(), top(&state)), ("f7", 0), "{}", picture(&state));
    types(&mut state, "j");
    assert_eq!(name(&state), "f0");
    arrives(&mut state, BackgroundResult::Functions(many("f39")));
    assert_eq!((name(&state).as_str(), top(&state)), ("f0", 0), "it stays on its function");
}

#[test]
fn while_the_program_runs_functions_and_the_open_blocks_are_renewed() {
    let mut state = measured();
    types(&mut state, "Enter Enter j");
    let line = state.blocks.line(state.blocks.list.at).expect("a line").text.clone();
    let mut newer = hot();
    newer.functions[0].samples += 100;
    newer.functions.swap(0, 2);
    let asked = arrives(&mut state, BackgroundResult::Functions(Searchable::boxed(newer)));
    assert_eq!(asked, [Effect::Annotate(2)], "it is the third now");
    let mut code = annotated();
    code.function = state.functions.all()[2].clone();
    code.blocks[1].lines[1].samples = 777;
    arrives(&mut state, BackgroundResult::Annotated(2, Box::new(code), Default::default()));
    let now = state.blocks.line(state.blocks.list.at).expect("a line");
    assert_eq!((&now.text, now.samples), (&line, 777), "the cursor stays on its instruction");
    let other = annotated();
    arrives(&mut state, BackgroundResult::Annotated(0, Box::new(other), Default::default()));
    let now = state.blocks.line(state.blocks.list.at).expect("a line");
    assert_eq!(now.samples, 777, "code of another function is not shown");
}
