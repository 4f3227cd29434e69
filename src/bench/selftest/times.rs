//! Times of all attempts at the tests and their agreement, stored in the user's cache folder for the next process
//! on the same processor.

use super::questions::Question;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tma::cpuid::Fingerprint;
use tma::files::{keep, read};
use tma::self_test::{Open, Signs};
use tma::{Core, Cpu, Error, Result};

/// Most attempts stored: the fastest.
const MAX_ATTEMPTS: usize = 32;
/// Times this close are the same.
pub const SAME: f64 = 0.02;
/// Greatest spread of the middle half of the attempts, as a share of their median.
const AGREE: f64 = 0.2;
/// Minimum attempts that can disagree.
const SEVERAL: usize = 4;

/// Version of the tests: results of others are not comparable.
const VERSION: u32 = 11;
/// The first version whose times can be taken from a file that is named.
const OLDEST: u32 = 5;
/// Size limit in bytes, far above that of any result.
const MAX_BYTES: u64 = 1 << 17;

/// Where an attempt was made, and what disturbed it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Attempt {
    /// The processor; unknown of merged ones.
    pub cpu: Option<u32>,
    /// Signs that the core was shared.
    pub signs: Signs,
    /// Number of attempts it is the fastest of: files of former versions have only that one.
    pub stands_for: u32,
}

/// One attempt, just made.
#[derive(Debug, Clone, Default)]
pub struct NewAttempt {
    /// Where and how.
    pub attempt: Attempt,
    /// Cycles by the test's name.
    pub cycles: BTreeMap<String, f64>,
}

/// All attempts.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Times {
    /// Attempts ever made, including those no longer stored.
    pub made: u32,
    /// The stored attempts.
    pub attempts: Vec<Attempt>,
    /// By the test's name, of each attempt.
    cycles: BTreeMap<String, Vec<Option<f64>>>,
}

/// As the file of results has them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Stored {
    attempts: u32,
    #[serde(default)]
    cpus: Vec<Option<u32>>,
    #[serde(default)]
    switches: Vec<Option<u64>>,
    #[serde(default)]
    stolen: Vec<Option<f64>>,
    #[serde(default)]
    spread: Vec<Option<f64>>,
    cycles: BTreeMap<String, Column>,
}

/// The cycles of a test.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum Column {
    /// The least of all attempts: version 5.
    Least(f64),
    /// A time for each attempt.
    Each(Vec<Option<f64>>),
}

/// A number and its standard error, where several attempts show one.
pub type Measured = std::result::Result<(f64, Option<f64>), Open>;

impl Times {
    /// Adds an attempt; the slowest by `rank` makes room.
    pub fn add(&mut self, new: NewAttempt, rank: impl Fn(&Self, usize) -> f64) {
        let before = self.attempts.len();
        self.made = self.made.saturating_add(1);
        self.attempts.push(new.attempt);
        for (name, cycles) in new.cycles {
            let column = self.cycles.entry(name).or_default();
            column.resize(before, None);
            column.push(Some(cycles));
        }
        self.cycles.values_mut().for_each(|column| column.resize(before + 1, None));
        if self.attempts.len() > MAX_ATTEMPTS {
            let slowest = (0..=before).min_by(|a, b| rank(self, *a).total_cmp(&rank(self, *b)));
            let at = slowest.unwrap_or(0);
            self.attempts.remove(at);
            self.cycles.values_mut().for_each(|column| _ = column.remove(at));
        }
    }

    /// Cycles of a test in an attempt.
    pub fn of(&self, attempt: usize, question: Question) -> Option<f64> {
        self.cycles.get(&question.name())?.get(attempt).copied().flatten()
    }

    /// Cycles of a test: the minimum that more than one attempt shows, as contention only slows but a clock may
    /// err; for a random test, the median.
    pub fn get(&self, question: Question) -> Option<f64> {
        let mut all: Vec<f64> =
            (0..self.attempts.len()).filter_map(|i| self.of(i, question)).collect();
        all.sort_by(f64::total_cmp);
        if question.is_random() {
            return (!all.is_empty()).then(|| crate::stats::median(&all));
        }
        let repeats = all.windows(2).find(|pair| pair[1] <= pair[0] * (1.0 + SAME));
        repeats.map(|pair| pair[0]).or(all.first().copied())
    }

