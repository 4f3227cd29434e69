//! Tests properties of a processor that the harness would otherwise assume.
//!
//! | file | concern |
//! |---|---|
//! | `questions`, `random` | the code of each test |
//! | `run` | runs the tests in the sandbox once |
//! | `times` | cycles of all attempts, and their agreement |
//! | `answers` | answers from the times: each without the others |
//! | `width` | the width, for which narrow values need more evidence |
//! | `mispredicted` | costs and shares of random branches and jumps |
//! | `results_file` | results in the user's cache folder |
//!
//! The test takes a fraction of a second when a core is first used, once in a process. Nothing in it can fail a
//! measurement: a question without an answer stays open, with its reason.

mod answers;
mod mispredicted;
mod questions;
mod random;
#[cfg(test)]
mod replayed;
mod results_file;
mod run;
mod times;
mod width;

use crate::runner::Runner;
use pmu::machine::{Root, Ticks};
use questions::QUESTIONS;
use std::path::Path;
use std::time::{Duration, Instant};
use times::Times;
use tma::self_test::{Answers, Open, Seen};
use tma::{Core, Result};
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
    results_file::given(file).map(|_| ())
}

fn ask(runner: &mut Runner, core: &Core) -> Answers {
    // A table of another processor does not apply to this one.
    let stated = core.stated_width().filter(|_| !core.foreign);
    if let Some(file) = core.self_test.given() {
        let times = results_file::given(file).unwrap_or_default();
        return answers::of(&times, Asked { stated, cpus: 0 });
    }
    let asked = Asked { stated, cpus: runner.cpus().min(CPUS) };
    let place = core.self_test.folder().and_then(|folder| results_file::path(folder, core));
    let loaded = place.as_deref().and_then(|place| results_file::load(place, core));
    let mut times = loaded.unwrap_or_default();
    let save = |times: &Times| {
        if let Some(place) = &place {
            results_file::save(place, core, times);
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
        let Ok(new) = run::once(runner, QUESTIONS) else { break };
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
