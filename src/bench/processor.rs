//! What this processor is: the facts that assumptions and bounds are judged by.

use super::settings::Measured;
use pmu::machine::{Machine, Root, choose};
use std::sync::OnceLock;
use tma::tables::Library;

/// Shape of a cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cache {
    /// Lines that share a place.
    pub ways: usize,
    /// Places.
    pub sets: usize,
}

impl Cache {
    /// Its size, with lines of 64 bytes.
    pub fn bytes(self) -> usize {
        64 * self.ways * self.sets
    }
}

/// A cache of decoded instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpCache {
    /// Decoded operations that it holds.
    pub ops: usize,
    /// At most so many for 32 aligned bytes of code, where a limit is known.
    pub window: Option<usize>,
    /// Who says so.
    pub source: &'static str,
}

/// The first level of the data TLB, for pages of 4 KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataTlb {
    /// Entries for loads, or for all accesses.
    pub loads: usize,
    /// Entries for stores, where those have their own.
    pub stores: Option<usize>,
    /// Who says so.
    pub source: &'static str,
}

/// The processor.
#[derive(Debug, Clone)]
pub struct Processor {
    /// Its own account of its name.
    pub name: String,
    /// Name of its event table, if there is one.
    pub table: Option<String>,
    /// Slots a cycle.
    pub width: Option<u32>,
    /// Ids and labels of level 1 of its tree.
    pub level_1: Vec<(String, String)>,
    /// L1 data cache.
    pub data: Cache,
    /// L1 instruction cache.
    pub code: Cache,
    /// The op cache, where its size is known.
    pub op_cache: Option<OpCache>,
    /// The first-level data TLB, where its size is known.
    pub data_tlb: Option<DataTlb>,
}

impl Processor {
    /// This one; found out once.
    pub fn here() -> &'static Self {
        static HERE: OnceLock<Processor> = OnceLock::new();
        HERE.get_or_init(Self::detect)
    }

    /// As documents name it.
    pub fn named(&self) -> Measured {
        Measured { processor: self.name.clone(), table: self.table.clone() }
    }

    /// Instructions that it may issue in a cycle, six where that is not known.
    pub fn instructions_a_cycle(&self) -> usize {
        self.width.map_or(6, |width| width as usize)
    }

    /// Whether it was measured to sustain that with two loads among them; of others it has to be
    /// seen first.
    pub fn sustains_width(&self) -> bool {
        // Golden Cove and its descendants with the same front end.
        self.table.as_deref().is_some_and(|t| ["adl", "spr", "emr", "gnr"].contains(&t))
    }

    fn detect() -> Self {
        let root = Root::system();
        let library = Library::embedded();
        let machine = Machine::at(&root);
        let name = choose(&machine, &library, None)
            .ok()
            .and_then(|tables| tables.into_iter().next())
            .map(|found| found.table);
        let table = name.as_ref().and_then(|name| library.load(name).ok());
        let level_1 = table.iter().flat_map(|t| t.tree()).filter(|(_, node)| node.level == 1);
        let level_1: Vec<_> = level_1.map(|(_, n)| (n.id.clone(), n.label.clone())).collect();
        Self {
            name: machine.cpu.name,
            width: table.as_ref().map(|t| t.pipeline.width),
            level_1: if level_1.is_empty() { usual_level_1() } else { level_1 },
            data: cache(&root, "Data"),
            code: cache(&root, "Instruction"),
            op_cache: name.as_deref().and_then(op_cache),
            data_tlb: name.as_deref().and_then(data_tlb),
            table: name,
        }
    }
}

/// Level 1 of the top-down method, for a processor without a table.
fn usual_level_1() -> Vec<(String, String)> {
    ["Frontend Bound", "Bad Speculation", "Backend Bound", "Retiring"]
        .map(|label| (label.replace(' ', "_"), label.to_owned()))
        .to_vec()
}

/// The first-level cache of a kind: 8 ways of 64 lines if the kernel does not say.
fn cache(root: &Root, kind: &str) -> Cache {
    let folders = (0..8).map(|i| format!("sys/devices/system/cpu/cpu0/cache/index{i}"));
    for folder in folders {
        let is = |file: &str, value: &str| {
            root.text(format!("{folder}/{file}")).is_some_and(|text| text == value)
        };
        let number = |file: &str| root.number::<usize>(format!("{folder}/{file}"));
        if is("level", "1")
            && is("type", kind)
            && let (Some(ways), Some(sets)) =
                (number("ways_of_associativity"), number("number_of_sets"))
            && ways > 0
            && sets > 0
        {
            return Cache { ways, sets };
        }
    }
    Cache { ways: 8, sets: 64 }
}

/// The data TLB of a table's processors.
fn data_tlb(table: &str) -> Option<DataTlb> {
    let (loads, stores, source) = match table {
        "zen1" | "zen2" | "zen3" => (64, None, AMD),
        "zen4" => (72, None, AMD),
        "zen5" => (96, None, AMD),
        "hsw" | "hsx" | "bdw" | "bdx" | "skl" | "skx" | "clx" => (64, None, INTEL),
        "icl" | "icx" | "tgl" | "rkl" => (64, Some(16), INTEL),
        "adl" | "spr" | "emr" | "mtl" | "gnr" => (96, Some(16), INTEL),
        _ => return None,
    };
    Some(DataTlb { loads, stores, source })
}

/// Whose figures these are.
const INTEL: &str = "Intel's optimization reference manual";
const AMD: &str = "AMD's software optimization guide for the family";

/// The op cache of a table's processors. The small cores of Intel have none.
fn op_cache(table: &str) -> Option<OpCache> {
    let (ops, window, source) = match table {
        "zen1" => (2048, None, AMD),
        "zen2" | "zen3" => (4096, None, AMD),
        "zen4" => (6912, None, AMD),
        "zen5" => (6144, None, AMD),
        // Three lines of six for each 32 bytes.
        "hsw" | "hsx" | "bdw" | "bdx" | "skl" | "skx" | "clx" => (1536, Some(18), INTEL),
        "icl" | "icx" | "tgl" | "rkl" => (2304, None, INTEL),
        "adl" | "spr" | "emr" | "mtl" | "gnr" => (4096, None, INTEL),
        _ => return None,
    };
    Some(OpCache { ops, window, source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_read_by_kind_and_level() {
        let folder = tempfile::tempdir().unwrap();
        let write = |index: usize, file: &str, text: &str| {
            let place =
                folder.path().join(format!("sys/devices/system/cpu/cpu0/cache/index{index}"));
            std::fs::create_dir_all(&place).unwrap();
            std::fs::write(place.join(file), format!("{text}\n")).unwrap();
        };
        for (index, kind, ways) in [(0, "Data", "12"), (1, "Instruction", "8")] {
            write(index, "level", "1");
            write(index, "type", kind);
            write(index, "ways_of_associativity", ways);
            write(index, "number_of_sets", "64");
        }
        let root = Root::at(folder.path());
        assert_eq!(cache(&root, "Data"), Cache { ways: 12, sets: 64 });
        assert_eq!(cache(&root, "Instruction").bytes(), 32 * 1024);
        let nothing = Root::at(folder.path().join("absent"));
        assert_eq!(cache(&nothing, "Data").bytes(), 32 * 1024);
    }
}
