//! How many loads a prefetch helps, and how much they matter.

use crate::documents::prefetch::AdviceRow;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Loads with less of the latency of all matter little.
const LITTLE: f64 = 0.05;

/// The first lines of a text.
pub(super) fn summary(all: &[AdviceRow]) -> String {
    let is_known = |row: &AdviceRow| row.distance.is_some() && row.site.is_some();
    let kind = |row: &AdviceRow| match (row.refused.is_some(), row.undecided) {
        (false, _) => usize::from(!is_known(row)),
        (true, undecided) => {
            if undecided {
                2
            } else {
                3
            }
        }
    };
    let of = |number: usize| -> Vec<&AdviceRow> {
        all.iter().filter(|row| kind(row) == number).collect()
    };
    let known = of(0);
    let mut out = format!("a prefetch is advised for {}", loads(&known));
    for (number, what) in [(1, "distance not known for"), (2, "not decided for"), (3, "no use for")]
    {
        let own = of(number);
        if !own.is_empty() {
            let _ = write!(out, "; {what} {}", loads(&own));
        }
    }
    out.push('\n');
    if !known.is_empty() && share(&known) < LITTLE {
        let _ = writeln!(
            out,
            "little is to be gained by the advice: all of these loads together have {:.1} % of the latency",
            100.0 * share(&known)
        );
    }
    out
}

/// How many, each once, and their share of the latency. A load has a row for each event that samples it.
fn loads(own: &[&AdviceRow]) -> String {
    let different: BTreeSet<_> = own.iter().map(|row| (&row.module, row.load)).collect();
    let number = match different.len() {
        1 => "1 load".to_owned(),
        n => format!("{n} loads"),
    };
    match own.iter().any(|row| row.evidence.latency_mean.is_some()) {
        true => format!("{number} ({:.1} % of the latency)", 100.0 * share(own)),
        false => number,
    }
}

/// Share of the latency; of several events that in which it is largest.
fn share(own: &[&AdviceRow]) -> f64 {
    let mut events: Vec<Option<usize>> = own.iter().map(|row| row.evidence.event).collect();
    events.sort_unstable();
    events.dedup();
    let of = |event: &Option<usize>| -> f64 {
        let rows = own.iter().filter(|row| row.evidence.event == *event);
        rows.map(|row| row.evidence.share).sum()
    };
    events.iter().map(of).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::prefetch::Evidence;

    fn row(share: f64, refused: Option<bool>) -> AdviceRow {
        AdviceRow {
            distance: refused.is_none().then_some(8),
            site: Some(loads::prefetch::Site::Inner),
            refused: refused.map(|_| String::new()),
            undecided: refused == Some(true),
            evidence: Evidence { share, latency_mean: Some(9.0), ..Evidence::default() },
            ..AdviceRow::default()
        }
    }

    #[test]
    fn shares_say_whether_the_advice_matters() {
        let all = [row(0.007, None), row(0.893, Some(false)), row(0.1, Some(true))];
        let text = summary(&all);
        let first = "a prefetch is advised for 1 load (0.7 % of the latency); not decided for 1 load (10.0 % of the \
                     latency); no use for 1 load (89.3 % of the latency)\n";
        assert!(text.starts_with(first), "{text}");
        assert!(text.contains("little is to be gained"));
        // Two events sample it.
        let twice = [row(0.5, None), row(0.4, None)];
        assert_eq!(summary(&twice), "a prefetch is advised for 1 load (90.0 % of the latency)\n");
        assert!(!summary(&[row(0.5, None)]).contains("little"));
        assert_eq!(summary(&[]), "a prefetch is advised for 0 loads\n");
    }
}
