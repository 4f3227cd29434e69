//! Reasons why no prefetch of a load is advised, or a part of the advice is not known.

use crate::access::NoPath;
use crate::class::{Class, Kind};
use crate::latency::Level;
use std::fmt;

/// Why a part of the advice on a load is not known.
#[derive(Debug, Clone, PartialEq)]
pub enum Missing {
    /// Its loop is not in the branch stacks.
    NoStacks,
    /// The branch stacks have no cycles.
    NoCycles,
    /// The branch stacks have no cycles, for loads that probes timed, and the block was not measured.
    NotMeasured,
    /// The cycles of iterations have no modes.
    NoModes,
    /// The lowest mode is 0 cycles.
    NoTime,
    /// No load of the loop is sampled, by which iterations without misses are known.
    NotSampled,
    /// No sample of the load hits the first cache; latencies below this many cycles, if given, are not sampled.
    AllMiss(Option<u64>),
    /// No mode lies above the iterations without misses.
    NoMisses,
    /// The load hits the near caches.
    Hits(Hits),
    /// This level, which serves the misses, takes no longer than a hit.
    NoLonger(Level),
    /// The distance is more than `most` iterations.
    TooFar {
        /// Cycles that a miss adds.
        mc: f64,
        /// Cycles of an iteration.
        ic: f64,
        /// The longest distance.
        most: f64,
    },
    /// The distance decides it, which is not known.
    NoDistance,
    /// The trips of the loop are not known.
    NoTrips,
    /// The trips of the loop are not known well enough.
    VagueTrips,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AllMiss(Some(least)) => {
                return write!(
                    f,
                    "every iteration misses, as far as the samples show (loads of less than {least} cycles are not sampled)"
                );
            }
            Self::Hits(hits) => return hits.fmt(f),
            Self::NoLonger(level) => return write!(f, "{level} takes no longer than a hit"),
            Self::TooFar { mc, ic, most } => {
                return write!(f, "MC {mc:.0} ÷ IC {ic:.1} is more than {most} iterations");
            }
            Self::NoStacks => "its loop is not in the branch stacks",
            Self::NoCycles => "this LBR has no cycles",
            Self::NotMeasured => "without cycles in branch stacks it can only be measured",
            Self::NoModes => "no cycles stand out among those of the iterations",
            Self::NoTime => "the lowest mode is 0 cycles, which no iteration takes",
            Self::NotSampled => {
                "whether any iteration is without misses is not known: no load of the loop is sampled"
            }
            Self::AllMiss(None) => "every iteration misses: no sample of the load hits L1",
            Self::NoMisses => "no mode lies above the iterations without misses",
            Self::NoDistance => "it depends on the distance",
            Self::NoTrips => "the trips of the loop are not known",
            Self::VagueTrips => "the trips of the loop are not known well enough",
        })
    }
}

impl std::error::Error for Missing {}

/// The near caches that serve a load: and their shares of its executions, 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub struct Hits(pub Vec<(f64, Level)>);

impl fmt::Display for Hits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it already hits: ")?;
        for (number, (share, level)) in self.0.iter().enumerate() {
            match number {
                0 => write!(f, "{:.1} % of its timed executions in {level}", 100.0 * share)?,
                _ => write!(f, ", {:.1} % in {level}", 100.0 * share)?,
            }
        }
        Ok(())
    }
}

/// With fewer samples, the error of what an iteration takes is shown.
const MANY: u64 = 100;

/// Why no prefetch of a load is advised: none can help, or too little is known to decide ([`Refusal::is_undecided`]).
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// Its code is not known.
    NoCode,
    /// How its address is computed was not looked at.
    NoPath(NoPath),
    /// How its address is computed is not known.
    Irregular,
    /// The recorded addresses are of another class than the code says.
    Disagreement {
        /// By the code.
        code: Class<u64>,
        /// As recorded.
        recorded: Kind,
    },
    /// None of its executions was timed; why, in the words of the document that the count was read from.
    Untimed(Option<String>),
    /// No sample has its latency.
    NoLatency,
    /// Too few samples, this many, have its latency.
    FewSamples(u64),
    /// No sample of the run is in its loop.
    NotTaken,
    /// Too few samples are in its loop to know whether it takes longer than without misses: cycles of that.
    VagueGain(Taken, f64),
    /// No loop contains it.
    NoLoop,
    /// Its address stays the same.
    Constant,
    /// Its next address is what it loads.
    Chase,
    /// Its address is an offset of what another load chases.
    OffsetOfChase(u64),
    /// Its address is a sum of what another load has loaded.
    Sum(u64),
    /// Its index is loaded by another load, whose own next address is not known ahead.
    Index(u64),
    /// Its address needs values that are loaded just before.
    Loaded,
    /// Its address needs all iterations before, and loops within the loop.
    CopyOfLoops,
    /// Its address needs all iterations before, by this many instructions.
    LongCopy {
        /// The instructions.
        length: usize,
        /// How many may be executed a second time.
        most: usize,
    },
    /// Another load chases to its address, in a loop within its own.
    AfterChase(u64),
    /// It is a stride, and this share of its samples hits the first cache.
    StrideHits(f64),
    /// It hits the near caches.
    Hits(Hits),
    /// Memory sets the pace: an iteration takes about as many cycles as its misses, however many are in flight.
    Memory {
        /// Cycles of an iteration.
        taken: Taken,
        /// The cycles that its misses take at least.
        least: f64,
        /// Their number.
        misses: f64,
    },
    /// Its misses are hidden: cycles of an iteration without any.
    Hidden(Taken, f64),
    /// Its address in the loop around, which is not known ahead.
    NotAhead,
    /// The loop has too few trips, and this is so in the one around it.
    Outer(Box<Refusal>),
}

