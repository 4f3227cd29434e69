//! Tests properties of a processor that the harness would otherwise assume.
//!
//! | file | concern |
//! |---|---|
//! | `questions`, `random` | the code of each test |
//! | `times` | cycles of all attempts, and their agreement; results in the user's cache folder |
//! | `answers` | answers from the times: each without the others |
//! | `width` | the width, for which narrow values need more evidence |
//! | `mispredicted` | costs and shares of random branches and jumps |
//!
//! This file runs the tests in the sandbox once and takes the cycles of each on the clock of a chain of additions,
//! with signs of a shared core.
//!
//! The test takes a fraction of a second when a core is first used, once in a process. Nothing in it can fail a
//! measurement: a question without an answer stays open, with its reason.

mod answers;
mod mispredicted;
mod questions;
mod random;
#[cfg(test)]
mod replayed;
mod times;
mod width;

use crate::clock::{Calibration, TscClock};
use crate::harness::emitter::Emitter;
use crate::runner::{BLOCK_CODE, Runner, Segment};
use crate::sandbox::{Ended, layout as at};
use crate::stats::{mean, median};
use pmu::machine::{Root, Ticks};
use questions::QUESTIONS;
use questions::Question::{self, Mix};
use std::path::Path;
use std::time::{Duration, Instant};
use times::{Attempt, NewAttempt, Times};
use tma::self_test::{Answers, Open, Seen, Signs};
use tma::{Core, Error, Result};
use width::Asked;

/// Minimum attempts of a process, where nothing is known, and maximum.
const LEAST: u32 = 4;
const MOST: u32 = 16;
/// Attempts of a process where former ones left questions open.
const LATER: u32 = 3;
/// Attempts at least where it is made again.
const AGAIN: u32 = 8;
/// Most attempts of all processes while fewer than one in [`SELDOM`] reached the best rate: under contention, few
/// attempts, perhaps none, show the core's full rate.
const MOST_IF_SELDOM: u32 = 64;
const SELDOM: u32 = 8;
/// Processors to test on.
const CPUS: usize = 4;
/// Attempts without a pause; later pauses let contention end.
const QUICK: u32 = 8;
const PAUSE: Duration = Duration::from_millis(20);
/// A share of time that the hypervisor took is known after this long: it is counted in steps of 10 ms.
const NOTICEABLE: Duration = Duration::from_millis(300);

/// Tests of a command: each has a long and a short run, and the clock has its segments.
const TOGETHER: usize = 12;
/// Cycles between the long and the short run: the counter of some virtual machines advances 40 at
/// once.
const CYCLES: usize = 2400;
/// Iterations of the short run.
const SHORT: u32 = 2;
/// Rounds; the first ones warm up.
const ROUNDS: usize = 32;
const WARM: usize = 2;
/// Rounds of a sequence that must be learnt; the first half teaches. Zen 4 learns 32,768 outcomes in 8 to 16 repeats.
const LEARNING: usize = 12;
/// Iterations of a command of learnt tests: it ends long before the watchdog.
const AT_ONCE: u32 = 1 << 19;
/// The clock's segments that are run: both lengths of both chains.
const CHAINS: [usize; 4] = [0, 1, 2, 3];

/// Runs the self-test of the runner's core, unless this process did or its result was stored. Open questions stay
/// open for this process.
pub fn ensure(runner: &mut Runner, core: &Core) {
    core.self_test.answers_or(|| ask(runner, core));
}

/// Whether a file has results of a self-test, of whatever processor.
///
/// # Errors
/// It has not, and why.
pub fn check(file: &Path) -> Result<()> {
    times::given(file).map(|_| ())
}

