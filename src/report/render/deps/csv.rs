//! One row a block, for batches.

use crate::render::csv::{self, number};
use isa::deps::memory::may_alias_pairs;
use isa::deps::{Analysis, Code};
use isa::effects::ArchReg;

/// The columns.
pub const HEADER: &str = "hex,status,reason,instructions,register,flag,memory,may_alias,unmodelled,unknown_results,recurrence,low,high";

/// The row of a block, without a line break. `recurrence` is the lower bound, which `low` repeats;
/// `high` is the greatest with the maxima of all latencies. Without a recurrence they are empty.
pub fn row(hex: &str, code: &Code, analysis: &Analysis) -> String {
    let mut links: Vec<(usize, usize, u32, ArchReg)> =
        analysis.register_deps.iter().map(|l| (l.writer, l.reader, l.delta, l.reg)).collect();
    links.sort_unstable();
    links.dedup();
    let flags = links.iter().filter(|(.., reg)| reg.is_flag()).count();
    let mut memory: Vec<(usize, usize, u32)> =
        analysis.memory.dependencies.iter().map(|c| (c.writer, c.reader, c.delta)).collect();
    memory.sort_unstable();
    memory.dedup();
    let incomplete = analysis.unmodelled(code).count();
    let bound = analysis.recurrences.first();
    let high = analysis.recurrences.iter().map(|r| r.high).reduce(f64::max);
    csv::row([
        hex.to_owned(),
        "ok".to_owned(),
        String::new(),
        code.instructions.len().to_string(),
        (links.len() - flags).to_string(),
        flags.to_string(),
        memory.len().to_string(),
        may_alias_pairs(&analysis.memory.classes).count().to_string(),
        incomplete.to_string(),
        analysis.memory.opaque.len().to_string(),
        number(bound.map(|r| r.low)),
        number(bound.map(|r| r.low)),
        number(high),
    ])
}

/// The row of a block that is no code.
pub fn rejected(hex: &str, reason: &str) -> String {
    let columns = HEADER.split(',').count();
    let empty = std::iter::repeat_n("", columns - 3);
    csv::row([hex, "rejected", reason].into_iter().chain(empty))
}
