//! The time-stamp counter as a clock of core cycles: calibration chains, the counter's ratio and granularity.
//!
//! | file | concern |
//! |---|---|
//! | `sentinel` | contention during a sample |
//! | `mixes` | unfused single-µop instructions that fill every issue slot |
//!
//! | segment | what it does | known cycles |
//! |---|---|---|
//! | add chain | dependent `add rax, rbx` | 1 each |
//! | multiply chain | dependent `imul rax, rbx` | 3 each |
//! | sentinel | four independent instructions a cycle | a cycle a group |
//! | wide sentinel | the mix that fills every issue slot | as the self-test measured |
//!
//! Latencies: 1 and 3 on every AMD Zen and every Intel core since Nehalem (uops.info; AMD software
//! optimization guides, instruction latency tables). Register-register forms: some processors fold
//! additions of constants.
//!
//! A busy sibling thread does not slow chains, but it does slow a sentinel that needs every issue slot. A
//! sentinel that leaves a slot free misses siblings that need no more: with five of six slots, blocks of
//! six instructions per cycle read 22 % high on Golden Cove and passed.
//! Its instructions share no slots, as nops do on some cores, and need few ports of each kind: the self-test finds
//! the mix that this core sustains best (`crate::selftest`); until then, four instructions a cycle have to do. The
//! sentinel's reading on an uncontended core is learned, within limits ([`Sentinel`]).

pub mod mixes;
mod sentinel;

pub use sentinel::Sentinel;

use crate::harness::emitter::{Emitter, RCX};
use crate::sandbox::layout::context;
use crate::sandbox::{layout as at, return_offset};
use crate::stats::{mean, median, retain_near, trimmed_mean};
use mixes::Mix;
use std::fmt;
use tma::self_test::{Answer, Answers, Open};

/// Instructions in the body of a chain.
const ADDS: u32 = 128;
const MULTIPLIES: u32 = 64;
/// Groups in the sentinel of four instructions a cycle.
const GROUPS: u32 = 120;
/// Its instructions a cycle.
const NARROW: f64 = 4.0;
/// Cycles of a sentinel. The counter of some virtual machines advances 40 at once.
const SENTINEL: f64 = 960.0;

/// Greatest difference of the two chains' ratios, as a share: noise alone makes half a percent in a batch of eight
/// rounds.
const AGREE: f64 = 0.025;

/// 2,048 and 3,072 cycles between long and short. The counter of some virtual machines advances 26
/// ticks at once, 40 cycles: a chain that is run only a few times has to be long.
pub const CHAINS: Chains = Chains { add: (18, 2), multiply: (18, 2) };

/// Why core cycles per tick of the time-stamp counter are not known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NoRatio {
    /// The clock was never steady.
    Changing,
    /// The counter did not advance.
    Stopped,
    /// The multiply chain took no time.
    NoTime,
    /// The two chains disagree by this share.
    Apart(f64),
}

impl fmt::Display for NoRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changing => f.write_str("the clock changed all the time"),
            Self::Stopped => f.write_str("the time-stamp counter did not advance"),
            Self::NoTime => {
                f.write_str("the multiply chain took no time: the clock may have changed")
            }
            Self::Apart(share) => write!(
                f,
                "the two calibration chains disagree by {:.1} %: the clock may have changed",
                share * 100.0
            ),
        }
    }
}

/// Lengths of each chain, long and short, in repetitions of its body.
#[derive(Debug, Clone, Copy)]
pub struct Chains {
    /// Add chain.
    pub add: (u32, u32),
    /// Multiply chain.
    pub multiply: (u32, u32),
}

/// Repetitions and length of a sentinel.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SentinelRun {
    /// Repetitions of its body.
    pub repeat: u32,
    /// Cycles of all of them on an uncontended core.
    pub cycles: f64,
}

impl SentinelRun {
    /// A sentinel whose body takes `body` cycles.
    fn of(body: f64) -> Self {
        let repeat = (SENTINEL / body).round().clamp(1.0, 64.0);
        Self { repeat: repeat as u32, cycles: repeat * body }
    }

    /// The one of four instructions a cycle.
    pub fn narrow() -> Self {
        Self::of(f64::from(GROUPS))
    }