    /// Instructions a cycle in a test.
    pub fn rate(&self, question: Question) -> Option<f64> {
        Some(question.instructions() as f64 / self.get(question)?)
    }

    /// Values of `of` for each attempt's times, sorted; only of undisturbed attempts if there are several.
    pub fn each(&self, of: impl Fn(&dyn Fn(Question) -> Option<f64>) -> Option<f64>) -> Vec<f64> {
        let one = |i: usize| of(&|question| self.of(i, question));
        let all: Vec<(bool, f64)> = (0..self.attempts.len())
            .filter_map(|i| Some((!self.attempts[i].signs.show_sharing(), one(i)?)))
            .collect();
        let undisturbed: Vec<f64> =
            all.iter().filter(|(undisturbed, _)| *undisturbed).map(|(_, value)| *value).collect();
        let mut values = if undisturbed.len() >= SEVERAL {
            undisturbed
        } else {
            all.iter().map(|(_, value)| *value).collect()
        };
        values.sort_by(f64::total_cmp);
        values
    }

    /// The median of `of` over the attempts, if most agree on it.
    pub fn agreed(&self, of: impl Fn(&dyn Fn(Question) -> Option<f64>) -> Option<f64>) -> Measured {
        let values = self.each(of);
        let (low, high) = quartiles(&values).ok_or(Open::NotAsked)?;
        let middle = crate::stats::median(&values);
        if values.len() >= SEVERAL && high - low > AGREE * middle.abs() {
            return Err(Open::Disagree { low, high });
        }
        // In a normal distribution, the middle half is 1.35 standard deviations wide, and the median errs 1.25
        // times as much as the mean.
        let error = 1.25 * (high - low) / 1.35 / (values.len() as f64).sqrt();
        Ok((middle, (values.len() >= SEVERAL).then_some(error)))
    }

    /// Notes the share of time that the hypervisor took during the last attempts.
    pub fn note_stolen(&mut self, last: usize, share: Option<f64>) {
        self.attempts.iter_mut().rev().take(last).for_each(|a| a.signs.stolen = share);
    }

    /// As the file has it.
    pub fn stored(&self) -> Stored {
        let all = &self.attempts;
        let column = |(name, values): (&String, &Vec<Option<f64>>)| {
            let rounded = values.iter().map(|v| v.map(|v| (v * 1e4).round() / 1e4)).collect();
            (name.clone(), Column::Each(rounded))
        };
        Stored {
            attempts: self.made,
            cpus: all.iter().map(|a| a.cpu).collect(),
            switches: all.iter().map(|a| a.signs.switches).collect(),
            stolen: all.iter().map(|a| a.signs.stolen).collect(),
            spread: all.iter().map(|a| a.signs.spread).collect(),
            cycles: self.cycles.iter().map(column).collect(),
        }
    }
}

/// Quartiles of sorted values; `None` if there are none.
pub fn quartiles(values: &[f64]) -> Option<(f64, f64)> {
    Some((*values.get(values.len() / 4)?, *values.get((3 * values.len()).div_ceil(4) - 1)?))
}

