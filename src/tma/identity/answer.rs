//! The answer: which table, by what, and what contradicts it.

use super::fact::Fact;
use crate::tables::CoreKind;
use serde::Serialize;

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
