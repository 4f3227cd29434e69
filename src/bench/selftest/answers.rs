//! Answers from the times of the tests: each without the others, or why it is open.

use super::mispredicted;
use super::questions::Question::{
    ConstantChain, Distance, Fence, Fillers, Loop, MoveChain, Moves, Nops, NopsBetween, Target,
};
use super::questions::{DISTANCES, LOOPS, NEAR, Question};
use super::times::{Measured, Times};
use super::width::{self, Asked};
use crate::clock::mixes::MIXES;
use std::collections::BTreeMap;
use tma::self_test::{Answer, Answers, Open, TargetHistory};

/// Nops and moves that share slots are issued this much faster than other instructions, or more. On Zen 4 it
/// is 2.
const FUSED: f64 = 1.25;
/// Straight code that does not come from the op cache takes this much longer, or more. On Zen 4
/// after a fence it is 3, and a fence itself varies by a few cycles.
const SLOWER: f64 = 1.25;
/// Greatest difference of two forms of the same code by errors alone, as a share.
const SAME: f64 = 0.06;
/// Greatest difference if one has a taken jump for every 48 instructions, which costs a cycle on some cores; a share.
const LOOP: f64 = 0.2;
/// A load that waits for a store takes this many times longer, or more. On Zen 5 it is 7.
const WAITS: f64 = 1.8;
/// Simple instructions of one kind that a core may do in a cycle.
const RATES: (f64, f64) = (0.4, 16.0);

/// Collects answers: the known ones with their errors, the others with their reasons.
#[derive(Default)]
struct Book {
    open: BTreeMap<Answer, Open>,
    errors: BTreeMap<Answer, f64>,
}

impl Book {
    fn enter<T>(&mut self, answer: Answer, found: Result<T, Open>) -> Option<T> {
        found.map_err(|why| self.open.insert(answer, why)).ok()
    }

    fn number(&mut self, answer: Answer, found: Measured) -> Option<f64> {
        let (value, error) = self.enter(answer, found)?;
        self.errors.extend(error.map(|error| (answer, error)));
        Some(value)
    }
}

/// The answers.
pub fn of(times: &Times, asked: Asked) -> Answers {
    let mut book = Book::default();
    let width = width::of(times, asked);
    let slots =
        width.map(|width| width.rate).map_err(|_| Open::DependsOn { answer: Answer::Width });
    let number = width.map(|width| (width.rate, width.error));
    let costs = mispredicted::Costs::of(times);
    let mut answers = Answers {
        mix: width::best(times).map(|(mix, _)| MIXES[mix].name.to_owned()),
        width: book.number(Answer::Width, number),
        nops_fused: book.enter(Answer::NopsFused, nops_fused(times, slots)),
        moves_fused: book.enter(Answer::MovesFused, moves_fused(times, slots)),
        fillers: book.number(Answer::Fillers, fillers(times, slots)),
        fence_slows: book.enter(Answer::FenceSlows, fence_slows(times, slots)),
        loop_differs: book.enter(Answer::LoopDiffers, loop_differs(times)),
        needs_alignment: book.enter(Answer::NeedsAlignment, needs_alignment(times)),
        false_distances: book.enter(Answer::FalseDistances, false_distances(times)),
        misprediction: book.number(Answer::Misprediction, costs.fair),
        ready_misprediction: book.number(Answer::ReadyMisprediction, costs.ready),
        indirect_misprediction: book.number(Answer::IndirectMisprediction, costs.indirect),
        return_misprediction: book.number(Answer::ReturnMisprediction, costs.of_return(times)),
        misprediction_load: book.number(Answer::MispredictionLoad, costs.load(times)),
        targets: book.enter(Answer::Targets, costs.targets(times)),
        calls: book.enter(Answer::Calls, costs.calls(times)),
        several: book.enter(Answer::Several, costs.several(times)),
        returns: book.enter(Answer::Returns, costs.returns(times)),
        biased: book.enter(Answer::Biased, costs.biased(times)),
        remembered: book.enter(Answer::Remembered, mispredicted::remembered(times)),
        constant_adds: book.number(Answer::ConstantAdds, rate(times, ConstantChain)),
        moves: book.number(Answer::Moves, rate(times, MoveChain)),
        seen: width::seen(times),
        ..Answers::default()
    };
    // Which rule it is may stay open where the shares are known.
    if answers.targets.is_some_and(|targets| targets.rule().is_none()) {
        book.open.insert(Answer::Targets, Open::NoRule);
    }
    if answers.calls.is_some() && answers.rules().calls == TargetHistory::Unknown {
        book.open.insert(Answer::Calls, Open::NoRule);
    }
    if answers.returns.is_some_and(|returns| returns.rule().is_none()) {
        book.open.insert(Answer::Returns, Open::NoRule);
    }
    (answers.open, answers.errors) = (book.open, book.errors);
    answers
}