fn ask(runner: &mut Runner, core: &Core) -> Answers {
    // A table of another processor does not apply to this one.
    let stated = core.stated_width().filter(|_| !core.foreign);
    if let Some(file) = core.self_test.given() {
        let times = times::given(file).unwrap_or_default();
        return answers::of(&times, Asked { stated, cpus: 0 });
    }
    let asked = Asked { stated, cpus: runner.cpus().min(CPUS) };
    let place = core.self_test.folder().and_then(|folder| times::path(folder, core));
    let loaded = place.as_deref().and_then(|place| times::load(place, core));
    let mut times = loaded.unwrap_or_default();
    let save = |times: &Times| {
        if let Some(place) = &place {
            times::save(place, core, times);
        }
    };
    let is_again = core.self_test.is_made_again();
    let least = if is_again { AGAIN } else { 0 };
    let most = if times.made >= MOST && !is_again { LATER } else { MOST };
    let (start, before, home) = (Instant::now(), Ticks::read(&Root::system()), runner.cpu());
    let (mut tries, mut added) = (0, 0);
    while tries < most && (tries < least || !is_settled(core, &times, asked)) {
        if tries >= QUICK {
            std::thread::sleep(PAUSE);
        }
        tries += 1;
        core.self_test.show(Some(tries));
        // A sandbox that cannot be started fails the measurement that needs it, not this.
        let Ok(new) = once(runner, QUESTIONS) else { break };
        if let Some(new) = new {
            times.add(new, |times, attempt| width::rate(times, attempt).unwrap_or(0.0));
            added += 1;
            // A process that ends early leaves what it found.
            save(&times);
        }
        if runner.next_cpu().is_err() {
            break;
        }
    }
    if tries > 0 {
        core.self_test.show(None);
    }
    for _ in 0..runner.cpus() {
        if runner.cpu() == home || runner.next_cpu().is_err() {
            break;
        }
    }
    if added > 0 {
        let now = Ticks::read(&Root::system()).filter(|_| start.elapsed() >= NOTICEABLE);
        let load = now.zip(before).and_then(|(now, before)| now.since(&before));
        times.note_stolen(added, load.map(|load| load.stolen));
        save(&times);
    }
    answers::of(&times, asked)
}

/// Whether nothing is gained by another attempt.
fn is_settled(core: &Core, times: &Times, asked: Asked) -> bool {
    if times.made < LEAST || times.attempts.is_empty() {
        return false;
    }
    // Without a table, few attempts may all have been contended.
    if asked.stated.is_none() && times.made < MOST {
        return false;
    }
    let answers = answers::of(times, asked);
    if times.made < MOST && answers.seen.is_none_or(|seen| seen.best < width::OVERRULE) {
        return false;
    }
    let is_seldom = |seen: &Seen| SELDOM * seen.best < seen.attempts;
    if times.made < MOST_IF_SELDOM && answers.seen.as_ref().is_some_and(is_seldom) {
        return false;
    }
    // Another core than the table's needs evidence that repeats.
    if times.made < MOST && !core.contradicted_by(&answers).is_empty() {
        return false;
    }
    answers.open.values().all(|why| match why {
        Open::DependsOn { .. } => true,
        // More attempts do not change these, once there were several.
        Open::NotAsked | Open::NoRule | Open::Predicted | Open::Impossible { .. } => {
            times.made >= MOST
        }
        Open::Contended(_)
        | Open::Disagree { .. }
        | Open::Exceeds { .. }
        | Open::Narrower { .. } => false,
    })
}

/// Runs all tests once; `None` where the clock's two chains disagree.
///
/// # Errors
/// The sandbox cannot be started, or the tests did not run in it.
pub fn once(runner: &mut Runner, questions: &[Question]) -> Result<Option<NewAttempt>> {
    let before = runner.worker()?.switches();
    let mut new = NewAttempt::default();
    let mut spreads = Vec::new();
    // Tests of learnt branches run in commands of their own, undisturbed by others.
    let kinds = questions.chunk_by(|a, b| a.learnt().is_none() && b.learnt().is_none());
    for some in kinds.flat_map(|kind| kind.chunks(TOGETHER)) {
        let Some(all) = command(runner, some)? else { return Ok(None) };
        for found in all {
            if matches!(found.question, Mix(_)) {
                spreads.push(found.spread);
            }
            if found.cycles.is_finite() && found.cycles > 0.0 {
                new.cycles.insert(found.question.name(), found.cycles);
            }
        }
    }
    let switches =
        runner.worker()?.switches().zip(before).map(|(now, then)| now.saturating_sub(then));
    // The smallest spread of the mixes: contention disturbs all of them.
    let spread = spreads.into_iter().reduce(f64::min).filter(|spread| spread.is_finite());
    let cpu = runner.cpu().and_then(|cpu| u32::try_from(cpu).ok());
    new.attempt = Attempt { cpu, signs: Signs { switches, stolen: None, spread }, stands_for: 1 };
    Ok(Some(new))
}

