//! When samples were taken: by thread and call chain, for tools that show time.

use super::callers::StackFrame;
use super::inlined::Known;
use super::moments::{Moments, TimedSample, TimedThread};
use super::profile::Profile;
use std::collections::HashMap;

/// Samples with their times.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Timeline {
    /// Threads, in order of their first samples.
    pub threads: Vec<TimedThread>,
    /// Functions in call chains.
    pub frames: Vec<StackFrame>,
    /// Call chains: numbers of `frames`, the outermost first.
    pub stacks: Vec<Vec<usize>>,
    /// The samples, in order of time.
    pub samples: Vec<TimedSample>,
    /// How many samples each of them stands for.
    pub every: u32,
}

impl Profile {
    /// The samples with their times; empty unless the filter asked for them.
    pub fn timeline(&mut self) -> Timeline {
        let Moments { threads, stacks, mut samples, every, .. } =
            std::mem::take(&mut self.gathered.moments);
        samples.sort_by_key(|sample| sample.time);
        let first = samples.first().map_or(0, |sample| sample.time);
        samples.iter_mut().for_each(|sample| sample.time -= first);
        let mut timeline = Timeline { threads, samples, every, ..Timeline::default() };
        let mut known = Known::new();
        let mut numbers: HashMap<StackFrame, usize> = HashMap::new();
        timeline.stacks.resize(stacks.len(), Vec::new());
        for (chain, number) in stacks {
            let functions = self.functions_of(&chain, &mut known).into_iter().rev();
            let frames = functions.map(|named| {
                let frame = StackFrame { name: named.name, module: named.module };
                *numbers.entry(frame).or_insert_with_key(|frame| {
                    timeline.frames.push(frame.clone());
                    timeline.frames.len() - 1
                })
            });
            timeline.stacks[number as usize] = frames.collect();
        }
        timeline
    }
}
