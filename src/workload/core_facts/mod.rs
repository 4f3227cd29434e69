//! Facts of the core that this thread runs on, from the times of generated code and of walks through memory.
//!
//! | file | concern |
//! |---|---|
//! | `kernel` | generated loops, and their core cycles |
//! | `walks` | latency of loads by the memory they are in |
//! | `rates` | loads, stores and forwarded pairs a cycle |
//! | `code` | speed of straight code by its length |
//! | `window` | two cache misses with instructions between them |
//! | `curve` | steps and plateaus of times |
//! | `times` | the times of repetitions, and whether they agree |
//! | `caches`, `rules` | what follows from the times |
//!
//! `measure` takes the times several times over; `rules` decides: contention only slows, so that the least times of
//! each half of the repetitions count; where the halves do not agree a fact is open. No rule knows a processor.

mod caches;
mod code;
mod curve;
mod kernel;
mod rates;
mod rules;
mod times;
mod walks;
mod window;

pub use curve::Curve;
pub use rules::facts;
pub use times::{Seen, Times};

use kernel::Clock;
use tma::Result;
use tma::measured::{Fact, Facts, Open};

/// How often everything is measured: until both halves of the repetitions agree on all, at least and at most.
const REPEATS: (usize, usize) = (4, 10);

/// Measures, and reports each repetition with its number and that of all; `nops` as in [`facts`].
///
/// # Errors
/// The system does not run generated code, or gives no memory at all.
pub fn measure(nops: Option<bool>, mut progress: impl FnMut(usize, usize)) -> Result<Seen> {
    let clock = Clock::new()?;
    let mut seen = Seen::default();
    let mut memory = walks::Memory::new();
    for repeat in 0..REPEATS.1 {
        if repeat >= REPEATS.0 && repeat % 2 == 0 && !is_contradicted(&facts(&seen, nops)) {
            break;
        }
        progress(repeat, REPEATS.1);
        let mut times = Times { rates: rates::measure(&clock)?, ..Times::default() };
        (times.short_code, times.long_code) = code::measure(&clock)?;
        match &mut memory {
            Ok(memory) => {
                times.walk = memory.walk(&clock)?;
                times.flushed = memory.flushed(&clock)?;
                times.reach = memory.reach(&clock)?;
                times.windows = window::measure(&clock, memory)?;
            }
            Err(_) => seen.no_memory = Some(Open::NoMemory),
        }
        seen.repeats.push(times);
    }
    seen.walked = memory.as_ref().map_or(0, walks::Memory::bytes);
    Ok(seen)
}

/// Whether repetitions contradict each other in anything.
fn is_contradicted(facts: &Facts) -> bool {
    facts.0.values().any(|fact| matches!(fact, Fact::Open { open: Open::Disagree { .. } }))
}
