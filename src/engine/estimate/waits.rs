//! How long the instructions of a block can wait for each other.

use isa::deps::memory::Settings;
use isa::deps::{Analyser, Code, Window, critical_path};
use tma::Core;

/// Cycles of the longest path of dependencies through instructions, with loads that hit the first cache.
pub(super) fn longest(
    inside: &[(u64, isa::code::Inst)],
    analyser: &mut Analyser,
    core: &Core,
) -> f64 {
    let bytes: Vec<u8> = inside.iter().flat_map(|(_, inst)| inst.bytes.iter().copied()).collect();
    let Ok(code) = Code::of_bytes(&bytes, core.facts()) else { return 0.0 };
    let settings =
        Settings { window: Window::of(core).entries, runs: 1, initial_values: Vec::new() };
    let analysis = analyser.analyse(&code, &settings);
    let latencies = analyser.latencies();
    let to = |root| {
        let (low, high) = critical_path(&code, &analysis, latencies, root, &|_| None).cycles;
        f64::midpoint(low, high)
    };
    (0..code.instructions.len()).map(to).fold(0.0, f64::max)
}
