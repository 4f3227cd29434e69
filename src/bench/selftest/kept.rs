//! Results in the user's cache folder, for the next process on the same processor.

use super::times::Times;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tma::{Core, Cpu};

/// Version of the tests: results of others are not comparable.
const VERSION: u32 = 5;
/// Size limit in bytes, far above that of any result.
const MAX_BYTES: u64 = 1 << 16;

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    processor: Processor,
    attempts: u32,
    cycles: BTreeMap<String, f64>,
}

#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct Processor {
    vendor: String,
    family: u32,
    model: u32,
    stepping: u32,
    name: String,
}

impl Processor {
    fn of(cpu: &Cpu) -> Self {
        let Cpu { vendor, family, model, stepping, name, .. } = cpu.clone();
        Self { vendor, family, model, stepping, name }
    }
}

/// The file of a processor model, and of its kind of core by the table; `None` for an unknown one.
pub fn path(folder: &Path, core: &Core) -> Option<PathBuf> {
    let Cpu { vendor, family, model, stepping, .. } = &core.cpu;
    let kind = core.uarch().filter(|_| !core.foreign).unwrap_or("unknown");
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let plain = vendor.chars().chain(kind.chars()).all(is_plain) && !vendor.is_empty();
    let name = format!("self-test-{vendor}-{family}-{model}-{stepping}-{kind}.json");
    plain.then(|| folder.join("tdtool").join(name))
}

/// The times in the file; `None` if there are none of this processor and version.
pub fn load(path: &Path, cpu: &Cpu) -> Option<Times> {
    let size = std::fs::metadata(path).ok()?.len();
    if size > MAX_BYTES {
        return None;
    }
    let file: File = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    let sound = file.version == VERSION
        && file.processor == Processor::of(cpu)
        && file.cycles.values().all(|cycles| cycles.is_finite() && *cycles > 0.0);
    sound.then_some(Times { attempts: file.attempts, cycles: file.cycles })
}

/// Writes the file; where that is not possible, the next process asks again.
pub fn save(path: &Path, cpu: &Cpu, times: &Times) {
    let file = File {
        version: VERSION,
        processor: Processor::of(cpu),
        attempts: times.attempts,
        cycles: times.cycles.clone(),
    };
    let Ok(text) = serde_json::to_vec_pretty(&file) else { return };
    let temporary = path.with_extension(format!("json.{}", std::process::id()));
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = folder
        .and_then(|()| std::fs::write(&temporary, text))
        .and_then(|()| std::fs::rename(&temporary, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_read_back_for_the_same_processor_only() {
        let folder = tempfile::tempdir().unwrap();
        let cpu = Cpu { vendor: "AuthenticAMD".into(), family: 26, model: 2, ..Cpu::default() };
        let core = Core { cpu: cpu.clone(), ..Core::default() };
        let place = path(folder.path(), &core).unwrap();
        assert!(place.ends_with("tdtool/self-test-AuthenticAMD-26-2-0-unknown.json"));
        let times = Times { attempts: 2, cycles: BTreeMap::from([("nops".into(), 24.0)]) };
        save(&place, &cpu, &times);
        assert_eq!(load(&place, &cpu), Some(times));
        assert_eq!(load(&place, &Cpu { name: "another".into(), ..cpu.clone() }), None);
        std::fs::write(&place, "{\"version\": 2").unwrap();
        assert_eq!(load(&place, &cpu), None);
        // Nothing is written for an unknown processor, and a folder that cannot be made is no error.
        assert_eq!(path(folder.path(), &Core::default()), None);
        save(&place.join("below/a/file"), &cpu, &Times::default());
    }
}
