//! Conditions judged by the rows of a comparison.

use super::code::CodeRow;
use super::gate::{Condition, Crossing, Gate};
use super::one_run::UNDECIDED;
use super::{Diff, DiffRow};
use tma::error::nearest;
use tma::{Error, Result};

/// Other names of rows.
const ALIASES: [(&str, &str); 3] =
    [("time", "wall_ms"), ("wall", "wall_ms"), ("cpu_time", "task_clock_ms")];

/// Why a line is undecided.
const NO_ERROR: &str = "its error is not known";

/// Why a line that holds may be crossed after all.
const REACHES: &str = "its error reaches across: more runs would tell";

/// Judges conditions of [`super::gate::conditions`] and adds what came of them.
///
/// # Errors
/// A condition is about a row that is not there.
pub fn judge(diff: &mut Diff, conditions: &[Condition]) -> Result<()> {
    diff.gates = conditions.iter().map(|one| one.judge(diff)).collect::<Result<_>>()?;
    Ok(())
}

impl Condition {
    /// Judges every row of this name, and functions: the worst counts.
    ///
    /// # Errors
    /// There is no such row.
    fn judge(&self, diff: &Diff) -> Result<Gate> {
        let all = || diff.nodes.iter().chain(&diff.info).chain(&diff.software);
        let functions = || diff.code.iter().flat_map(|code| &code.functions);
        let wanted = plain(&self.name);
        let alias =
            ALIASES.iter().find(|(name, _)| *name == wanted).map_or(wanted.as_str(), |(_, id)| *id);
        let is_it = |row: &&DiffRow| plain(&row.id) == alias || plain(&row.label) == wanted;
        // A report of several runs has the samples of one.
        let is_code_single = diff.code.as_ref().is_some_and(|code| code.is_single);
        let of_function = |row: &CodeRow| self.of(&row.time, is_code_single);
        let gates = all().filter(is_it).map(|row| self.of(row, diff.is_single));
        let gates = gates.chain(functions().filter(|row| is_it(&&row.time)).map(of_function));
        let severity = |gate: &Gate| match gate.crossing {
            Crossing::Crossed => 2,
            Crossing::Undecided => 1,
            Crossing::Held => 0,
        };
        gates.max_by_key(severity).ok_or_else(|| {
            let names = all().chain(functions().map(|row| &row.time)).map(|row| row.id.as_str());
            let names = names.chain(ALIASES.iter().map(|(name, _)| *name));
            let near = nearest(&self.name, names).map(|name| format!("did you mean `{name}`?"));
            Error::usage(format!("the reports have no `{}`", self.name)).hint(
                near.unwrap_or_else(|| "`tdtool diff A B --format json` has all ids".to_owned()),
            )
        })
    }

    /// Judges a row. On whichever side of the line a single run is, another one may be on the other.
    fn of(&self, row: &DiffRow, is_single: bool) -> Gate {
        let is_share = row.unit == "ratio";
        let (scale, unit) = match (self.is_relative, is_share) {
            (true, _) => (row.a.filter(|a| *a != 0.0).map(|a| 100.0 / a.abs()), "%"),
            (false, true) => (Some(100.0), "points"),
            (false, false) => (Some(1.0), row.unit.as_str()),
        };
        let scaled = |value: Option<f64>| Some(value? * scale?);
        let (change, margin) = (scaled(row.difference), scaled(row.margin));
        let is_across =
            |change: f64| if self.is_above { change > self.bound } else { change < self.bound };
        let (crossing, reason) = match (change, margin) {
            (None, _) if row.difference.is_some() => (Crossing::Undecided, Some("it is 0 in A")),
            (None, _) => (Crossing::Undecided, Some("it was not measured on both sides")),
            _ if is_single => (Crossing::Undecided, Some(UNDECIDED)),
            (Some(_), None) => (Crossing::Undecided, Some(NO_ERROR)),
            (Some(change), Some(margin)) if is_across(change) && change.abs() > margin => {
                (Crossing::Crossed, None)
            }
            (Some(change), Some(margin)) => {
                let is_near = is_across(change - margin) || is_across(change + margin);
                (Crossing::Held, is_near.then_some(REACHES))
            }
        };
        let (condition, unit) = (self.to_string(), unit.to_owned());
        Gate { condition, change, margin, unit, crossing, reason: reason.map(str::to_owned) }
    }
}

