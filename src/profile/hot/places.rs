//! Samples per address. Programs have few hot instructions, so their places are cached.

use super::tally::Tally;
use crate::address_space::{AddressSpaces, ModuleAddress};
use crate::sample::Sample;
use std::collections::HashMap;

/// Cached addresses in memory, a power of two.
const AT_HAND: usize = 1 << 12;

/// Sums by address; `None`: no mapping is known there.
#[derive(Debug, Default)]
pub struct Places {
    sums: Vec<(Option<ModuleAddress>, Tally)>,
    /// Positions in `sums`.
    numbers: HashMap<Option<ModuleAddress>, usize>,
    /// Addresses in memory, by some of their bits; empty, or [`AT_HAND`] long.
    at_hand: Vec<Option<(Key, usize)>>,
}

/// Key of the mapping at a sample: process, address, mode.
type Key = (u32, u64, Option<bool>);

impl Places {
    /// Adds a sample, and returns its address.
    pub fn add(
        &mut self,
        sample: &Sample,
        tally: Tally,
        spaces: &mut AddressSpaces,
    ) -> Option<ModuleAddress> {
        let number = match sample.ip {
            Some(ip) => self.find((sample.pid.unwrap_or(u32::MAX), ip, sample.user), spaces),
            None => self.number(None),
        };
        let (place, sum) = &mut self.sums[number];
        sum.add(tally);
        *place
    }

    /// To be called when mappings change.
    pub fn forget(&mut self) {
        self.at_hand.clear();
    }

    /// The sums.
    pub fn into_sums(self) -> Vec<(Option<ModuleAddress>, Tally)> {
        self.sums
    }

    fn find(&mut self, key: Key, spaces: &mut AddressSpaces) -> usize {
        let (pid, ip, user) = key;
        let slot = (ip ^ ip >> 12 ^ u64::from(pid)) as usize % AT_HAND;
        if let Some(Some((known, number))) = self.at_hand.get(slot)
            && *known == key
        {
            return *number;
        }
        let number = self.number(spaces.resolve(pid, ip, user));
        self.at_hand.resize(AT_HAND, None);
        self.at_hand[slot] = Some((key, number));
        number
    }

    fn number(&mut self, place: Option<ModuleAddress>) -> usize {
        let sums = &mut self.sums;
        *self.numbers.entry(place).or_insert_with(|| {
            sums.push((place, Tally::default()));
            sums.len() - 1
        })
    }
}
