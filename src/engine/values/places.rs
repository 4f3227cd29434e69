//! The memory that addresses in registers point to.

use probe::bursts::{Record, Region};
use std::sync::Arc;

/// Bits of an address in a page.
const PAGE: u32 = 12;

/// The memory that a record's value points to, by what was seen of it: `stack` (of its thread), `heap`, the name of a
/// file, `anonymous memory`.
pub fn place<'a>(memory: &'a [Arc<Vec<Region>>], record: &Record) -> Option<&'a str> {
    memory.iter().find_map(|seen| within(seen, record))
}

fn within<'a>(memory: &'a [Region], record: &Record) -> Option<&'a str> {
    let index = memory.partition_point(|r| r.range.start <= record.value).checked_sub(1)?;
    let region = memory.get(index).filter(|r| r.range.contains(&record.value))?;
    let (first, end) = (region.range.start >> PAGE, region.range.end >> PAGE);
    // A record has the lower 32 bits of the number of the stack's page.
    let to_stack = record.stack.wrapping_sub(first as u32);
    Some(match region.of.as_str() {
        _ if u64::from(to_stack) < end - first => "stack",
        "" => "anonymous memory",
        of => name(of),
    })
}

/// `[heap]` → `heap`, `/lib/libc.so.6` → `libc.so.6`.
fn name(of: &str) -> &str {
    match of.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(name) => name,
        None => of.rsplit('/').next().unwrap_or(of),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_by_the_mappings() {
        let region = |range: std::ops::Range<u64>, of: &str| Region { range, of: of.to_owned() };
        let memory = [
            region(0x40_0000..0x40_1000, "/bin/a"),
            region(0x50_0000..0x52_1000, "[heap]"),
            region(0x7f00_0000_0000..0x7f00_0080_0000, ""),
            region(0x7f00_1000_0000..0x7f00_1000_2000, ""),
        ];
        let later = [region(0x60_0000..0x60_1000, "/lib/b.so")];
        let memory = [later.to_vec(), memory.to_vec()].map(Arc::new);
        let at = |value| {
            let record = Record { site: 0, part: 0, stack: 0xf000_007f, value };
            place(&memory, &record)
        };
        let found =
            [0x40_0010, 0x60_0008, 0x50_0000, 0x7f00_0012_3450, 0x7f00_1000_0000, 0x60_1000];
        let named = ["a", "b.so", "heap", "stack", "anonymous memory"].map(Some);
        assert_eq!(found.map(at)[..5], named);
        assert_eq!(at(found[5]), None);
    }
}
