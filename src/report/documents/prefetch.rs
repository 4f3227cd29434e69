//! Prefetch advice, the document `tdtool.prefetch/1`, and a plan of it for tools that insert prefetches,
//! `tdtool.prefetch-plan/1`. Addresses are p_vaddr, `0x…`; shares are from 0 to 1.

use super::applied::AppliedRow;
use super::loads::LevelsRow;
use loads::class::{Ahead, Kind};
use loads::prefetch::Site;
use serde::{Deserialize, Serialize};
use tma::Address;

/// Schema of the document.
pub const SCHEMA: &str = "tdtool.prefetch/1";

/// Bases of advice other than recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Grounds {
    /// Counts and fenced latencies by probes.
    Probes,
}

/// Prefetch advice on the loads of recordings.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Prefetch {
    /// [`SCHEMA`].
    pub schema: String,
    /// The recordings, or the command.
    pub sources: Vec<String>,
    /// Basis of the advice; absent of recordings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<Grounds>,
    /// Misses that a core of this host keeps in flight, with probes only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_flight: Option<InFlightRow>,
    /// Events with samples of loads or branch stacks. Rows take latencies from one event and iterations from one.
    pub events: Vec<EventRow>,
    /// Loads by their share: the advised ones first, the refused ones last.
    pub advice: Vec<AdviceRow>,
    /// What was changed in the source, or tried there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub applied: Vec<AppliedRow>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

/// How many misses a core of this host keeps in flight, by a microbenchmark: independent walks in random order over more
/// memory than the caches hold.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InFlightRow {
    /// The fewest misses in flight with which memory is within 5 % of its fastest: the median of three groups of rounds.
    pub misses: f64,
    /// The least and the most of them.
    pub range: (f64, f64),
    /// Nanoseconds from one such miss to the next: the least.
    pub ns: f64,
    /// The least and the most of the groups.
    pub ns_range: (f64, f64),
    /// Nanoseconds per miss on huge pages, the least: no program's misses take less.
    pub fastest_ns: f64,
    /// Bytes that were walked over.
    pub bytes: u64,
    /// When it was measured.
    pub source: String,
}

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// Its number: over all recordings, in their order.
    pub event: usize,
    /// Its recording.
    pub source: String,
    /// perf's name for it.
    pub name: String,
    /// Samples of loads.
    pub loads: u64,
    /// Latencies below this many cycles are not sampled.
    pub least_latency: Option<u64>,
    /// Samples with branch stacks.
    pub stacks: u64,
    /// Whether those have cycles.
    pub has_cycles: Option<bool>,
}

