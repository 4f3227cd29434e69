//! Loads, who allocated the memory that they read, and what their latencies were compared with.

use loads::class::Kind;
use loads::latency::Level;
use serde::{Deserialize, Serialize};
use tma::Address;

/// A load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadRow {
    /// Path of the file.
    pub module: String,
    /// Name of its function.
    pub function: String,
    /// Its address.
    pub address: Address,
    /// The instruction, in Intel syntax.
    pub instruction: String,
    /// Its operand in the source (`node->next`), by DWARF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// How often it was executed.
    pub executions: Option<u64>,
    /// How its addresses are made.
    pub class: Option<LoadClass>,
    /// Shares of the caches and of memory.
    pub levels: Vec<LevelShare>,
    /// Latency from the address to the value, in isolation.
    pub latency: Option<LoadLatency>,
    /// Which memory it reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<LoadMemory>,
    /// Why some of that is missing.
    pub reasons: Vec<String>,
    /// Why what it has is of different extents: a run was killed, say, and the others were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extents: Option<String>,
}

/// Which memory a load reads, by its recorded addresses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadMemory {
    /// How many were recorded.
    pub addresses: u64,
    /// Shares of the sites that allocated it, the largest first.
    pub sites: Vec<AllocatedAt>,
    /// Share of what no logged call had given: static data, stacks.
    pub other: f64,
    /// Share of addresses with an unknown origin; a note says why.
    pub unknown: f64,
}

/// A share of the addresses of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AllocatedAt {
    /// Who allocated the memory: indices in `allocation_sites`. Several where the order of their calls is not known.
    pub sites: Vec<usize>,
    /// Share, 0 to 1.
    pub share: f64,
}

/// A call by which memory was allocated that loads read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AllocationSite {
    /// Path of its file.
    pub module: String,
    /// Name of its function.
    pub function: String,
    /// The address after the call; `None`, in JSON "", for code without a file.
    #[serde(with = "crate::documents::or_empty")]
    pub address: Option<Address>,
    /// Offset of that address in the function.
    pub offset: u64,
    /// Source file of the call, by DWARF.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The inlined function that the line belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inlined: Option<String>,
    /// Called function: `malloc`, `operator new`, a function of a library.
    pub by: String,
    /// In a library itself: its caller was too far up the stack.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_library: bool,
    /// Calls that returned memory.
    pub allocations: u64,
    /// Bytes of all of them together.
    pub bytes: u64,
}

/// How the addresses of a load are made.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadClass {
    /// Kind.
    pub kind: Kind,
    /// The distance of most addresses to those before them, in bytes.
    pub stride: Option<i64>,
    /// Address of the load whose value it uses: the chase, or what loads the index.
    pub of: Option<Address>,
    /// Factor of that value.
    pub scale: Option<i64>,
    /// Offset added to it; absent where that is a base address.
    pub offset: Option<i64>,
    /// The class of the load of the index.
    pub inner: Option<Box<LoadClass>>,
    /// Neighbouring addresses that the stride separated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Neighbouring addresses that it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaks: Option<u64>,
    /// Windows of up to 64 executions that were looked at.
    pub windows: usize,
    /// Their share that agrees, 0 to 1.
    pub share: f64,
}

/// The share of a level of the memory hierarchy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelShare {
    /// Level.
    pub level: Level,
    /// Its share of the load's executions, 0 to 1.
    pub share: f64,
    /// Ends of its 95 % interval, of the sampling error.
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Median latency of its executions in nanoseconds: of as many as its share, slower than those of the levels
    /// before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<f64>,
}

/// Latencies in nanoseconds, without those of the fences.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadLatency {
    /// Executions that were timed.
    pub samples: u64,
    /// Others that took more than 5 µs: an interrupt or a page fault came between.
    pub interrupted: u64,
    /// The mean.
    pub mean: f64,
    /// The median, to a step of the counter.
    pub p50: f64,
    /// 90 % are not longer.
    pub p90: f64,
    /// 99 % are not longer.
    pub p99: f64,
}

