//! What follows from the times of the tests.

use super::mispredicted;
use super::mixes::MIXES;
use super::questions::Question::{Distance, Fence, Loop, Mix, Moves, Nops, NopsBetween, Target};
use super::questions::{DISTANCES, LOOPS, NEAR};
use super::times::Times;
use tma::self_test::Answers;

/// How far a core may fall short of its table's width and still be believed uncontended: a
/// neighbour takes more.
const SHORT: f64 = 0.93;
/// Attempts that are alike where a core's own limit is below its table's: so many, this close, and at
/// least this share of the table's width.
pub const REPEATED: usize = 16;
const LIKE: f64 = 0.99;
const ALONE: f64 = 0.7;
/// How far the errors of the clock take a rate above what the pipeline can.
const ABOVE: f64 = 1.04;
/// Nops and moves that share slots are issued this much faster than other instructions, or more. On Zen 4 it
/// is 2.
const FUSED: f64 = 1.25;
/// Straight code that does not come from the op cache takes this much longer, or more. On Zen 4
/// after a fence it is 3, and a fence itself varies by a few cycles.
const SLOWER: f64 = 1.25;
/// How much two forms of the same code may differ by the errors alone.
const SAME: f64 = 0.06;
/// How much they may differ where one has a taken jump for every 48 instructions, which costs a cycle
/// on some cores.
const LOOP: f64 = 0.2;
/// A load that waits for a store takes this many times longer, or more. On Zen 5 it is 7.
const WAITS: f64 = 1.8;
/// Attempts after which a rule that does not show is none of those known.
const UNDECIDED: u32 = 16;
/// Mixes this close to the fastest are as good; the first of them is taken.
const AS_GOOD: f64 = 0.99;

/// The answers; `stated` is the width by the core's table.
pub fn of(times: &Times, stated: Option<u32>) -> Answers {
    let (mix, width) = match sustained(times) {
        Some((mix, rate)) if !falls_short(rate, stated) => (Some(MIXES[mix].name), Some(rate)),
        _ => (None, None),
    };
    Answers {
        width,
        mix: mix.map(str::to_owned),
        nops_fused: nops_fused(times, width),
        moves_fused: moves_fused(times, width),
        fence_slows: fence_slows(times, width),
        loop_differs: loop_differs(times),
        needs_alignment: needs_alignment(times),
        false_distances: false_distances(times),
        misprediction: mispredicted::cost(times),
        ready_misprediction: mispredicted::ready_cost(times),
        indirect_misprediction: mispredicted::indirect_cost(times),
        return_misprediction: mispredicted::return_cost(times),
        misprediction_load: mispredicted::load_cost(times),
        targets: mispredicted::targets(times),
        returns: mispredicted::returns(times),
    }
}

/// Whether nothing is gained by another attempt: the core showed its full width, so that it was not
/// shared, and every question has an answer.
pub fn are_settled(times: &Times, stated: Option<u32>) -> bool {
    // Without a table there is nothing to compare with: two attempts.
    let seen = if stated.is_none() { times.attempts >= 2 } else { times.attempts >= 1 };
    let answers = of(times, stated);
    seen && answers.width.is_some()
        && answers.nops_fused.is_some()
        && answers.moves_fused.is_some()
        && answers.fence_slows.is_some()
        && answers.loop_differs.is_some()
        && answers.needs_alignment.is_some()
        && answers.false_distances.is_some()
        && answers.misprediction.is_some()
        && answers.ready_misprediction.is_some()
        && answers.indirect_misprediction.is_some()
        && (answers.misprediction_load.is_some() || times.attempts >= UNDECIDED)
        && answers.targets.is_some_and(|t| t.rule().is_some() || times.attempts >= UNDECIDED)
        && answers.returns.is_some_and(|r| r.rule().is_some() || times.attempts >= UNDECIDED)
}

/// Whether more was issued than the pipeline can: the clock was wrong.
pub fn exceeds(times: &Times, stated: Option<u32>) -> bool {
    let rate = sustained(times).map(|(_, rate)| rate);
    stated.zip(rate).is_some_and(|(stated, rate)| rate > ABOVE * f64::from(stated))
}

fn falls_short(rate: f64, stated: Option<u32>) -> bool {
    stated.is_some_and(|stated| rate < SHORT * f64::from(stated))
}

