//! Measuring the usual forms, for whoever needs latencies.

use super::catalog::Catalog;
use super::form::{Form as Asked, is_address};
use super::generate::ARENA;
use super::latency::{Connectors, latencies};
use super::measure::Bench;
use super::usual::usual;
use crate::{Status, Values};
use isa::code::{Syntax, assemble};
use isa::latency::{Calibration, Form, Forward, Identity, Input, Output, Value};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};
use tma::Result;

/// How far a calibration is.
#[derive(Debug, Clone)]
pub struct Progress {
    /// The form at hand.
    pub form: String,
    /// Forms done, earlier runs included.
    pub done: usize,
    /// Of so many.
    pub all: usize,
}

/// How it ended.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Calibrated {
    /// Forms that there are latencies of.
    pub forms: usize,
    /// Latencies.
    pub latencies: usize,
    /// Classes of forwarding.
    pub forwarding: usize,
    /// Forms that were tried now and did not reproduce, with the reason.
    pub failed: Vec<String>,
    /// Forms not reached in time, or not before it was called off.
    pub left: usize,
}

/// Measures what `path` does not hold yet of the usual forms and the classes of forwarding, for `limit`
/// at most or until `progress` says no, and keeps it there after each form.
///
/// # Errors
/// The processor has no event table, the sandbox cannot be started, or the file cannot be written.
pub fn calibrate(
    bench: &mut Bench,
    path: &Path,
    limit: Duration,
    mut progress: impl FnMut(&Progress) -> bool,
) -> Result<Calibrated> {
    let start = Instant::now();
    let machine = Identity::of(bench.core.needs_table()?, &bench.core.cpu);
    let mut kept = earlier(path, &machine);
    kept.date = now();
    let all = usual();
    let mut at = Progress { form: String::new(), done: 0, all: all.len() };
    let mut wanted = true;
    let mut known_chains = HashMap::new();
    for pair in &PAIRS {
        at.form = format!("forwarding: {}", pair.forward.name());
        wanted = wanted && start.elapsed() < limit && progress(&at);
        if wanted && !kept.forwarding.contains_key(&pair.forward) {
            let value = forwarding(bench, pair, &mut known_chains)?;
            kept.forwarding.extend(value.map(|value| (pair.forward, value)));
            kept.save(path)?;
        }
    }
    let known: BTreeSet<Form> = kept.values.keys().map(|(form, ..)| *form).collect();
    let mut ended = Calibrated::default();
    let mut connectors = Connectors::default();
    for (done, (name, form)) in all.iter().enumerate() {
        if known.contains(&form.key()) {
            continue;
        }
        (at.form, at.done) = (name.clone(), done);
        wanted = wanted && start.elapsed() < limit && progress(&at);
        if !wanted {
            ended.left += 1;
            continue;
        }
        if let Some(reason) = keep(bench, &mut connectors, *form, &mut kept)? {
            ended.failed.push(format!("{name}: {reason}"));
        }
        kept.save(path)?;
    }
    kept.save(path)?;
    let mut forms: Vec<Form> = kept.values.keys().map(|(form, ..)| *form).collect();
    forms.dedup();
    ended.forms = forms.len();
    ended.latencies = kept.values.len();
    ended.forwarding = kept.forwarding.len();
    Ok(ended)
}

/// What an earlier run has kept of this processor; what cannot be read is measured again.
fn earlier(path: &Path, machine: &Identity) -> Calibration {
    Calibration::load(path)
        .ok()
        .filter(|kept| kept.machine == *machine)
        .unwrap_or_else(|| Calibration { machine: machine.clone(), ..Calibration::default() })
}

/// Keeps a form's latencies: of several operands of one kind, the longest. The reason if some did
/// not reproduce; then nothing is kept, so that the next run tries again.
fn keep(
    bench: &mut Bench,
    connectors: &mut Connectors,
    form: Asked,
    kept: &mut Calibration,
) -> Result<Option<String>> {
    let mut found = Calibration::default();
    for pair in latencies(bench, connectors, form)?.latencies {
        let input = Input::ALL.into_iter().find(|input| input.name() == pair.input);
        let output = Output::ALL.into_iter().find(|output| output.name() == pair.output);
        let (Some(mut input), Some(output)) = (input, output) else { continue };
        // Through memory it is forwarding, which is measured by itself.
        if input == Input::Memory || output == Output::Memory {
            continue;
        }
        // From a mask no connector leads that would tell it from the data.
        if pair.from == MASK_NAME {
            continue;
        }
        // What is only computed with is no access.
        if is_address(form.code) {
            input = Input::Register;
        }
        let (Some(cycles), Some(low), Some(high), Status::Ok) =
            (pair.cycles, pair.low, pair.high, pair.status)
        else {
            return Ok(Some(pair.reason.unwrap_or_else(|| "it was not measured".to_owned())));
        };
        let spread = match pair.least {
            // The range is that of the values, not of the repetitions.
            Some(_) => 0.0,
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
    kept.values.extend(found.values);
    kept.least.extend(found.least);
    kept.back_to_back.extend(found.back_to_back);
    Ok(None)
}

/// As a latency's input the applied mask.
const MASK_NAME: &str = "mask";

/// A store and the load of the same bytes, again and again.
struct Pair {
    forward: Forward,
    text: &'static str,
    /// Whether it is measured as a loop of one pair, else as straight code of many.
    looped: bool,
    /// The arithmetic in it, whose cycles are taken off. It keeps the chain longer than the loop's
    /// jump and the store's port take.
    rest: &'static str,
}

const fn pair(forward: Forward, text: &'static str, looped: bool, rest: &'static str) -> Pair {
    Pair { forward, text, looped, rest }
}

/// `r15` is where the arena begins, `r14` eight bytes before, `rcx` is 1.
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

/// From a store's data register to what the load writes; `None` where it does not come out the same.
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

/// Now, UTC, as RFC 3339 has it.
fn now() -> String {
    let seconds =
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    date(seconds)
}

/// The civil date of seconds since 1970, in the proleptic Gregorian calendar.
fn date(seconds: u64) -> String {
    let (mut days, time) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    // 400 years have 146,097 days.
    let mut year = 1970 + 400 * (days / 146_097);
    days %= 146_097;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // `date -u -d @N`
        assert_eq!(date(0), "1970-01-01T00:00:00Z");
        assert_eq!(date(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(date(1_735_689_599), "2024-12-31T23:59:59Z");
    }

    #[test]
    fn there_are_hundreds_of_usual_forms_and_each_once() {
        if cfg!(not(target_arch = "x86_64")) {
            return;
        }
        let all = usual();
        assert!(all.len() >= 150, "{}", all.len());
        let mut names: Vec<&String> = all.iter().map(|(name, _)| name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
