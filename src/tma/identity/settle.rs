//! Decides by the self-test's rates among the tables that features leave.

use super::answer::{By, Contradiction, Identity};
use super::fact::{Fact, Rate};
use crate::Result;
use crate::self_test::Answers;
use crate::tables::facts::Renamed;
use crate::tables::{Library, Table};

/// Rates that were measured, in instructions a cycle; what was not is not asked.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measured {
    /// Instructions a cycle, in the best mix.
    pub width: Option<f64>,
    /// Additions of a constant to one register.
    pub constant_adds: Option<f64>,
    /// Moves between registers, each of the result of the one before.
    pub moves: Option<f64>,
}

impl From<&Answers> for Measured {
    fn from(answers: &Answers) -> Self {
        let Answers { width, constant_adds, moves, .. } = *answers;
        Self { width, constant_adds, moves }
    }
}

/// How far a rate may lie from what a table states.
const ERROR: f64 = 0.1;
/// A chain is longer than one a cycle only if renaming shortens it.
const ELIMINATED: f64 = 1.2;

/// Chooses among the candidates of `identity` by what was measured; leaves a table that is chosen
/// already, and says what contradicts it. Rates that no table states decide nothing.
///
/// # Errors
/// A candidate's table cannot be read.
pub fn settle(mut identity: Identity, measured: Measured, library: &Library) -> Result<Identity> {
    if let Some(name) = identity.table.clone() {
        let against = contradicting(&*library.load(&name)?, measured);
        let note = |fact| Contradiction { table: name.clone(), fact };
        identity.contradicted.extend(against.into_iter().map(note));
        let mut others = Vec::new();
        for other in &identity.others {
            let is_possible = contradicting(&*library.load(other)?, measured).is_empty();
            others.extend(is_possible.then(|| other.clone()));
        }
        identity.others_differ.retain(|other| others.contains(other));
        identity.others = others;
        return Ok(identity);
    }
    let mut left = Vec::new();
    for name in &identity.candidates {
        let table = library.load(name)?;
        let against = contradicting(&table, measured);
        if against.is_empty() {
            left.push((name.clone(), table));
        } else {
            let note = |fact| Contradiction { table: name.clone(), fact };
            identity.contradicted.extend(against.into_iter().map(note));
        }
    }
    match &left[..] {
        // Nothing that was measured fits: the measured facts stand alone.
        [] => identity.candidates.clear(),
        [(name, table)] if identity.candidates.len() > 1 => {
            identity.table = Some(name.clone());
            identity.core = table.core;
            identity.by = By::Measurement;
            identity
                .evidence
                .extend(measured.rates().map(|(rate, value)| Fact::Measured(rate, value)));
            identity.candidates.clear();
        }
        _ => identity.candidates = left.into_iter().map(|(name, _)| name).collect(),
    }
    Ok(identity)
}

impl Measured {
    fn rates(self) -> impl Iterator<Item = (Rate, f64)> {
        let all = [
            (Rate::Width, self.width),
            (Rate::ConstantAdds, self.constant_adds),
            (Rate::Moves, self.moves),
        ];
        all.into_iter().filter_map(|(rate, value)| Some((rate, value?)))
    }
}

/// The rates that a table's facts contradict.
fn contradicting(table: &Table, measured: Measured) -> Vec<Fact> {
    let is_against = |(rate, value): &(Rate, f64)| match rate {
        Rate::Width => !agrees(*value, f64::from(width(table))),
        Rate::ConstantAdds => differs(table, Renamed::AddConstant, *value),
        Rate::Moves => differs(table, Renamed::Mov, *value),
    };
    measured.rates().filter(is_against).map(|(rate, value)| Fact::Measured(rate, value)).collect()
}

fn width(table: &Table) -> u32 {
    let sustained = table.facts.sustained_width.as_ref().map(|s| s.with_two_loads);
    sustained.unwrap_or(table.pipeline.width)
}

fn agrees(measured: f64, stated: f64) -> bool {
    (measured / stated - 1.0).abs() <= ERROR
}

/// Whether the table says otherwise about what renaming does.
fn differs(table: &Table, kind: Renamed, rate: f64) -> bool {
    let stated = table.facts.renamed.as_ref().map(|renamed| renamed.kinds.contains(&kind));
    stated.is_some_and(|stated| stated != (rate > ELIMINATED))
}
