//! Cost of mispredictions, misprediction rates of biased random branches, and predicted targets and returns.

use super::questions::Question::{
    self, Among, Branch, Call, CallsApart, Jump, Nested, Repeating, Second,
};
use super::questions::{
    ALTERNATE, ALWAYS, EIGHTH, ENDLESS, FIVES, HALF, NEVER, ONE_PLACE, OTHER, QUARTER, SHORT,
    SIXTEENTH, SIXTY_FOURTH, THIRTY_SECOND,
};
use super::random::Order::{self, InTurn, Random};
use super::times::{Measured, Times, quartiles};
use std::ops::RangeInclusive;
use tma::self_test::{
    Answer, Below, Biased, Calls, LENGTHS, ONE_IN, Open, Rate, Remembered, Returns, SEVERAL,
    Sequence, Several, SeveralTargets, Targets,
};

/// Cycles that a misprediction may cost, on any core of the last twenty years: 8 to 40. Others are errors.
const COST: RangeInclusive<f64> = 4.0..=80.0;
/// Cycles of a load that hits the L1 cache, on any core of the last twenty years: 3 to 6. Others are errors.
const LOAD: RangeInclusive<f64> = 2.0..=8.0;
/// Returns of the nested calls that a stack of 32 return addresses has no room for.
const BELOW: f64 = 32.0;
/// The bits of branches that go the rarer way once in [`ONE_IN`].
const BITS: [u8; 6] = [HALF, QUARTER, EIGHTH, SIXTEENTH, THIRTY_SECOND, SIXTY_FOURTH];
/// Limits of the misprediction rate of a random branch: not much below the rate of its rarer outcome, nor above
/// that of guesses; shares of these rates, beyond the errors of a measurement.
const RAREST: f64 = 0.75;
const MOST: f64 = 0.55;
/// Limits of the cost of an indirect branch with several targets, as multiples of one with two: some rules mispredict targets in
/// turn each time.
const TURNS: RangeInclusive<f64> = -0.2..=1.7;

type Get<'a> = &'a dyn Fn(Question) -> Option<f64>;

/// Cycles of each kind of misprediction.
#[derive(Debug, Clone, Copy)]
pub struct Costs {
    /// A branch with random, equally frequent directions: cycles above branches of constant direction. Every
    /// predictor is wrong half of the time; rates for rarer directions differ between predictors.
    pub fair: Measured,
    /// Such a branch whose operands are ready before the previous branch: no latency is exposed.
    pub ready: Measured,
    /// Indirect jumps to two equally frequent targets.
    pub indirect: Measured,
}

impl Costs {
    /// By the times.
    pub fn of(times: &Times) -> Self {
        Self {
            fair: within(COST, times.agreed(fair)),
            ready: within(COST, times.agreed(ready)),
            indirect: within(COST, times.agreed(indirect)),
        }
    }

    /// Cost of each further load that feeds a branch: an indirect call through two loads instead of none.
    pub fn load(&self, times: &Times) -> Measured {
        needs(Answer::IndirectMisprediction, self.indirect)?;
        let each = |get: Get| {
            let through = 2.0 * (get(Call(HALF))? - get(Call(NEVER))?);
            Some((through - indirect(get)?) / 2.0)
        };
        within(LOAD, times.agreed(each))
    }

    /// Misprediction rates of a jump that takes the rarer of two targets a quarter and an eighth of the time.
    pub fn targets(&self, times: &Times) -> Result<Targets, Open> {
        needs(Answer::IndirectMisprediction, self.indirect)?;
        let share = |bits| times.agreed(|get| Some(beyond(get, bits)? / indirect(get)?));
        Ok(Targets { quarter: share(QUARTER)?.0, eighth: share(EIGHTH)?.0 })
    }

