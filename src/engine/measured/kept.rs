//! Measured facts in the user's cache folder, for the next process on the same processor.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tma::files::{keep, read};
use tma::measured::Facts;
use tma::{Core, Cpu};

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
pub(super) fn path(cache: &Path, core: &Core) -> Option<PathBuf> {
    let Cpu { vendor, family, model, stepping, .. } = &core.cpu;
    let is_plain = vendor.chars().all(|c| c.is_ascii_alphanumeric()) && !vendor.is_empty();
    let print =
        core.fingerprint.as_ref().map(|print| format!("-{}", print.hash)).unwrap_or_default();
    let name = format!("core-facts-{vendor}-{family}-{model}-{stepping}{print}.json");
    is_plain.then(|| cache.join("tdtool").join(name))
}

/// The facts in the file; none if they are not of this processor and version.
pub(super) fn load(path: &Path, core: &Core) -> Option<Facts> {
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
pub(super) fn save(path: &Path, core: &Core, facts: &Facts) {
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
    fn facts_are_read_back_for_the_same_processor_only() {
        let folder = tempfile::tempdir().unwrap();
        let cpu = Cpu { vendor: "GenuineIntel".into(), family: 6, model: 173, ..Cpu::default() };
        let core = Core { cpu: cpu.clone(), ..Core::default() };
        let place = path(folder.path(), &core).unwrap();
        let known = Known { value: 512.0, error: 8.0, how: "nops".to_owned() };
        let facts = Facts(BTreeMap::from([(Kind::ReorderBuffer, Fact::Known(known))]));
        save(&place, &core, &facts);
        assert_eq!(load(&place, &core), Some(facts));
        let other = Core { cpu: Cpu { name: "another".into(), ..cpu }, ..Core::default() };
        assert_eq!(load(&place, &other), None);
        let print =
            Arc::new(Fingerprint { hash: "0123456789abcdef".into(), ..Fingerprint::default() });
        let masked = Core { fingerprint: Some(print), ..core.clone() };
        assert_ne!(path(folder.path(), &masked), Some(place.clone()));
        assert_eq!(load(&place, &masked), None);
        std::fs::write(&place, "{\"version\": 1").unwrap();
        assert_eq!(load(&place, &core), None);
        assert_eq!(path(folder.path(), &Core::default()), None);
    }
}
