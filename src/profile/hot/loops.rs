//! The hottest loops.

use super::code::{HotBlock, HotLoop};
use super::profile::Profile;

impl Profile {
    /// The hottest loops of the hottest functions, each less the loops within it, hottest first.
    pub fn loops(&mut self, most: usize) -> Vec<HotLoop> {
        let mut all: Vec<(HotLoop, HotBlock)> = Vec::new();
        for index in 0..self.functions.len() {
            // Functions come in order of share; no loop is hotter than its function.
            let last = most.checked_sub(1).and_then(|last| all.get(last));
            if self.functions[index].share < last.map_or(0.0, |(of, _)| of.whole.share) {
                break;
            }
            let function = self.functions[index].clone();
            let Ok(flow) = self.flow(index, &function) else { continue };
            for (number, of) in flow.loops.iter().enumerate() {
                let is_own = |block: &&usize| flow.blocks[**block].innermost == Some(number);
                let own = of.blocks.iter().filter(is_own).map(|b| self.place_of(index, &flow, *b));
                let own: Vec<HotBlock> = own.collect();
                let hottest = own.iter().max_by(|a, b| a.share.total_cmp(&b.share)).cloned();
                let Some(hottest) = hottest.filter(|block| block.samples > 0) else { continue };
                let whole = HotBlock {
                    function: index,
                    start: of.blocks.iter().map(|b| flow.blocks[*b].start).min().unwrap_or(0),
                    end: of.blocks.iter().map(|b| flow.blocks[*b].end).max().unwrap_or(0),
                    share: own.iter().map(|block| block.share).sum(),
                    samples: own.iter().map(|block| block.samples).sum(),
                    loop_depth: of.depth,
                    ..HotBlock::default()
                };
                let head = flow.blocks[of.head].start;
                all.push((HotLoop { head, blocks: of.blocks.len(), whole }, hottest));
            }
            let hotter = |a: &HotLoop, b: &HotLoop| b.whole.share.total_cmp(&a.whole.share);
            all.sort_by(|a, b| hotter(&a.0, &b.0).then(a.0.head.cmp(&b.0.head)));
            all.truncate(most);
        }
        let with_line = |(mut of, mut hottest): (HotLoop, HotBlock)| {
            self.find_line(&mut hottest);
            (of.whole.file, of.whole.line) = (hottest.file, hottest.line);
            of.whole.inlined = hottest.inlined;
            of
        };
        all.into_iter().map(with_line).collect()
    }
}
