//! An exact matching of events to counters: the greedy pass, else augmenting paths.

use super::bits::Bits;

const UNOWNED: u16 = u16::MAX;
const WATCHDOG: u16 = u16::MAX - 1;

/// The owner of each counter in a matching that serves all of `set` and the `watchdog`, on the counters that are `free`;
/// `masks` are the counters of each event, 0 of those that need none.
pub(super) fn owners(set: &Bits, masks: &[u64], free: u64, watchdog: u64) -> Option<[u16; 64]> {
    let mut matching = Matching { owner: [UNOWNED; 64], free, masks, watchdog };
    for i in set.iter() {
        let mask = masks[i];
        if mask != 0 && !matching.place(i as u16, mask) {
            return None;
        }
    }
    if watchdog != 0 && !matching.place(WATCHDOG, watchdog) {
        return None;
    }
    Some(matching.owner)
}

/// Events by number, with the counters that each may have.
struct Matching<'a> {
    owner: [u16; 64],
    free: u64,
    masks: &'a [u64],
    watchdog: u64,
}

impl Matching<'_> {
    /// Gives event `i` a counter of `mask`, moving others if that is what it takes.
    fn place(&mut self, i: u16, mask: u64) -> bool {
        let open = mask & self.free;
        if open != 0 {
            // The highest: a fixed counter where there is one, and the low general counters,
            // which most restricted events ask for, stay free.
            self.take(63 - open.leading_zeros() as usize, i);
            return true;
        }
        let mut tried = 0;
        self.augment(i, mask, &mut tried)
    }

    fn take(&mut self, counter: usize, i: u16) {
        self.owner[counter] = i;
        self.free &= !(1 << counter);
    }

    fn augment(&mut self, i: u16, mask: u64, tried: &mut u64) -> bool {
        let open = mask & self.free;
        if open != 0 {
            self.take(63 - open.leading_zeros() as usize, i);
            return true;
        }
        loop {
            let next = mask & !*tried;
            if next == 0 {
                return false;
            }
            let counter = next.trailing_zeros() as usize;
            *tried |= 1 << counter;
            let other = self.owner[counter];
            if other == UNOWNED {
                continue; // a counter outside the budget
            }
            let others_mask = match other {
                WATCHDOG => self.watchdog,
                e => self.masks[usize::from(e)],
            };
            if self.augment(other, others_mask, tried) {
                self.owner[counter] = i;
                return true;
            }
        }
    }
}
