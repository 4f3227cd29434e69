//! The samples of a function by source line.

use super::function::HotLine;
use super::profile::Profile;
use std::collections::BTreeMap;

impl Profile {
    /// The samples of the function at `index` by source line, inlined lines too; `None`: no line is known.
    pub fn own_lines(&mut self, index: usize) -> Vec<(Option<HotLine>, u64)> {
        let Some(addresses) = self.addresses.get(index).cloned() else { return Vec::new() };
        if addresses.is_empty() {
            // Outside all mappings.
            return vec![(None, self.functions[index].samples)];
        }
        let mut lines: BTreeMap<(String, u32), (Option<HotLine>, u64)> = BTreeMap::new();
        for (address, tally) in addresses {
            let line = self.line_at(index, address);
            let key = line.as_ref().map_or_else(Default::default, |l| (l.file.clone(), l.line));
            lines.entry(key).or_insert((line, 0)).1 += tally.samples;
        }
        lines.into_values().collect()
    }
}
