//! Everything known of a piece, in cycles of the whole run.

use super::ask::{DEVIATIONS, Shared};
use super::callees::{CalleeCosts, Calls, LONGEST, SHORTEST, most};
use super::compared;
use super::division::{Tables, divisions};
use super::footprint::Footprint;
use super::further::{Counted, Uncounted};
use super::isolated::{BLOCK_ERROR, Found, Unmeasured};
use super::latency::{self, Accesses};
use super::pieces::{Function, Kind, PieceOf};
use crate::steps::Places;
use estimate::{Contention, Evidence, Interval, Isolated, Loads, Mispredicted, Reason};
use iced_x86::{FlowControl, Mnemonic};
use isa::code::Inst;
use isa::deps::Code;
use report::documents::count::Modelled;
use report::documents::estimate::Values;
use report::documents::evidence::{Pinned, Tail};
use std::fmt;
use std::path::Path;

/// Relative error of a µop table, on the blocks of docs/results/accuracy.md.
const UOP_TABLE_ERROR: f64 = 0.03;
/// Slots beyond one each that instructions take at most, relative, where no µop table is known: those that read and
/// write memory, push, call, divide, gather. Of 1,900 to 3,800 forms of a core, four in five take one, and compiled
/// code has few of the others (uops.info).
const EXTRA_SLOTS: f64 = 0.2;
/// Cycles in which the oldest instruction is a load that is not complete: the tree of a core that counts them (AMD since
/// Zen 4) has all of them in Memory Bound.
const OLDEST: &str = "ex_no_retire.load_not_complete";
/// Relative error of the modelled cost of a misprediction (docs/results/accuracy.md).
const PENALTY_ERROR: f64 = 0.15;

/// Facts that all pieces share, with the counts of runs.
pub(super) struct Context<'a> {
    pub shared: &'a Shared<'a>,
    pub counted: &'a Counted<'a>,
    /// Whether branches were recorded.
    pub branches: bool,
    /// Whether they should have been.
    pub branches_wanted: bool,
    /// How well entries of a further run are those of the sampled one, as a ratio.
    pub entries_error: f64,
    pub footprint: Footprint,
    /// The code of which loads were recorded, if any were.
    pub loads_of: Places,
    /// Where what mispredicted indirect calls cost is sampled.
    pub callee_costs: CalleeCosts,
    /// A run on one CPU.
    pub pinned: Option<Pinned>,
    /// Functions with few samples each.
    pub tail: Option<Tail>,
}

impl<'a> Context<'a> {
    /// Without recorded branches and loads.
    pub fn new(shared: &'a Shared<'a>, counted: &'a Counted<'a>) -> Self {
        Self {
            shared,
            counted,
            branches: false,
            branches_wanted: false,
            entries_error: 0.0,
            footprint: Footprint::default(),
            loads_of: Places::default(),
            callee_costs: CalleeCosts::default(),
            pinned: None,
            tail: None,
        }
    }

    /// Cycles of a misprediction, as the counts say, else as the self-test does.
    pub fn penalty(&self) -> Option<f64> {
        self.counted.count.misprediction_cycles.or(self.shared.penalty)
    }

    /// [`Evidence::certain`] of this core.
    pub fn certain(&self) -> f64 {
        let table = self.shared.core.table.as_ref();
        match table.is_some_and(|table| table.event(OLDEST).is_some()) {
            true => 1.0,
            false => estimate::IDLE,
        }
    }

