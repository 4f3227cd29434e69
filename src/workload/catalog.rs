//! The programs as data. Measurements on real machines: docs/results/accuracy.md.

use super::{DefaultSize, Expected, Setup, SizeParameter, Workload, matmul, x86};
use crate::loops;

/// All programs, in the order they are listed.
///
/// ```
/// use workload::{DefaultSize, list};
///
/// let chase = list().iter().find(|program| program.name == "pointer-chase").expect("listed");
/// // Dependent loads from beyond the caches wait for memory, by both vendors' names.
/// assert_eq!(chase.expected.intel.first(), Some(&"MEM_Latency"));
/// assert_eq!(chase.expected.amd.first(), Some(&"backend_bound_memory"));
/// assert!(chase.size.is_some_and(|s| matches!(s.default, DefaultSize::BeyondCaches(_))));
/// assert!(list().iter().all(|program| !program.control.is_empty()));
/// ```
pub fn list() -> &'static [Workload] {
    &LIST
}

const X86: bool = cfg!(target_arch = "x86_64");
const MIB: u64 = 1 << 20;

/// Defaults of most programs.
const BASE: Workload = Workload {
    name: "",
    summary: "",
    expected: Expected { intel: &[], amd: &[] },
    notes: "",
    control: "",
    iteration: "iteration",
    repeat: "one slice of the loop",
    size: None,
    available: X86,
    rate: None,
    memory: |_| Some(0),
    build: loops::idle as fn(Setup) -> _,
};

/// AMD's nodes: Zen 4's, Zen 5's, then those of Zen 3 and 2; Zen 1 does not distinguish front end
/// and back end.
const AMD_MEMORY: &[&str] = &[
    "backend_bound_memory",
    "backend_bound_by_memory",
    "backend_bound",
    "frontend_or_backend_bound",
];
const AMD_INTEGER: &[&str] = &[
    "backend_bound_cpu",
    "backend_bound_by_cpu",
    "backend_bound_integer",
    "backend_bound",
    "frontend_or_backend_bound",
];
const AMD_FLOAT: &[&str] = &[
    "backend_bound_cpu",
    "backend_bound_by_cpu",
    "backend_bound_fp",
    "backend_bound",
    "frontend_or_backend_bound",
];
const AMD_FRONTEND: &[&str] = &[
    "frontend_bound_latency",
    "frontend_bound_by_latency",
    "frontend_bound",
    "frontend_or_backend_bound",
];
const AMD_MISPREDICTS: &[&str] =
    &["bad_speculation_mispredicts", "bad_speculation_from_mispredicts", "bad_speculation"];
const AMD_MICROCODE: &[&str] = &["retiring_microcode", "retiring_from_microcode", "retiring"];

/// Bytes of the data, in links of 64 bytes, and of their order.
fn chain_bytes(size: u64) -> Option<u64> {
    size.checked_add(size / 16)
}

const fn rows(meaning: &'static str) -> Option<SizeParameter> {
    Some(SizeParameter { unit: "rows", meaning, default: DefaultSize::Fixed(1024), least: 2 })
}

const MATRIX: Workload = Workload {
    control: "32 x 32 matrices, which a first-level cache holds, multiplied as often as it takes \
              to do the same number of multiply-adds",
    iteration: "multiply-add",
    repeat: "one product",
    size: rows("rows and columns of each of the three matrices of doubles"),
    available: true,
    rate: Some((2.0, "GFLOP/s")),
    memory: matmul::bytes,
    ..BASE
};

