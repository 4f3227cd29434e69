//! The source lines with most samples.

use super::function::HotLine;
use super::profile::Profile;
use super::tally::Tally;
use crate::module::ModuleAddress;

/// Addresses whose lines are looked up for one function, hottest first.
const LOOKED_UP: usize = 256;

impl Profile {
    /// Finds the line with most samples of each of the `most` hottest functions.
    pub fn find_hottest_lines(&mut self, most: usize) {
        for index in 0..self.functions.len().min(most) {
            self.summary.functions[index].hottest = self.hottest_line(index);
        }
    }

    fn hottest_line(&mut self, index: usize) -> Option<HotLine> {
        let mut hot: Vec<(u64, Tally)> = self.addresses[index].clone();
        hot.sort_by(|a, b| b.1.weight.total_cmp(&a.1.weight));
        let mut lines: Vec<(HotLine, f64)> = Vec::new();
        for (address, tally) in hot.into_iter().take(LOOKED_UP) {
            let Some(line) = self.line_at(index, address) else { continue };
            match lines.iter_mut().find(|(known, _)| *known == line) {
                Some((_, weight)) => *weight += tally.weight,
                None => lines.push((line, tally.weight)),
            }
        }
        // Ties go to the first found, whose address is hotter.
        lines.reverse();
        lines.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(line, _)| line)
    }

    /// The innermost line at an address of a function.
    pub(super) fn line_at(&mut self, index: usize, address: u64) -> Option<HotLine> {
        let (module, _) = self.keys[index];
        let module_of = self.spaces.modules.all.get(module)?;
        let lines = self.symbols.lines(module_of, ModuleAddress { module, address });
        let innermost = lines.into_iter().next()?;
        Some(HotLine { file: innermost.file?, line: innermost.line?, inlined: innermost.inlined })
    }
}