/// Cycles of a test by one command.
struct TestTime {
    question: Question,
    /// Cycles of an iteration.
    cycles: f64,
    /// Median of the rounds above the mean of the faster half, as a share.
    spread: f64,
}

fn command(runner: &mut Runner, questions: &[Question]) -> Result<Option<Vec<TestTime>>> {
    let mut segments = runner.clock_segments().to_vec();
    let clock = segments.len();
    let mut start = BLOCK_CODE;
    let mut repeats = Vec::new();
    for question in questions {
        let mut code = Emitter::at(start);
        question.segment(&mut code);
        let entry = start;
        let bytes = code.into_bytes();
        start = (start + bytes.len()).next_multiple_of(64) + 64;
        runner.worker()?.write(entry, &bytes);
        let usual = CYCLES.div_ceil(question.about()).max(2) as u32;
        let between = question.learnt().unwrap_or(usual);
        segments.push(Segment { entry, repeat: SHORT + between });
        segments.push(Segment { entry, repeat: SHORT });
        repeats.push(f64::from(between));
    }
    let round: Vec<usize> = CHAINS.into_iter().chain(clock..segments.len()).collect();
    let (rounds, at_once, warm) = match questions.iter().find_map(|question| question.learnt()) {
        Some(each) => (LEARNING, (AT_ONCE / each).max(1) as usize, LEARNING / 2),
        None => (ROUNDS.min(at::SCHEDULE_MAX / round.len()), ROUNDS, WARM),
    };
    let mut all = Vec::with_capacity(rounds * round.len());
    while all.len() < rounds * round.len() {
        let left = rounds - all.len() / round.len();
        let plan: Vec<(usize, u16)> = (0..at_once.min(left))
            .flat_map(|_| round.iter())
            .map(|segment| (*segment, 1 + (runner.random() % 100) as u16))
            .collect();
        let (ended, ticks) = runner.run(&segments, &plan)?;
        if ended != Ended::Done || ticks.len() != plan.len() {
            runner.discard();
            return Err(Error::failed("the self-test did not run in the sandbox"));
        }
        all.extend(ticks);
    }
    let own = |place: usize| -> Vec<f64> {
        let rounds = all.chunks_exact(round.len()).skip(warm);
        rounds.map(|round| f64::from(round[place])).collect()
    };
    let ticks = |place: usize| lower_half_mean(own(place));
    let chains = Calibration {
        add: (ticks(0), ticks(1)),
        multiply: Some((ticks(2), ticks(3))),
        ..Calibration::default()
    };
    // Two, so that the multiply chain is compared.
    let Ok(ratio) = TscClock::cycles_per_tick(&[chains; 2]) else { return Ok(None) };
    let found = |(i, question): (usize, &Question)| {
        let places = [CHAINS.len() + 2 * i, CHAINS.len() + 2 * i + 1];
        // The fast rounds of a random test would be those with fewer mispredictions.
        let [long, short] = match question.is_random() {
            true => places.map(|place| median(&own(place))),
            false => places.map(ticks),
        };
        let cycles = (long - short) * ratio / repeats[i];
        let spread = median(&own(places[0])) / ticks(places[0]) - 1.0;
        TestTime { question: *question, cycles, spread }
    };
    Ok(Some(questions.iter().enumerate().map(found).collect()))
}

/// The mean of the lower half of `ticks`: contention only slows, and a mean of several is finer than the counter's
/// step.
fn lower_half_mean(mut ticks: Vec<f64>) -> f64 {
    ticks.sort_by(f64::total_cmp);
    let half = &ticks[..ticks.len().div_ceil(2)];
    mean(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_rounds_are_left_out_and_steps_of_the_counter_averaged() {
        assert_eq!(
            lower_half_mean(vec![1000.0, 1026.0, 9000.0, 1000.0, 1026.0, 2000.0]),
            3026.0 / 3.0
        );
    }
}
