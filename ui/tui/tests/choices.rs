//! The user's choices: other samples, other keys, what is copied and saved.

use super::example::{block_report, hot, measured};
use super::{arrives, assert_shown, assert_shows, types};
use crate::keymap::{Edit, Keymap};
use crate::tui::action::{Action, BackgroundResult, Effect};
use crate::tui::state::{Counts, Failure, Loads, SampleFilter, Searchable, State};
use crate::tui::update::update;
use profile::hot::Thread;
use report::documents::branches::{Branches, EventRow};
use report::documents::loads;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Two events, of which `memset` has most of the second.
fn with_events(state: &mut State) {
    let mut both = hot();
    both.events = vec!["cycles".into(), "stores".into()];
    both.event = "cycles".into();
    both.dominant = vec![Some((0, 0.9)), None, Some((1, 0.75)), None, None];
    arrives(state, BackgroundResult::Functions(Searchable::boxed(both)));
}

#[test]
fn with_several_events_each_function_shows_its_top_event() {
    let mut state = measured();
    types(&mut state, "Enter j j");
    assert_shows("functions-of-one-event", &state);
    with_events(&mut state);
    assert_shows("functions-of-two-events", &state);
    let asked = types(&mut state, "Tab");
    assert_eq!(
        asked,
        [Effect::Profile(SampleFilter { event: Some(1), ..SampleFilter::default() })]
    );
    assert_shows("functions-reading", &state);
    assert_eq!(types(&mut state, "Enter"), [], "nothing to drill into meanwhile");
    arrives(&mut state, BackgroundResult::Functions(Searchable::boxed(hot())));
    let row = state.functions.row(state.functions.list.at).expect("one");
    assert_eq!(row.name, "memset", "the cursor stays on its function");
}

/// Tab shows another event, and with it the counts of its own branches: those of the first are no longer right.
#[test]
fn each_event_has_the_counts_of_its_own_branches() {
    let event = |event, name: &str| EventRow { event, name: name.into(), ..EventRow::default() };
    let document =
        Branches { events: vec![event(0, "cycles"), event(2, "stores")], ..Branches::default() };
    let mut state = measured();
    types(&mut state, "Enter");
    with_events(&mut state);
    assert!(state.counts().is_none());
    arrives(&mut state, BackgroundResult::Counts(Counts::of_events(&document)));
    let mut shown = |event| {
        state.functions.samples_of.event = event;
        state.counts().map(|counts| counts.source.clone())
    };
    assert!(shown(None).is_some_and(|source| source.contains("(cycles, ")));
    assert_eq!(shown(Some(1)), None, "an event without branches");
    assert!(shown(Some(2)).is_some_and(|source| source.contains("(stores, ")));
}

/// Tab shows another event, and with it the samples of its own loads.
#[test]
fn each_event_has_the_samples_of_its_own_loads() {
    let event = |event, name: &str, loads| loads::EventRow {
        event,
        name: name.into(),
        loads,
        ..loads::EventRow::default()
    };
    let events = vec![event(0, "cycles", 0), event(1, "loads", 40), event(2, "stores", 7)];
    let document = loads::Loads { events, ..loads::Loads::default() };
    let mut state = measured();
    types(&mut state, "Enter");
    arrives(&mut state, BackgroundResult::Loads(Loads::of_events(&document)));
    let mut shown = |event| {
        state.functions.samples_of.event = event;
        state.loads().map(|loads| loads.source.clone())
    };
    assert_eq!(shown(None), shown(Some(1)), "the first event samples no loads");
    assert!(shown(Some(1)).is_some_and(|source| source.contains("40 samples of loads")));
    assert!(shown(Some(2)).is_some_and(|source| source.contains("7 samples of stores")));
}

#[test]
fn sorting_by_line_notes_which_functions_have_one() {
    let mut state = measured();
    types(&mut state, "Enter");
    let mut many = hot();
    many.functions = many.functions.iter().cycle().take(101).cloned().collect();
    arrives(&mut state, BackgroundResult::Functions(Searchable::boxed(many)));
    assert_shows("functions-many", &state);
    types(&mut state, "s s s");
    assert_shows("functions-many-by-line", &state);
}

