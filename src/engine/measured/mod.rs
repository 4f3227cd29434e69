//! Facts of this core that were measured on it, saved in the user's cache folder for the next process on the same
//! processor. `table` compares them with what a table states.

mod table;

use crate::tested;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
pub use table::{check_name, is_of_measurements, rows, table};
use tma::files::{keep, read};
use tma::measured::{Fact, Facts, Kind, Known, Open};
use tma::self_test::Answers;
use tma::{Core, Cpu, Result};

/// How well the self-test's width is known, by the clock, and a misprediction's cycles, as shares.
const CLOCK: f64 = 0.03;
const MISPREDICTION: f64 = 0.15;

/// Takes over the facts of this processor that were saved in `cache`, if any were.
pub fn load(core: &Core, cache: Option<&Path>) {
    let facts = cache.and_then(|cache| read_facts(&facts_file(cache, core)?, core));
    if let Some(facts) = facts.filter(|_| core.measured.facts().is_none()) {
        core.measured.set(facts);
    }
}

/// Measures the facts of this processor, for some seconds, and saves them in `cache`. A fact that is open or worse now
/// stays as it was saved: contention takes nothing away that was known.
///
/// # Errors
/// The sandbox cannot be started; generated code cannot be run.
pub fn measure(
    core: &Arc<Core>,
    cache: Option<&Path>,
    progress: &mut dyn FnMut(usize, usize),
) -> Result<Facts> {
    let answers = tested::answers(core)?;
    let mut facts = here(answers.and_then(|answers| answers.nops_fused), progress)?;
    facts.0.extend(of_self_test(answers));
    let place = cache.and_then(|cache| facts_file(cache, core));
    if let Some(place) = place {
        let before = read_facts(&place, core).unwrap_or_default();
        facts = with_earlier(facts, before);
        save_facts(&place, core, &facts);
    }
    core.measured.set(facts.clone());
    Ok(facts)
}

/// The caches that hold data as the system states them: level and bytes.
#[cfg(target_arch = "x86_64")]
pub fn stated_caches() -> Vec<(u8, u64)> {
    workload::caches()
}

/// None are known on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub fn stated_caches() -> Vec<(u8, u64)> {
    Vec::new()
}

#[cfg(target_arch = "x86_64")]
fn here(nops: Option<bool>, progress: &mut dyn FnMut(usize, usize)) -> Result<Facts> {
    Ok(workload::core_facts::facts(&workload::core_facts::measure(nops, progress)?, nops))
}

#[cfg(not(target_arch = "x86_64"))]
fn here(_: Option<bool>, _: &mut dyn FnMut(usize, usize)) -> Result<Facts> {
    Ok(Facts::default())
}

/// Facts that the self-test answers.
fn of_self_test(answers: Option<&Answers>) -> [(Kind, Fact); 2] {
    let fact = |value: Option<f64>, error: f64, how: &str| match value {
        Some(value) => Fact::Known(Known { value, error: error * value, how: how.to_owned() }),
        None => Fact::open(Open::SelfTest),
    };
    let width = answers.and_then(|answers| answers.width);
    let cost = answers.and_then(|answers| answers.misprediction);
    [
        (Kind::Width, fact(width, CLOCK, "the self-test's best mix")),
        (Kind::Misprediction, fact(cost, MISPREDICTION, "the self-test's random branches")),
    ]
}

/// Facts, and what was known earlier of those that are open now, or that contention has made worse: it takes rates and
/// room away, and adds to times.
fn with_earlier(mut facts: Facts, earlier: Facts) -> Facts {
    for (kind, fact) in earlier.0 {
        let Fact::Known(before) = &fact else { continue };
        let is_better = |now: &Known| match kind {
            Kind::Loads
            | Kind::Stores
            | Kind::Width
            | Kind::OpCache
            | Kind::Decoded
            | Kind::ReorderBuffer => before.value > now.value,
            Kind::L1Size | Kind::L2Size | Kind::L3Size => false,
            _ => before.value < now.value,
        };
        if facts.known(kind).is_none_or(is_better) {
            facts.0.insert(kind, fact);
        }
    }
    facts
}

/// Version of the measurements: facts of others are not comparable.
const VERSION: u32 = 1;
/// More than any fact is: bytes of a cache.
const MOST: f64 = 1e12;
/// Size limit in bytes, far above that of any result.
const MAX_BYTES: u64 = 1 << 16;

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    processor: String,
    facts: Facts,
}

/// A name that tells this processor from others, also behind the same model number.
fn processor(core: &Core) -> String {
    let (cpu, print) = (&core.cpu, core.fingerprint.as_ref());
    format!("{}, {}, {}", cpu.signature(), cpu.name, print.map_or("", |print| &print.hash))
}

