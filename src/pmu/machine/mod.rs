//! The processor, its PMUs, what the kernel permits, and the remedy where it does not.
//!
//! Everything is read from `/proc` and `/sys` below a [`Root`], so tests run on fixture trees.
//! Nothing here prints or decides what to measure. No perf event is opened.
//!
//! | file | concern |
//! |---|---|
//! | `kinds` | what CPUID answers on each kind of core |
//! | `topology` | online CPUs, cores, sockets, SMT; how busy CPUs are |
//! | `pmu` | PMUs and their formats; the encoding of an event |
//! | `kernel` | what the kernel permits, and where it runs |
//! | `description` | [`Machine`]: all of that, and the processor as CPUID and the kernel name it |
//! | `matching` | the table of this processor; its [`tma::Core`] |
//! | `finding` | what prevents or limits a measurement, with the remedy |

mod description;
mod finding;
mod kernel;
mod kinds;
mod matching;
mod pmu;
mod topology;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

pub use description::{
    Machine, absent_architectural_events, read_cpu, this_cpu, tsc_hz_from_cpuid,
};
pub use finding::{Finding, Level, Probe, UNKNOWN, findings};
pub use kernel::{Container, Kernel, SeccompMode, Virtual, boot_id};
pub use kinds::{Kind, kinds_of};
pub use matching::{TableMatch, choose, countable, describing, is_architectural, unknown_model};
pub use pmu::{Encoding, Format, NoEncoding, Pmu, encode, find_pmus};
pub use topology::cpu_time;
pub use topology::{Load, LogicalCpu, Moment, Ticks, Topology, parse_cpu_list, same_kind};

/// Most bytes that are read of a paragraph.
const LONGEST: u64 = 1 << 16;

/// Reads small files below a folder; absent or unreadable ones are `None`.
#[derive(Debug, Clone)]
pub struct Root(PathBuf);

impl Root {
    /// The real system.
    pub fn system() -> Self {
        Self(PathBuf::from("/"))
    }

    /// A copy of `/proc` and `/sys` below `folder`.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    /// Whether this is the running system and not a copy.
    pub fn is_system(&self) -> bool {
        self.0 == Path::new("/")
    }

    /// The text of `path` (relative to the root) without surrounding blanks.
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.0.join(path)).ok()?;
        // Some of these files have megabytes: copy only if needed.
        let mut text = String::from_utf8(bytes)
            .unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned());
        text.truncate(text.trim_end().len());
        let blank = text.len() - text.trim_start().len();
        text.drain(..blank);
        Some(text)
    }

    /// The lines of `path` up to the first empty one. Reads no further: on a machine of many CPUs the
    /// kernel takes milliseconds to write all of `/proc/cpuinfo`.
    pub fn paragraph(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(file) = fs::File::open(self.0.join(path)) else { return Vec::new() };
        let lines = BufReader::with_capacity(4096, file.take(LONGEST)).lines();
        lines.map_while(|l| l.ok().filter(|l| !l.trim().is_empty())).collect()
    }

    /// A number in `path`.
    pub fn number<T: std::str::FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// Names in the folder `path`, sorted; empty if it does not exist.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.0.join(path)) else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Whether `path` exists.
    pub fn exists(&self, path: impl AsRef<Path>) -> bool {
        self.0.join(path).exists()
    }
}