impl Stored {
    /// The times; `None` where a number cannot be one.
    pub fn times(self) -> Option<Times> {
        let length = |column: &Column| match column {
            Column::Least(_) => 1,
            Column::Each(all) => all.len(),
        };
        let many = self.cycles.values().map(length).max().unwrap_or(0);
        let is_least = !self.cycles.is_empty()
            && self.cycles.values().all(|column| matches!(column, Column::Least(_)));
        let attempt = |i: usize| Attempt {
            cpu: self.cpus.get(i).copied().flatten(),
            signs: Signs {
                switches: self.switches.get(i).copied().flatten(),
                stolen: self.stolen.get(i).copied().flatten(),
                spread: self.spread.get(i).copied().flatten(),
            },
            stands_for: if is_least { self.attempts.max(1) } else { 1 },
        };
        let attempts: Vec<Attempt> = (0..many).map(attempt).collect();
        if many > 4 * MAX_ATTEMPTS {
            return None;
        }
        let column = |column: Column| {
            let mut all = match column {
                Column::Least(cycles) => vec![Some(cycles); many],
                Column::Each(all) => all,
            };
            all.resize(many, None);
            all
        };
        let cycles: BTreeMap<String, Vec<Option<f64>>> =
            self.cycles.into_iter().map(|(name, all)| (name, column(all))).collect();
        let sound = cycles.values().flatten().flatten().all(|c| c.is_finite() && *c > 0.0);
        sound.then_some(Times { made: self.attempts, attempts, cycles })
    }
}

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    processor: Processor,
    #[serde(flatten)]
    times: Stored,
}

#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Processor {
    vendor: String,
    family: u32,
    model: u32,
    stepping: u32,
    name: String,
    /// Distinguishes cores with one model number.
    #[serde(default)]
    fingerprint: Option<Fingerprint>,
}

impl Processor {
    fn of(core: &Core) -> Self {
        let Cpu { vendor, family, model, stepping, name, .. } = core.cpu.clone();
        let fingerprint = core.fingerprint.as_deref().cloned();
        Self { vendor, family, model, stepping, name, fingerprint }
    }
}

/// The file of a processor model, its kind of core by the table, and its fingerprint; `None` for an
/// unknown one.
pub fn path(folder: &Path, core: &Core) -> Option<PathBuf> {
    let Cpu { vendor, family, model, stepping, .. } = &core.cpu;
    let kind = core.uarch().filter(|_| !core.foreign).unwrap_or("unknown");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let plain = vendor.chars().chain(kind.chars()).all(is_plain) && !vendor.is_empty();
    let print = core.fingerprint.as_ref().map(|print| format!("-{}", print.hash));
    let print = print.unwrap_or_default();
    let name = format!("self-test-{vendor}-{family}-{model}-{stepping}-{kind}{print}.json");
    plain.then(|| folder.join("tdtool").join(name))
}

/// The times in the file; `None` if there are none of this processor and version.
pub fn load(path: &Path, core: &Core) -> Option<Times> {
    let file: File = serde_json::from_slice(&read(path, MAX_BYTES).ok()?).ok()?;
    let own = file.version == VERSION && file.processor == Processor::of(core);
    if own { file.times.times() } else { None }
}

/// The times in a file of whatever processor, of this version or the one before.
///
/// # Errors
/// It cannot be read, or is no result of the self-test.
pub fn given(path: &Path) -> Result<Times> {
    let failed = |why: String| {
        Error::failed(format!("{} has no results of a self-test", path.display())).because(why)
    };
    let bytes = read(path, MAX_BYTES).map_err(|error| failed(error.to_string()))?;
    let file: File = serde_json::from_slice(&bytes).map_err(|error| failed(error.to_string()))?;
    if !(OLDEST..=VERSION).contains(&file.version) {
        return Err(failed(format!("version {} is not known", file.version)));
    }
    file.times.times().ok_or_else(|| failed("a time is none".to_owned()))
}

