//! Intervals over time: a run of three phases, zoomed, and the functions of one of them.

use super::example::{hot, measured, report};
use super::{arrives, assert_shows, picture, types};
use crate::keymap::Screen;
use crate::tui::action::{Action, BackgroundResult, Effect};
use crate::tui::state::{SampleFilter, Searchable, State};
use crate::tui::update::update;
use report::documents::{Report, Source};

/// Twenty seconds that are bound by the back end, ten that are not, ten as before.
pub fn phased(state: &mut State) {
    for second in 0..40_u32 {
        let mut one = report();
        one.interval = Some((f64::from(second), f64::from(second) + 1.0));
        let little = 0.002 * f64::from(second % 3);
        let (backend, retiring) = match second {
            20..30 => (0.1 + little, 0.8 - little),
            _ => (0.7 + little, 0.2 - little),
        };
        (one.nodes[2].value, one.nodes[3].value) = (Some(backend), Some(retiring));
        arrives(state, BackgroundResult::Interval(Box::new(one)));
    }
    arrives(state, BackgroundResult::Report(Box::new(report())));
    types(state, "i");
}

fn marks(screen: &str) -> String {
    let is_marks = |line: &&str| !line.is_empty() && line.chars().all(|c| c.is_ascii_digit());
    screen.lines().find(is_marks).unwrap_or_default().to_owned()
}

#[test]
fn three_phases_are_found_zoomed_and_lead_to_their_functions() {
    let mut state = measured();
    update(&mut state, Action::Resize(80, 24));
    phased(&mut state);
    let screen = picture(&state);
    // By hand: 80 columns of half a second.
    let expected = "1".repeat(40) + &"2".repeat(20) + &"3".repeat(20);
    assert_eq!(marks(&screen), expected, "{screen}");
    assert_shows("intervals-of-three-phases", &state);
    types(&mut state, "j +");
    assert_eq!(marks(&picture(&state)), "2".repeat(80), "{}", picture(&state));
    types(&mut state, "-");
    let twice = "1".repeat(20) + &"2".repeat(40) + &"3".repeat(20);
    assert_eq!(marks(&picture(&state)), twice, "{}", picture(&state));
    types(&mut state, ">");
    let later = "2".repeat(40) + &"3".repeat(40);
    assert_eq!(marks(&picture(&state)), later, "{}", picture(&state));
    types(&mut state, "- -");
    assert_eq!(marks(&picture(&state)), expected);

    let of_phase =
        SampleFilter { time: Some((20_000_000_000, 30_000_000_000)), ..Default::default() };
    assert_eq!(types(&mut state, "Enter"), [Effect::Profile(of_phase)]);
    arrives(&mut state, BackgroundResult::Functions(Searchable::boxed(hot())));
    assert_shows("functions-of-a-phase", &state);
    let all = SampleFilter::default();
    assert_eq!(types(&mut state, "Esc"), [Effect::Profile(all)]);
    assert_eq!(state.list().at, 1, "the cursor is where it was");
    assert_eq!(types(&mut state, "Esc"), []);
    // The key from functions: of all samples, and of a phase.
    types(&mut state, "Enter i");
    assert_eq!(state.path, [Screen::Tree, Screen::Intervals]);
    assert_eq!(types(&mut state, "Enter").len(), 1);
    assert_eq!(types(&mut state, "i"), [Effect::Profile(SampleFilter::default())]);
    assert_eq!(marks(&picture(&state)), expected);
    types(&mut state, "Esc");
    assert_eq!(state.path, [Screen::Tree]);
}

#[test]
fn without_intervals_the_key_says_what_has_them() {
    let mut state = measured();
    types(&mut state, "i");
    assert_shows("tree-without-intervals", &state);
}

/// Without a PMU there are software counts. By hand: 10 and, in eight of the last fifteen seconds, one more: 10.53.
#[test]
fn software_counts_have_a_chart_each() {
    let mut state = measured();
    for second in 0..30_u32 {
        let mut one = Report::new(Source::NoPmu);
        one.interval = Some((f64::from(second), f64::from(second) + 1.0));
        let faults = if second < 15 { 4000.0 } else { 10.0 };
        one.software.insert("page_faults".into(), Some(faults + f64::from(second % 2)));
        one.software.insert("cpus_used".into(), Some(1.0));
        arrives(&mut state, BackgroundResult::Interval(Box::new(one)));
    }
    types(&mut state, "i");
    let screen = picture(&state);
    assert_shows("intervals-of-software-counts", &state);
    assert_eq!(marks(&screen), "1".repeat(40) + &"2".repeat(40), "{screen}");
}

/// Three intervals are a bar each, and a hint says how to have more.
#[test]
fn few_intervals_are_bars_of_their_own() {
    let mut state = measured();
    update(&mut state, Action::Resize(80, 24));
    for second in 0..3_u32 {
        let mut one = Report::new(Source::NoPmu);
        one.interval = Some((f64::from(second), f64::from(second) + 1.0));
        one.software.insert("cpus_used".into(), Some(1.0));
        arrives(&mut state, BackgroundResult::Interval(Box::new(one)));
    }
    types(&mut state, "i");
    let screen = picture(&state);
    assert_shows("intervals-few", &state);
    let bars = screen.lines().filter(|line| line.starts_with('█') && !line.contains("CPUs"));
    let counts: Vec<usize> = bars.map(|line| line.split_whitespace().count()).collect();
    assert!(!counts.is_empty() && counts.iter().all(|count| *count == 3), "{screen}");
}
