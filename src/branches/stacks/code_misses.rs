//! Windows that end in a miss of the instruction cache → missed lines, and the code that ran before: where a
//! prefetch of the line could be.
//!
//! A site is a block entered by a taken branch some cycles before the miss: early enough for the line to come,
//! and late enough that it is still there. Ayers et al., "AsmDB" (ISCA 2019); the distances are those of Khan
//! et al., "I-SPY" (MICRO 2020).

use super::window::Window;
use profile::address_space::ModuleAddress;
use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;

/// Cycles between a site and the miss.
pub const DISTANCE: RangeInclusive<u64> = 27..=200;
/// Bytes of a cache line.
const LINE: u64 = 64;

/// A block before a miss.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Before {
    /// Misses of the line that it came before, at a distance of [`DISTANCE`].
    pub misses: u64,
    /// Σ cycles between.
    pub cycles: u64,
}

/// A line that was missed.
#[derive(Debug, Clone, Default)]
pub struct MissedLine {
    /// Samples.
    pub samples: u64,
    /// Samples with a block at the distance.
    pub reached: u64,
    /// The blocks.
    pub before: HashMap<ModuleAddress, Before>,
}

/// Missed lines by the address of their first byte.
#[derive(Debug, Clone, Default)]
pub struct CodeMisses {
    /// Samples in known modules.
    pub samples: u64,
    /// Whether any branch has cycles.
    pub has_cycles: bool,
    /// The lines.
    pub lines: HashMap<ModuleAddress, MissedLine>,
}

impl CodeMisses {
    /// Whether the event of this name samples misses of the instruction cache or its TLB.
    pub fn samples_misses(event: &str) -> bool {
        let name = event.to_ascii_lowercase();
        ["frontend_retired", "icache", "l1i", "itlb"].iter().any(|part| name.contains(part))
    }

    /// Adds a window.
    pub fn add(&mut self, window: &Window) {
        let Some(place) = window.place else { return };
        let line = ModuleAddress { address: place.address / LINE * LINE, ..place };
        self.samples += 1;
        let own = self.lines.entry(line).or_default();
        own.samples += 1;
        let (mut distance, mut seen) = (0_u64, BTreeSet::new());
        for step in window.steps.iter().rev() {
            if let Some(site) = step.to.filter(|_| DISTANCE.contains(&distance))
                && seen.insert(site)
            {
                let before = own.before.entry(site).or_default();
                before.misses += 1;
                before.cycles += distance;
            }
            // Anything before a missing time is at an unknown distance.
            let Some(cycles) = step.cycles else { break };
            self.has_cycles = true;
            distance += u64::from(cycles);
        }
        own.reached += u64::from(!seen.is_empty());
    }

    /// How many lines a block comes before: a prefetch there is for one of them only.
    pub fn fan_out(&self, site: ModuleAddress) -> usize {
        self.lines.values().filter(|line| line.before.contains_key(&site)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::window::Step;
    use super::*;

    fn at(address: u64) -> ModuleAddress {
        ModuleAddress { module: 0, address }
    }

    /// By hand: 10 + 30 cycles after 0x200 was entered, 10 after 0x300.
    #[test]
    fn blocks_at_a_distance_are_sites() {
        let step = |to, cycles| Step {
            edge: 0,
            from: Some(at(to - 4)),
            to: Some(at(to)),
            mispredicted: None,
            cycles: Some(cycles),
        };
        let mut misses = CodeMisses::default();
        let window = Window {
            place: Some(at(0x1044)),
            steps: vec![step(0x100, 9), step(0x200, 500), step(0x300, 30), step(0x1000, 10)],
            entries: 4,
            ..Window::default()
        };
        misses.add(&window);
        misses.add(&Window { place: Some(at(0x1041)), ..Window::default() });
        let line = &misses.lines[&at(0x1040)];
        assert_eq!((line.samples, line.reached), (2, 1));
        assert_eq!(line.before.len(), 1, "too near: 0x300 and 0x1000; too far: 0x100");
        assert_eq!(line.before[&at(0x200)], Before { misses: 1, cycles: 40 });
        assert_eq!(misses.fan_out(at(0x200)), 1);
        assert!(CodeMisses::samples_misses("frontend_retired.l1i_miss:upp"));
        assert!(!CodeMisses::samples_misses("cycles:u"));
    }
}