/// Instructions a cycle in the best mix; 0 where none was timed.
pub fn rate(times: &Times) -> f64 {
    sustained(times).map_or(0.0, |(_, rate)| rate)
}

/// Whether falling short of the table is the core's own limit: attempt after attempt it does the same,
/// which a neighbour's changing work does not leave. A busy sibling thread takes more, about half.
pub fn is_own_limit(rates: &[f64], stated: Option<u32>) -> bool {
    let most = rates.iter().copied().fold(0.0, f64::max);
    let same = rates.iter().filter(|rate| **rate >= LIKE * most).count();
    rates.len() >= REPEATED
        && 4 * same >= 3 * rates.len()
        && stated.is_some_and(|stated| most >= ALONE * f64::from(stated))
}

/// The best mix and its instructions a cycle.
fn sustained(times: &Times) -> Option<(usize, f64)> {
    let rates = || (0..MIXES.len()).filter_map(|i| Some((i, times.rate(Mix(i))?)));
    let most = rates().fold(0.0, |most, (_, rate)| rate.max(most));
    rates().find(|(_, rate)| *rate >= AS_GOOD * most)
}

fn nops_fused(times: &Times, width: Option<f64>) -> Option<bool> {
    let width = width?;
    let fastest = times.rate(Nops)?.max(times.rate(NopsBetween)?);
    Some(fastest > FUSED * width)
}

/// More instructions a cycle than slots: the pairs share them.
fn moves_fused(times: &Times, width: Option<f64>) -> Option<bool> {
    Some(times.rate(Moves)? > FUSED * width?)
}

/// Both fences are asked: one that slows is enough.
fn fence_slows(times: &Times, width: Option<f64>) -> Option<bool> {
    let mut slows = false;
    for memory in [true, false] {
        let direct = times.get(Fence { memory, jump: false })?;
        let jump = Fence { memory, jump: true };
        let needed = jump.instructions() as f64 / width?;
        slows |= direct - times.get(jump)? > (SLOWER - 1.0) * needed;
    }
    Some(slows)
}

/// A loop that fits a loop buffer, and one that does not.
fn loop_differs(times: &Times) -> Option<bool> {
    let (short, long) = (times.rate(Loop(LOOPS.0))?, times.rate(Loop(LOOPS.1))?);
    Some((short / long - 1.0).abs() > LOOP)
}

/// Compares with a jump to an aligned address after the same fence.
fn needs_alignment(times: &Times) -> Option<bool> {
    let aligned = times.get(Fence { memory: false, jump: true })?;
    let others = [times.get(Target(32))?, times.get(Target(60))?];
    Some(others.iter().any(|other| other / aligned > 1.0 + SAME))
}