    /// The one that the self-test found: of the core's width, or, where that is open, of the best that was seen, if that is
    /// more than the narrow one needs.
    pub fn wide(answers: Option<&Answers>) -> Option<(Mix, Self)> {
        let answers = answers?;
        let mix = mixes::named(answers.mix.as_deref()?)?;
        let learned = || {
            let seen = answers.seen?.fastest;
            let rate = match answers.open.get(&Answer::Width)? {
                Open::Exceeds { stated, .. } => *stated,
                Open::Impossible { .. } => return None,
                _ => seen,
            };
            (rate > NARROW).then_some(rate)
        };
        let rate = answers.width.or_else(learned)?;
        Some((mix, Self::of(mixes::LENGTH as f64 / rate)))
    }
}

/// Ticks of one round's calibration segments.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Calibration {
    /// Long and short add chain.
    pub add: (f64, f64),
    /// Long and short multiply chain, in the rounds that ran it.
    pub multiply: Option<(f64, f64)>,
    /// Sentinel before and after the block.
    pub sentinel: (f64, f64),
}

/// Where the segments start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Places {
    /// Add chain.
    pub add: usize,
    /// Multiply chain.
    pub multiply: usize,
    /// Sentinel of four instructions a cycle.
    pub sentinel: usize,
    /// Sentinel of the self-test's mix; the same where there is none.
    pub wide: usize,
}

/// Core cycles from the time-stamp counter.
#[derive(Debug, Clone, Copy, Default)]
pub struct TscClock;

impl TscClock {
    /// The code of all segments, for `start` in the region and the self-test's mix, and where each
    /// segment starts.
    pub fn code(start: usize, mix: Option<Mix>) -> (Vec<u8>, Places) {
        let mut code = Emitter::at(start);
        let chain = code.here();
        segment(&mut code, ADDS, |_| vec![0x48, 0x01, 0xd8]); // add rax, rbx
        let multiply = code.here();
        segment(&mut code, MULTIPLIES, |_| vec![0x48, 0x0f, 0xaf, 0xc3]); // imul rax, rbx
        // add r8, rbx; add r9, rbx; add r10, rbx; mov rax, [rsp]
        let group = [0x49, 0x01, 0xd8, 0x49, 0x01, 0xd9, 0x49, 0x01, 0xda, 0x48, 0x8b, 0x04, 0x24];
        let sentinel = code.here();
        segment(&mut code, GROUPS, |_| group.to_vec());
        let wide = code.here();
        if let Some(mix) = mix {
            // It has legacy SSE, and the block before it may have written 512 bits.
            code.clean_upper_halves();
            segment(&mut code, mixes::LENGTH as u32, |i| mix.instruction(i as usize));
        }
        (code.into_bytes(), Places { add: chain, multiply, sentinel, wide })
    }

    /// Cycles between the long and the short add chain.
    fn add_cycles() -> f64 {
        f64::from((CHAINS.add.0 - CHAINS.add.1) * ADDS)
    }

    fn multiply_cycles() -> f64 {
        f64::from((CHAINS.multiply.0 - CHAINS.multiply.1) * MULTIPLIES * 3)
    }

    /// Ticks that reading the clock twice takes, from the short chain of the same rounds.
    pub fn overhead(rounds: &[Calibration], cycles_per_tick: f64) -> f64 {
        let short: Vec<f64> = rounds.iter().map(|r| r.add.1).collect();
        trimmed_mean(&short) - f64::from(CHAINS.add.1 * ADDS) / cycles_per_tick
    }

    /// For each round, whether the clock ran as fast in it as in most: its long add chain took as
    /// long, within 1 % and a `step` of the counter.
    pub fn steady(rounds: &[Calibration], step: f64) -> Vec<bool> {
        let mut all: Vec<f64> = rounds.iter().map(|r| r.add.0).collect();
        all.sort_by(f64::total_cmp);
        // A value that occurred, even where half of the rounds ran at another clock.
        let usual = all.get(all.len().saturating_sub(1) / 2).copied().unwrap_or(f64::NAN);
        let near = 0.01 * usual + step;
        rounds.iter().map(|r| (r.add.0 - usual).abs() <= near).collect()
    }
}

/// Granularity of the counter: the smallest difference between readings, or, where they lie in groups (about 25
/// ticks apart on some processors, 25 or 26 where they are scaled), the distance of the groups. Contention spreads
/// readings and makes it too large; [`Sentinel`] keeps the minimum.
pub fn step(rounds: &[Calibration]) -> f64 {
    let (smallest, groups) = gaps(rounds);
    groups.filter(|gap| *gap > 10.0).map_or(smallest, |gap| gap.max(smallest))
}

/// The granularity; `None` if there are too few readings to find groups.
pub(super) fn step_seen(rounds: &[Calibration]) -> Option<f64> {
    gaps(rounds).1.map(|_| step(rounds))
}