    /// Misprediction rate of an indirect call with two alternating targets.
    pub fn calls(&self, times: &Times) -> Result<Calls, Open> {
        within(COST, times.agreed(call))?;
        let (in_turn, _) = share(times, Question::Calls(InTurn(2)))?;
        Ok(Calls { in_turn, apart: share(times, CallsApart).ok().map(|(apart, _)| apart) })
    }

    /// Misprediction rates of indirect branches with several targets: those that are known.
    pub fn several(&self, times: &Times) -> Result<SeveralTargets, Open> {
        let rate = |question| within(TURNS, share(times, question)).map(|(rate, _)| rate);
        let known = |of: u32, question| rate(question).ok().filter(|_| of > 2);
        let of = |question: fn(Order) -> Question| Several {
            // Two at random are what one is measured by.
            random: SEVERAL.map(|of| known(of, question(Random(of as u8)))),
            in_turn: SEVERAL.map(|of| known(of, question(InTurn(of as u8)))),
        };
        let (calls, mut jumps) = (of(Question::Calls), of(Question::Jumps));
        // Two calls in turn are in `calls`.
        let two = rate(Question::Jumps(InTurn(2)));
        jumps.in_turn[0] = two.ok();
        match (calls.is_empty() && jumps.is_empty(), two) {
            (true, Err(why)) => Err(why),
            _ => Ok(SeveralTargets { calls, jumps }),
        }
    }

    /// Misprediction rate of returns below the stack of return addresses, by their extra time over calls from one
    /// place.
    pub fn returns(&self, times: &Times) -> Result<Returns, Open> {
        let (ready, _) = needs(Answer::ReadyMisprediction, self.ready)?;
        let share = |places| Ok(extra(times, places)? / (BELOW * ready));
        Ok(Returns { alternate: share(ALTERNATE)?, fives: share(FIVES)? })
    }

    /// Cost of a mispredicted return, where the processor shows which ones are mispredicted. By hand, of the 31
    /// returns below a stack of 32 in a nested call: the oldest address is the other place's for 16 of alternate
    /// calls, the address 32 levels further in for 12 of those in fives.
    pub fn of_return(&self, times: &Times) -> Measured {
        let rule = needs(Answer::Returns, self.returns(times))?.rule();
        let (places, mispredicted) =
            match rule.ok_or(Open::DependsOn { answer: Answer::Returns })? {
                Below::Oldest => (ALTERNATE, 16.0),
                Below::Around => (FIVES, 12.0),
                Below::History => return Err(Open::Predicted),
            };
        within(COST, Ok((extra(times, places)? / mispredicted, None)))
    }

    /// Misprediction rates of biased random branches: their extra cycles over the cost of a fair one's.
    pub fn biased(&self, times: &Times) -> Result<Biased, Open> {
        needs(Answer::Misprediction, self.fair)?;
        let rate = |one_in: u32, of: &dyn Fn(u8) -> Question, bits| {
            let share = 1.0 / f64::from(one_in);
            let measured = times.agreed(|get| {
                let cost = 2.0 * excess(get, of, HALF, 0.5)?;
                (cost > *COST.start()).then_some(excess(get, of, bits, share)? / cost)
            });
            within(RAREST / f64::from(one_in)..=MOST, measured).map(|(rate, _)| rate)
        };
        let alone: Vec<_> =
            ONE_IN.iter().zip(BITS).map(|(n, bits)| rate(*n, &Branch, bits)).collect();
        // The half is the reference of the others: it has no information of its own.
        if !alone[1..].iter().any(Result::is_ok) {
            return Err(alone[2].err().unwrap_or(Open::NotAsked));
        }
        let rates = ONE_IN.iter().zip(BITS).zip(alone).map(|((one_in, bits), alone)| Rate {
            one_in: *one_in,
            alone: alone.ok(),
            among: rate(*one_in, &Among, bits).ok(),
        });
        Ok(Biased { rates: rates.collect() })
    }
}

