//! A scripted block with known counts, on a kernel with scripted refusals.

use super::group::{Counting, Refused, Total};
use super::sample::{Runs, Which};
use crate::clock::Calibration;
use crate::sandbox::Ended;
use nix::errno::Errno;
use pmu::machine::Encoding;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use tma::Result;

/// Iterations of a long and a short command, which have one run each.
pub const LONG: f64 = 1000.0;
/// See [`LONG`].
pub const SHORT: f64 = 400.0;

/// The scripted behaviour of block, processor and kernel.
#[derive(Debug, Clone)]
pub struct Script {
    /// Counts per iteration, by `config`.
    pub rates: BTreeMap<u64, f64>,
    /// Counts of everything else in a command: entry, exit, the kernel's wake-up.
    pub overhead: f64,
    /// Most events that the kernel accepts in a group.
    pub largest: usize,
    /// Free counters; larger groups open and get none.
    pub free: usize,
    /// Events the kernel does not have.
    pub absent: BTreeSet<u64>,
    /// Commands, from 0, with contention.
    pub contended: fn(usize) -> bool,
    /// The command, from 0, in which the block fails.
    pub fails: Option<usize>,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            rates: BTreeMap::new(),
            overhead: 777.0,
            largest: 8,
            free: 8,
            absent: BTreeSet::new(),
            contended: |_| false,
            fails: None,
        }
    }
}

/// The events so far.
#[derive(Debug, Default)]
pub struct Story {
    /// Groups opened whole, by their configs.
    pub opened: Vec<Vec<u64>>,
    /// Most groups that were open at once.
    pub most_open: usize,
    /// Commands run.
    pub commands: usize,
    open: Option<Vec<u64>>,
    enabled: bool,
    total: Total,
}

/// The worker and its counters; clones share them.
#[derive(Debug, Clone, Default)]
pub struct Scripted {
    /// The script.
    pub script: Script,
    /// The story.
    pub story: Rc<RefCell<Story>>,
}

impl Scripted {
    /// Follows `script`.
    pub fn new(script: Script) -> Self {
        Self { script, story: Rc::default() }
    }
}

impl Counting for Scripted {
    fn open(&mut self, _: i32, events: &[Encoding]) -> std::result::Result<(), Refused> {
        let mut story = self.story.borrow_mut();
        for (at, event) in events.iter().enumerate() {
            if self.script.absent.contains(&event.config) {
                return Err(Refused { at, errno: Errno::ENOENT });
            }
            if at >= self.script.largest {
                return Err(Refused { at, errno: Errno::EINVAL });
            }
        }
        let configs: Vec<u64> = events.iter().map(|e| e.config).collect();
        story.opened.push(configs.clone());
        story.most_open = story.most_open.max(1 + usize::from(story.open.is_some()));
        story.total = Total { values: vec![0; configs.len()], ..Total::default() };
        story.open = Some(configs);
        Ok(())
    }

    fn start(&mut self) -> std::result::Result<(), Errno> {
        self.story.borrow_mut().enabled = true;
        Ok(())
    }

    fn stop(&mut self) -> std::result::Result<Total, Errno> {
        let mut story = self.story.borrow_mut();
        story.enabled = false;
        Ok(story.total.clone())
    }

    fn close(&mut self) {
        self.story.borrow_mut().open = None;
    }
}

impl Runs for Scripted {
    fn process(&mut self) -> Result<i32> {
        Ok(1)
    }

    fn placements(&self) -> usize {
        2
    }

    fn between(&self) -> f64 {
        LONG - SHORT
    }

    fn runs(&self) -> f64 {
        1.0
    }

    fn run(
        &mut self,
        _: usize,
        which: Which,
    ) -> Result<std::result::Result<Vec<Calibration>, Ended>> {
        let mut story = self.story.borrow_mut();
        let command = story.commands;
        story.commands += 1;
        if self.script.fails == Some(command) {
            return Ok(Err(Ended::TimedOut));
        }
        let iterations = if which == Which::Long { LONG } else { SHORT };
        let busy = (self.script.contended)(command);
        if let (true, Some(configs)) = (story.enabled, story.open.clone()) {
            let counts = configs.len() <= self.script.free;
            story.total.enabled += iterations as u64;
            story.total.running += if counts { iterations as u64 } else { 0 };
            for (value, config) in story.total.values.iter_mut().zip(&configs) {
                let rate = self.script.rates.get(config).copied().unwrap_or(0.0);
                let slower = if busy { 2.0 } else { 1.0 };
                let count = rate * iterations * slower + self.script.overhead;
                *value += if counts { count as u64 } else { 0 };
            }
        }
        // A tick is a cycle, and reading the clock takes 30: a chain of 18 × 128 and of 2 × 128
        // additions, a sentinel of 960 cycles.
        let sentinel = if busy { 1450.0 } else { 990.0 };
        let round = Calibration {
            add: (2304.0 + 30.0, 256.0 + 30.0),
            multiply: None,
            sentinel: (990.0, sentinel),
        };
        Ok(Ok(vec![round; 4]))
    }
}
