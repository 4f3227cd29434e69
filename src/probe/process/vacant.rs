//! Unmapped addresses of a process.

use super::maps::Mapping;
use std::fs;
use std::ops::Range;

/// End of user space (x86-64, four-level paging), less a page.
const END: u64 = 0x7fff_ffff_f000;
/// Default of the lowest address that may be mapped.
const LOWEST: u64 = 64 << 10;
/// Preferred distance to the module.
const DISTANCE: u64 = 16 << 20;
/// Bytes left free for growth of heap and stack.
const GROWTH: u64 = 256 << 20;
/// Bytes always left free for a heap: if it cannot grow, malloc(3) maps memory elsewhere.
const LEAST: u64 = 64 << 20;

/// Unmapped ranges, in order, without room for growth of heap and stack.
pub fn vacant(pid: i32, mappings: &[Mapping]) -> Vec<Range<u64>> {
    vacant_but(pid, mappings, GROWTH)
}

/// Unmapped ranges, including those into which the heap grows later.
pub fn vacant_yet(pid: i32, mappings: &[Mapping]) -> Vec<Range<u64>> {
    vacant_but(pid, mappings, LEAST)
}

/// Unmapped ranges without `growth` bytes for a heap.
fn vacant_but(pid: i32, mappings: &[Mapping], growth: u64) -> Vec<Range<u64>> {
    let lowest = fs::read_to_string("/proc/sys/vm/mmap_min_addr");
    let lowest = lowest.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0).max(LOWEST);
    let mut taken: Vec<Range<u64>> = mappings.iter().map(|m| m.start..m.end).collect();
    let stacks = mappings.iter().filter(|m| m.path == "[stack]");
    taken.extend(stacks.map(|m| m.start.saturating_sub(GROWTH)..m.start));
    let end = mappings.iter().find(|m| m.path == "[heap]").map_or(0, |m| m.end);
    let grown = |start: u64| start..(start + growth).max(end + growth.min(LEAST));
    taken.extend(heap(pid).map(grown));
    // Also below the page of vsyscall, at the end of the address space.
    taken.push(END..u64::MAX);
    taken.sort_by_key(|range| range.start);
    let (mut free, mut end) = (Vec::new(), lowest);
    for range in taken {
        if end < range.start {
            free.push(end..range.start);
        }
        end = end.max(range.end);
    }
    free
}

/// Start of the heap, which may not be mapped yet: field 47 of proc_pid_stat(5).
fn heap(pid: i32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field, a name in parentheses, may have spaces.
    stat.rsplit_once(')')?.1.split_whitespace().nth(47 - 3)?.parse().ok()
}

/// An address for `length` bytes with all distances to `module` below `reach`: in the widest range,
/// rather below the module than above, and away from growing memory.
pub fn near(vacant: &[Range<u64>], module: &Range<u64>, length: u64, reach: u64) -> Option<u64> {
    let low = module.end.saturating_sub(reach);
    let high = module.start.saturating_add(reach);
    let fits = |range: &Range<u64>| {
        let (start, end) = (range.start.max(low), range.end.min(high));
        let room = end.checked_sub(start)?.checked_sub(length)?;
        // Close to the module, but out of the way of the heap after it.
        let above = range.start >= module.end;
        let away = DISTANCE.min(room / 2);
        let at = if above { start + away.max(room / 2) } else { end - length - away };
        Some((above, std::cmp::Reverse(away), at & !0xfff)).filter(|_| at & !0xfff >= start)
    };
    vacant.iter().filter_map(fits).min().map(|(_, _, at)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_heap_where_its_mappings_say() {
        let pid = std::process::id().cast_signed();
        let all = super::super::maps::mappings(pid);
        let Some(mapped) = all.iter().find(|m| m.path == "[heap]") else { return };
        assert_eq!(heap(pid), Some(mapped.start));
        assert!(vacant(pid, &all).iter().all(|r| r.end <= mapped.start || r.start >= mapped.end));
    }

    #[test]
    fn room_is_found_below_a_module_or_else_above_its_heap() {
        let module = 0x4000_0000..0x4001_0000;
        let below = [0x1_0000..0x4000_0000, 0x4100_0000..0x8000_0000];
        let at = near(&below, &module, 0x4000, 1 << 31).unwrap();
        assert!(at < module.start && module.start - at < 32 << 20, "{at:#x}");
        let above: Vec<_> = std::iter::once(0x4100_0000..0x10_0000_0000).collect();
        let at = near(&above, &module, 0x4000, 1 << 31).unwrap();
        assert!(at > 0x6000_0000 && at + 0x4000 - module.start < 1 << 31, "{at:#x}");
        assert_eq!(near(&above, &module, 0x4000, 1 << 20), None);
    }
}
