//! A plan of prefetches for tools that insert them: the document `tdtool.prefetch-plan/1`. Addresses are p_vaddr,
//! `0x…`; shares are from 0 to 1.

use super::prefetch::{AdviceRow, Prefetch, SourceRow};
use loads::class::{Ahead, Kind};
use loads::prefetch::Site;
use serde::{Deserialize, Serialize};
use tma::Address;

/// Schema of the document.
pub const SCHEMA: &str = "tdtool.prefetch-plan/1";

/// Prefetches to insert.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`SCHEMA`].
    pub schema: String,
    /// The prefetches, those of the loads with the largest share first.
    pub prefetches: Vec<PlanRow>,
}

/// A prefetch.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanRow {
    /// The program.
    pub module: String,
    /// Its build-id, if known.
    pub build_id: Option<String>,
    /// The load.
    pub load: Address,
    /// Its function.
    pub function: Option<String>,
    /// The loop that the prefetch belongs into.
    pub site: Site,
    /// First address of that loop.
    pub site_loop: Option<Address>,
    /// How many iterations of that loop ahead.
    pub distance: u64,
    /// How the load's addresses are made in that loop.
    pub class: Option<Kind>,
    /// Pattern in words.
    pub pattern: Option<String>,
    /// Instructions of that loop that compute the address.
    pub slice: Vec<Address>,
    /// As in the advice: `by_copy` where the slice needs a second copy that runs ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<Ahead>,
    /// Bytes from the load's address to the prefetched one, where that is always the same.
    pub delta: Option<i64>,
    /// Least share of the executions that it covers.
    pub coverage: Option<f64>,
    /// The load in the source, as sample profiles name it.
    pub source: Option<SourceRow>,
    /// Basis of the advice.
    pub evidence: PlanEvidence,
}

/// Basis of the advice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanEvidence {
    /// Cycles of an iteration without misses, and where they are from.
    pub ic: Option<f64>,
    /// See `ic`.
    pub ic_source: Option<String>,
    /// Cycles that a miss adds.
    pub mc: Option<f64>,
    /// Peaks of the iteration cycles.
    pub modes: Vec<u64>,
    /// Timed iterations.
    pub iterations: u64,
    /// Samples of the load.
    pub samples: u64,
    /// Its share of the latency of all.
    pub share: f64,
    /// Mean latency in cycles.
    pub latency_mean: Option<f64>,
}

impl Plan {
    /// The prefetches of which distance and loop are known.
    pub fn of(document: &Prefetch) -> Self {
        let rows = document.advice.iter().filter(|row| row.refused.is_none());
        Self { schema: SCHEMA.to_owned(), prefetches: rows.filter_map(PlanRow::of).collect() }
    }
}

impl PlanRow {
    fn of(row: &AdviceRow) -> Option<Self> {
        let (site, distance) = (row.site?, row.distance?);
        let is_inner = site == Site::Inner;
        let (class, pattern) = match is_inner {
            true => (row.class, &row.pattern),
            false => (row.outer_class, &row.outer_pattern),
        };
        let inner = row.inner.clone().unwrap_or_default();
        Some(Self {
            module: row.module.clone(),
            build_id: row.build_id.clone(),
            load: row.load,
            function: row.function.clone(),
            site_loop: row.site_loop,
            distance,
            class,
            pattern: pattern.clone(),
            slice: row.slice.clone(),
            ahead: row.ahead,
            delta: row
                .stride
                .filter(|_| is_inner)
                .and_then(|step| step.checked_mul(i64::try_from(distance).ok()?)),
            coverage: row.coverage,
            source: row.source.clone(),
            evidence: PlanEvidence {
                ic: row.ic,
                ic_source: row.ic_source.clone(),
                mc: row.mc,
                modes: inner.modes.iter().map(|mode| mode.cycles).collect(),
                iterations: inner.iterations,
                samples: row.evidence.samples,
                share: row.evidence.share,
                latency_mean: row.evidence.latency_mean,
            },
            site,
        })
    }
}