/// Misprediction rates of repeating random sequences: their extra cycles over those of one that never repeats,
/// which is mispredicted half of the time.
pub fn remembered(times: &Times) -> Result<Remembered, Open> {
    let cost = |get: Get| Some(2.0 * (get(Repeating(ENDLESS))? - get(Repeating(SHORT))?));
    within(COST, times.agreed(cost))?;
    let sequence = |bits: &u8| {
        let rates = times.each(|get| {
            let cost = cost(get).filter(|cost| *cost > *COST.start())?;
            Some((get(Repeating(*bits))? - get(Repeating(SHORT))?) / cost)
        });
        let (low, high) = quartiles(&rates)?;
        Some(Sequence { outcomes: 1 << bits, low: low.clamp(0.0, 0.5), high: high.clamp(0.0, 0.5) })
    };
    let sequences: Vec<Sequence> = LENGTHS.iter().filter_map(sequence).collect();
    if sequences.is_empty() { Err(Open::NotAsked) } else { Ok(Remembered { sequences }) }
}

fn fair(get: Get) -> Option<f64> {
    Some(2.0 * excess(get, &Branch, HALF, 0.5)?)
}

/// Cycles of a branch that is not taken in this share of its executions, beyond those of predicted ones: taken and
/// not-taken branches differ in time. Earlier results have only branches that are never taken.
fn excess(get: Get, of: &dyn Fn(u8) -> Question, bits: u8, share: f64) -> Option<f64> {
    let never = get(of(NEVER))?;
    let always = get(of(ALWAYS)).unwrap_or(never);
    Some(get(of(bits))? - share * never - (1.0 - share) * always)
}

fn ready(get: Get) -> Option<f64> {
    Some(2.0 * (get(Second(OTHER))? - get(Second(NEVER))?))
}

fn indirect(get: Get) -> Option<f64> {
    Some(2.0 * beyond(get, HALF)?)
}

fn call(get: Get) -> Option<f64> {
    Some(2.0 * (get(Call(HALF))? - get(Call(NEVER))?))
}

/// Mispredictions per execution of a question on several targets, by its cycles above those of a branch that always has one.
fn share(times: &Times, of: Question) -> Measured {
    times.agreed(|get| {
        let (cost, one) = match of {
            Question::Jumps(_) => (indirect(get)?, get(Jump(NEVER))?),
            _ => (call(get)?, get(Call(NEVER))?),
        };
        (cost > *COST.start()).then_some((get(of)? - one) / cost)
    })
}

/// Cycles above those of the jump that always has one target.
fn beyond(get: Get, bits: u8) -> Option<f64> {
    Some(get(Jump(bits))? - get(Jump(NEVER))?)
}

/// Cycles of nested calls beyond those of calls from one place.
fn extra(times: &Times, places: u64) -> Result<f64, Open> {
    let time = |places| times.get(Nested(places)).ok_or(Open::NotAsked);
    Ok(time(places)? - time(ONE_PLACE)?)
}

/// Passes on what is known of an answer that another needs.
fn needs<T>(answer: Answer, found: Result<T, Open>) -> Result<T, Open> {
    found.map_err(|_| Open::DependsOn { answer })
}

