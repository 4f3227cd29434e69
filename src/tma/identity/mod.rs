//! Finds which table describes a processor, by everything that it shows of itself. `decide` weighs the tables.
//!
//! Family and model are a claim: a hypervisor shows another model as it likes. What it cannot do is
//! invent a feature that the silicon lacks, and what it seldom does is hide many. So a table is out as
//! soon as something is there that its core cannot have; what is missing counts against it, on a
//! machine without a hypervisor strictly. docs/method/identification.md has the rules and how good
//! they are.

mod decide;

use crate::cpuid::{CacheLevel, CoreType, Feature, Group};
use crate::self_test::Answers;
use crate::tables::facts::Renamed;
use crate::tables::{CoreKind, Library, Table};
use crate::{Cache, Result};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};
use std::fmt;

pub use decide::identify;

/// A rate that the self-test measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rate {
    /// Instructions a cycle.
    Width,
    /// Additions of a constant to one register, a cycle: more than one are eliminated.
    ConstantAdds,
    /// Moves between registers on one chain, a cycle: more than one are eliminated.
    Moves,
}

/// One observation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fact {
    /// Family, model and stepping are the table's.
    Model,
    /// A feature is there.
    Has(Feature),
    /// A feature is not there.
    Lacks(Feature),
    /// All features of a group are switched off.
    Without(Group),
    /// The shape of a cache.
    Cache(CacheLevel, Cache),
    /// The highest basic leaf.
    HighestLeaf(u32),
    /// Kind and native model of the core.
    Core(CoreType),
    /// A rate that the self-test measured, a cycle.
    Measured(Rate, f64),
}

impl Fact {
    /// Its kind, for scripts.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Has(_) => "feature",
            Self::Lacks(_) | Self::Without(_) => "missing",
            Self::Cache(..) => "cache",
            Self::HighestLeaf(_) => "highest_leaf",
            Self::Core(_) => "core_type",
            Self::Measured(..) => "measured",
        }
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model => f.write_str("family and model"),
            Self::Has(feature) => write!(f, "{} (leaf {})", feature.name(), feature.place()),
            Self::Lacks(feature) => write!(f, "no {} (leaf {})", feature.name(), feature.place()),
            Self::Without(Group::Avx512) => f.write_str("no AVX-512 at all"),
            Self::Without(Group::Amx) => f.write_str("no AMX at all"),
            Self::Without(_) => f.write_str("no AVX at all"),
            Self::Cache(level, shape) => {
                let (size, ways) = (shape.bytes() / 1024, shape.ways);
                write!(f, "{} {size} KiB, {ways}-way", level.name())
            }
            Self::HighestLeaf(leaf) => write!(f, "highest leaf {leaf:x}"),
            Self::Core(core) => {
                let kind = match core.kind {
                    0x20 => "Atom",
                    0x40 => "Core",
                    _ => "unknown kind",
                };
                write!(f, "{kind}, native model {} (leaf 1a)", core.native)
            }
            Self::Measured(rate, value) => {
                let what = match rate {
                    Rate::Width => "instructions",
                    Rate::ConstantAdds => "dependent additions of a constant",
                    Rate::Moves => "dependent moves",
                };
                write!(f, "{value:.1} {what} a cycle")
            }
        }
    }
}

impl Serialize for Fact {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut fact = serializer.serialize_struct("Fact", 2)?;
        fact.serialize_field("kind", self.kind())?;
        fact.serialize_field("text", &self.to_string())?;
        fact.end()
    }
}

/// Basis of the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Family and model, which everything else agrees with.
    Model,
    /// Features, caches and leaves; family and model are of another processor, or of none.
    Features,
    /// Rates of the self-test, among several that features leave.
    Measurement,
    /// Nothing: no table fits, or several do.
    #[default]
    None,
}

impl By {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Features => "features",
            Self::Measurement => "measurement",
            Self::None => "none",
        }
    }
}

/// Identity by family and model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// Vendor.
    pub vendor: String,
    /// Family, extended family added.
    pub family: u32,
    /// Model, extended model included.
    pub model: u32,
    /// Stepping.
    pub stepping: u32,
    /// The brand string; empty where it is hidden.
    pub brand: String,
    /// The tables for that model: none, one, or one for each kind of core of a hybrid.
    pub tables: Vec<String>,
}

/// A fact that contradicts a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Contradiction {
    /// The table: one that family and model claim, or the one that was chosen in spite of it.
    pub table: String,
    /// The contradicting fact.
    #[serde(flatten)]
    pub fact: Fact,
}

/// Which table describes one core of a processor.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Identity {
    /// The table; none where none fits, or several do.
    pub table: Option<String>,
    /// Basis of the decision.
    pub by: By,
    /// Identity by family and model.
    pub claimed: Claim,
    /// Facts for the table, or for all candidates.
    pub evidence: Vec<Fact>,
    /// Facts against the tables that family and model claim.
    pub contradicted: Vec<Contradiction>,
    /// Facts of the table's core that this one does not show: the hypervisor hides them.
    pub hidden: Vec<Fact>,
    /// The tables that remain where none could be chosen.
    pub candidates: Vec<String>,
    /// In a guest, the other tables that nothing it shows excludes, where family and model chose one.
    pub others: Vec<String>,
    /// Tables in `others` whose core facts differ from the chosen table's; the rest differ in events alone.
    pub others_differ: Vec<String>,
    /// Kind of core, on a hybrid.
    pub core: Option<CoreKind>,
    /// Whether a hypervisor says that it is there: it may show a model of its choice.
    pub is_virtual: bool,
}

impl Identity {
    /// The table, or all that remain.
    pub fn possible(&self) -> &[String] {
        match &self.table {
            Some(table) => std::slice::from_ref(table),
            None => &self.candidates,
        }
    }

    /// Whether family and model claim another processor than this is.
    pub fn is_masked(&self) -> bool {
        let claimed = &self.claimed.tables;
        self.table.as_ref().is_some_and(|table| !claimed.contains(table))
    }

    /// The other tables that nothing excludes, in words; `None` where there are none.
    pub fn others_note(&self) -> Option<String> {
        let table = self.table.as_ref().filter(|_| !self.others.is_empty())?;
        let what = match self.others_differ.is_empty() {
            true => "their core facts are the same, their events differ".to_owned(),
            false => format!("{} with other core facts", self.others_differ.join(", ")),
        };
        Some(format!("nothing a guest shows tells {table} from {}: {what}", self.others.join(", ")))
    }

    /// Facts against one table.
    pub fn against<'a>(&'a self, table: &'a str) -> impl Iterator<Item = &'a Fact> {
        self.contradicted.iter().filter(move |c| c.table == table).map(|c| &c.fact)
    }
}

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
