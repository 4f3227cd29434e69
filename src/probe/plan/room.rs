//! Free addresses around a module, for trampolines, and the use of a function's bytes by probes.

use super::site::{JUMP, Kind};
use crate::facts::Function;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Most pages with trampolines that are tried before a new page is taken.
const MOST_TRIED: usize = 16;

/// Free addresses of a process.
#[derive(Debug, Clone, Default)]
pub struct Room {
    /// Added to a p_vaddr of the module.
    bias: u64,
    /// Unmapped ranges: start → end.
    free: BTreeMap<u64, u64>,
    /// Ranges taken only if no other will do: start → end.
    spare: BTreeMap<u64, u64>,
    /// Whether spare ranges may be taken.
    is_wide: bool,
    /// Pages with trampolines: start → end of the last trampoline.
    pages: BTreeMap<u64, u64>,
    /// Pages that were changed since [`Self::mark`], and what they had before.
    changed: Vec<(u64, Option<u64>)>,
}

impl Room {
    /// Room in unmapped ranges for a module that is mapped at `bias` + p_vaddr.
    pub fn new(free: impl IntoIterator<Item = Range<u64>>, bias: u64) -> Self {
        let free = free.into_iter().map(|range| (range.start, range.end)).collect();
        Self { bias, free, ..Self::default() }
    }

    /// Adds spare ranges, taken only if no other will do.
    #[must_use]
    pub fn sparing(mut self, spare: impl IntoIterator<Item = Range<u64>>) -> Self {
        self.spare = spare.into_iter().map(|range| (range.start, range.end)).collect();
        self
    }

    /// Whether the module is at its own addresses.
    pub fn is_fixed(&self) -> bool {
        self.bias == 0
    }

    /// Sets whether spare ranges may be taken.
    pub fn widen(&mut self, is_wide: bool) {
        self.is_wide = is_wide;
    }

    /// Takes `length` bytes that begin in the `most` bytes from `start` (p_vaddr) on.
    pub fn take(&mut self, start: u64, most: u64, length: u64) -> Option<u64> {
        let start = start.wrapping_add(self.bias);
        let found = self.take_at(start..start.checked_add(most)?, length)?;
        Some(found.wrapping_sub(self.bias))
    }

    fn take_at(&mut self, window: Range<u64>, length: u64) -> Option<u64> {
        let first = window.start & !(PAGE - 1);
        let used = self.pages.range(first..window.end).rev().take(MOST_TRIED);
        for (page, used) in used.map(|(page, used)| (*page, *used)) {
            let at = used.max(window.start);
            if at < window.end && at + length <= page + PAGE {
                self.fill(page, at + length);
                return Some(at);
            }
        }
        let mut at = window.start;
        while at < window.end {
            let page = at & !(PAGE - 1);
            let Some(free) = self.free_from(page) else { break };
            if free != page {
                at = free;
                continue;
            }
            if at + length <= page + PAGE && !self.pages.contains_key(&page) {
                self.fill(page, at + length);
                return Some(at);
            }
            at = page.checked_add(PAGE)?;
        }
        None
    }

    fn fill(&mut self, page: u64, end: u64) {
        let before = self.pages.insert(page, end);
        self.changed.push((page, before));
    }

    /// Marks what is taken now, for [`Self::give_back`].
    pub fn mark(&mut self) {
        self.changed.clear();
    }

    /// Gives back all that was taken since the mark.
    pub fn give_back(&mut self) {
        while let Some((page, before)) = self.changed.pop() {
            match before {
                Some(end) => self.pages.insert(page, end),
                None => self.pages.remove(&page),
            };
        }
    }

    /// The first free page from `page` on.
    fn free_from(&self, page: u64) -> Option<u64> {
        let first_in = |free: &BTreeMap<u64, u64>| {
            let range = free.range(..=page).next_back();
            if range.is_some_and(|(_, end)| page + PAGE <= *end) {
                return Some(page);
            }
            free.range(page..).next().map(|(start, _)| *start)
        };
        let spare = first_in(&self.spare).filter(|_| self.is_wide);
        first_in(&self.free).into_iter().chain(spare).min()
    }

    /// Addresses in the process of the pages with trampolines.
    pub fn pages(&self) -> impl Iterator<Item = u64> {
        self.pages.keys().copied()
    }
}

/// Use of a byte of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Free,
    /// End of the displacement of a pun: must not change.
    Fixed,
    /// Written, or executed elsewhere.
    Moved,
}

/// The bytes of a function, with their uses.
pub(super) struct Bytes {
    start: u64,
    bytes: Vec<(u8, Use)>,
}

