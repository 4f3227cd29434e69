//! Places of addresses, remembered.

use profile::address_space::{AddressSpaces, ModuleAddress};

/// Addresses resolved lately: the branches of a program are few.
pub(super) struct Memo {
    slots: Vec<Option<Remembered>>,
    /// How often the mappings have changed.
    now: u64,
}

/// An address as it was resolved after so many changes of the mappings.
#[derive(Clone, Copy)]
struct Remembered {
    at: u64,
    pid: u32,
    ip: u64,
    place: Option<ModuleAddress>,
}

/// Addresses that a memo holds, a power of 2.
const REMEMBERED: usize = 1 << 12;

impl Memo {
    pub fn new() -> Self {
        Self { slots: vec![None; REMEMBERED], now: 0 }
    }

    /// After the mappings have changed.
    pub fn clear(&mut self) {
        self.now += 1;
    }

    pub fn resolve(
        &mut self,
        spaces: &mut AddressSpaces,
        pid: u32,
        ip: u64,
    ) -> Option<ModuleAddress> {
        let slot = &mut self.slots[(ip ^ (ip >> 12) ^ u64::from(pid)) as usize % REMEMBERED];
        match slot {
            Some(known) if (known.at, known.pid, known.ip) == (self.now, pid, ip) => known.place,
            _ => {
                let place = spaces.resolve(pid, ip, None);
                *slot = Some(Remembered { at: self.now, pid, ip, place });
                place
            }
        }
    }
}
