//! Source lines: those with most samples, those of a function, and those of the frames of call stacks.

use super::Profile;
use super::callers::{CallStack, Named, StackFrame};
use super::functions::UNKNOWN;
use super::tally::{HotLine, Tally};
use crate::module::ModuleAddress;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Where a frame is in the source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameLine {
    /// Its file, as the program names it.
    pub file: Arc<str>,
    /// Its line, from 1.
    pub line: u32,
}

/// A call chain with its source lines.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LinedStack {
    /// The chain with its samples.
    pub stack: CallStack,
    /// The line of each frame, of callers that of the call; `None` where it is not known.
    pub lines: Vec<Option<FrameLine>>,
}

/// A frame with its line.
type Lined = (StackFrame, Option<FrameLine>);

impl Profile {
    /// As [`Profile::stacks`], where stacks with different lines are different.
    pub fn lined_stacks(&mut self) -> Vec<LinedStack> {
        if !self.has_chains() {
            return self.lined_functions();
        }
        let gathered = std::mem::take(&mut self.gathered.stacks);
        let mut known: HashMap<ModuleAddress, Vec<Lined>> = HashMap::new();
        let mut sums: BTreeMap<(Option<String>, Vec<Lined>), Tally> = BTreeMap::new();
        for ((thread, chain), tally) in &gathered {
            let mut frames = Vec::with_capacity(chain.len());
            for place in chain {
                match place {
                    None => frames.push((frame(Named::only(UNKNOWN)), None)),
                    Some(place) => frames.extend_from_slice(
                        known.entry(*place).or_insert_with(|| self.lined_at(*place)),
                    ),
                }
            }
            frames.dedup_by(|a, b| a.0.name == UNKNOWN && b.0.name == UNKNOWN);
            frames.reverse();
            sums.entry((Some(thread.clone()), frames)).or_default().add(*tally);
        }
        self.gathered.stacks = gathered;
        let stack = |((thread, frames), tally): ((_, Vec<Lined>), Tally)| {
            let (frames, lines) = frames.into_iter().unzip();
            let (samples, weight) = (tally.samples, tally.weight);
            LinedStack { stack: CallStack { thread, frames, samples, weight }, lines }
        };
        sums.into_iter().map(stack).collect()
    }

    fn lined_at(&mut self, place: ModuleAddress) -> Vec<Lined> {
        let of = |(named, line): (Named, Option<(String, u32)>)| {
            let line = line.map(|(file, line)| FrameLine { file: file.into(), line });
            (frame(named), line)
        };
        self.places_at(place).into_iter().map(of).collect()
    }

    /// Without chains: a stack of one frame for each line of each function.
    fn lined_functions(&mut self) -> Vec<LinedStack> {
        let mut out = Vec::new();
        for index in 0..self.functions.len() {
            let function = &self.functions[index];
            let frame = StackFrame { name: function.name.clone(), module: function.module.clone() };
            for (line, samples) in self.own_lines(index) {
                // Inlined code names another file than the function's.
                let line = line.filter(|line| line.inlined.is_none());
                let line = line.map(|of| FrameLine { file: of.file.into(), line: of.line });
                let frames = vec![frame.clone()];
                let stack = CallStack { thread: None, frames, samples, weight: samples as f64 };
                out.push(LinedStack { stack, lines: vec![line] });
            }
        }
        out
    }
}

fn frame(named: Named) -> StackFrame {
    StackFrame { name: named.name, module: named.module }
}

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
