//! Results in the user's cache folder, for the next process on the same processor.

use super::times::{Stored, Times};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tma::cpuid::Fingerprint;
use tma::files::{keep, read};
use tma::{Core, Cpu, Error, Result};

/// Version of the tests: results of others are not comparable.
const VERSION: u32 = 9;
/// The first version whose times can be taken from a file that is named.
const OLDEST: u32 = 5;
/// Size limit in bytes, far above that of any result.
const MAX_BYTES: u64 = 1 << 17;

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
    use std::sync::Arc;

    #[test]
    fn a_result_is_read_back_for_the_same_processor_only() {
        let folder = tempfile::tempdir().unwrap();
        let cpu = Cpu { vendor: "AuthenticAMD".into(), family: 26, model: 2, ..Cpu::default() };
        let core = Core { cpu: cpu.clone(), ..Core::default() };
        let place = path(folder.path(), &core).unwrap();
        assert!(place.ends_with("tdtool/self-test-AuthenticAMD-26-2-0-unknown.json"));
        let mut times = Times::default();
        let cycles = std::collections::BTreeMap::from([("nops".into(), 24.0)]);
        let new = super::super::times::NewAttempt { cycles, ..Default::default() };
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
