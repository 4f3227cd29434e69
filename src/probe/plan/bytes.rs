//! The bytes of a function: which of them probes have taken.

use super::room::Room;
use super::site::{JUMP, Kind};
use crate::facts::Function;
use std::ops::Range;

/// What a byte of code is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Free,
    /// The end of the displacement of a pun: it must stay as it is.
    Kept,
    /// Written, or executed elsewhere.
    Moved,
}

/// The bytes of a function, with their uses.
pub(super) struct Bytes {
    start: u64,
    bytes: Vec<(u8, Use)>,
}

impl Bytes {
    /// All of them free.
    pub fn new(function: &Function) -> Self {
        let bytes = function.bytes.iter().map(|byte| (*byte, Use::Free)).collect();
        Self { start: function.range.start, bytes }
    }

    fn at(&mut self, range: Range<u64>) -> &mut [(u8, Use)] {
        let inside = |address: u64| ((address - self.start) as usize).min(self.bytes.len());
        let range = inside(range.start)..inside(range.end);
        &mut self.bytes[range]
    }

    /// Takes the bytes of a probe over these instructions, if all of them can be had; where the
    /// trampoline of a pun lies, which may have `length` bytes and `reaches` what it must from there.
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
            self.at(rest).iter_mut().for_each(|byte| byte.1 = Use::Kept);
        }
        self.at(own).iter_mut().for_each(|byte| byte.1 = Use::Moved);
        Some(far)
    }
}

/// Where the trampoline of a pun can lie. `tail` are the bytes after its instruction.
fn pun(own: &Range<u64>, tail: &[u8], room: &mut Room, length: u64) -> Option<u64> {
    let own_length = (own.end - own.start) as usize;
    let (mut low, mut high) = ([0; 4], [0xff; 4]);
    for at in own_length..JUMP as usize {
        low[at - 1] = *tail.get(at - own_length)?;
        high[at - 1] = low[at - 1];
    }
    // The sign is in the last byte, which is never free.
    let base = own.start + JUMP;
    let (low, high) = (i32::from_le_bytes(low), i32::from_le_bytes(high));
    let most = u64::from(high.abs_diff(low)) + 1;
    room.take(base.wrapping_add_signed(low.into()), most, length)
}