impl Refusal {
    /// Whether too little is known to decide.
    pub fn is_undecided(&self) -> bool {
        match self {
            Self::Outer(why) => why.is_undecided(),
            Self::NoCode
            | Self::NoPath(_)
            | Self::Irregular
            | Self::Disagreement { .. }
            | Self::Untimed(_)
            | Self::NoLatency
            | Self::FewSamples(_)
            | Self::NotTaken
            | Self::VagueGain(..) => true,
            _ => false,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let copy = "its address needs all iterations before: to know a later one, a second copy of that computation, with \
                    a state of its own, has to run ahead";
        match self {
            Self::NoCode => f.write_str("its code is not known"),
            Self::NoPath(why) => write!(f, "{}: {why}", Self::Irregular),
            Self::Irregular => f.write_str("how its address is computed is not known"),
            Self::Disagreement { code, recorded } => {
                let code = code.words();
                write!(f, "its pattern is not certain: {code} by the code, {recorded} as recorded")
            }
            Self::Untimed(why) => {
                let why = why.as_deref().unwrap_or("none of its executions was timed");
                write!(f, "its latency is not known: {why}")
            }
            Self::NoLatency => f.write_str("no sample has its latency"),
            Self::FewSamples(n) => write!(f, "too few samples ({n}) to know its latency"),
            Self::NotTaken => f.write_str("no sample of the run is in its loop"),
            Self::VagueGain(taken, least) => write!(
                f,
                "too few samples to know whether an iteration takes longer than without misses: {:.0} cycles{}, and \
                 {least:.0} without",
                taken.cycles,
                error(taken)
            ),
            Self::NoLoop => f.write_str("no loop of its function contains it"),
            Self::Constant => f.write_str("its address is always the same"),
            Self::Chase => f.write_str("a pointer chase: its next address is what it loads"),
            Self::OffsetOfChase(of) => {
                write!(
                    f,
                    "an offset of the pointer that {of:#x} chases: known no earlier than that"
                )
            }
            Self::Sum(of) => {
                write!(f, "its address is a sum of all that {of:#x} has loaded before")
            }
            Self::Index(of) => {
                write!(f, "its index comes from {of:#x}, whose own next address is not known ahead")
            }
            Self::Loaded => f.write_str(
                "its address needs values that are loaded just before, one after the other",
            ),
            Self::CopyOfLoops => write!(f, "{copy}, and loops within the loop are part of it"),
            Self::LongCopy { length, most } => {
                write!(
                    f,
                    "{copy}, which takes {length} instructions an iteration, more than {most}"
                )
            }
            Self::AfterChase(of) => write!(
                f,
                "its address is where {of:#x} chases to, in a loop within its own: to know a later one, that loop has to \
                 run ahead; several of them interleaved would overlap the misses"
            ),
            Self::StrideHits(share) => {
                write!(f, "a stride that already hits: {:.0} % in L1", 100.0 * share)
            }
            Self::Hits(hits) => hits.fmt(f),
            Self::Memory { taken, least, misses } => write!(
                f,
                "memory already sets the pace: {misses:.2} misses an iteration take at least {least:.0} cycles, however \
                 many are in flight, and an iteration takes {:.0}{}",
                taken.cycles,
                error(taken)
            ),
            Self::Hidden(taken, least) => write!(
                f,
                "its misses are already hidden: without any it takes {least:.0} cycles, and an iteration takes {:.0}{}",
                taken.cycles,
                error(taken)
            ),
            Self::NotAhead => f.write_str("the address is not known ahead"),
            Self::Outer(why) => write!(
                f,
                "the loop has too few trips for a prefetch, and in the one around it {why}"
            ),
        }
    }
}

/// The error of what an iteration takes, after a space; empty with many samples.
fn error(taken: &Taken) -> String {
    let range = taken.range().filter(|_| taken.samples < MANY);
    range.map_or(String::new(), |(low, high)| {
        format!(" ({low:.0} to {high:.0} by {} samples)", taken.samples)
    })
}

/// Standard errors to each end of a 95 % interval.
const ERRORS: f64 = 1.96;

/// Cycles of an iteration in the program, without probes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Taken {
    /// Cycles.
    pub cycles: f64,
    /// The samples that say so.
    pub samples: u64,
}

impl Taken {
    /// The least and the most cycles: the 95 % interval of a Poisson number of samples, by Wilson and Hilferty's cube root
    /// ("The Distribution of Chi-Square", PNAS 1931). `None` without samples.
    pub fn range(&self) -> Option<(f64, f64)> {
        let end = |samples: f64, errors: f64| {
            samples * (1.0 - 1.0 / (9.0 * samples) + errors / (3.0 * samples.sqrt())).powi(3)
        };
        let samples = Some(self.samples as f64).filter(|samples| *samples > 0.0)?;
        let each = self.cycles / samples;
        Some((each * end(samples, -ERRORS).max(0.0), each * end(samples + 1.0, ERRORS)))
    }
}
