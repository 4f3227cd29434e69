//! Calibration: measures the latencies of common forms on this machine.

use super::calibration_set::calibration_set;
use super::catalog::Catalog;
use super::form::{Form as Asked, is_address};
use super::generator::ARENA;
use super::latency::{Connectors, latencies};
use super::measure::Bench;
use crate::{Status, Values};
use isa::code::{Syntax, assemble};
use isa::latency::{Calibration, Form, Forward, Identity, Input, Output, Value};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};
use tma::Result;

/// Progress of a calibration.
#[derive(Debug, Clone)]
pub struct CalibrationProgress {
    /// The current form.
    pub form: String,
    /// Forms done, earlier runs included.
    pub done: usize,
    /// All forms.
    pub all: usize,
}

/// Result of a calibration.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct CalibrationSummary {
    /// Forms with latencies.
    pub forms: usize,
    /// Latencies.
    pub latencies: usize,
    /// Classes of forwarding.
    pub forwarding: usize,
    /// Forms that did not reproduce in this run, with the reason.
    pub failed: Vec<String>,
    /// Forms not reached within the time limit or before cancellation.
    pub left: usize,
}

/// Measures the common forms and classes of store forwarding that are not in `path` yet and saves after
/// each, until `limit` has passed or `progress` returns `false`.
///
/// # Errors
/// The sandbox cannot be started, or the file cannot be written.
pub fn calibrate(
    bench: &mut Bench,
    path: &Path,
    limit: Duration,
    mut progress: impl FnMut(&CalibrationProgress) -> bool,
) -> Result<CalibrationSummary> {
    let start = Instant::now();
    let machine = Identity::of(&bench.core);
    let mut stored = earlier(path, &machine);
    stored.date = tma::text::now();
    let all = calibration_set();
    let mut at = CalibrationProgress { form: String::new(), done: 0, all: all.len() };
    let mut go_on = true;
    let mut known_chains = HashMap::new();
    for pair in &PAIRS {
        at.form = format!("forwarding: {}", pair.forward.name());
        go_on = go_on && start.elapsed() < limit && progress(&at);
        if go_on && !stored.forwarding.contains_key(&pair.forward) {
            let value = forwarding(bench, pair, &mut known_chains)?;
            stored.forwarding.extend(value.map(|value| (pair.forward, value)));
            stored.save(path)?;
        }
    }
    let known: BTreeSet<Form> = stored.values.keys().map(|(form, ..)| *form).collect();
    let mut summary = CalibrationSummary::default();
    let mut connectors = Connectors::default();
    for (done, (name, form)) in all.iter().enumerate() {
        if known.contains(&form.key()) {
            continue;
        }
        (at.form, at.done) = (name.clone(), done);
        go_on = go_on && start.elapsed() < limit && progress(&at);
        if !go_on {
            summary.left += 1;
            continue;
        }
        if let Some(reason) = store_latencies(bench, &mut connectors, *form, &mut stored)? {
            summary.failed.push(format!("{name}: {reason}"));
        }
        stored.save(path)?;
    }
    stored.save(path)?;
    let mut forms: Vec<Form> = stored.values.keys().map(|(form, ..)| *form).collect();
    forms.dedup();
    summary.forms = forms.len();
    summary.latencies = stored.values.len();
    summary.forwarding = stored.forwarding.len();
    Ok(summary)
}

/// The calibration of an earlier run on this processor; an unreadable one is measured again.
fn earlier(path: &Path, machine: &Identity) -> Calibration {
    Calibration::load(path)
        .ok()
        .filter(|stored| stored.machine == *machine)
        .unwrap_or_else(|| Calibration { machine: machine.clone(), ..Calibration::default() })
}

/// Stores a form's latencies: of several operands of one kind, the longest. Returns the reason if some
/// did not reproduce; then nothing is stored, so that the next run tries again.
fn store_latencies(
    bench: &mut Bench,
    connectors: &mut Connectors,
    form: Asked,
    stored: &mut Calibration,
) -> Result<Option<String>> {
    let mut found = Calibration::default();
    for pair in latencies(bench, connectors, form)?.latencies {
        let input = Input::ALL.into_iter().find(|input| input.name() == pair.input);
        let output = Output::ALL.into_iter().find(|output| output.name() == pair.output);
        let (Some(mut input), Some(output)) = (input, output) else { continue };
        // Store forwarding is measured separately.
        if input == Input::Memory || output == Output::Memory {
            continue;
        }
        // No chain separates the latency from a mask from that of the data.
        if pair.from == MASK_NAME {
            continue;
        }
        // `lea` does not access memory: its address is register input.
        if is_address(form.code) {
            input = Input::Register;
        }
        let (Some(cycles), Some(low), Some(high), Status::Ok) =
            (pair.cycles.or(pair.share), pair.low, pair.high, pair.status)
        else {
            return Ok(Some(pair.reason.unwrap_or_else(|| "not measured".to_owned())));
        };
        let spread = match pair.least {
            // The range is over operand values, not over repetitions.
            Some(_) => 0.0,
            // It is over how the round trip may divide.
            None if pair.share.is_some() => 0.0,
            None => (high - low).max(0.0) / 2.0,
        };
        let key = (form.key(), input, output);
        let value = Value { cycles: cycles.max(0.0), spread };
        let there = *found.values.entry(key).or_insert(value);
        if let Some(least) = pair.least {
            let known = found.least.get(&key).copied().unwrap_or(least);
            found.least.insert(key, known.min(least).max(0.0));
        }
        if cycles >= there.cycles {
            found.values.insert(key, value);
            if (input, output) == (Input::Register, Output::Register) {
                found.back_to_back.remove(&key.0);
                found.back_to_back.extend(pair.chained.map(|chained| (key.0, chained.max(0.0))));
            }
        }
    }
    stored.values.extend(found.values);
    stored.least.extend(found.least);
    stored.back_to_back.extend(found.back_to_back);
    Ok(None)
}