/// Names without case, and without the difference between `_`, `-` and a blank.
fn plain(name: &str) -> String {
    name.to_lowercase().replace([' ', '-'], "_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::diff::diff;
    use crate::documents::diff::gate::conditions;
    use crate::documents::report::{NodeRow, Report, Source};
    use smol_str::SmolStr;

    /// Comparison of `runs` on each side: 100 ms ± 3 and 40 % ± 3 on one; other values on the other.
    fn compared(runs: u32, wall: f64, error: Option<f64>, share: f64) -> Diff {
        let of = |wall: f64, error: Option<f64>, share: f64| {
            let mut report = Report::new(Source::NoPmu);
            report.software.insert("wall_ms".into(), Some(wall));
            report.software_error.extend(error.map(|error| ("wall_ms".to_owned(), error)));
            let id: SmolStr = "Backend_Bound".into();
            let (value, error) = (Some(share), Some(0.03));
            report.nodes.push(NodeRow {
                label: id.clone(),
                id,
                level: 1,
                value,
                error,
                ..NodeRow::default()
            });
            report
        };
        let [mut a, mut b] = [of(100.0, error, 0.40), of(wall, error, share)];
        [a.repeats, b.repeats] = [runs; 2];
        diff("a", &a, "b", &b)
    }

    fn judged(diff: &Diff, text: &str) -> Gate {
        conditions(text).unwrap()[0].judge(diff).unwrap()
    }

    /// By hand: errors of 3 and 3 make a margin of 4.24.
    #[test]
    fn a_line_is_crossed_by_what_is_beyond_it_and_beyond_the_error() {
        let slower = compared(5, 110.0, Some(3.0), 0.50);
        let time = judged(&slower, "time > +5%");
        assert_eq!((time.crossing, time.unit.as_str()), (Crossing::Crossed, "%"));
        assert!(
            (time.change.unwrap() - 10.0).abs() < 1e-9
                && (time.margin.unwrap() - 4.243).abs() < 1e-3
        );
        assert_eq!(judged(&slower, "wall_ms > 11").crossing, Crossing::Held);
        let points = judged(&slower, "backend bound > +3");
        assert_eq!((points.crossing, points.unit.as_str()), (Crossing::Crossed, "points"));
        assert_eq!(judged(&slower, "Backend_Bound < -3").crossing, Crossing::Held);
        // Over the line, or near it, but within the error: nothing is established.
        for wall in [104.0, 102.0] {
            let near = judged(&compared(5, wall, Some(3.0), 0.4), "time > 3%");
            assert_eq!((near.crossing, near.reason.is_some()), (Crossing::Held, true), "{near:?}");
        }
        assert_eq!(judged(&slower, "time > 15%").reason, None, "10 + 4.24 is below it");
    }

    /// A node's error of one run is of its counters: whatever the difference is, another run may be on the other side.
    #[test]
    fn a_single_run_decides_nothing() {
        let (single, several) = (compared(1, 110.0, None, 0.5), compared(5, 110.0, None, 0.5));
        for line in ["time > 5%", "time > 20%", "time < -5%", "Backend_Bound > 3"] {
            let gate = judged(&single, line);
            assert_eq!(gate.crossing, Crossing::Undecided, "{line}");
            assert!(gate.reason.unwrap().contains("one run on a side"));
        }
        assert_eq!(judged(&several, "time > 20%").crossing, Crossing::Undecided, "no error");
        assert_eq!(judged(&several, "Backend_Bound > 3").crossing, Crossing::Crossed);
    }

    #[test]
    fn what_is_no_condition_is_refused() {
        let named = conditions("map<int, long>::at > +5%, time > 3").unwrap();
        assert_eq!(named.len(), 2);
        assert_eq!(named[0].to_string(), "map<int, long>::at > +5%");
        for text in ["", "ipc", "ipc < x", "< 3", "ipc < 3 points", "time > NaN%", ","] {
            assert!(conditions(text).is_err(), "{text}");
        }
        assert_eq!(conditions("a<1, b>+2%").unwrap()[1].to_string(), "b > +2%");
        let error = conditions("Backend_Bond > 3").unwrap()[0]
            .judge(&compared(1, 1.0, None, 0.4))
            .unwrap_err();
        assert!(error.remedy().unwrap().contains("Backend_Bound"), "{error:?}");
    }
}