fn false_distances(times: &Times) -> Option<Vec<u32>> {
    let near = times.get(Distance(NEAR))?;
    let mut found = Vec::new();
    for bytes in DISTANCES {
        if times.get(Distance(bytes))? > WAITS * near {
            found.push(bytes);
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::questions::Question::{Branch, Call, Jump, Second};
    use crate::selftest::questions::{EIGHTH, HALF, OTHER, QUARTER, QUESTIONS, Question};

    /// Times of a core of this width on which nothing is special, and then what is.
    fn core(width: f64, special: &[(Question, f64)]) -> Times {
        let mut times = Times { attempts: 1, ..Times::default() };
        for question in QUESTIONS {
            let fence = match question {
                Fence { .. } | Target(_) => 40.0,
                _ => 0.0,
            };
            let own = match question {
                // 20 cycles a misprediction.
                Branch(HALF) | Second(OTHER) | Jump(HALF) => 10.0 + 20.0 / 2.0,
                Branch(QUARTER) | Jump(QUARTER) => 10.0 + 20.0 / 4.0,
                Branch(EIGHTH) | Jump(EIGHTH) => 10.0 + 20.0 / 8.0,
                // 4 cycles a load.
                Call(HALF) => 10.0 + (20.0 + 2.0 * 4.0) / 2.0,
                Branch(_) | Second(_) | Jump(_) | Call(_) => 10.0,
                _ => question.instructions() as f64 / width + fence,
            };
            let cycles = special.iter().find(|(q, _)| q == question).map_or(own, |(_, c)| *c);
            times.cycles.insert(question.name(), cycles);
        }
        times
    }

    #[test]
    fn a_plain_core_needs_no_care() {
        let answers = of(&core(4.0, &[]), Some(4));
        assert_eq!(answers.width, Some(4.0));
        assert_eq!(answers.mix.as_deref(), Some(MIXES[0].name));
        assert_eq!((answers.nops_fused, answers.moves_fused), (Some(false), Some(false)));
        assert_eq!(answers.fence_slows, Some(false));
        assert_eq!(answers.needs_alignment, Some(false));
        assert_eq!(answers.loop_differs, Some(false));
        assert_eq!(answers.false_distances, Some(vec![]));
    }

    /// Measured natively on a Zen 4 (6 slots): 12 nops a cycle; after `mfence` code at 16 bytes a
    /// cycle, 192 nops of 7 bytes in 84 cycles instead of 32; loads that wait at 0x400, 0x800,
    /// 0x1000: 17 cycles instead of 1.
    #[test]
    fn zen_4_needs_all() {
        let fence = Fence { memory: true, jump: false };
        let pairs = Distance(NEAR).instructions() as f64;
        let times = core(
            6.0,
            &[
                (Nops, Nops.instructions() as f64 / 12.0),
                (fence, 40.0 + 84.0),
                (Fence { memory: true, jump: true }, 40.0 + 32.0),
                (Distance(NEAR), pairs),
                (Distance(0x400), 17.0 * pairs),
                (Distance(0x800), 17.0 * pairs),
                (Distance(0x1000), 17.0 * pairs),
                (Distance(0x2000), pairs),
            ],
        );
        let answers = of(&times, Some(6));
        assert_eq!((answers.nops_fused, answers.fence_slows), (Some(true), Some(true)));
        assert_eq!(answers.false_distances, Some(vec![0x400, 0x800, 0x1000]));
        assert!(are_settled(&times, Some(6)) && !are_settled(&times, None));
    }

    /// Measured natively on a Zen 5 (8 slots): `mov ebx,r13d; and ebx,6` in 0.165 cycles, which is limited
    /// by its six units.
    #[test]
    fn zen_5_fuses_moves() {
        let times = core(8.0, &[(Moves, Moves.instructions() as f64 / 12.0)]);
        assert_eq!(of(&times, Some(8)).moves_fused, Some(true));
    }

    /// A core that was shared all the time shows half its width: nothing that depends on the width
    /// is answered, and the test is made again.
    #[test]
    fn a_shared_core_answers_nothing_about_its_slots() {
        let shared = core(4.0, &[]);
        let answers = of(&shared, Some(8));
        assert_eq!((answers.width, answers.nops_fused, answers.fence_slows), (None, None, None));
        assert!(!are_settled(&shared, Some(8)));
        assert_eq!(of(&Times::default(), Some(8)), Answers::default());
    }

    /// A core of 8 slots by its table that does 7 each time, and one that a neighbour slows, now more, now
    /// less, or by half all the time.
    #[test]
    fn what_a_core_never_reaches_is_its_own_limit_if_it_repeats() {
        assert!(is_own_limit(&[7.0; 16], Some(8)) && !is_own_limit(&[7.0; 15], Some(8)));
        let changing: Vec<f64> = (0..16).map(|i| 5.0 + 0.1 * f64::from(i)).collect();
        assert!(!is_own_limit(&changing, Some(8)) && !is_own_limit(&[4.2; 16], Some(8)));
    }

    /// 9 instructions a cycle on a core of 8 slots are an error of the clock.
    #[test]
    fn no_core_issues_more_than_its_width() {
        assert!(exceeds(&core(9.0, &[]), Some(8)) && !exceeds(&core(8.1, &[]), Some(8)));
        assert!(!exceeds(&core(9.0, &[]), None));
    }

    /// On Golden Cove chains of additions are assigned to ports unevenly: another mix is better.
    #[test]
    fn the_best_mix_is_taken() {
        let slow = LENGTH as f64 / 5.2;
        let times = core(6.0, &[(Mix(0), slow), (Mix(1), slow)]);
        assert_eq!(of(&times, Some(6)).mix.as_deref(), Some(MIXES[2].name));
    }

    use crate::selftest::mixes::LENGTH;
}