/// Name of the applied mask as an input.
const MASK_NAME: &str = "mask";

/// A dependency chain through a store and a load of the same bytes.
struct Pair {
    forward: Forward,
    text: &'static str,
    /// Whether it is measured in a loop of one pair; otherwise unrolled.
    looped: bool,
    /// The arithmetic in the chain, whose latency is subtracted. It keeps the chain above the bounds of the
    /// loop's branch and the store port.
    rest: &'static str,
}

const fn pair(forward: Forward, text: &'static str, looped: bool, rest: &'static str) -> Pair {
    Pair { forward, text, looped, rest }
}

/// `r15` is the start of the arena, `r14` is 8 less, `rcx` is 1.
const PAIRS: [Pair; 8] = [
    pair(Forward::Stack, "mov [rsp+64], rax; mov rax, [rsp+64]; imul rax, rax", true, MULTIPLY),
    pair(Forward::Slot, "mov [r15+64], rax; mov rax, [r15+64]; imul rax, rax", true, MULTIPLY),
    pair(Forward::Update, "add [r15+64], rbx", true, "add rax, rbx"),
    pair(
        Forward::Few,
        "mov [r14+rcx*8+64], rax; mov rax, [r14+rcx*8+64]; imul rax, rax",
        true,
        MULTIPLY,
    ),
    pair(
        Forward::Many,
        "mov [r14+rcx*8+64], rax; mov rax, [r14+rcx*8+64]; imul rax, rax",
        false,
        MULTIPLY,
    ),
    pair(Forward::Xmm, "mulps xmm1, [r15+64]; movups [r15+64], xmm1", true, "mulps xmm1, xmm2"),
    pair(
        Forward::Ymm,
        "vmulps ymm1, ymm1, [r15+64]; vmovups [r15+64], ymm1",
        true,
        "vmulps ymm1, ymm1, ymm2",
    ),
    pair(
        Forward::Blocked,
        "mov [r15+64], eax; mov [r15+68], eax; mov rax, [r15+64]; imul rax, rax",
        true,
        MULTIPLY,
    ),
];

const MULTIPLY: &str = "imul rax, rax";

/// Latency from a store's data register to the load's result; `None` if it does not reproduce.
fn forwarding(
    bench: &mut Bench,
    pair: &Pair,
    known: &mut HashMap<&'static str, (f64, f64, f64)>,
) -> Result<Option<Value>> {
    const TRIES: usize = 3;
    let Pair { forward, text, looped, rest } = *pair;
    if forward == Forward::Ymm && Catalog::all().list("VADDPD_VR256*", false).is_empty() {
        return Ok(None);
    }
    let mut values = Values::default();
    (values.registers[14], values.registers[15], values.registers[1]) = (ARENA - 8, ARENA, 1);
    let mut measured = |text: &str, looped: bool| -> Result<Option<(f64, f64, f64)>> {
        for _ in 0..TRIES {
            let measurement = bench.block(&assemble(text, Syntax::Intel)?, &values)?;
            let form = measurement.forms.map(|f| if looped { f.looped } else { f.unrolled });
            let found = form.and_then(|f| f.trusted().zip(f.low.zip(f.high)));
            if let (Some((cycles, (low, high))), Status::Ok) = (found, measurement.status) {
                return Ok(Some((cycles, low, high)));
            }
        }
        Ok(None)
    };
    let Some((cycles, low, high)) = measured(text, looped)? else { return Ok(None) };
    let off = match known.get(rest) {
        Some(off) => *off,
        None => {
            let Some(off) = measured(rest, false)? else { return Ok(None) };
            known.insert(rest, off);
            off
        }
    };
    let spread = (high - low + off.2 - off.1).max(0.0) / 2.0;
    Ok(Some(Value { cycles: (cycles - off.0).max(0.0), spread }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calibration_set_has_over_150_forms_without_duplicates() {
        if cfg!(not(target_arch = "x86_64")) {
            return;
        }
        let all = calibration_set();
        assert!(all.len() >= 150, "{}", all.len());
        let mut names: Vec<&String> = all.iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