/// The file of a processor; none for an unknown one.
fn facts_file(cache: &Path, core: &Core) -> Option<PathBuf> {
    let Cpu { vendor, family, model, stepping, .. } = &core.cpu;
    let is_plain = vendor.chars().all(|c| c.is_ascii_alphanumeric()) && !vendor.is_empty();
    let print =
        core.fingerprint.as_ref().map(|print| format!("-{}", print.hash)).unwrap_or_default();
    let name = format!("core-facts-{vendor}-{family}-{model}-{stepping}{print}.json");
    is_plain.then(|| cache.join("tdtool").join(name))
}

/// The facts in the file; none if they are not of this processor and version.
fn read_facts(path: &Path, core: &Core) -> Option<Facts> {
    let file: File = serde_json::from_slice(&read(path, MAX_BYTES).ok()?).ok()?;
    let is_sound = |facts: &Facts| {
        let known = facts.0.keys().filter_map(|kind| facts.known(*kind));
        known.into_iter().all(|k| k.value > 0.0 && k.value < MOST && k.error >= 0.0)
    };
    let sound =
        file.version == VERSION && file.processor == processor(core) && is_sound(&file.facts);
    sound.then_some(file.facts)
}

/// Writes the file; where that is not possible, they are measured again when asked for.
fn save_facts(path: &Path, core: &Core, facts: &Facts) {
    let file = File { version: VERSION, processor: processor(core), facts: facts.clone() };
    let Ok(text) = serde_json::to_vec_pretty(&file) else { return };
    let _ = keep(path, &text, MAX_BYTES);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;
    use tma::cpuid::Fingerprint;
    use tma::measured::{Fact, Kind, Known};

    #[test]
    fn what_was_known_stays_known_and_what_is_measured_again_is_replaced() {
        let known = |value| Fact::Known(Known { value, error: 1.0, how: String::new() });
        let open = || Fact::open(Open::Disagree { least: 1.0, most: 9.0 });
        let now = BTreeMap::from([
            (Kind::Loads, known(3.0)),
            (Kind::Stores, open()),
            (Kind::ReorderBuffer, known(256.0)),
            (Kind::L2Latency, known(19.0)),
        ]);
        let now = Facts(now);
        let before = BTreeMap::from([
            (Kind::Loads, known(2.0)),
            (Kind::ReorderBuffer, known(512.0)),
            (Kind::L2Latency, known(15.0)),
            (Kind::Stores, known(2.0)),
            (Kind::OpCache, open()),
        ]);
        let both = with_earlier(now, Facts(before));
        assert_eq!(both.get(Kind::Loads), known(3.0));
        assert_eq!(both.get(Kind::Stores), known(2.0));
        // A busy sibling thread halves the one, and slows the other.
        assert_eq!(both.get(Kind::ReorderBuffer), known(512.0));
        assert_eq!(both.get(Kind::L2Latency), known(15.0));
        assert_eq!(both.get(Kind::OpCache), Fact::open(Open::NotMeasured));
    }

    #[test]
    fn answers_that_the_self_test_left_open_are_open_facts() {
        let answers = Answers { width: Some(5.9), ..Answers::default() };
        let [width, cost] = of_self_test(Some(&answers));
        assert!(matches!(width.1, Fact::Known(known) if known.value == 5.9));
        assert_eq!(cost.1, Fact::open(Open::SelfTest));
    }

    #[test]
    fn facts_are_read_back_for_the_same_processor_only() {
        let folder = tempfile::tempdir().unwrap();
        let cpu = Cpu { vendor: "GenuineIntel".into(), family: 6, model: 173, ..Cpu::default() };
        let core = Core { cpu: cpu.clone(), ..Core::default() };
        let place = facts_file(folder.path(), &core).unwrap();
        let known = Known { value: 512.0, error: 8.0, how: "nops".to_owned() };
        let facts = Facts(BTreeMap::from([(Kind::ReorderBuffer, Fact::Known(known))]));
        save_facts(&place, &core, &facts);
        assert_eq!(read_facts(&place, &core), Some(facts));
        let other = Core { cpu: Cpu { name: "another".into(), ..cpu }, ..Core::default() };
        assert_eq!(read_facts(&place, &other), None);
        let print =
            Arc::new(Fingerprint { hash: "0123456789abcdef".into(), ..Fingerprint::default() });
        let masked = Core { fingerprint: Some(print), ..core.clone() };
        assert_ne!(facts_file(folder.path(), &masked), Some(place.clone()));
        assert_eq!(read_facts(&place, &masked), None);
        std::fs::write(&place, "{\"version\": 1").unwrap();
        assert_eq!(read_facts(&place, &core), None);
        assert_eq!(facts_file(folder.path(), &Core::default()), None);
    }
}
