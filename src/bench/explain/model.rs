//! The evidence for the verdict, how bounds compare with the measured time, and the evidence in words.
//!
//! A max-of-bounds model. Every bound is a lower limit on the time, each for another resource; the
//! largest one that reaches the measured time explains it. Resources overlap, so bounds are compared
//! with the time and never added up.

use super::cycles::{Cycles, FAR, NEAR, Reaches, is_refuted, reaches, span};
use tma::text::several;

/// The block measured with its loop-carried register dependencies broken.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Broken {
    /// The measured time.
    pub remaining: Cycles,
    /// Dependency-breaking instructions per iteration of the block.
    pub instructions: f64,
    /// The issue slots that they take, in cycles per iteration of the block.
    pub cost: f64,
    /// Latency of the longest loop-carried dependency that is left, at least.
    pub residual_latency: f64,
}

/// The block with prefixes before its short instructions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Lengthened {
    /// The measured time.
    pub time: Cycles,
    /// Its front end in isolation.
    pub front_end: Cycles,
}

/// Everything that the verdict depends on.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Evidence {
    /// The block's measured time.
    pub time: Cycles,
    /// The fastest state that the block was in at a placement or more, where `time` is another.
    pub fastest_state: Option<f64>,
    /// The front end in isolation: nops of the block's instruction lengths.
    pub front_end: Option<Cycles>,
    /// The block's issue slots, over the pipeline's width.
    pub slots: Option<Cycles>,
    /// Whether more slots were measured than the instructions' number says, but not twice.
    pub slots_unconfirmed: bool,
    /// The block's instructions with independent operands.
    pub independent: Option<Cycles>,
    /// The front end of `independent` in isolation.
    pub independent_front_end: Option<Cycles>,
    /// Loop-carried latency that is left in `independent`, because an operand cannot be made
    /// independent. Where it is close to `independent`, the ports may need less.
    pub residual_latency: Option<f64>,
    /// Latency of the longest loop-carried dependency through registers and flags alone.
    pub register_latency: Option<Cycles>,
    /// Latency of the longest loop-carried dependency through memory.
    pub memory_latency: Option<Cycles>,
    /// The block with its memory dependencies broken.
    pub memory_broken: Option<Cycles>,
    /// The copies and encodings of `memory_broken` with the original addresses.
    pub memory_control: Option<Cycles>,
    /// The block with its loads in one cache line and its stores in another.
    pub one_line: Option<Cycles>,
    /// The encodings of `one_line` with the original addresses.
    pub one_line_control: Option<Cycles>,
    /// The block with its loop-carried register dependencies broken.
    pub registers_broken: Option<Broken>,
    /// The block with both broken.
    pub both_broken: Option<Cycles>,
    /// The block with longer encodings, where the front end seems to be the bound.
    pub lengthened: Option<Lengthened>,
    /// Latency of the memory-carried chain without its passes through memory.
    pub memory_chain_arithmetic: Option<f64>,
    /// Whether iterations overlap for certain: no loop-carried latency is near the time, and what the
    /// processor holds at once is more than an iteration takes.
    pub overlaps: bool,
}

/// If front end and slots reach this share of the time, the ports cannot be separated from them: in one block,
/// eliminated moves that sometimes take a port raised 1.00 cycles to 1.24.
const OPEN: f64 = 0.80;

/// If the residual latency of the independent instructions reaches this share of their time, the
/// time that the ports need is unknown: latencies depend on values (`div`: 11 by the tables, 15
/// here).
const RESIDUAL: f64 = 0.60;

/// A sum of latencies whose range starts below this share of the time does not compete with what was
/// measured.
const RIVAL: f64 = 0.50;

/// A sum of latencies whose range is wider than this factor cannot be a verdict on its own: a memory-carried chain
/// of 1 to 8 cycles reaches any time between.
const KNOWN: f64 = 1.5;

