//! The number of misses that this host keeps in flight, measured once and saved in the user's cache folder.

use loads::prefetch::InFlight;
use report::documents::prefetch::InFlightRow;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use tma::{Cpu, Result};

/// Version of the measurement: results of others are not comparable.
const VERSION: u32 = 2;
/// Size limit in bytes, far above that of any result.
const MAX_BYTES: u64 = 1 << 16;

/// Nanoseconds per miss by the number of misses in flight, and where they are from.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostMisses {
    bytes: u64,
    groups: Vec<Vec<(usize, f64)>>,
    fastest: f64,
    source: String,
}

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    host: String,
    bytes: u64,
    groups: Vec<Vec<(usize, f64)>>,
    fastest: f64,
}

/// The host's misses in flight from an earlier run, else by a microbenchmark of less than a second.
///
/// # Errors
/// There is too little memory.
pub fn misses_in_flight(cpu: &Cpu, cache: Option<&Path>) -> Result<HostMisses> {
    let (host, place) = (host(cpu), cache.and_then(|cache| place(cache, cpu)));
    if let Some(found) = place.as_ref().and_then(|place| load(place, &host)) {
        return Ok(found);
    }
    let found = workload::misses_in_flight()?;
    if let Some(place) = &place {
        let workload::InFlight { bytes, groups, fastest } = found.clone();
        save(place, &File { version: VERSION, host, bytes, groups, fastest });
    }
    let source = "measured now".to_owned();
    let workload::InFlight { bytes, groups, fastest } = found;
    Ok(HostMisses { bytes, groups, fastest, source })
}

impl HostMisses {
    /// In core cycles.
    pub(super) fn in_cycles(&self, cycles_per_ns: f64) -> Option<InFlight> {
        InFlight::of(&self.groups, self.fastest, cycles_per_ns)
    }

    /// As a row of the document.
    pub(super) fn row(&self) -> Option<InFlightRow> {
        let InFlight { misses, range, cycles: ns, cycles_range: ns_range, fastest: fastest_ns } =
            self.in_cycles(1.0)?;
        let (bytes, source) = (self.bytes, self.source.clone());
        Some(InFlightRow { misses, range, ns, ns_range, fastest_ns, bytes, source })
    }
}

/// The host as far as results depend on it: processor, memory, and the pages of large allocations.
fn host(cpu: &Cpu) -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let memory = read("/proc/meminfo").lines().next().unwrap_or_default().to_owned();
    let pages = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let Cpu { vendor, family, model, stepping, name, .. } = cpu;
    format!("{vendor} {family} {model} {stepping} {name}; {memory}; huge pages {}", pages.trim())
}

fn place(cache: &Path, cpu: &Cpu) -> Option<PathBuf> {
    let Cpu { vendor, family, model, stepping, .. } = cpu;
    let is_plain = !vendor.is_empty() && vendor.chars().all(|c| c.is_ascii_alphanumeric());
    let name = format!("misses-in-flight-{vendor}-{family}-{model}-{stepping}.json");
    is_plain.then(|| cache.join("tdtool").join(name))
}

fn load(place: &Path, host: &str) -> Option<HostMisses> {
    let text = tma::files::read_text(place, MAX_BYTES).ok()?;
    let file: File = serde_json::from_str(&text).ok()?;
    let sound = |(misses, ns): &(usize, f64)| *misses > 0 && ns.is_finite() && *ns > 0.0;
    let is_own = file.version == VERSION && file.host == host;
    let is_sound = sound(&(1, file.fastest)) && file.groups.iter().flatten().all(sound);
    (is_own && is_sound).then(|| HostMisses {
        bytes: file.bytes,
        groups: file.groups,
        fastest: file.fastest,
        source: format!("measured earlier, kept in {}", place.display()),
    })
}

/// Where that is not possible, the next process measures again.
fn save(place: &Path, file: &File) {
    let folder = place.parent().map_or(Ok(()), std::fs::create_dir_all);
    if let (Ok(()), Ok(text)) = (folder, serde_json::to_string(file)) {
        let _ = report::files::write_whole(place, text.as_bytes(), &[], "--config");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_kept_for_the_same_host_only() {
        let folder = tempfile::tempdir().unwrap();
        let cpu = Cpu { vendor: "AuthenticAMD".into(), family: 26, model: 2, ..Cpu::default() };
        let at = place(folder.path(), &cpu).unwrap();
        assert!(at.ends_with("tdtool/misses-in-flight-AuthenticAMD-26-2-0.json"));
        let groups = vec![vec![(1, 100.0), (10, 10.0), (20, 10.0)]];
        save(&at, &File { version: VERSION, host: "a".into(), bytes: 64, groups, fastest: 8.0 });
        let row = load(&at, "a").unwrap().row().unwrap();
        assert_eq!((row.misses, row.ns, row.fastest_ns, row.bytes), (10.0, 10.0, 8.0, 64));
        assert!(row.source.starts_with("measured earlier"));
        assert_eq!(load(&at, "b"), None);
        assert_eq!(place(folder.path(), &Cpu::default()), None);
    }
}
