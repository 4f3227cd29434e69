//! `--fail-if`: lines that a difference must not cross.

use serde::Serialize;
use tma::{Error, Result};

/// A line: `ipc < -2%`.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    pub(super) name: String,
    pub(super) is_above: bool,
    pub(super) bound: f64,
    pub(super) is_relative: bool,
}

/// How a difference lies to a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Crossing {
    /// Across it, and beyond its error.
    Crossed,
    /// Not across it, or within its error.
    Held,
    /// There is no difference, or no error of it that has how runs differ.
    Undecided,
}

/// A condition and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gate {
    /// As it was given.
    pub condition: String,
    /// B against A: per cent of A, percentage points, or in the row's unit.
    pub change: Option<f64>,
    /// Half width of its 95 % interval.
    pub margin: Option<f64>,
    /// `%`, `points`, or the row's unit.
    pub unit: String,
    /// Verdict.
    pub crossing: Crossing,
    /// Why it is undecided; of one that is held, that its error reaches across.
    pub reason: Option<String>,
}

/// Reads conditions separated by commas: `ipc < -2%, Backend_Bound > +3, time > +5%, sum > +10%`. With `%` the bound
/// is relative to A; without, it is in percentage points for shares and in the row's unit for others. Names of
/// functions may have commas and angle brackets.
///
/// # Errors
/// One is not `NAME < NUMBER` or `NAME > NUMBER`.
pub fn conditions(text: &str) -> Result<Vec<Condition>> {
    let mut found = Vec::new();
    let mut open = String::new();
    for one in text.split(',') {
        open += one;
        match condition(open.trim()) {
            Some(condition) => {
                found.push(condition);
                open.clear();
            }
            // The comma of a name.
            None => open.push(','),
        }
    }
    match found.is_empty() || open.chars().any(|c| c != ',' && !c.is_whitespace()) {
        true => Err(wrong(if found.is_empty() { text } else { open.trim_end_matches(',') })),
        false => Ok(found),
    }
}

fn wrong(text: &str) -> Error {
    Error::usage(format!("`{}` is no condition", text.trim()))
        .because("a condition is NAME < NUMBER or NAME > NUMBER, of a change from A to B")
        .hint("--fail-if 'ipc < -2%, Backend_Bound > +3, time > +5%'")
}

fn condition(text: &str) -> Option<Condition> {
    let at = text.rfind(['<', '>'])?;
    let (name, rest) = (text[..at].trim(), text[at + 1..].trim());
    let number = rest.strip_suffix('%').unwrap_or(rest).trim();
    let bound: f64 = number.parse().ok().filter(|n: &f64| n.is_finite())?;
    let is_above = text[at..].starts_with('>');
    let name = (!name.is_empty()).then(|| name.to_owned())?;
    Some(Condition { name, is_above, bound, is_relative: rest.ends_with('%') })
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (relation, percent) =
            (if self.is_above { '>' } else { '<' }, if self.is_relative { "%" } else { "" });
        write!(f, "{} {relation} {:+}{percent}", self.name, self.bound)
    }
}
