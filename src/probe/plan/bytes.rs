//! Use of the bytes of a function by probes.

use super::room::Room;
use super::site::{JUMP, Kind};
use crate::facts::Function;
use std::ops::Range;

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
        if kind == Kind::Pun {
            let rest = own.end..own.start + JUMP;
            let tail = self.at(rest.clone());
            if tail.iter().any(|(_, used)| *used == Use::Moved) {
                return None;
            }
            let tail: Vec<u8> = tail.iter().map(|(byte, _)| *byte).collect();
            far = Some(pun(&own, &tail, room, length).filter(|at| reaches(*at))?);
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
