//! The time-stamp counter as a clock for core cycles.
//!
//! | segment | what it does | known cycles |
//! |---|---|---|
//! | add chain | dependent `add rax, rbx` | 1 each |
//! | multiply chain | dependent `imul rax, rbx` | 3 each |
//! | sentinel | 4 independent adds a cycle | a quarter each |
//!
//! Latencies: 1 and 3 on every AMD Zen and every Intel core since Nehalem (uops.info; AMD software
//! optimization guides, instruction latency tables). Register-register forms: some processors fold
//! additions of constants. A neighbour on the other hyper-thread leaves chains alone but not the
//! sentinel, which needs all four adders.

use super::Clock;
use crate::block::emit::{Emitter, RCX};
use crate::block::sandbox::layout::{self as at, context};
use crate::block::sandbox::return_offset;
use crate::block::stats::trimmed_mean;

/// Instructions in the body of a chain.
const ADDS: u32 = 128;
const MULTIPLIES: u32 = 64;
const SENTINEL_ADDS: u32 = 480;

/// How long each chain runs, long and short, in repetitions of its body.
#[derive(Debug, Clone, Copy)]
pub struct Chains {
    /// Add chain.
    pub add: (u32, u32),
    /// Multiply chain.
    pub multiply: (u32, u32),
    /// Sentinel.
    pub sentinel: u32,
}

/// 2,048 and 768 cycles between long and short; a sentinel of 600.
pub const CHAINS: Chains = Chains { add: (18, 2), multiply: (6, 2), sentinel: 5 };

/// Ticks of one round's calibration segments.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Calibration {
    /// Long add chain.
    pub add_long: f64,
    /// Short add chain.
    pub add_short: f64,
    /// Long and short multiply chain, in the rounds that ran it.
    pub multiply: Option<(f64, f64)>,
    /// Sentinel before the block.
    pub sentinel: f64,
}

/// Where the three segments start.
#[derive(Debug, Clone, Copy)]
pub struct Places {
    /// Add chain.
    pub add: usize,
    /// Multiply chain.
    pub multiply: usize,
    /// Sentinel.
    pub sentinel: usize,
}

/// See the file's head.
#[derive(Debug, Clone, Copy, Default)]
pub struct TscClock;

impl TscClock {
    /// The code of all segments, for `start` in the region, and where each starts.
    pub fn code(start: usize) -> (Vec<u8>, Places) {
        let mut code = Emitter::at(start);
        let add = code.here();
        segment(&mut code, ADDS, |_| vec![0x48, 0x01, 0xd8]); // add rax, rbx
        let multiply = code.here();
        segment(&mut code, MULTIPLIES, |_| vec![0x48, 0x0f, 0xaf, 0xc3]); // imul rax, rbx
        let sentinel = code.here();
        // add r8..r11, rbx in turn
        segment(&mut code, SENTINEL_ADDS, |i| vec![0x49, 0x01, 0xd8 | (i % 4) as u8]);
        (code.into_bytes(), Places { add, multiply, sentinel })
    }

    /// Cycles between the long and the short add chain.
    fn add_cycles() -> f64 {
        f64::from((CHAINS.add.0 - CHAINS.add.1) * ADDS)
    }

    fn multiply_cycles() -> f64 {
        f64::from((CHAINS.multiply.0 - CHAINS.multiply.1) * MULTIPLIES * 3)
    }

    /// What the sentinel takes when nothing shares the core: its adds at four a cycle; the loop's
    /// own instruction takes one more quarter.
    fn sentinel_cycles() -> f64 {
        f64::from(CHAINS.sentinel * (SENTINEL_ADDS + 1)) / 4.0
    }

    /// Ticks that reading the clock twice takes, from the short chain of the same rounds.
    fn overhead(rounds: &[Calibration], cycles_per_tick: f64) -> f64 {
        let short: Vec<f64> = rounds.iter().map(|r| r.add_short).collect();
        trimmed_mean(&short) - f64::from(CHAINS.add.1 * ADDS) / cycles_per_tick
    }

    /// The rounds of `rounds` in which nothing else used the core.
    pub fn calm(&self, rounds: &[Calibration], cycles_per_tick: f64) -> Vec<bool> {
        let overhead = Self::overhead(rounds, cycles_per_tick);
        let calm = |r: &Calibration| {
            let ticks = Calibration { sentinel: r.sentinel - overhead, ..*r };
            self.is_calm(&ticks, cycles_per_tick)
        };
        // The sentinel of the next round is the one behind this round's block.
        (0..rounds.len()).map(|i| calm(&rounds[i]) && rounds.get(i + 1).is_none_or(calm)).collect()
    }
}

/// One segment: dither, time stamp, repeat { body }, time stamp.
fn segment(code: &mut Emitter, count: u32, body: impl Fn(u32) -> Vec<u8>) {
    code.dither();
    code.stamp(context::START);
    code.load32(RCX, at::CONTEXT + context::REPEAT);
    let head = code.here();
    (0..count).for_each(|i| code.raw(&body(i)));
    code.decrement_register(RCX);
    code.jump_if_not_zero(head);
    code.stamp(context::END);
    code.jump(return_offset());
}

impl Clock for TscClock {
    fn name(&self) -> &'static str {
        "tsc"
    }

    fn cycles_per_tick(&self, rounds: &[Calibration]) -> Result<f64, String> {
        let mean = |get: &dyn Fn(&Calibration) -> f64| {
            trimmed_mean(&rounds.iter().map(get).collect::<Vec<_>>())
        };
        let ticks = mean(&|r| r.add_long) - mean(&|r| r.add_short);
        if !(ticks.is_finite() && ticks > 0.0) {
            return Err("the time-stamp counter did not advance".to_owned());
        }
        let ratio = Self::add_cycles() / ticks;
        let pairs: Vec<(f64, f64)> = rounds.iter().filter_map(|r| r.multiply).collect();
        if pairs.len() >= 8 {
            let long: Vec<f64> = pairs.iter().map(|p| p.0).collect();
            let short: Vec<f64> = pairs.iter().map(|p| p.1).collect();
            let other = Self::multiply_cycles() / (trimmed_mean(&long) - trimmed_mean(&short));
            let apart = (other / ratio - 1.0).abs();
            if apart.is_nan() || apart > 0.05 {
                return Err(format!(
                    "the two calibration chains disagree by {:.1} %: the clock changed",
                    apart * 100.0
                ));
            }
        }
        Ok(ratio)
    }

    fn is_calm(&self, round: &Calibration, cycles_per_tick: f64) -> bool {
        // One step of the counter (10 ns on some machines) is allowed for beside the 6 %.
        let step = 26.0 * cycles_per_tick;
        round.sentinel * cycles_per_tick <= Self::sentinel_cycles() * 1.06 + step
    }
}
