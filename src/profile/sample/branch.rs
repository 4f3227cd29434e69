//! The BRANCH_STACK field: the last branches taken, newest first.

use super::cursor::{Cursor, Malformed};
use super::fields::Branch;
use pmu::records::format::{SampleFormat, branch, field};

/// `PERF_BR_EXTEND_ABI`: the kind is in `new_type`.
const EXTENDED: u8 = 15;
/// `PERF_BR_SPEC_WRONG_PATH`.
const WRONG_PATH: u64 = 1;

/// Words around the entries. The format alone does not decide them: the kernel leaves the index out of a sample without
/// a stack, and the counts out if the hardware gave none. The layout that uses up the body is the right one.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The index precedes the entries, if there are any.
    index: bool,
    /// The index is there without entries, too.
    index_of_none: bool,
    /// A word of counts for each entry follows them.
    counters: bool,
}

impl Layout {
    /// The layouts that a sample of this format may have, the most likely first.
    pub fn possible(format: &SampleFormat) -> &'static [Self] {
        const fn of(index: bool, index_of_none: bool, counters: bool) -> Layout {
            Layout { index, index_of_none, counters }
        }
        const PLAIN: &[Layout] = &[of(false, false, false)];
        const INDEX: &[Layout] = &[of(true, true, false), of(true, false, false)];
        const COUNTERS: &[Layout] = &[of(false, false, true), of(false, false, false)];
        const BOTH: &[Layout] =
            &[of(true, true, true), of(true, true, false), of(true, false, false)];
        if format.sample_type & field::BRANCH_STACK == 0 {
            return PLAIN;
        }
        let has = |bit| format.branch_sample_type & bit != 0;
        match (has(branch::HW_INDEX), has(branch::COUNTERS)) {
            (false, false) => PLAIN,
            (true, false) => INDEX,
            (false, true) => COUNTERS,
            (true, true) => BOTH,
        }
    }
}

/// Decodes a BRANCH_STACK field.
pub fn decode(body: &mut Cursor, layout: Layout) -> Result<Vec<Branch>, Malformed> {
    let count = body.u64("BRANCH_STACK")?;
    if if count == 0 { layout.index_of_none } else { layout.index } {
        body.u64("BRANCH_STACK")?;
    }
    let entries = body.words::<3>(count, "BRANCH_STACK")?;
    let mut branches: Vec<Branch> = entries.map(entry).collect();
    if layout.counters {
        body.bytes(count.saturating_mul(8), "BRANCH_STACK")?;
    }
    if branches.iter().all(|b| b.cycles == Some(0)) {
        branches.iter_mut().for_each(|b| b.cycles = None);
    }
    Ok(branches)
}

/// `struct perf_branch_entry`: mispred:1, predicted:1, in_tx:1, abort:1, cycles:16, type:4, spec:2,
/// new_type:4, priv:3.
fn entry([from, to, flags]: [u64; 3]) -> Branch {
    let bit = |n: u32| flags >> n & 1 != 0;
    let kind = (flags >> 20 & 15) as u8;
    Branch {
        from,
        to,
        mispredicted: (bit(0) || bit(1)).then(|| bit(0)),
        transaction: (bit(2), bit(3)),
        cycles: Some((flags >> 4) as u16),
        kind: if kind == EXTENDED { 16 + (flags >> 26 & 15) as u8 } else { kind },
        wrong_path: flags >> 24 & 3 == WRONG_PATH,
    }
}