static LIST: [Workload; 16] = [
    Workload {
        name: "pointer-chase",
        summary: "dependent loads in random order over more memory than the caches hold",
        expected: Expected {
            intel: &["MEM_Latency", "Memory_Bound", "Mem_Scheduler", "Backend_Bound"],
            amd: AMD_MEMORY,
        },
        notes: "Nanoseconds per load is the memory's latency; IPC is far below 0.1. Smaller sizes \
                move the time to L3_Bound, L2_Bound, L1_Bound. Huge pages are requested, so that \
                address translation adds little; without them DTLB_Load is high, too.",
        control: "a chain of 16 KiB, which a first-level cache holds",
        iteration: "load",
        repeat: "the links of --size once (short chains several times)",
        size: Some(SizeParameter {
            unit: "bytes",
            meaning: "memory the chain is spread over, one link in 64 bytes",
            default: DefaultSize::BeyondCaches(256 * MIB),
            least: 128,
        }),
        available: true,
        memory: chain_bytes,
        build: loops::pointer_chase,
        ..BASE
    },
    Workload {
        name: "stream",
        summary: "a[i] = b[i] + s*c[i] over arrays larger than the caches",
        expected: Expected {
            intel: &["MEM_Bandwidth", "Memory_Bound", "Mem_Scheduler", "Backend_Bound"],
            amd: AMD_MEMORY,
        },
        notes: "GB/s counts 24 bytes per element, as STREAM does; lines read for ownership before \
                the store add a third. One thread may not saturate a server's memory: then \
                MEM_Latency or L3_Bound takes a part.",
        control: "arrays of together 16 KiB, which a first-level cache holds",
        iteration: "element",
        repeat: "the arrays once (short arrays several times)",
        size: Some(SizeParameter {
            unit: "bytes",
            meaning: "the three arrays of doubles together",
            default: DefaultSize::BeyondCaches(256 * MIB),
            least: 192,
        }),
        available: true,
        rate: Some((24.0, "GB/s")),
        memory: Some,
        build: loops::stream,
    },
    Workload {
        name: "dependent-adds",
        summary: "one dependency chain of register additions",
        expected: Expected {
            intel: &["Ports_Utilized_1", "Core_Bound", "Backend_Bound"],
            amd: AMD_INTEGER,
        },
        notes: "One addition per cycle: nanoseconds per add is the length of a cycle, IPC is 1.",
        control: "eight independent chains: retiring, and as many additions per cycle as there \
                  are integer units",
        iteration: "add",
        build: x86::dependent_adds,
        ..BASE
    },
    Workload {
        name: "divider",
        summary: "packed divisions that do not depend on each other",
        expected: Expected { intel: &["Divider", "Core_Bound", "Backend_Bound"], amd: AMD_FLOAT },
        notes: "The time per division is the divider's throughput, not its latency.",
        control: "multiplications instead",
        iteration: "division of two doubles",
        build: x86::divider,
        ..BASE
    },
    Workload {
        name: "random-branches",
        summary: "branches on random bits: half of them are mispredicted",
        expected: Expected {
            intel: &["Branch_Mispredicts", "Bad_Speculation"],
            amd: AMD_MISPREDICTS,
        },
        notes: "Twice the difference to the control is what one misprediction costs. \
                Branch_Resteers (Mispredicts_Resteers) is high as well.",
        control: "the same instructions with every bit set, so that all branches go one way",
        iteration: "branch",
        build: x86::random_branches,
        ..BASE
    },
    Workload {
        name: "large-code",
        summary: "cache lines of code in random order, more than the front end's caches hold",
        expected: Expected {
            intel: &["Fetch_Latency", "IFetch_Latency", "Frontend_Bound"],
            amd: AMD_FRONTEND,
        },
        notes: "Below it ICache_Misses, and Branch_Resteers (Unknown_Branches) once there are \
                more blocks than entries in the branch target buffer. A size between the instruction \
                cache and that limit is often hidden by prefetching. The code is written at run \
                time: perf shows it without a symbol.",
        control: "16 KiB of the same code, which a first-level cache holds",
        iteration: "line",
        repeat: "the lines of --size once (little code several times)",
        size: Some(SizeParameter {
            unit: "bytes",
            meaning: "code, in blocks of 64 bytes that each end in a jump",
            default: DefaultSize::Fixed(MIB),
            least: 64,
        }),
        memory: chain_bytes,
        build: x86::large_code,
        ..BASE
    },
    Workload {
        name: "store-forward-block",
        summary: "eight-byte loads of data just written by two four-byte stores",
        expected: Expected {
            intel: &["Store_Fwd_Blk", "L1_Bound", "Mem_Scheduler", "Backend_Bound"],
            amd: AMD_MEMORY,
        },
        notes: "The load waits until both stores have reached the cache.",
        control: "a four-byte load, which the second store forwards to",
        iteration: "load",
        build: x86::store_forward_block,
        ..BASE
    },
    Workload {
        name: "4k-aliasing",
        summary: "loads that each follow a store exactly 4096 bytes away",
        expected: Expected {
            intel: &["4K_Aliasing", "L1_Bound", "Mem_Scheduler", "Backend_Bound"],
            amd: AMD_MEMORY,
        },
        notes: "The low twelve address bits agree, so the load is first assumed to be dependent. \
                Intel tables since Alder Lake have no node of that name; L1_Bound contains it.",
        control: "the store 64 bytes further on",
        iteration: "load",
        build: x86::four_k_aliasing,
        ..BASE
    },
    Workload {
        name: "tlb-walk",
        summary: "dependent loads, each on another small page",
        expected: Expected {
            intel: &["Load_STLB_Miss", "DTLB_Load", "L1_Bound", "Mem_Scheduler", "Backend_Bound"],
            amd: AMD_MEMORY,
        },
        notes: "The data (512 KiB) fits a second-level cache of 1 MiB; the translations fit no TLB. In a \
                virtual machine each page walk goes through two sets of page tables.",
        control: "the same number of adjacent lines",
        iteration: "load",
        repeat: "every page once (few pages several times)",
        size: Some(SizeParameter {
            unit: "bytes",
            meaning: "memory the pages cover, one load in 4096 bytes",
            default: DefaultSize::Fixed(32 * MIB),
            least: 8192,
        }),
        available: true,
        memory: chain_bytes,
        build: loops::tlb_walk,
        ..BASE
    },
    Workload {
        name: "microcoded",
        summary: "rep lodsb: an instruction that runs from the microcode memory",
        expected: Expected {
            intel: &["CISC", "Microcode_Sequencer", "Retiring"],
            amd: AMD_MICROCODE,
        },
        notes: "Nothing traps. The sequencer's own branches and switches may put a part under \
                Fetch_Latency (MS_Switches) or Core_Bound.",
        control: "a plain load for every byte",
        iteration: "byte",
        build: x86::microcoded,
        ..BASE
    },
    Workload {
        name: "denormals",
        summary: "multiplications of subnormal numbers: a microcode assist on many processors",
        expected: Expected { intel: &["Assists", "Microcode_Sequencer", "Nuke"], amd: &[] },
        notes: "Zen multiplies subnormal numbers at full speed: there it is as fast as the \
                control, and no node should differ.",
        control: "multiplications of normal numbers",
        iteration: "multiplication",
        build: x86::denormals,
        ..BASE
    },
    Workload {
        name: "idle",
        summary: "sleeps a millisecond at a time",
        notes: "CPUs used near 0 and a context switch per sleep. No node shows it: top-down analysis \
                is about cycles in which the program ran.",
        control: "computes for a millisecond at a time: CPUs used 1",
        iteration: "millisecond",
        repeat: "one of them",
        available: true,
        build: loops::idle,
        ..BASE
    },
    Workload {
        name: "matmul-naive",
        summary: "matrix product, order i, j, k: walks down the columns of B",
        expected: Expected {
            intel: &["Memory_Bound", "Mem_Scheduler", "Backend_Bound"],
            amd: AMD_MEMORY,
        },
        notes: "With a power of two as size the column maps to few cache sets: try 1000 or \
                1056 against 1024.",
        build: matmul::naive,
        ..MATRIX
    },
    Workload {
        name: "matmul-blocked",
        summary: "matrix product in blocks of 8 x 8",
        expected: Expected { intel: &["Core_Bound", "Backend_Bound"], amd: AMD_FLOAT },
        notes: "Each line is used eight times before eviction; what remains is the dependency chain of \
                additions of one element.",
        build: matmul::blocked,
        ..MATRIX
    },
    Workload {
        name: "matmul-interchanged",
        summary: "matrix product, order i, k, j: along the rows of B and C",
        expected: Expected { intel: &["Retiring"], amd: &["retiring"] },
        notes: "There is no chain of additions. With a power of two as size the rows of B and C may \
                lie a multiple of 4096 bytes apart: compare 4K_Aliasing with matmul-copied.",
        build: matmul::interchanged,
        ..MATRIX
    },
    Workload {
        name: "matmul-copied",
        summary: "matrix product, order i, k, j, on copies of the rows of A and C",
        expected: Expected { intel: &["Retiring"], amd: &["retiring"] },
        notes: "As matmul-interchanged, but C's row is at the same address for any size.",
        build: matmul::copied,
        ..MATRIX
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_program_describes_itself() {
        let names: HashSet<_> = list().iter().map(|w| w.name).collect();
        assert_eq!(names.len(), list().len(), "names are unique");
        for w in list() {
            for text in [w.name, w.summary, w.notes, w.control, w.iteration, w.repeat] {
                assert!(!text.trim().is_empty() && !text.contains("  "), "{}: {text:?}", w.name);
            }
            assert!(w.summary.len() <= 80, "{} fits a line", w.name);
        }
    }
}