/// The time of a test.
fn time(times: &Times, question: Question) -> Result<f64, Open> {
    times.get(question).ok_or(Open::NotAsked)
}

fn rate_of(times: &Times, question: Question) -> Result<f64, Open> {
    times.rate(question).ok_or(Open::NotAsked)
}

/// Instructions a cycle: the fastest time that repeats, and how far attempts err; open until several attempts show the same
/// width, as a shared core's rates repeat, too.
fn rate(times: &Times, question: Question) -> Measured {
    let rate = rate_of(times, question)?;
    if let Some(seen) = width::seen(times).filter(|seen| seen.best < width::OVERRULE) {
        return Err(Open::Contended(seen.signs));
    }
    let (low, high) = RATES;
    if !(low..=high).contains(&rate) {
        return Err(Open::Impossible { found: rate, low, high });
    }
    let count = question.instructions() as f64;
    let error =
        times.agreed(|time| Some(count / time(question)?)).ok().and_then(|(_, error)| error);
    Ok((rate, error))
}

fn nops_fused(times: &Times, width: Result<f64, Open>) -> Result<bool, Open> {
    let fastest = rate_of(times, Nops)?.max(rate_of(times, NopsBetween)?);
    Ok(fastest > FUSED * width?)
}

/// What replaces instructions: nops, or moves where nops share slots. Where the width is open, so is whether they reach it.
fn fillers(times: &Times, width: Result<f64, Open>) -> Measured {
    let is_move = nops_fused(times, width)?;
    rate(times, if is_move { Fillers } else { Nops })
}

/// More instructions a cycle than slots: the pairs share them.
fn moves_fused(times: &Times, width: Result<f64, Open>) -> Result<bool, Open> {
    Ok(rate_of(times, Moves)? > FUSED * width?)
}

/// Both fences are asked: one that slows is enough.
fn fence_slows(times: &Times, width: Result<f64, Open>) -> Result<bool, Open> {
    let mut slows = false;
    for memory in [true, false] {
        let direct = time(times, Fence { memory, jump: false })?;
        let jump = Fence { memory, jump: true };
        let needed = jump.instructions() as f64 / width?;
        slows |= direct - time(times, jump)? > (SLOWER - 1.0) * needed;
    }
    Ok(slows)
}

/// A loop that fits a loop buffer, and one that does not.
fn loop_differs(times: &Times) -> Result<bool, Open> {
    let (short, long) = (rate_of(times, Loop(LOOPS.0))?, rate_of(times, Loop(LOOPS.1))?);
    Ok((short / long - 1.0).abs() > LOOP)
}

/// Compares with a jump to an aligned address after the same fence.
fn needs_alignment(times: &Times) -> Result<bool, Open> {
    let aligned = time(times, Fence { memory: false, jump: true })?;
    let others = [time(times, Target(32))?, time(times, Target(60))?];
    Ok(others.iter().any(|other| other / aligned > 1.0 + SAME))
}

