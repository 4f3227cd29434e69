//! Facts of this thread's core, from the times of generated code and of walks through memory.
//!
//! | file | concern |
//! |---|---|
//! | `kernel` | generated loops, and their core cycles: rates, speed of straight code |
//! | `walks` | latency of loads by the size of the memory; two cache misses with instructions between them |
//! | `times` | times of repetitions, and their agreement; steps and plateaus |
//! | `caches`, `rules` | facts from times |
//!
//! `measure` repeats all times; `rules` decides. Contention only adds time, so the least times of
//! each half of the repetitions count; if the halves disagree, a fact is open. No rule knows a
//! processor.

mod caches;
mod kernel;
mod rules;
mod times;
mod walks;

use kernel::Clock;
use std::time::{Duration, Instant};
use tma::Result;
use tma::measured::{Fact, Facts, Open};

pub use rules::facts;
pub use times::{Curve, Repetitions, Times};

/// Fewest and most repetitions, until both halves agree on all facts.
const REPEATS: (usize, usize) = (4, 10);
/// Time after which only the fewest are made: where others use the memory, one takes half a minute.
const PATIENCE: Duration = Duration::from_secs(60);

/// Measures all times, and reports each repetition with its number and the total; `nops` as in
/// [`facts`].
///
/// # Errors
/// Generated code cannot be run, or there is no memory at all.
pub fn measure(nops: Option<bool>, mut progress: impl FnMut(usize, usize)) -> Result<Repetitions> {
    let clock = Clock::new()?;
    let mut repetitions = Repetitions::default();
    let mut memory = walks::Memory::new();
    let begun = Instant::now();
    for repeat in 0..REPEATS.1 {
        let is_enough =
            || begun.elapsed() > PATIENCE || !is_contradicted(&facts(&repetitions, nops));
        if repeat >= REPEATS.0 && repeat % 2 == 0 && is_enough() {
            break;
        }
        progress(repeat, REPEATS.1);
        let mut times = Times { rates: kernel::rates(&clock)?, ..Times::default() };
        (times.short_code, times.long_code) = kernel::code(&clock)?;
        match &mut memory {
            Ok(memory) => {
                times.walk = memory.walk(&clock)?;
                times.flushed = memory.flushed(&clock)?;
                times.reach = memory.reach(&clock)?;
                times.windows = walks::windows(&clock, memory)?;
            }
            Err(_) => repetitions.no_memory = Some(Open::NoMemory),
        }
        repetitions.repeats.push(times);
    }
    repetitions.walked = memory.as_ref().map_or(0, walks::Memory::bytes);
    Ok(repetitions)
}

/// Whether repetitions disagree on any fact.
fn is_contradicted(facts: &Facts) -> bool {
    facts.0.values().any(|fact| matches!(fact, Fact::Open { open: Open::Disagree { .. } }))
}