/// A chain whose latencies are below this share of the time is not what bounds it, even if the block is
/// faster without it: an instruction added to break it also changes which port each one is given.
/// Natively on Zen 5: three `pdep` and a counter of latency 1 take 1.85 cycles, with a nop among them
/// 1.74 (tests/figures/native_blocks.py).
const ACCOUNTS: f64 = 0.67;

/// A variant that is faster than the block by this share shows that what was changed matters.
pub(super) const FASTER: f64 = 0.10;

impl Evidence {
    /// Whether neither ports nor front end nor slots explain the time, so that dependencies may.
    pub fn is_unexplained_by_resources(&self) -> bool {
        let none = |bound: Option<Cycles>| bound.is_none_or(|b| self.reached(b) != Reaches::Yes);
        none(self.independent.filter(|_| !self.is_latency_limited()))
            && none(self.front_end_or_slots())
    }

    /// Whether a variant is not clearly faster than what has its encodings only.
    fn is_alike(variant: Cycles, control: Cycles) -> bool {
        variant.high >= control.low * (1.0 - FASTER)
    }

    /// Whether residual latency hides what the ports need: they need at most `independent`, which
    /// then decides nothing unless it is well below the time.
    pub(super) fn is_latency_limited(&self) -> bool {
        let of = |independent: Cycles| {
            latency_hides_ports(self.residual_latency, independent) && !self.is_faster(independent)
        };
        self.independent.is_some_and(of)
    }

    /// Whether the longest chain through registers falls far short of the time.
    pub(super) fn registers_fall_short(&self) -> bool {
        self.register_latency.is_some_and(|chain| chain.high < ACCOUNTS * self.time.low)
    }

    /// Whether longer encodings, which speed up the front end, leave the block's time as it is.
    pub(super) fn withstands_longer_encodings(&self) -> bool {
        self.lengthened.is_some_and(|Lengthened { time, front_end }| {
            let relief = self.time.best - front_end.best;
            relief > NEAR * self.time.best && self.time.best - time.best < relief / 2.0
        })
    }

    /// Whether slots or a front end of so many cycles leave it open whether the ports bound the block.
    pub(super) fn leaves_ports_open(&self, delivery: Cycles) -> bool {
        self.slots_unconfirmed || delivery.high > OPEN * self.time.low
    }

    /// Whether only the units that execute the block are left: its iterations overlap, and front end and
    /// slots take clearly less.
    pub(super) fn only_units_are_left(&self) -> bool {
        let delivery = self.front_end_or_slots();
        self.overlaps
            && self.is_latency_limited()
            && delivery.is_some_and(|most| !self.leaves_ports_open(most))
    }

    /// Whether a latency is too short to compete with the time.
    pub(super) fn is_far_below(&self, latency: f64) -> bool {
        latency < RIVAL * self.time.low
    }

    /// Whether a variant is clearly faster than the block.
    pub fn is_faster(&self, variant: Cycles) -> bool {
        variant.high < self.time.low * (1.0 - FASTER)
    }

    /// Whether a variant is clearly faster than every state of the block: a block that is faster at some placements
    /// does not need the change for that.
    pub(super) fn is_faster_than_every_state(&self, variant: Cycles) -> bool {
        let least = self.fastest_state.map_or(self.time.low, |state| state.min(self.time.low));
        variant.high < least * (1.0 - FASTER)
    }

    /// Whether the broken memory dependencies make the difference, and not the longer encodings or the
    /// straight copies of the variant.
    pub(super) fn is_through_memory(&self) -> bool {
        let Some(broken) = self.memory_broken else { return false };
        let same = self.memory_control.is_some_and(|control| Self::is_alike(broken, control));
        self.is_faster_than_every_state(broken) && !same
    }

    /// Whether it matters where in the L1 data cache the block accesses memory.
    pub(super) fn is_l1_access(&self) -> bool {
        self.one_line.zip(self.one_line_control).is_some_and(|(variant, control)| {
            self.is_faster_than_every_state(variant) && !Self::is_alike(variant, control)
        })
    }