/// Rules out what no core does.
fn within(possible: RangeInclusive<f64>, measured: Measured) -> Measured {
    match measured {
        Ok((found, _)) if !possible.contains(&found) => {
            let (low, high) = possible.into_inner();
            Err(Open::Impossible { found, low, high })
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::times::{Attempt, NewAttempt};
    use tma::self_test::{Rule, TargetHistory};

    fn times(all: &[(Question, f64)]) -> Times {
        let cycles = all.iter().map(|(q, c)| (q.name(), *c)).collect();
        let mut times = Times::default();
        times.add(NewAttempt { attempt: Attempt::default(), cycles }, |_, _| 0.0);
        times
    }

    fn value(measured: Measured) -> Option<f64> {
        measured.ok().map(|(value, _)| value)
    }

    /// By hand: (21 − 10) × 2 = 22, whatever rarer branches take; 2 cycles cannot be one.
    #[test]
    fn a_misprediction_costs_what_a_fair_branch_takes() {
        let of = |half, eighth| {
            let all = [(Branch(NEVER), 10.0), (Branch(HALF), half), (Branch(EIGHTH), eighth)];
            Costs::of(&times(&all)).fair
        };
        assert_eq!((of(21.0, 12.8), of(21.0, 15.0)), (Ok((22.0, None)), Ok((22.0, None))));
        assert!(matches!(of(11.0, 12.8), Err(Open::Impossible { .. })));
        assert_eq!(Costs::of(&Times::default()).fair, Err(Open::NotAsked));
    }

    /// By hand, 24 cycles each: 3 more than 1/8 × 24 are a rate of 1/4; 1/64 cannot be mispredicted half of the times.
    #[test]
    fn biased_branches_are_mispredicted_as_often_as_their_cycles_show() {
        let all = [
            (Branch(NEVER), 10.0),
            (Branch(HALF), 22.0),
            (Branch(EIGHTH), 16.0),
            (Branch(SIXTY_FOURTH), 30.0),
        ];
        let of = |all: &[(Question, f64)]| {
            let times = times(all);
            Costs::of(&times).biased(&times)
        };
        let found = of(&all).unwrap();
        assert_eq!((found.alone(2), found.alone(8)), (Some(0.5), Some(0.25)));
        assert_eq!((found.alone(4), found.alone(64)), (None, None));
        assert_eq!(of(&all[..2]), Err(Open::NotAsked));
        assert_eq!(of(&all[1..]), Err(Open::DependsOn { answer: Answer::Misprediction }));
    }

    /// By hand: (28.5 − 17.5) × 2.
    #[test]
    fn what_a_second_branch_adds_is_the_cost_without_waiting() {
        let all = [(Second(NEVER), 17.5), (Second(OTHER), 28.5)];
        assert_eq!(value(Costs::of(&times(&all)).ready), Some(22.0));
        assert_eq!(Costs::of(&times(&all[..1])).ready, Err(Open::NotAsked));
    }

    /// By hand: ((31 − 15) × 2 − (22 − 10) × 2) ÷ 2 = 4; 9 cycles a load are no time of a load.
    #[test]
    fn a_load_costs_what_a_call_through_two_adds() {
        let of = |call| {
            let calls = [(Call(NEVER), 15.0), (Call(HALF), call)];
            let jumps = [(Jump(NEVER), 10.0), (Jump(HALF), 22.0)];
            let times = times(&[calls, jumps].concat());
            Costs::of(&times).load(&times)
        };
        assert_eq!(of(31.0), Ok((4.0, None)));
        assert!(matches!(of(41.0), Err(Open::Impossible { .. })));
    }

    /// By hand, 24 cycles each: the most frequent target is wrong with 1/4 and 1/8, the last one with
    /// 2 × 1/4 × 3/4 = 3/8 and 2 × 1/8 × 7/8 = 7/32.
    #[test]
    fn the_rule_follows_from_how_often_the_rarer_target_is_mispredicted() {
        let of = |quarter: f64, eighth: f64| {
            let jump = |bits, share: f64| (Jump(bits), 10.0 + 24.0 * share);
            let shares = [(NEVER, 0.0), (HALF, 0.5), (QUARTER, quarter), (EIGHTH, eighth)];
            let times = times(&shares.map(|(bits, share)| jump(bits, share)));
            let costs = Costs::of(&times);
            assert_eq!(value(costs.indirect), Some(24.0));
            costs.targets(&times).unwrap().rule()
        };
        assert_eq!(of(1.0 / 4.0, 1.0 / 8.0), Some(Rule::MostFrequent));
        assert_eq!(of(3.0 / 8.0, 7.0 / 32.0), Some(Rule::Last));
        // One says this, the other that; or neither.
        assert_eq!(of(3.0 / 8.0, 1.0 / 8.0), None);
        assert_eq!(of(5.0 / 16.0, 11.0 / 64.0), None);
        let none = Times::default();
        let why = Open::DependsOn { answer: Answer::IndirectMisprediction };
        assert_eq!(Costs::of(&none).targets(&none), Err(why));
    }

    /// By hand, 20 cycles each: calls in turn that take 18 more are mispredicted nearly always, as where the history of the
    /// predictor has no targets of calls; 1 more, predicted.
    #[test]
    fn calls_in_turn_show_whether_their_targets_are_in_the_history() {
        let of = |in_turn, apart| {
            let calls = [
                (Call(NEVER), 15.0),
                (Call(HALF), 25.0),
                (Question::Calls(InTurn(2)), in_turn),
                (CallsApart, apart),
            ];
            let times = times(&calls);
            let calls = Costs::of(&times).calls(&times).unwrap();
            (TargetHistory::of([calls.in_turn].into_iter()), calls.tells_apart())
        };
        assert_eq!(of(33.0, 16.0), (TargetHistory::Low, Some(true)));
        assert_eq!(of(16.0, 33.0), (TargetHistory::With, Some(false)));
        assert_eq!(of(18.0, 18.0), (TargetHistory::Unknown, None), "between both");
        assert_eq!(Costs::of(&Times::default()).calls(&Times::default()), Err(Open::NotAsked));
    }

    /// By hand, 24 cycles each: 18 more of four at random, 24 more of four in turn; 60 more are no misprediction.
    #[test]
    fn several_targets_are_mispredicted_as_often_as_their_cycles_show() {
        let jumps = [
            (Jump(NEVER), 10.0),
            (Jump(HALF), 22.0),
            (Question::Jumps(Random(4)), 28.0),
            (Question::Jumps(InTurn(4)), 34.0),
            (Question::Jumps(InTurn(8)), 70.0),
        ];
        let times = times(&jumps);
        let found = Costs::of(&times).several(&times).unwrap();
        assert!(found.calls.is_empty());
        assert_eq!(found.jumps.random, [None, Some(0.75), None]);
        assert_eq!(found.jumps.in_turn, [None, Some(1.0), None]);
        assert_eq!(Costs::of(&Times::default()).several(&Times::default()), Err(Open::NotAsked));
    }

    /// By hand, 22 cycles each and 32 returns below the stack: half of them are 352 cycles, 2/5 are 282.
    #[test]
    fn the_rule_of_returns_follows_from_which_calls_cost_more() {
        let all = |alternate: f64, fives: f64| {
            let seconds = [(Second(NEVER), 10.0), (Second(OTHER), 21.0)];
            let nested = [
                (Nested(ONE_PLACE), 300.0),
                (Nested(ALTERNATE), 300.0 + alternate),
                (Nested(FIVES), 300.0 + fives),
            ];
            times(&[&seconds[..], &nested[..]].concat())
        };
        let of = |alternate, fives| {
            let times = all(alternate, fives);
            Costs::of(&times).returns(&times).unwrap().rule()
        };
        assert_eq!(of(352.0, 282.0), Some(Below::Oldest));
        assert_eq!(of(0.0, 282.0), Some(Below::Around));
        assert_eq!(of(10.0, -5.0), Some(Below::History));
        // Between both, and what no rule does.
        assert_eq!((of(105.0, 282.0), of(352.0, 0.0)), (None, None));
        // 352 ÷ 16, 204 ÷ 12.
        let cost = |alternate, fives| {
            let times = all(alternate, fives);
            Costs::of(&times).of_return(&times)
        };
        assert_eq!(cost(352.0, 282.0), Ok((22.0, None)));
        assert_eq!(cost(0.0, 204.0), Ok((17.0, None)));
        assert_eq!(cost(0.0, 0.0), Err(Open::Predicted));
    }
}