/// Advice on a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AdviceRow {
    /// Its module.
    pub module: String,
    /// Build-id of that, if known.
    pub build_id: Option<String>,
    /// The load.
    pub load: Address,
    /// Its function.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line.
    pub line: Option<u32>,
    /// Column, for the change of the source.
    #[serde(skip)]
    pub column: Option<u32>,
    /// The load in the source, as sample profiles name it.
    pub source: Option<SourceRow>,
    /// How its addresses are made in the innermost loop.
    pub class: Option<Kind>,
    /// Pattern in words, with other loads.
    pub pattern: Option<String>,
    /// Who allocated the memory that it reads, by probes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Bytes of a stride.
    pub stride: Option<i64>,
    /// Bytes after which a stride begins anew.
    pub wraps: Option<u64>,
    /// The class in the loop around that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outer_class: Option<Kind>,
    /// Pattern in words.
    pub outer_pattern: Option<String>,
    /// Share of the paths through an iteration that give the class.
    pub paths_agree: Option<f64>,
    /// Instructions of the loop of `site` that compute the address; of the innermost loop where `site` is not known.
    pub slice: Vec<Address>,
    /// The innermost loop.
    #[serde(rename = "loop")]
    pub inner: Option<LoopRow>,
    /// Why no prefetch is advised.
    pub refused: Option<String>,
    /// Too little is known; else none can help.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub undecided: bool,
    /// Its code is not known.
    #[serde(skip)]
    pub without_code: bool,
    /// How a later address can be known, a copy being one of the instructions of `slice`; absent if not at all, or not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ahead: Option<Ahead>,
    /// Instructions of such a copy, of the loop of `site`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied: Option<u64>,
    /// Cycles of an iteration without misses, of the loop of `site`.
    pub ic: Option<f64>,
    /// The lowest and the highest, where `ic` is measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ic_range: Option<(f64, f64)>,
    /// Where `ic` is from.
    pub ic_source: Option<String>,
    /// Cycles that a miss adds: the highest mode less that of the innermost loop's iterations without misses.
    pub mc: Option<f64>,
    /// Where `mc` is from, if not from modes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mc_source: Option<String>,
    /// Misses of an iteration of the loop of `site`, of all its loads; absent if not known of some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses: Option<f64>,
    /// Misses of the loads where they are known, if not of all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misses_at_least: Option<f64>,
    /// Cycles of such an iteration once its misses are prefetched, if more than `ic`: `misses` × `mc` ÷ misses in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<f64>,
    /// Where `iteration` is from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration_source: Option<String>,
    /// Cycles that an iteration of the innermost loop takes in the program, by samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<f64>,
    /// Its 95 % interval, for that many samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_range: Option<(f64, f64)>,
    /// The samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_samples: Option<u64>,
    /// `taken` ÷ the greater of `ic` and `misses` × the least time per miss: no prefetch gains more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup_at_most: Option<f64>,
    /// How many iterations of the loop of `site` ahead: max(1, ⌈mc ÷ ic⌉), or ÷ `iteration` where that is given.
    pub distance: Option<u64>,
    /// Its range, where that of `ic` makes a difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance_range: Option<(u64, u64)>,
    /// The loop that the prefetch belongs into.
    pub site: Option<Site>,
    /// First address of that loop.
    pub site_loop: Option<Address>,
    /// Least share of the executions that the prefetch covers.
    pub coverage: Option<f64>,
    /// Unknown values, with the reason.
    pub unknown: Vec<String>,
    /// Samples of the load.
    pub evidence: Evidence,
}

/// An instruction in the source, as sample profiles of compilers name it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceRow {
    /// Linkage name of the function that it was written in.
    pub function: String,
    /// Lines after the function's own.
    pub offset: u32,
    /// DWARF discriminator, its base component.
    pub discriminator: u64,
}

/// Records of the innermost loop.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopRow {
    /// First address of its first block.
    pub head: Address,
    /// The event of its iterations; absent if its loop is in no branch stack.
    pub event: Option<usize>,
    /// Trips: always so many.
    pub trips: Option<u64>,
    /// Their mean.
    pub trips_mean: Option<f64>,
    /// Their mean is at least this.
    pub trips_at_least: Option<f64>,
    /// For so many executions in a row the address, or its index, advances by a stride: beyond the trips, as in rows
    /// of a matrix that lie one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_on: Option<f64>,
    /// Iterations without a recorded misprediction that are timed.
    pub iterations: u64,
    /// Timed iterations with a misprediction, which are left out.
    pub mispredicted: u64,
    /// Peaks of their cycles.
    pub modes: Vec<ModeRow>,
    /// Cycles and how many iterations took them.
    pub histogram: Vec<(u64, u64)>,
}

/// A peak of the iteration cycles.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModeRow {
    /// Cycles.
    pub cycles: u64,
    /// Share of the iterations.
    pub share: f64,
}

/// Samples of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Their event; absent without samples.
    pub event: Option<usize>,
    /// Its share of the event's Σ latency × period; of Σ period where no latency is recorded.
    pub share: f64,
    /// Samples.
    pub samples: u64,
    /// Mean latency in cycles.
    pub latency_mean: Option<f64>,
    /// Samples by what served them.
    pub levels: LevelsRow,
}

/// Schema of the document.
pub const PLAN_SCHEMA: &str = "tdtool.prefetch-plan/1";

/// Prefetches to insert.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// [`PLAN_SCHEMA`].
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
        Self { schema: PLAN_SCHEMA.to_owned(), prefetches: rows.filter_map(PlanRow::of).collect() }
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
