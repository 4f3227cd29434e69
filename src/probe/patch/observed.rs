//! Planned observers as trampolines and jumps, and why a file has none.

use super::unprobed::Unprobed;
use super::written::{Code, Written};
use crate::emit::{emit_observer, most};
use crate::facts::Function;
use crate::plan::{NoPlace, Observation, Request};

/// Why a file was not observed: `refused` in a process, or never patched.
pub fn refusal(refused: &[Unprobed], is_patched: bool) -> Option<Unprobed> {
    refused.first().cloned().or((!is_patched).then_some(Unprobed::NotMapped))
}

/// Most bytes of the trampolines of a function whose requests have so many parts in all.
pub fn most_of(facts: &Function, parts: usize) -> u64 {
    let instructions: usize = facts.blocks.iter().map(|b| b.instructions.len()).sum();
    // An instruction may be copied for its own block and for the one before.
    most(parts, 2 * instructions)
}

/// Encodes the observers of a plan, and refuses in it those that cannot be encoded. `request` gives a
/// request by its number in the plan, with its number in records.
pub fn write_observers(
    code: &Code,
    facts: &Function,
    plan: &mut Observation,
    written: &mut Written,
    request: &dyn Fn(usize) -> (Request, u32),
) {
    for observer in std::mem::take(&mut plan.observers) {
        let own: Vec<(Request, u32)> =
            observer.requests.iter().map(|number| request(*number)).collect();
        let bytes = &facts.bytes[(observer.at - facts.range.start) as usize..];
        let to = written.place(code, observer.trampoline);
        match emit_observer(&observer, bytes, code.bias, &own, code.shared, to) {
            Ok(patch) => {
                written.add(code, observer.trampoline, observer.at, patch);
                plan.observers.push(observer);
            }
            Err(why) => {
                let why = NoPlace::from(why);
                plan.refused.extend(observer.requests.iter().map(|n| (*n, why.clone())));
            }
        }
    }
}