/// Writes the file; where that is not possible, the next process asks again.
pub fn save(path: &Path, core: &Core, times: &Times) {
    let file = File { version: VERSION, processor: Processor::of(core), times: times.stored() };
    let Ok(text) = serde_json::to_vec(&file) else { return };
    let _ = keep(path, &text, MAX_BYTES);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selftest::questions::HALF;
    use std::sync::Arc;

    fn times(question: Question, all: &[f64]) -> Times {
        let mut times = Times::default();
        for cycles in all {
            let cycles = BTreeMap::from([(question.name(), *cycles)]);
            let attempt = Attempt { stands_for: 1, ..Attempt::default() };
            times.add(NewAttempt { attempt, cycles }, |_, _| 0.0);
        }
        times
    }

    #[test]
    fn the_fastest_time_that_repeats_counts() {
        let of = |all: &[f64]| times(Question::Mix(0), all).get(Question::Mix(0));
        assert_eq!(of(&[42.0, 40.0, 61.0, 40.2]), Some(40.0));
        // A clock that erred once.
        assert_eq!(of(&[42.0, 40.0, 30.0, 40.2]), Some(40.0));
        assert_eq!(of(&[42.0, 30.0]), Some(30.0));
        assert_eq!(times(Question::Mix(0), &[42.0]).get(Question::Nops), None);
        let random = times(Question::Branch(HALF), &[9.0, 10.0, 12.0]);
        assert_eq!(random.get(Question::Branch(HALF)), Some(10.0));
    }

    #[test]
    fn attempts_agree_or_say_between_what_they_lie() {
        let of = |all: &[f64]| times(Question::Nops, all).agreed(|get| get(Question::Nops));
        let (value, error) = of(&[20.0, 20.2, 20.1, 19.9, 20.0]).unwrap();
        assert!((value - 20.0).abs() < 1e-9 && error.unwrap() < 0.2, "{error:?}");
        assert_eq!(of(&[20.0, 30.0, 20.0, 30.0]), Err(Open::Disagree { low: 20.0, high: 30.0 }));
        assert_eq!(of(&[20.0]), Ok((20.0, None)));
        assert_eq!(of(&[]), Err(Open::NotAsked));
    }

    #[test]
    fn the_slowest_attempts_make_room() {
        let mut times = times(Question::Nops, &[90.0]);
        for i in 0..40 {
            let cycles = BTreeMap::from([(Question::Nops.name(), 50.0 + f64::from(i))]);
            let rank = |t: &Times, i: usize| -t.of(i, Question::Nops).unwrap_or(f64::MAX);
            times.add(NewAttempt { attempt: Attempt::default(), cycles }, rank);
        }
        assert_eq!((times.made, times.attempts.len()), (41, 32));
        assert!((0..32).all(|i| times.of(i, Question::Nops).unwrap() < 82.0));
        let back = times.stored().times().unwrap();
        assert_eq!((back.made, back.get(Question::Nops)), (41, Some(50.0)));
    }

    #[test]
    fn a_result_is_read_back_for_the_same_processor_only() {
        let folder = tempfile::tempdir().unwrap();
        let cpu = Cpu { vendor: "AuthenticAMD".into(), family: 26, model: 2, ..Cpu::default() };
        let core = Core { cpu: cpu.clone(), ..Core::default() };
        let place = path(folder.path(), &core).unwrap();
        assert!(place.ends_with("tdtool/self-test-AuthenticAMD-26-2-0-unknown.json"));
        let mut times = Times::default();
        let cycles = std::collections::BTreeMap::from([("nops".into(), 24.0)]);
        let new = super::NewAttempt { cycles, ..Default::default() };
        times.add(new, |_, _| 0.0);
        times.attempts[0].stands_for = 1;
        save(&place, &core, &times);
        assert_eq!(load(&place, &core), Some(times.clone()));
        let other = Core { cpu: Cpu { name: "another".into(), ..cpu }, ..Core::default() };
        assert_eq!(load(&place, &other), None);
        // Another core with the same model number has a file of its own and rejects this one.
        let print = Fingerprint { hash: "0123456789abcdef".into(), ..Fingerprint::default() };
        let masked = Core { fingerprint: Some(Arc::new(print)), ..core.clone() };
        assert_ne!(path(folder.path(), &masked), Some(place.clone()));
        assert_eq!(load(&place, &masked), None);
        assert_eq!(given(&place).ok(), Some(times));
        std::fs::write(&place, "{\"version\": 2").unwrap();
        assert_eq!(load(&place, &core), None);
        assert!(given(&place).is_err());
        // Nothing is written for an unknown processor, and a folder that cannot be made is no error.
        assert_eq!(path(folder.path(), &Core::default()), None);
        save(&place.join("below/a/file"), &core, &Times::default());
    }
}