    /// What is known of the core's instructions.
    pub fn tables(&self) -> Tables<'_> {
        let Shared { core, ports, latencies, .. } = self.shared;
        Tables { core, ports: ports.as_ref(), latencies }
    }

    /// The evidence of a piece.
    pub fn evidence(&self, at: PieceOf, isolated: &Result<Found, Unmeasured>) -> Evidence {
        let PieceOf { function, piece } = at;
        let error = DEVIATIONS / (piece.samples.max(1) as f64).sqrt();
        let share = piece.samples as f64 / self.shared.samples.max(1) as f64;
        let is_captured = isolated.as_ref().is_ok_and(|found| found.values == Values::Own);
        let is_loop = matches!(piece.kind, Kind::Loop(_));
        let among = if is_loop || is_captured { 0.0 } else { BLOCK_ERROR };
        let scaled = |found: &Found| {
            let cycles = found.evidence.cycles.without(among).times(piece.entries);
            Isolated { cycles: cycles.widened(self.entries_error), among, ..found.evidence }
        };
        let fetch = self.footprint.cost(at);
        let cycles = Interval::relative(self.shared.cycles * share, error);
        let contention = self.contention(at, cycles);
        Evidence {
            contention: contention.unwrap_or_default(),
            cycles: cycles.widened(self.shared.clock.error),
            retiring: self
                .retiring(at)
                .map(|one| one.widened(self.entries_error))
                .map_err(Reason::given),
            mispredicted: self.mispredicted(at, Branches::All),
            isolated: isolated.as_ref().map(scaled).map_err(|why| Reason::given(why.clone())),
            other_values: at.divides()
                && isolated.as_ref().is_ok_and(|found| found.values != Values::Own),
            divisions: divisions(at, isolated, &self.tables()),
            certain: self.certain(),
            is_loop,
            latency: function.waits(&piece.blocks),
            loads: self
                .loads(at, is_loop)
                .map(|loads| beside(contention, loads, cycles))
                .map_err(Reason::given),
            fetch: fetch.caches,
            translation: fetch.translation,
        }
    }

    /// What contention for cache lines costs of the sampled cycles of a piece, `None` if no run tells; nothing of code that accesses no such
    /// lines.
    fn contention(&self, at: PieceOf, cycles: Interval) -> Option<Option<Contention>> {
        let lines = &self.counted.count.contended_lines;
        let Some((kind, share)) = compared::kind(lines, &at.function.module, &compared::around(at))
        else {
            return Some(None);
        };
        let run = self.pinned.as_ref().filter(|run| run.failed.is_none())?;
        let samples = compared::samples(run, at.function, &at.piece.blocks);
        let all = run.task * self.shared.clock.ghz * 1e9;
        let found = compared::cost(cycles, run, (all, self.entries_error), samples);
        // Lines of other kinds may cost more than their share of the recorded accesses.
        let own = |cycles: Interval| Interval::new(cycles.value, share * cycles.low, cycles.high);
        Some(found.map(|all| Contention { cycles: own(all), by: compared::contending(kind) }))
    }

    fn loads(&self, at: PieceOf, is_loop: bool) -> Result<Loads, NoLoads> {
        let PieceOf { function, piece } = at;
        let own = self.loads_of.get(Path::new(&function.module));
        let are_recorded =
            |block: &usize| own.is_some_and(|all| all.contains(&function.range(*block)));
        if !piece.blocks.iter().any(|block| function.has_access(*block)) {
            return Ok(Loads::default());
        }
        if self.counted.count.timer.is_some() && !piece.blocks.iter().any(are_recorded) {
            return Err(NoLoads::NotWorth);
        }
        latency::of(&self.accesses(at), self.counted.count, self.shared.clock.ghz, is_loop)
            .ok_or(NoLoads::NoLatencies)
    }

    /// Which loads and stores of a piece can cost most; what the costliest load takes, and memory, if that is far more.
    pub fn named(&self, at: PieceOf) -> (Option<String>, Option<(f64, f64)>) {
        let accesses = self.accesses(at);
        let count = self.counted.count;
        (latency::named(&accesses, count), latency::walks(&accesses, count))
    }

    pub fn accesses(&self, at: PieceOf) -> Accesses<'_> {
        let PieceOf { function, piece } = at;
        let mut all = Accesses::default();
        for block in &piece.blocks {
            let range = function.range(*block);
            all.loads.extend(self.counted.loads(&function.module, range.clone()));
            all.stores.extend(self.counted.stores(&function.module, range));
        }
        all
    }

    pub fn retiring(&self, at: PieceOf) -> Result<Interval, Uncounted> {
        let PieceOf { function, piece } = at;
        let mut all = Slots::default();
        for block in &piece.blocks {
            let executed = match &function.entries[*block] {
                Ok(count) => *count as f64,
                // No count and no samples: taken as 0, which undercounts Retiring.
                Err(_) if function.samples[*block] == 0 => continue,
                Err(why) => return Err(why.clone()),
            };
            if executed == 0.0 {
                continue;
            }
            let slots = self.slots(function, *block);
            all.value += executed * slots.value;
            all.less += executed * slots.less;
            // Other code may call a stub, too.
            let others = if function.is_stub { slots.value } else { 0.0 };
            all.more += executed * (slots.more + others);
        }
        let width = self.shared.width;
        let [value, less, more] = [all.value, all.less, all.more].map(|slots| slots / width.value);
        let found =
            Interval::relative(value, UOP_TABLE_ERROR).plus(Interval::new(0.0, -less, more));
        let (low, high) = (width.value / width.high, width.value / width.low);
        Ok(Interval::new(found.value, found.low * low, found.high * high))
    }

    /// Cycles that the µops of an execution of a block take at the core's full width.
    pub fn retired(&self, function: &Function, block: usize) -> f64 {
        self.slots(function, block).value / self.shared.width.value
    }

    /// Issue slots of a block.
    fn slots(&self, function: &Function, block: usize) -> Slots {
        let code = Code::of_bytes(&function.bytes(block), self.shared.core.facts()).ok();
        match (code, &self.shared.ports) {
            (Some(code), Some(ports)) => {
                let uops = ports.uops(&code.instructions, &code.effects);
                let known: f64 = uops.iter().flatten().map(|one| one.slots).sum();
                // One that the table lacks may take several, or share the slot of another.
                let unknown = uops.iter().filter(|one| one.is_none()).count() as f64;
                Slots { value: known + unknown, less: 0.5 * unknown, more: 3.0 * unknown }
            }
            _ => Slots::without_table(function.instructions(block)),
        }
    }

    /// The recorded indirect calls of a piece, what they cost with its error.
    pub fn indirect_calls(&self, at: PieceOf) -> Calls {
        let PieceOf { function, piece } = at;
        let mut all = Calls::default();
        let calls = piece.blocks.iter().filter(|block| leaves(function, **block));
        for block in calls.filter(|_| self.branches) {
            for row in self.counted.branches(&function.module, function.range(*block)) {
                let Some(found) = &row.mispredicted else { continue };
                all.executed += function.executed(*block);
                all.number += found.high;
                all.cost = all.cost.plus_alike(lost_to(found, self.penalty()));
            }
        }
        all.cost = all.cost.widened(PENALTY_ERROR).widened(self.entries_error);
        all
    }

    /// Cycles that mispredictions of these branches cost.
    pub fn mispredicted(&self, at: PieceOf, which: Branches) -> Mispredicted {
        let PieceOf { function, piece } = at;
        let mut sum = Wrong::default();
        let is_one = |block: &&usize| which == Branches::All || !leaves(function, **block);
        for block in piece.blocks.iter().filter(is_one) {
            let most = most(self.counted, function, *block);
            let range = function.range(*block);
            let rows = self.counted.branches(&function.module, range);
            let mut rows = rows.filter(|_| self.branches).peekable();
            if rows.peek().is_none() {
                sum.not_recorded(most, self);
            }
            for row in rows {
                match &row.mispredicted {
                    Some(found) => sum.recorded(found, self.penalty()),
                    None => sum.not_recorded(most, self),
                }
            }
        }
        sum.unknown(self.callee_costs.unrecorded(&at.key()), NOT_COUNTED);
        let known = sum.known.widened(PENALTY_ERROR).widened(self.entries_error);
        let widened = |most: f64| most * (1.0 + self.entries_error);
        let unknown = sum.unknown.map(|(most, why)| (widened(most), Reason::given(why)));
        Mispredicted { cycles: known, unknown }
    }
}

