//! Asks a processor what the harness would otherwise assume of it.
//!
//! | file | concern |
//! |---|---|
//! | `mixes` | unfused single-µop instructions that fill every issue slot |
//! | `questions` | the code of each test |
//! | `times` | runs the tests in the sandbox; cycles of each |
//! | `answers` | what follows from the times |
//! | `kept` | results in the user's cache folder |
//!
//! The test takes a few milliseconds when a core is first used. Nothing in it can fail a measurement:
//! a question without an answer stays open.

mod answers;
mod kept;
pub(crate) mod mixes;
mod questions;
mod times;

use crate::runner::Runner;
use questions::QUESTIONS;
use tma::Core;

/// Commands in which every test is run, until the answers are complete.
const ATTEMPTS: usize = 3;
/// Attempts of all processes after which what is open stays open.
const ENOUGH: u32 = 12;

/// Makes the self-test of the runner's core, unless it was made or its result was kept.
pub fn ensure(runner: &mut Runner, core: &Core) {
    if core.answers().is_some() {
        return;
    }
    let place = core.self_test.folder().and_then(|folder| kept::path(folder, core));
    let mut times = place.as_deref().and_then(|place| kept::load(place, &core.cpu));
    let mut known = times.take().unwrap_or_default();
    // A table of another processor says nothing about this one.
    let stated = core.width().filter(|_| !core.foreign);
    let before = known.attempts;
    for _ in 0..ATTEMPTS {
        if known.attempts >= ENOUGH || answers::are_settled(&known, stated) {
            break;
        }
        known.attempts += 1;
        // A sandbox that cannot be started fails the measurement that needs it, not this.
        let Ok(tried) = times::of(runner, QUESTIONS) else { break };
        if !answers::exceeds(&tried, stated) {
            known.merge(&tried);
        }
    }
    if known.attempts > before
        && let Some(place) = &place
    {
        kept::save(place, &core.cpu, &known);
    }
    core.self_test.answers_or(|| answers::of(&known, stated));
}
