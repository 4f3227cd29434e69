//! Asks a processor what the harness would otherwise assume of it.
//!
//! | file | concern |
//! |---|---|
//! | `mixes` | unfused single-µop instructions that fill every issue slot |
//! | `questions`, `random` | the code of each test |
//! | `times` | runs the tests in the sandbox; cycles of each |
//! | `answers` | what follows from the times |
//! | `mispredicted` | the same of random branches and jumps |
//! | `kept` | results in the user's cache folder |
//!
//! The test takes a few milliseconds when a core is first used. Nothing in it can fail a measurement:
//! a question without an answer stays open.

mod answers;
mod kept;
mod mispredicted;
pub(crate) mod mixes;
mod questions;
mod random;
mod times;

use crate::runner::Runner;
use questions::QUESTIONS;
use std::time::{Duration, Instant};
use times::Times;
use tma::Core;

/// Attempts without a pause, which settle everything on a core that nobody else uses.
const ATTEMPTS: usize = 3;
/// Between later ones: what used the core may be gone.
const PAUSE: Duration = Duration::from_millis(20);

/// Makes the self-test of the runner's core, unless it was made or its result was kept, for at most
/// `patience`. Whether it has answers: a core that others used all the time has none yet.
pub fn ensure(runner: &mut Runner, core: &Core, patience: Duration) -> bool {
    if core.answers().is_some() {
        return true;
    }
    let place = core.self_test.folder().and_then(|folder| kept::path(folder, core));
    let mut times = place.as_deref().and_then(|place| kept::load(place, &core.cpu));
    let mut known = times.take().unwrap_or_default();
    // A table of another processor says nothing about this one.
    let stated = core.width().filter(|_| !core.foreign);
    let (before, start) = (known.attempts, Instant::now());
    let mut rates = Vec::new();
    // A neighbour may look like a limit, so the next process asks again.
    let mut is_limit = false;
    let settled = |known: &Times| {
        let is_contradicted = || !core.contradicted_by(&answers::of(known, stated)).is_empty();
        // Contention looks like another core than the table's: only what repeats overrules it.
        let agrees =
            || stated.is_none() || !is_contradicted() || known.attempts >= answers::REPEATED as u32;
        answers::are_settled(known, stated) && agrees()
    };
    while !is_limit && !settled(&known) {
        if rates.len() >= ATTEMPTS {
            if start.elapsed() + PAUSE > patience {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        known.attempts = known.attempts.saturating_add(1);
        // A sandbox that cannot be started fails the measurement that needs it, not this.
        let Ok(tried) = times::of(runner, QUESTIONS) else { break };
        rates.push(answers::rate(&tried));
        if !answers::exceeds(&tried, stated) {
            known.merge(&tried);
        }
        is_limit = answers::is_own_limit(&rates, stated);
    }
    if known.attempts > before
        && let Some(place) = &place
    {
        kept::save(place, &core.cpu, &known);
    }
    if !is_limit && !settled(&known) {
        return false;
    }
    // The best that was seen, also if the table states more.
    let stated = stated.filter(|_| !is_limit);
    core.self_test.answers_or(|| answers::of(&known, stated));
    true
}