/// Why the cost of a piece's loads is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoLoads {
    /// Its loads were left out.
    NotWorth,
    /// Latencies cannot be measured here.
    NoLatencies,
}

impl fmt::Display for NoLoads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotWorth => "too little is unexplained here, or it would have taken too long",
            Self::NoLatencies => "latencies of loads were not measured",
        })
    }
}

/// The loads of a piece beside its contention (`None`: it may be any): their latencies were recorded while threads contended, so that
/// they may be of nothing else.
fn beside(contention: Option<Option<Contention>>, loads: Loads, cycles: Interval) -> Loads {
    let perhaps = |of: Interval| Interval::new(0.0, 0.0, of.high);
    match contention {
        Some(None) => loads,
        Some(Some(_)) => Loads {
            at_most: perhaps(loads.at_most),
            carried: perhaps(loads.carried),
            levels: loads.levels.map(perhaps),
            ..loads
        },
        None => Loads { unknown: loads.unknown.max(cycles.high), ..loads },
    }
}

/// Branches of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Branches {
    All,
    /// Without indirect calls, and jumps to other functions.
    Others,
}

/// Whether a block ends in an indirect call, or in such a jump to another function.
pub(super) fn leaves(function: &Function, block: usize) -> bool {
    let last = function.instructions(block).last();
    match last.map(|(_, inst)| inst.decoded.flow_control()) {
        Some(FlowControl::IndirectCall) => true,
        Some(FlowControl::IndirectBranch) => {
            function.flow.blocks[block].unresolved
                && !function.has_unknown_jumps_inside()
                && !function.is_stub
        }
        _ => false,
    }
}

/// Why mispredictions have no number or cost.
pub(super) const NO_COST: &str = "the self-test has no cost of a misprediction here (`tdtool doctor --self-test` makes it again): \
                                  11 to 40 cycles";
const NOT_COUNTED: &str = "jumps or calls to it may be mispredicted that no probe could record";
const NOT_RECORDED: &str = "its branches were not recorded, and could take much of the time";

/// Cycles of mispredictions.
#[derive(Default)]
struct Wrong {
    known: Interval,
    /// The most of the others, and why not more is known.
    unknown: Option<(f64, &'static str)>,
}

impl Wrong {
    fn unknown(&mut self, most: f64, why: &'static str) {
        if most > 0.0 {
            let (sum, _) = self.unknown.get_or_insert((0.0, why));
            *sum += most;
        }
    }