fn false_distances(times: &Times) -> Result<Vec<u32>, Open> {
    let near = time(times, Distance(NEAR))?;
    let mut found = Vec::new();
    for bytes in DISTANCES {
        if time(times, Distance(bytes))? > WAITS * near {
            found.push(bytes);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::mixes::LENGTH;
    use crate::selftest::questions::QUESTIONS;
    use crate::selftest::questions::Question::Mix;
    use crate::selftest::times::{Attempt, NewAttempt};

    fn asked(stated: u32) -> Asked {
        Asked { stated: Some(stated), cpus: 2 }
    }

    /// Times of a core of this width on which nothing is special, and then what is.
    fn core(width: f64, special: &[(Question, f64)]) -> Times {
        let mut times = Times::default();
        let cycles = QUESTIONS.iter().map(|question| {
            let fence = match question {
                Fence { .. } | Target(_) => 40.0,
                _ => 0.0,
            };
            let own = question.instructions() as f64 / width + fence;
            let cycles = special.iter().find(|(q, _)| q == question).map_or(own, |(_, c)| *c);
            (question.name(), cycles)
        });
        let attempt = Attempt { stands_for: 3, ..Attempt::default() };
        times.add(NewAttempt { attempt, cycles: cycles.collect() }, |_, _| 0.0);
        times
    }

    #[test]
    fn a_plain_core_needs_no_care() {
        let answers = of(&core(4.0, &[]), asked(4));
        assert_eq!(answers.width, Some(4.0));
        assert_eq!(answers.mix.as_deref(), Some(MIXES[0].name));
        assert_eq!((answers.nops_fused, answers.moves_fused), (Some(false), Some(false)));
        assert_eq!(answers.fence_slows, Some(false));
        assert_eq!(answers.needs_alignment, Some(false));
        assert_eq!(answers.loop_differs, Some(false));
        assert_eq!(answers.false_distances, Some(vec![]));
        assert_eq!((answers.moves, answers.constant_adds), (Some(4.0), Some(4.0)));
        assert_eq!(answers.fillers, Some(4.0), "nops");
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
        let answers = of(&times, asked(6));
        assert_eq!((answers.nops_fused, answers.fence_slows), (Some(true), Some(true)));
        assert_eq!(answers.fillers, Some(6.0), "moves");
        assert_eq!(answers.false_distances, Some(vec![0x400, 0x800, 0x1000]));
    }

    /// Measured natively on a Zen 5 (8 slots): `mov ebx,r13d; and ebx,6` in 0.165 cycles, which is limited
    /// by its six units.
    #[test]
    fn zen_5_fuses_moves() {
        let times = core(8.0, &[(Moves, Moves.instructions() as f64 / 12.0)]);
        assert_eq!(of(&times, asked(8)).moves_fused, Some(true));
    }

    /// A core that was shared all the time shows half its width: what depends on the width is open, and says so; the
    /// rest is answered.
    #[test]
    fn a_shared_core_answers_what_does_not_depend_on_its_slots() {
        let answers = of(&core(4.0, &[]), asked(8));
        assert_eq!((answers.width, answers.nops_fused, answers.fence_slows), (None, None, None));
        assert!(matches!(answers.open[&Answer::Width], Open::Narrower { .. }));
        assert_eq!(answers.open[&Answer::NopsFused], Open::DependsOn { answer: Answer::Width });
        assert_eq!(answers.false_distances, Some(vec![]));
        let nothing = of(&Times::default(), asked(8));
        assert_eq!(nothing.open.len(), Answer::ALL.len());
    }

    /// On Golden Cove chains of additions are assigned to ports unevenly: another mix is better.
    #[test]
    fn the_best_mix_is_taken() {
        let slow = LENGTH as f64 / 5.2;
        let times = core(6.0, &[(Mix(0), slow), (Mix(1), slow)]);
        assert_eq!(of(&times, asked(6)).mix.as_deref(), Some(MIXES[2].name));
    }
}