impl Bytes {
    /// All bytes free.
    pub fn new(function: &Function) -> Self {
        let bytes = function.bytes.iter().map(|byte| (*byte, Use::Free)).collect();
        Self { start: function.range.start, bytes }
    }

    fn at(&mut self, range: Range<u64>) -> &mut [(u8, Use)] {
        let inside = |address: u64| ((address - self.start) as usize).min(self.bytes.len());
        let range = inside(range.start)..inside(range.end);
        &mut self.bytes[range]
    }

    /// Takes the bytes of a probe over these instructions, if all are free; the address of the
    /// trampoline of a pun, for `length` bytes at an address for which `reaches` holds.
    pub fn take(
        &mut self,
        kind: Kind,
        own: Range<u64>,
        room: &mut Room,
        length: u64,
        reaches: impl Fn(u64) -> bool,
    ) -> Option<Option<u64>> {
        if self.at(own.clone()).iter().any(|(_, used)| *used != Use::Free) {
            return None;
        }
        let mut far = None;
        if kind.is_pun() {
            let jump = own.start + kind.prefixes()..own.end;
            let rest = own.end..jump.start + JUMP;
            let tail = self.at(rest.clone());
            if tail.iter().any(|(_, used)| *used == Use::Moved) {
                return None;
            }
            let tail: Vec<u8> = tail.iter().map(|(byte, _)| *byte).collect();
            far = Some(pun(&jump, &tail, room, length).filter(|at| reaches(*at))?);
            self.at(rest).iter_mut().for_each(|byte| byte.1 = Use::Fixed);
        }
        self.at(own).iter_mut().for_each(|byte| byte.1 = Use::Moved);
        Some(far)
    }
}

/// A possible address for the trampoline of a pun. `tail` are the bytes after its instruction.
fn pun(own: &Range<u64>, tail: &[u8], room: &mut Room, length: u64) -> Option<u64> {
    let own_length = (own.end - own.start) as usize;
    let (mut low, mut high) = ([0; 4], [0xff; 4]);
    for at in own_length..JUMP as usize {
        low[at - 1] = *tail.get(at - own_length)?;
        high[at - 1] = low[at - 1];
    }
    // The last byte has the sign, and is never free.
    let base = own.start + JUMP;
    let (low, high) = (i32::from_le_bytes(low), i32::from_le_bytes(high));
    let most = u64::from(high.abs_diff(low)) + 1;
    room.take(base.wrapping_add_signed(low.into()), most, length)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONGEST: u64 = 96;

    #[test]
    fn trampolines_share_a_page_and_leave_what_is_mapped() {
        let mut room = Room::new([0x1000..0x3000, 0x8000..0x9000], 0);
        assert_eq!(room.take(0x1010, 0x10, LONGEST), Some(0x1010));
        assert_eq!(room.take(0x1000, 0x100, LONGEST), Some(0x1010 + LONGEST));
        assert_eq!(room.take(0x3000, 0x5000, LONGEST), None);
        // The end of a page has no room; the next page has.
        assert_eq!(room.take(0x1ff0, 0x20, LONGEST), Some(0x2000));
        assert_eq!(room.take(0x8fff, 2, LONGEST), None);
        assert_eq!(room.pages().collect::<Vec<_>>(), [0x1000, 0x2000]);
        // Below a module at 0x8000: its p_vaddr are negative.
        let mut below = Room::new(std::iter::once(0x1000..0x8000), 0x8000);
        assert_eq!(
            below.take(0x1000_u64.wrapping_neg(), 1, LONGEST),
            Some(0x1000_u64.wrapping_neg())
        );
        assert_eq!(below.pages().collect::<Vec<_>>(), [0x7000]);
        // Spare ranges are taken if nothing else will do.
        room.mark();
        assert_eq!(room.take(0x1010, 0x1000, LONGEST), Some(0x1010 + 2 * LONGEST));
        assert_eq!(room.take(0x8000, 1, LONGEST), Some(0x8000));
        room.give_back();
        assert_eq!(room.pages().collect::<Vec<_>>(), [0x1000, 0x2000]);
        assert_eq!(room.take(0x1010, 0x1000, LONGEST), Some(0x1010 + 2 * LONGEST));
        let mut room =
            Room::new(std::iter::once(0x1000..0x2000), 0).sparing(std::iter::once(0x5000..0x6000));
        assert_eq!(room.take(0x5000, 0x100, LONGEST), None);
        room.widen(true);
        assert_eq!(room.take(0x5000, 0x100, LONGEST), Some(0x5000));
        assert_eq!(room.take(0x1000, 0x5000, LONGEST), Some(0x5000 + LONGEST));
    }
}