    /// A branch that was not recorded, or too rarely mispredicted to be worth a run.
    fn not_recorded(&mut self, most: f64, of: &Context) {
        match of.penalty() {
            None => self.unknown(most * LONGEST, NO_COST),
            Some(cost) if of.branches_wanted && !of.branches => {
                self.unknown(most * cost, NOT_RECORDED);
            }
            Some(cost) => {
                self.known = self.known.plus_alike(Interval::new(0.0, 0.0, cost * most));
            }
        }
    }

    /// One that was, at what its own cost, else those of `usual` ones.
    fn recorded(&mut self, of: &Modelled, usual: Option<f64>) {
        self.known = self.known.plus_alike(lost_to(of, usual));
    }
}

/// Issue slots, and by how much they may be fewer or more.
#[derive(Default)]
struct Slots {
    value: f64,
    less: f64,
    more: f64,
}

impl Slots {
    /// Without a µop table: one slot each, and one for a comparison with the conditional branch after it, which all
    /// current cores fuse. Some fuse those after additions, subtractions and `and`, too.
    fn without_table(inside: &[(u64, Inst)]) -> Self {
        use Mnemonic::{Add, And, Cmp, Dec, Inc, Sub, Test};
        let before_branches = |which: &[Mnemonic]| {
            let is_one = |two: &&[(u64, Inst)]| {
                which.contains(&two[0].1.decoded.mnemonic())
                    && two[1].1.decoded.is_jcc_short_or_near()
            };
            inside.windows(2).filter(is_one).count() as f64
        };
        let value = inside.len() as f64 - before_branches(&[Cmp, Test]);
        Self { value, less: before_branches(&[Add, And, Dec, Inc, Sub]), more: EXTRA_SLOTS * value }
    }
}

/// Cycles of the mispredictions of a branch, at what one of its own costs; where that of its kind (indirect, say) is not
/// known, at that of `usual` ones, or as little or much as any; where neither is, between these.
fn lost_to(of: &Modelled, usual: Option<f64>) -> Interval {
    let number = Interval::new(of.value, of.low, of.high);
    let own = of.each.or(of.cycles.filter(|_| of.value > 0.0).map(|cycles| cycles / of.value));
    if let Some(own) = own.or(usual.filter(|_| of.cycles.is_some())) {
        return number.times(own);
    }
    let value = usual.unwrap_or((SHORTEST * LONGEST).sqrt());
    let (low, high) = (number.low * value.min(SHORTEST), number.high * value.max(LONGEST));
    Interval::new(number.value * value, low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 100 (80 to 120) mispredictions of an indirect jump that cost 3,500 cycles are 35 each; without a cost of
    /// its kind 28, 11 at least and 40 at most.
    #[test]
    fn mispredictions_cost_what_the_row_of_their_branch_says() {
        let row = |value, cycles| Modelled {
            value,
            low: 0.8 * value,
            high: 1.2 * value + 1.0,
            cycles,
            ..Modelled::default()
        };
        let of = |value, cycles| lost_to(&row(value, cycles), Some(28.0));
        assert_eq!(of(100.0, Some(3500.0)), Interval::new(3500.0, 2800.0, 4235.0));
        assert_eq!(of(100.0, None), Interval::new(2800.0, 880.0, 4840.0));
        assert_eq!(of(0.0, Some(0.0)), Interval::new(0.0, 0.0, 28.0), "none seen, one possible");
        let each = Modelled { each: Some(35.0), ..row(0.0, Some(0.0)) };
        assert_eq!(lost_to(&each, Some(28.0)), Interval::new(0.0, 0.0, 35.0), "at its own cost");
        // Without any, the geometric mean of 11 and 40.
        let without = lost_to(&row(100.0, None), None);
        assert!((without.value - 2097.6).abs() < 0.1, "{without:?}");
        assert_eq!((without.low, without.high), (880.0, 4840.0));
    }

    /// By hand: 80 to 120 mispredictions of 11 to 40 cycles, and 50 of a branch that was not recorded, of 40 at most; with its own
    /// cost, 35, one is known better.
    #[test]
    fn mispredictions_without_a_cost_have_a_most() {
        let of = |cycles| Modelled {
            value: 100.0,
            low: 80.0,
            high: 120.0,
            cycles,
            ..Modelled::default()
        };
        let mut sum = Wrong::default();
        sum.recorded(&of(None), None);
        sum.unknown(50.0 * LONGEST, NO_COST);
        sum.recorded(&of(Some(3500.0)), None);
        assert_eq!((sum.known.low, sum.known.high), (2800.0 + 880.0, 4200.0 + 4800.0));
        assert_eq!(sum.unknown, Some((2000.0, NO_COST)));
    }
}