    /// Whether copies may have memory dependencies that the loop has not: the loop was seen not to load what it
    /// stored (`forwards`), and the copies are not known to take as long.
    pub(super) fn copies_are_not_the_loop(&self, forwards: Option<bool>) -> bool {
        let is_slower = |control: Cycles| self.time.high < control.low * (1.0 - FASTER);
        forwards == Some(false) && self.memory_control.is_none_or(is_slower)
    }

    /// Whether the independent instructions reach the time and the slots do not: their front end is then measured,
    /// since the ports or the block's front end may be the bound.
    pub(super) fn names_ports_or_front_end(&self) -> bool {
        let reaches =
            |bound: Option<Cycles>| bound.is_some_and(|b| self.reached(b) == Reaches::Yes);
        reaches(self.independent) && !reaches(self.slots)
    }

    /// Whether the ports take as long as the front end: the independent instructions reach the time, and
    /// their own front end does not.
    pub(super) fn ports_take_as_long(&self) -> bool {
        self.names_ports_or_front_end()
            && self.independent_front_end.is_some()
            && !self.independent_waits_for_front_end()
            && !self.is_latency_limited()
    }

    /// Whether the front end bounds the independent instructions, so that they show nothing of the ports.
    pub(super) fn independent_waits_for_front_end(&self) -> bool {
        let (independent, front_end) = (self.independent, self.independent_front_end);
        front_end.zip(independent).is_some_and(|(f, i)| f.high > OPEN * i.low)
    }

    /// Whether a variant may be faster or not: nothing follows.
    pub(super) fn may_be_faster(&self, variant: Cycles) -> bool {
        !self.is_faster(variant) && variant.low < self.time.high * (1.0 - NEAR)
    }

    pub(super) fn reached(&self, bound: Cycles) -> Reaches {
        reaches(bound, self.time, false)
    }

    pub(super) fn latency_reached(&self, latency: Option<Cycles>) -> Reaches {
        let Some(cycles) = latency else { return Reaches::No };
        match reaches(cycles, self.time, true) {
            Reaches::Yes if cycles.low < RIVAL * self.time.low => Reaches::Perhaps,
            reached => reached,
        }
    }

    /// Like [`Self::latency_reached`], where the latency is the only evidence: at most `Perhaps` if its range is
    /// wide.
    pub(super) fn latency_alone_reached(&self, latency: Option<Cycles>) -> Reaches {
        let is_vague = latency.is_some_and(|cycles| cycles.high > KNOWN * cycles.low);
        match self.latency_reached(latency) {
            Reaches::Yes if is_vague => Reaches::Perhaps,
            reached => reached,
        }
    }

    /// The time of the block with broken register dependencies if none of them bounds it: no such
    /// variant can be faster.
    pub fn lower_bound_broken(&self, broken: &Broken) -> f64 {
        let slots = self.slots.map_or(0.0, |slots| slots.best) + broken.cost;
        let others = [self.ports(), self.front_end].into_iter().flatten();
        others.fold(slots.max(broken.residual_latency), |most, bound| most.max(bound.best))
    }

    /// Whether breaking register dependencies is conclusive: the block is faster, or could have been, or is slower
    /// than slots, ports and the added instructions explain.
    pub fn is_conclusive(&self, broken: &Broken) -> bool {
        let least = self.lower_bound_broken(broken);
        self.is_faster(broken.remaining)
            || least < self.time.low * (1.0 - FASTER)
            || broken.remaining.low > least * (1.0 + FAR)
    }

    /// Whether register dependencies were broken with a conclusive result.
    pub(super) fn registers_ruled_out(&self) -> bool {
        self.registers_broken.is_some_and(|broken| self.is_conclusive(&broken))
    }

    /// Time to deliver the instructions to the ports: the slower of front end and slots.
    pub(super) fn front_end_or_slots(&self) -> Option<Cycles> {
        match (self.front_end, self.slots) {
            (Some(a), Some(b)) => Some(a.max(b)),
            (a, b) => a.or(b),
        }
    }