/// The smallest difference between readings, and the lower quartile of those of more than two ticks,
/// of four at least.
fn gaps(rounds: &[Calibration]) -> (f64, Option<f64>) {
    let mut all: Vec<f64> =
        rounds.iter().flat_map(|r| [r.add.0, r.sentinel.0, r.sentinel.1]).collect();
    all.sort_by(f64::total_cmp);
    let mut gaps: Vec<f64> = all.windows(2).map(|w| w[1] - w[0]).filter(|d| *d > 0.0).collect();
    let smallest = gaps.iter().copied().fold(26.0, f64::min);
    gaps.retain(|gap| *gap > 2.0);
    gaps.sort_by(f64::total_cmp);
    (smallest, gaps.get(gaps.len() / 4).filter(|_| gaps.len() >= 4).copied())
}

/// One segment: dither, body, time stamp, repeat { body }, time stamp.
fn segment(code: &mut Emitter, count: u32, body: impl Fn(u32) -> Vec<u8>) {
    code.dither();
    code.warm_up(1);
    let again = code.here();
    code.load32(RCX, at::CONTEXT + context::LEFT);
    code.jump_to_line();
    let head = code.here();
    (0..count).for_each(|i| code.raw(&body(i)));
    code.decrement_register(RCX);
    code.jump_if_not_zero(head);
    code.timed_again(again);
    code.jump(return_offset());
}

impl TscClock {
    /// The standard error of [`TscClock::cycles_per_tick`] as a share, by how far the chains of the
    /// rounds differ.
    pub fn error(rounds: &[Calibration]) -> f64 {
        let mut ticks: Vec<f64> = rounds.iter().map(|r| r.add.0 - r.add.1).collect();
        // As the means of the chains themselves, without interrupted rounds.
        retain_near(&mut ticks);
        let (middle, many) = (mean(&ticks), ticks.len() as f64);
        let spread = ticks.iter().map(|t| (t - middle).powi(2)).sum::<f64>();
        let error = (spread / (many - 1.0).max(1.0) / many).sqrt() / middle;
        if error.is_finite() { error.abs() } else { 0.0 }
    }

    /// Core cycles per tick while the rounds ran.
    ///
    /// # Errors
    /// It is not known.
    pub fn cycles_per_tick(rounds: &[Calibration]) -> Result<f64, NoRatio> {
        if rounds.is_empty() {
            return Err(NoRatio::Changing);
        }
        let usual = |get: &dyn Fn(&Calibration) -> f64| {
            trimmed_mean(&rounds.iter().map(get).collect::<Vec<_>>())
        };
        let ticks = usual(&|r| r.add.0) - usual(&|r| r.add.1);
        if !(ticks.is_finite() && ticks > 0.0) {
            return Err(NoRatio::Stopped);
        }
        let ratio = Self::add_cycles() / ticks;
        let pairs: Vec<(f64, f64)> = rounds.iter().filter_map(|r| r.multiply).collect();
        if pairs.len() >= 2 {
            // Pairs are few: one that was interrupted must not count.
            let ticks: Vec<f64> = pairs.iter().map(|p| p.0 - p.1).collect();
            let other = Self::multiply_cycles() / median(&ticks);
            let apart = (other / ratio - 1.0).abs();
            if !apart.is_finite() {
                return Err(NoRatio::NoTime);
            }
            if apart > AGREE {
                return Err(NoRatio::Apart(apart));
            }
        }
        Ok(ratio)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions, EncodingKind, Mnemonic};

    /// Blocks of 512 bits leave upper halves behind, with which Zen 4 takes a third longer for it: as if others used the core.
    #[test]
    fn legacy_sse_of_a_segment_finds_clean_upper_halves() {
        for mix in mixes::MIXES {
            let (code, places) = TscClock::code(0, Some(*mix));
            for (start, end) in [(0, places.wide), (places.wide, code.len())] {
                let mut decoder = Decoder::new(64, &code[start..end], DecoderOptions::NONE);
                let all: Vec<_> = decoder.iter().collect();
                let is_sse = |inst: &iced_x86::Instruction| {
                    inst.op_code().encoding() == EncodingKind::Legacy
                        && (0..inst.op_count()).any(|i| inst.op_register(i).is_xmm())
                };
                let clean = all.iter().position(|inst| inst.mnemonic() == Mnemonic::Vzeroupper);
                let first = all.iter().position(is_sse);
                let has_avx = std::arch::is_x86_feature_detected!("avx");
                assert!(first.is_none() || !has_avx || clean < first && clean.is_some());
            }
        }
    }
}
