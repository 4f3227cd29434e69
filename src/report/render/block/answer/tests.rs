//! Remedies and bars of reports made by hand.

use super::*;
use bench::{Options, rejected};
use std::time::Duration;
use tma::Core;

#[test]
fn a_remedy_asks_for_more_than_was_given_and_only_where_that_may_help() {
    let of = |options: Options| {
        let settings = Some(Settings::of(&options, "tsc", None));
        let report = rejected("90", "made up".to_owned(), &Core::default());
        remedy(&Measurement { status: Status::Unstable, settings, ..report }).unwrap()
    };
    let usual = of(Options::default());
    assert!(usual.contains("--budget 30000") && usual.contains("--thorough"), "{usual}");
    let quick = of(Options::quick());
    assert!(!quick.contains("--thorough") && quick.contains("without --quick"), "{quick}");
    let most = of(Options { budget: Duration::from_secs(40), ..Options::thorough() });
    assert_eq!(most, "`tdtool doctor` shows what keeps the machine busy");
    let refused = rejected("c3", "it would leave the block".to_owned(), &Core::default());
    assert_eq!(remedy(&refused), None);
}

#[test]
fn a_bar_is_as_long_as_its_share() {
    let drawn = |low, high, ascii| drawn([low, high], 24, ascii).trim_end().to_owned();
    assert_eq!(drawn(1.0, 1.0, true), "#".repeat(24));
    assert_eq!(drawn(0.25, 0.25, true), "#".repeat(6));
    assert_eq!(drawn(0.25, 0.25, false), "█".repeat(6));
    // A sixteenth of 24 columns: one and a half.
    assert_eq!(drawn(1.0 / 16.0, 1.0 / 16.0, false), "█▌");
    assert_eq!(drawn(2.0, 2.0, true), "#".repeat(24));
    assert_eq!(drawn(f64::NAN, f64::NAN, true), "");
    assert_eq!(drawn(0.25, 0.5, true), "######------");
    assert_eq!(drawn(1.0 / 16.0, 4.0, false), format!("█▌{}", "░".repeat(22)));
}