    /// Upper limit of the ports' time: the minimum measured without dependencies.
    pub(super) fn ports(&self) -> Option<Cycles> {
        let all = [self.independent, self.both_broken].into_iter().flatten();
        all.min_by(|a, b| a.best.total_cmp(&b.best))
    }
}

/// Whether residual latency hides what the instructions measured as `independent` need of the ports.
pub fn latency_hides_ports(residual_latency: Option<f64>, independent: Cycles) -> bool {
    residual_latency.is_some_and(|latency| latency > independent.low * RESIDUAL)
}

/// As text.
impl Evidence {
    /// The times with dependencies broken, and the latencies, as text.
    pub(super) fn remaining(&self) -> String {
        let of = |variant: Option<Cycles>, how: &str| variant.map(|v| self.left(v, how));
        let parts = [
            of(self.memory_broken, "memory dependencies broken"),
            self.registers_broken.map(|broken| self.remaining_registers(&broken)),
            of(self.both_broken, "both broken"),
            Some(self.latencies()),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    /// The time of a variant, as text; a slower variant has latencies of its own.
    pub(super) fn left(&self, variant: Cycles, how: &str) -> String {
        let (best, time) = (variant.best, self.time.best);
        match () {
            () if variant.low > self.time.high * (1.0 + NEAR) => {
                format!("{how}: {best:.2} cycles, more than the block's {time:.2}")
            }
            () if variant.low >= self.time.low * (1.0 - NEAR) => {
                format!("{how}: {best:.2} cycles, no gain")
            }
            () if variant.high >= self.time.low * (1.0 - NEAR) => {
                let Cycles { low, high, .. } = variant;
                format!("{how}: {best:.2} ({low:.2} to {high:.2}) of {time:.2} cycles remain")
            }
            () => format!("{how}: {best:.2} of {time:.2} cycles remain"),
        }
    }

    /// The time that memory adds to the memory-carried chain, as text.
    pub(super) fn cost_of_forwarding(&self) -> String {
        self.memory_chain_arithmetic.map_or(String::new(), |arithmetic| {
            format!(
                "; the arithmetic of that chain takes {arithmetic:.2} or more, passing through memory {:.2} or less",
                (self.time.best - arithmetic).max(0.0)
            )
        })
    }

    /// The time with register dependencies broken, and the cost of breaking them, as text.
    fn remaining_registers(&self, broken: &Broken) -> String {
        let Broken { remaining, instructions, cost, .. } = broken;
        let caveat = match self.is_conclusive(broken) {
            true => String::new(),
            false => format!(
                "; inconclusive: at least {:.2} cycles are expected with them",
                self.lower_bound_broken(broken)
            ),
        };
        format!(
            "{} ({} per iteration, {cost:.2} cycles of slots{caveat})",
            self.left(*remaining, "register dependencies broken"),
            several((100.0 * instructions).round() / 100.0, "added instruction"),
        )
    }

    /// The loop-carried latencies, as text.
    pub(super) fn latencies(&self) -> String {
        let of = |latency: Option<Cycles>| {
            let cycles = latency?;
            let refuted = match is_refuted(cycles, self.time, true) {
                true => ", above the measurement: refuted",
                false => "",
            };
            // The middle of a range is nobody's latency.
            Some(format!("{}{refuted}", span(cycles.low, cycles.high)))
        };
        match (of(self.register_latency), of(self.memory_latency)) {
            (Some(r), Some(m)) => {
                format!(
                    "the longest loop-carried latency is {r} through registers, {m} through memory"
                )
            }
            (Some(r), None) => format!("the longest loop-carried latency is {r}"),
            (None, Some(m)) => format!("the longest loop-carried latency, through memory, is {m}"),
            (None, None) => "no loop-carried dependency is known".to_owned(),
        }
    }
}
