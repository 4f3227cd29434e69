//! Bytes as a basic block, up to its dependencies: shared by the fuzz target and by the ordinary tests. Running them
//! in the sandbox is tests/block/hostile.rs.

use isa::code::Block;
use isa::deps::memory::{InitialValues, Settings};
use isa::deps::{Analyser, Analysis, Code};
use isa::latency::Latencies;
use tma::Core;

/// Bytes analysed at most: dependencies of long blocks take long.
const MOST: usize = 256;

/// Feeds `data`.
///
/// # Panics
/// A block has other bytes than it was given, or an instruction of unknown effect passes.
pub fn feed(data: &[u8]) {
    let data = &data[..data.len().min(MOST)];
    let Ok(block) = Block::decode(data) else { return };
    assert_eq!(block.bytes, data);
    assert_eq!(block.instructions.iter().map(|i| i.bytes.len()).sum::<usize>(), data.len());
    let learns = block.can_learn_addresses();
    match block.refusal() {
        Some(refusal) => assert!(refusal.offset < data.len() && !refusal.reason.is_empty()),
        None => {
            // What is not refused and tells the time can learn addresses.
            let reads_clock = block.instructions.iter().any(|i| i.text.starts_with("rdtsc"));
            assert!(learns || !reads_clock, "{}", block.hex());
        }
    }
    let core = Core::default();
    let Ok(code) = Code::of_bytes(data, core.facts()) else { return };
    let mut analyser = Analyser::new(Latencies::new(&core).expect("no table is needed"));
    let settings = Settings { window: 64, runs: 2, initial_values: vec![InitialValues::default()] };
    let analysis = analyser.analyse(&code, &settings);
    for dependency in analysis.dependencies(&code) {
        assert!(dependency.reader.max(dependency.writer) < block.instructions.len());
    }
    let _ = (analysis.unmodelled(&code).count(), Analysis::false_dependencies(&code));
}
