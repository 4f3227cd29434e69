//! The loads and stores of the blocks that are entered most often.

use crate::places::Places;
use isa::code::text;
use loads::pattern::{Part, origins};
use probe::count::{Counts, Wanted};
use probe::facts::Function;
use probe::plan::{Load, loads, stores};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;

/// The blocks that are analysed have this share of the executed instructions of their function: of a
/// slow load there may be few in the whole program.
const SHARE: f64 = 0.99;
/// Most blocks that are analysed.
const MOST: usize = 400;

/// One load or store.
pub(super) struct Site {
    /// Its function, in the order of the request.
    pub function: usize,
    pub load: Load,
    /// Whether it only stores: its addresses are recorded, and nothing else.
    pub is_store: bool,
    /// The instruction.
    pub text: String,
    /// How often it was executed.
    pub executions: u64,
    /// The loads that its address may be computed from.
    pub origins: Vec<usize>,
    /// Why it was not observed, if so.
    pub refused: Option<String>,
}

/// The loads and stores of a run.
pub(super) struct Sites {
    /// Function and block → entries.
    hot: BTreeMap<(usize, u64), u64>,
    /// Whether other blocks were entered, too, that could have been analysed.
    is_part: bool,
    all: RefCell<Vec<Site>>,
}

impl Sites {
    /// None yet; the counts of all blocks say which are analysed, of `only` this code if it is given.
    pub fn new(counts: &Counts, wanted: &[Wanted], only: Option<&Places>) -> Self {
        let mut chosen = Vec::new();
        let mut entered = 0;
        for (function, found) in counts.functions.iter().enumerate() {
            let mut blocks = Vec::new();
            for block in found.iter().flat_map(|found| &found.blocks) {
                let own = || only.zip(wanted.get(function)).and_then(|(all, of)| all.get(&of.path));
                let is_in = |range: &Range<u64>| range.start < block.end && block.start < range.end;
                let is_one = only.is_none() || own().is_some_and(|ranges| ranges.iter().any(is_in));
                if let (Ok(count @ 1..), true) = (&block.count, is_one) {
                    blocks.push((*count, (function, block.start), block.instructions as u64));
                }
            }
            entered += blocks.len();
            chosen.extend(most_executed(blocks));
        }
        chosen.sort_unstable_by(|a, b| b.cmp(a));
        chosen.truncate(MOST);
        let hot: BTreeMap<_, _> = chosen.into_iter().map(|(count, block)| (block, count)).collect();
        Self { is_part: hot.len() < entered, hot, all: RefCell::default() }
    }

    /// Adds the loads and stores of a function; those that are observed, and whether they store.
    pub fn add(&self, number: usize, function: &Function) -> Vec<(Load, bool)> {
        let (found, refused) = loads(function);
        let entries = |at: u64| {
            let block = function.blocks.iter().find(|b| (b.start..b.end).contains(&at))?;
            self.hot.get(&(number, block.start)).copied()
        };
        let words = |at: u64| {
            let all = function.blocks.iter().flat_map(|b| &b.instructions);
            all.into_iter().find(|i| i.ip() == at).map_or(String::new(), text)
        };
        let mut all = self.all.borrow_mut();
        let first = all.len();
        for load in found {
            let Some(executions) = entries(load.at) else { continue };
            all.push(Site {
                function: number,
                text: words(load.at),
                load,
                is_store: false,
                executions,
                origins: Vec::new(),
                refused: None,
            });
        }
        let own: Vec<Load> = all[first..].iter().map(|site| site.load.clone()).collect();
        let addresses: Vec<u64> = own.iter().map(|load| load.at).collect();
        let part = |block: &probe::facts::Block| Part {
            instructions: block.instructions.clone(),
            successors: block.successors.clone(),
        };
        if !own.is_empty() {
            let parts: Vec<Part> = function.blocks.iter().map(part).collect();
            let from = origins(&parts, &addresses);
            for (site, from) in all[first..].iter_mut().zip(from) {
                site.origins = from.into_iter().map(|origin| first + origin).collect();
            }
        }
        for (at, why) in refused {
            let Some(executions) = entries(at) else { continue };
            let load = Load { at, width: 0, untimed: Some(why) };
            all.push(Site {
                function: number,
                load,
                is_store: false,
                text: words(at),
                executions,
                origins: Vec::new(),
                refused: Some(why.to_string()),
            });
        }
        let mut observed: Vec<(Load, bool)> = own.into_iter().map(|load| (load, false)).collect();
        for load in stores(function) {
            let Some(executions) = entries(load.at) else { continue };
            observed.push((load.clone(), true));
            let (text, origins) = (words(load.at), Vec::new());
            let (function, is_store, refused) = (number, true, None);
            all.push(Site { function, load, is_store, text, executions, origins, refused });
        }
        observed
    }

    /// The loads and stores.
    pub fn all(&mut self) -> &mut Vec<Site> {
        self.all.get_mut()
    }

    /// All sites, to read.
    pub fn read(&self) -> std::cell::Ref<'_, Vec<Site>> {
        self.all.borrow()
    }

    /// Limits of the sites.
    pub fn notes(&self) -> Vec<String> {
        let share = SHARE * 100.0;
        let note = format!(
            "loads: those of the blocks with {share:.0} % of the executed instructions of each \
             function, of {MOST} blocks at most"
        );
        if self.is_part { vec![note] } else { Vec::new() }
    }
}

/// The blocks of a function (entries, place, instructions) that are analysed, with their entries.
fn most_executed<P: Ord + Copy>(mut blocks: Vec<(u64, P, u64)>) -> Vec<(u64, P)> {
    blocks.sort_unstable_by(|a, b| b.cmp(a));
    let executed: u64 = blocks.iter().map(|(count, _, length)| count * length).sum();
    let mut sum = 0;
    let is_missing = |(count, _, length): &&(u64, P, u64)| {
        let before = sum as f64;
        sum += count * length;
        before < SHARE * executed as f64
    };
    blocks.iter().take_while(is_missing).map(|(count, place, _)| (*count, *place)).collect()
}
