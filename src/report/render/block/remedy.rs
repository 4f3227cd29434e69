//! Remedy for a number that does not reproduce.

use bench::{Measurement, Settings, Status};

/// The wait for an uncontended core that is suggested, in milliseconds.
const LONG_MS: u64 = 30_000;

/// Command to try where measuring again may help; nothing where the block itself is the reason.
pub fn remedy(report: &Measurement) -> Option<String> {
    let may_help = report.status == Status::Unstable || report.was_disturbed();
    may_help.then(|| again(report.settings.as_ref()))
}

/// How to measure again: with more of what these settings leave.
pub fn again(settings: Option<&Settings>) -> String {
    let budget = settings.map(|settings| settings.budget_ms).filter(|ms| *ms < LONG_MS);
    let wait = budget.map(|ms| {
        format!(
            "--budget {LONG_MS} waits up to half a minute for an uncontended core (now {ms} ms)"
        )
    });
    let samples = match settings.and_then(|settings| settings.preset) {
        Some("thorough") => None,
        Some("quick") => Some("without --quick more samples are taken".to_owned()),
        _ => Some("--thorough takes more samples".to_owned()),
    };
    let busy = "`tdtool doctor` shows what keeps the machine busy".to_owned();
    wait.into_iter().chain(samples).chain([busy]).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
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
}