#[test]
fn samples_of_one_thread() {
    let mut state = measured();
    let thread = |tid, name: &str, samples| Thread { tid, name: name.into(), samples };
    let threads = vec![thread(11, "main", 3000), thread(12, "worker", 1000)];
    arrives(&mut state, BackgroundResult::Threads(threads));
    types(&mut state, "Enter T");
    assert_shows("functions-thread-prompt", &state);
    let asked = types(&mut state, "work Enter");
    let worker = SampleFilter { threads: vec!["worker".into()], ..SampleFilter::default() };
    assert_eq!(asked, [Effect::Profile(worker)], "a part of the name will do");
    arrives(&mut state, BackgroundResult::Functions(Searchable::boxed(hot())));
    assert_shows("functions-of-a-thread", &state);
    assert_eq!(types(&mut state, "T x Enter"), [], "there is no thread workerx");
    assert_shows("functions-no-such-thread", &state);
}

#[test]
fn functions_of_the_rows_module() {
    let mut state = measured();
    types(&mut state, "Enter j j m");
    assert_shows("functions-of-a-module", &state);
    types(&mut state, "m");
    assert_eq!(state.functions.rows.len(), 5);
    let row = state.functions.row(state.functions.list.at).expect("one");
    assert_eq!(row.name, "memset");
}

#[test]
fn copy_takes_what_is_at_the_cursor() {
    let mut state = measured();
    let copied = |state: &mut State, keys: &str| match types(state, keys).pop() {
        Some(Effect::Copy(text)) => text,
        other => panic!("{keys}: {other:?}"),
    };
    types(&mut state, "H");
    assert_eq!(copied(&mut state, "y"), "DRAM_Bound");
    assert_eq!(copied(&mut state, "Enter y"), "multiply");
    assert_eq!(copied(&mut state, "Enter y"), "0x1953", "an instruction's address");
    let body = "f20f59064801d6ffc975f5";
    assert_eq!(copied(&mut state, "k y"), body, "on a block's head: its bytes");
    assert_shows("blocks-copied", &state);
    assert_eq!(copied(&mut state, "Enter y"), body);
}

#[test]
fn the_screen_is_saved_as_text_with_all_its_rows() {
    let mut state = measured();
    update(&mut state, Action::Resize(60, 8));
    let name = "tdtool-functions.txt";
    let asked = types(&mut state, "Enter G P Enter");
    let [Effect::Save(path, text)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!(path, &PathBuf::from(name));
    assert_shown("functions-saved", text);
    assert_eq!((state.size, state.functions.list.at), ((60, 8), 4), "nothing has moved");
    arrives(&mut state, BackgroundResult::Saved(path.clone(), Err(Failure::Exists)));
    assert_shows("functions-not-saved", &state);
}

#[test]
fn a_name_in_json_saves_the_document() {
    let mut state = measured();
    let saved = |state: &mut State, keys: &str| match types(state, keys).pop() {
        Some(Effect::Save(_, text)) => {
            serde_json::from_str::<serde_json::Value>(&text).expect("JSON")
        }
        other => panic!("{keys}: {other:?}"),
    };
    types(&mut state, "Enter P");
    for _ in 0..3 {
        update(&mut state, Action::Edit(Edit::Erase));
    }
    let document = saved(&mut state, "json Enter");
    assert_eq!(document["schema"], "tdtool.report/1");
    assert_eq!(document["functions"][0]["name"], "multiply");
    assert_eq!(document["nodes"][8]["id"], "DRAM_Bound");
    types(&mut state, "Enter Enter");
    arrives(&mut state, BackgroundResult::Measured(1, Ok(Box::new(block_report()))));
    types(&mut state, "P");
    update(&mut state, Action::Edit(Edit::EraseAll));
    assert_eq!(saved(&mut state, "b.json Enter")["schema"], "tdtool.block/2");
}

#[test]
fn keys_of_the_config_file_work_and_are_shown() {
    let mut state = measured();
    let changes = BTreeMap::from([
        ("drill".to_owned(), vec!["x".to_owned()]),
        ("help".to_owned(), vec!["F2".to_owned()]),
    ]);
    state.keys = Keymap::with(&changes).expect("a keymap");
    assert_shows("tree-other-keys", &state);
    types(&mut state, "Enter");
    assert_eq!(state.path.len(), 1, "the old key is gone");
    types(&mut state, "x");
    assert_eq!(state.path.len(), 2);
}

#[test]
fn freezing_also_holds_functions() {
    let mut state = measured();
    types(&mut state, "Enter z");
    let mut newer = hot();
    newer.functions[0].share = 0.123;
    arrives(&mut state, BackgroundResult::Functions(Searchable::boxed(newer)));
    assert_shows("functions-frozen", &state);
    types(&mut state, "z");
    assert_shows("functions-unfrozen", &state);
}
