//! Collects how and where samples in the kernel entered it; `entered` resolves that.

use super::tally::Tally;
use crate::address_space::{AddressSpaces, ModuleAddress};
use crate::sample::{Context, Sample};
use std::collections::{BTreeMap, HashMap};

/// Outermost frames of the kernel that are kept: the entry, and what it calls.
const OUTER: usize = 3;

/// An entry: the outermost frames of the kernel, and the user code.
pub type Key = ([Option<ModuleAddress>; OUTER], Option<ModuleAddress>);

/// The entries of samples in the kernel.
#[derive(Debug, Default)]
pub struct Entries {
    /// Samples in the kernel.
    pub by: HashMap<Key, Tally>,
    /// Threads with samples.
    pub threads: BTreeMap<u32, u64>,
}

impl Entries {
    /// Adds a sample.
    pub fn take(&mut self, sample: &Sample, spaces: &mut AddressSpaces) {
        sample.tid.into_iter().for_each(|tid| *self.threads.entry(tid).or_default() += 1);
        if sample.user != Some(false) {
            return;
        }
        let pid = sample.pid.unwrap_or(u32::MAX);
        let mut outer = [None; OUTER];
        let kernel = sample.chain.iter().enumerate().rev();
        let kernel = kernel.filter(|(_, frame)| frame.context == Context::Kernel);
        for (place, (number, frame)) in outer.iter_mut().zip(kernel) {
            // The call, not the return address.
            let ip = frame.ip.saturating_sub(u64::from(number > 0));
            *place = spaces.resolve(pid, ip, Some(false));
        }
        let user = sample.chain.iter().find(|frame| frame.context == Context::User);
        let user = user.and_then(|frame| spaces.resolve(pid, frame.ip, Some(true)));
        self.by.entry((outer, user)).or_default().add(Tally::of(sample));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::SearchPaths;
    use crate::sample::Frame;

    #[test]
    fn only_samples_in_the_kernel_have_entered_it() {
        let mut spaces = AddressSpaces::new(SearchPaths::default(), &[]);
        let mut entries = Entries::default();
        let frame = |ip, context| Frame { ip, context };
        let chain = [frame(0x10, Context::Kernel), frame(0x20, Context::User)];
        for (tid, user) in [(1, Some(false)), (2, Some(true)), (1, Some(false))] {
            let mut sample = Sample::default();
            (sample.tid, sample.user, sample.chain) = (Some(tid), user, Box::new(chain));
            entries.take(&sample, &mut spaces);
        }
        assert_eq!(entries.threads.len(), 2);
        assert_eq!(entries.by.values().map(|tally| tally.samples).collect::<Vec<_>>(), [2]);
    }
}