/// The time-stamp counter, and loads of known levels on this host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimerRow {
    /// Ticks in a nanosecond.
    pub ticks_per_ns: f64,
    /// The step by which the counter advances, in ticks.
    pub step: u32,
    /// Mean ticks of the fences without a load: no part of a latency.
    pub floor: f64,
    /// Mean latencies of hits of each cache in nanoseconds.
    pub caches: Vec<LevelMean>,
    /// Latencies from here on are of memory, in nanoseconds.
    pub memory: f64,
    /// Caches that others use so much that no hits could be measured: theirs are taken to be those
    /// between the cache before and memory.
    pub assumed: Vec<Level>,
}

/// Time of hits of a cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LevelMean {
    /// The cache.
    pub level: Level,
    /// In nanoseconds.
    pub mean: f64,
}

/// Shares of windows from here on are not shown.
const ALL: f64 = 0.995;

impl LoadClass {
    /// In a few words: `stride 8`, `indirect × 8 by 0x1234 (stride 4)`.
    pub fn words(&self) -> String {
        match self.share < ALL {
            true => format!("{}, {:.0} % of windows", words(self), self.share * 100.0),
            false => words(self),
        }
    }
}

fn words(class: &LoadClass) -> String {
    let of = class.of.map_or_else(|| "?".to_owned(), |of| of.to_string());
    let (scale, offset) = (class.scale.unwrap_or(1), class.offset.unwrap_or(0));
    match class.kind {
        Kind::Constant => "constant".to_owned(),
        Kind::Stride => format!("stride {}", class.stride.unwrap_or(0)),
        Kind::PointerChase if scale != 1 => format!("chase of indices × {scale}"),
        Kind::PointerChase if class.offset.is_none() => "chase of indices from a base".to_owned(),
        Kind::PointerChase if offset != 0 => format!("pointer chase, offset {offset}"),
        Kind::PointerChase => "pointer chase".to_owned(),
        Kind::ChaseOffset if class.offset.is_none() => format!("a base + what {of} loads"),
        Kind::ChaseOffset => format!("offset {offset} of the chase at {of}"),
        Kind::Indirect => {
            let inner =
                class.inner.as_deref().map_or(String::new(), |i| format!(" ({})", words(i)));
            match scale {
                1 => format!("indirect by pointer {of}{inner}"),
                scale => format!("indirect × {scale} by {of}{inner}"),
            }
        }
        Kind::IndirectDelta | Kind::Complex | Kind::Irregular => "irregular".to_owned(),
    }
}

/// Sites of a load that are shown.
const MOST: usize = 4;
/// Smaller shares are not shown.
const LEAST: f64 = 0.005;

impl LoadMemory {
    /// Allocations that a load reads: `97 % malloc in build, list.c:14; 3 % other`. None if nothing of it was
    /// allocated.
    pub(super) fn words(&self, all: &[AllocationSite]) -> Option<String> {
        if self.sites.is_empty() && self.unknown <= 0.0 {
            return None;
        }
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        let one = |site: &usize| all.get(*site).map(short);
        let mut parts: Vec<String> = Vec::new();
        for at in self.sites.iter().filter(|at| at.share >= LEAST).take(MOST) {
            let sites: Vec<String> = at.sites.iter().filter_map(one).collect();
            let several = if sites.len() > 1 { "several sites: " } else { "" };
            parts.push(format!("{} {several}{}", percent(at.share), sites.join(" or ")));
        }
        let rest: f64 = self.sites.iter().skip(MOST).map(|at| at.share).sum();
        let others = [
            (rest, "other sites (all in JSON)"),
            (self.other, "not allocated (static data, stack)"),
            (self.unknown, "not known"),
        ];
        parts.extend(
            others
                .iter()
                .filter(|(n, _)| *n >= LEAST)
                .map(|(n, text)| format!("{} {text}", percent(*n))),
        );
        Some(parts.join("; "))
    }
}

/// `malloc in build, list.c:14`; without DWARF `malloc in build+0x1c`.
fn short(site: &AllocationSite) -> String {
    let function = site.inlined.as_ref().unwrap_or(&site.function);
    match (&site.file, site.line) {
        (Some(file), Some(line)) => {
            let file = file.rsplit('/').next().unwrap_or_default();
            format!("{} in {function}, {file}:{line}", site.by)
        }
        _ => format!("{} in {}+{:#x}", site.by, site.function, site.offset),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_without_a_file_has_no_address() {
        let json = serde_json::to_value(AllocationSite::default()).unwrap();
        assert_eq!(json["address"], "");
        assert_eq!(serde_json::from_value::<AllocationSite>(json).unwrap().address, None);
    }
}
