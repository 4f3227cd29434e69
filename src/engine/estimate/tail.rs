//! The counts of functions with few samples each → their sums, and blocks that stand for all: drawn in proportion to the
//! µops that they retire, or to the most that their branches can be mispredicted. These are measured and recorded.

use super::ask::{DEVIATIONS, Interrupt, Shared};
use super::callees::most;
use super::evidence::{Branches, Context, NoLoads};
use super::few::{Few, SEED};
use super::footprint::{Footprint, lines_of};
use super::further::Counted;
use super::isolated::{Isolation, Unmeasured};
use super::latency;
use super::pieces::{Function, Kind, Piece, PieceOf, longest};
use crate::core_model::CoreModel;
use crate::hot::hottest::Hot;
use crate::steps::Places;
use estimate::{Interval, Loads};
use fastrand::Rng;
use isa::deps::Analyser;
use profile::address_space::ModuleAddress;
use profile::code::Code;
use profile::files::SearchPaths;
use profile::module::{Module, ModuleKind};
use profile::symbols::Symbols;
use report::documents::evidence::{Drawn, Tail, Why};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tma::Result as Outcome;

/// Blocks that are drawn.
const DRAWN: usize = 60;

/// The counted code of such functions.
pub(super) struct Pooled {
    functions: Vec<Function>,
    /// How many each function stands for.
    times: Vec<f64>,
    pub samples: f64,
    counted: f64,
    /// Function and block of each that is drawn.
    drawn: Vec<(usize, usize)>,
    /// Blocks that are drawn by the most that their branches can be mispredicted, and the sum of that.
    branches: (Vec<(usize, usize)>, f64),
}

impl Pooled {
    /// From the counts. `None` if none ran.
    pub fn of(few: &Few, context: &Context) -> Option<Self> {
        let mut pooled = Self {
            functions: Vec::new(),
            times: Vec::new(),
            samples: 0.0,
            counted: few.counted,
            drawn: Vec::new(),
            branches: (Vec::new(), 0.0),
        };
        let all = context.shared.samples as f64;
        for mut function in ran(few, context.counted) {
            let ran: Vec<usize> = (0..function.flow.blocks.len())
                .filter(|block| function.executed(*block) > 0.0)
                .collect();
            function.pieces = vec![Piece {
                kind: Kind::Rest,
                blocks: ran,
                samples: function.samples.iter().sum(),
                entries: 1.0,
                entered: None,
                paths: Vec::new(),
            }];
            // Code that cannot be counted is left out, with its samples.
            if function.pieces[0].blocks.is_empty() || context.retiring(piece(&function)).is_err() {
                continue;
            }
            let times = few.times[function.number];
            pooled.samples += times * few.functions[function.number].share * all;
            pooled.times.push(times);
            pooled.functions.push(function);
        }
        let retired = |function: &Function, block: usize| {
            function.executed(block) * context.retired(function, block)
        };
        pooled.drawn = pooled.draw(&retired).0;
        pooled.branches = pooled.draw(&|function, block| most(context.counted, function, block));
        (!pooled.drawn.is_empty() && pooled.samples > 0.0).then_some(pooled)
    }

    /// Draws blocks, each in proportion to something of it; and the sum of that.
    fn draw(&self, weight: &dyn Fn(&Function, usize) -> f64) -> (Vec<(usize, usize)>, f64) {
        let mut sums: Vec<(f64, (usize, usize))> = Vec::new();
        let mut sum = 0.0;
        for (number, (times, function)) in self.all().enumerate() {
            for block in &function.pieces[0].blocks {
                sum += times * weight(function, *block);
                sums.push((sum, (number, *block)));
            }
        }
        let mut rng = Rng::with_seed(SEED);
        let mut one = || {
            let wanted = rng.f64() * sum;
            sums.get(sums.partition_point(|(sum, _)| *sum <= wanted)).map(|(_, place)| *place)
        };
        let mut drawn: Vec<(usize, usize)> = (0..DRAWN).filter_map(|_| one()).collect();
        drawn.sort_unstable();
        (drawn, sum)
    }

    fn all(&self) -> impl Iterator<Item = (f64, &Function)> {
        self.times.iter().copied().zip(&self.functions)
    }

    /// Everything that counts say, beside `hot` functions; nothing of it is measured yet.
    pub fn counted(&self, hot: &[Function], context: &Context, model: &CoreModel) -> Tail {
        let mut fetched = 0.0;
        for (times, function) in self.all() {
            let lines = |block: &usize| {
                lines_of(function, *block).count() as f64 * function.executed(*block)
            };
            fetched += times * function.pieces[0].blocks.iter().map(lines).sum::<f64>();
        }
        let others = hot.iter().map(|function| (1.0, function));
        let first = context.shared.core.l1_code.map(|cache| cache.bytes());
        let mut analyser = Analyser::new(model.latencies.clone());
        let mut drawn = |(number, block): &(usize, usize)| {
            let function = &self.functions[*number];
            Drawn {
                retired: context.retired(function, *block),
                latency: longest(&function.bytes(*block), &mut analyser, &model.core),
                isolated: Err(Why(Unmeasured::Waits.to_string())),
                kind: None,
                waits: 0.0,
                loads: loads(function, *block, context),
            }
        };
        let blocks = self.drawn.iter().map(&mut drawn).collect();
        let mut tail = Tail {
            functions: self.times.iter().sum::<f64>().round() as u64,
            samples: self.samples,
            counted: self.counted,
            retiring: ends(self.retiring(context)),
            fetched,
            footprint: Footprint::of(self.all().chain(others), first).bytes,
            blocks,
            ..Tail::default()
        };
        self.recorded(&mut tail, context);
        tail
    }

    /// Cycles that the retired µops take, with the error of functions that were not counted.
    fn retiring(&self, context: &Context) -> Interval {
        let mut sum = Interval::default();
        let mut error: f64 = 0.0;
        for (times, function) in self.all() {
            let Ok(one) = context.retiring(piece(function)) else { continue };
            sum = sum.plus_alike(one.times(times));
            // Each is drawn with probability 1 ÷ times.
            error += times * (times - 1.0).max(0.0) * one.value * one.value;
        }
        let error = DEVIATIONS * error.sqrt();
        sum.plus(Interval::new(0.0, -error, error))
    }

    /// Enters what was recorded since.
    pub fn recorded(&self, tail: &mut Tail, context: &Context) {
        let (branches, all) = &self.branches;
        let mut cycles = Interval::default();
        let (mut unknown, mut reason) = (0.0, None);
        let mut each = Vec::new();
        for (number, block) in branches {
            let function = &self.functions[*number];
            let part = Piece { blocks: vec![*block], ..function.pieces[0].clone() };
            let found = context.mispredicted(PieceOf { function, piece: &part }, Branches::All);
            // A draw stands for as much of the most that there can be.
            let times =
                all / branches.len() as f64 / most(context.counted, function, *block).max(1.0);
            cycles = cycles.plus_alike(found.cycles.times(times));
            each.push(found.cycles.value * times);
            unknown += found.most() * times;
            reason = reason.or(found.unknown.map(|(_, why)| why));
        }
        let number = each.len() as f64;
        let mean = cycles.value / number.max(1.0);
        let squares: f64 = each.iter().map(|one| (one - mean).powi(2)).sum();
        let error = DEVIATIONS * (squares * number / (number - 1.0).max(1.0)).sqrt();
        let least = (cycles.low - error).max(0.0);
        let cycles = Interval::new(cycles.value, least, cycles.high + error);
        let unknown = reason.map(|why| (unknown, why));
        tail.mispredicted = ends(cycles);
        tail.unknown = unknown.map(|(most, why)| (most, Why(why.to_string())));
        for (of, (number, block)) in tail.blocks.iter_mut().zip(&self.drawn) {
            of.loads = loads(&self.functions[*number], *block, context);
        }
    }

    /// The most that their branches can be mispredicted.
    pub fn mispredicted(&self) -> f64 {
        self.branches.1
    }

    /// Where the functions are whose branches are drawn, and `hot` ones.
    pub fn branched(&self, hot: &[Function]) -> Places {
        let mut places: BTreeMap<PathBuf, Vec<Range<u64>>> = BTreeMap::new();
        let drawn = self.branches.0.iter().map(|(number, _)| &self.functions[*number]);
        for function in hot.iter().chain(drawn) {
            let start = function.start().map(|start| start..start + 1);
            places.entry(PathBuf::from(&function.module)).or_default().extend(start);
        }
        Arc::new(places)
    }

    /// Measures the blocks in isolation.
    ///
    /// # Errors
    /// The sandbox cannot be started.
    pub fn measure(
        &self,
        tail: &mut Tail,
        model: &CoreModel,
        most: Duration,
        interrupt: &Interrupt,
    ) -> Outcome<()> {
        let begin = Instant::now();
        let mut found = BTreeMap::new();
        // In the order of a draw, so that it is a sample if there is no time for all.
        let mut order: Vec<usize> = (0..self.drawn.len()).collect();
        Rng::with_seed(SEED).shuffle(&mut order);
        for number in order {
            let place = self.drawn[number];
            let known = match found.get(&place) {
                Some(known) => known,
                None => {
                    let own = match (interrupt.is_set(), begin.elapsed() > most) {
                        (true, _) => Err(Unmeasured::Interrupted),
                        (_, true) => Err(Unmeasured::NoTime),
                        _ => Isolation::new(model, false, interrupt)
                            .block(&self.functions[place.0], place.1)?,
                    };
                    found.entry(place).or_insert(own)
                }
            };
            let block = &mut tail.blocks[number];
            block.isolated = match known {
                Ok(found) => Ok(found.evidence.cycles.value),
                Err(why) => Err(Why(why.to_string())),
            };
            let known = known.as_ref().ok();
            block.kind = known.map(|found| found.evidence.bound);
            block.waits = known.map_or(0.0, |found| found.evidence.loads);
        }
        Ok(())
    }

    /// Executions of all counted blocks.
    pub fn executed(&self) -> f64 {
        let blocks = |function: &Function| -> f64 {
            (0..function.flow.blocks.len()).map(|block| function.executed(block)).sum()
        };
        self.functions.iter().map(blocks).sum()
    }

    /// The drawn blocks with loads or stores, in random order, as many as are executed at most this often together; how
    /// often they are, and whether these are all.
    pub fn accesses(&self, most: f64) -> (Vec<(&str, Range<u64>)>, f64, bool) {
        let all: BTreeSet<&(usize, usize)> = self.drawn.iter().collect();
        let has_access =
            |(number, block): &&&(usize, usize)| self.functions[*number].has_access(*block);
        let mut all: Vec<&(usize, usize)> = all.iter().filter(has_access).copied().collect();
        Rng::with_seed(SEED).shuffle(&mut all);
        let (mut executed, mut found) = (0.0, Vec::new());
        for (number, block) in &all {
            let function = &self.functions[*number];
            let own = function.executed(*block);
            if executed + own > most {
                break;
            }
            executed += own;
            found.push((function.module.as_str(), function.range(*block)));
        }
        let is_all = found.len() == all.len();
        (found, executed, is_all)
    }
}

/// The functions that ran and whose control flow is known, with their counts.
fn ran(few: &Few, counted: &Counted) -> Vec<Function> {
    let mut paths: Vec<String> =
        few.functions.iter().map(|one| one.path.display().to_string()).collect();
    paths.sort();
    paths.dedup();
    let file =
        |path: &String| Module { path: path.clone(), kind: ModuleKind::File, ..Module::default() };
    let symbols = Symbols::new(SearchPaths::default());
    let mut code = Code::new(symbols, paths.iter().map(file).collect());
    let mut of = |(number, hot): (usize, &Hot)| {
        let path = hot.path.display().to_string();
        if !counted.ran(&path, hot.range.clone()) {
            return None;
        }
        let flow = match few.flows.get(number) {
            Some(known) => known.clone(),
            None => {
                let module = paths.binary_search(&path).ok()?;
                code.flow(ModuleAddress { module, address: hot.range.start })
            }
        };
        Some(Function::of(number, hot, flow?, counted))
    };
    few.functions.iter().enumerate().filter_map(&mut of).collect()
}

/// The whole of a function.
fn piece(function: &Function) -> PieceOf<'_> {
    PieceOf { function, piece: &function.pieces[0] }
}

/// Cycles that loads and stores of an execution of a block take beyond L1: measured ones, and others.
fn loads(function: &Function, block: usize, context: &Context) -> Result<(f64, f64), Why> {
    if !function.has_access(block) {
        return Ok((0.0, 0.0));
    }
    let part = Piece { blocks: vec![block], ..function.pieces[0].clone() };
    let accesses = context.accesses(PieceOf { function, piece: &part });
    let Shared { clock, .. } = context.shared;
    let found = match accesses.loads.is_empty() && accesses.stores.is_empty() {
        true => Err(NoLoads::NotWorth),
        false => latency::of(&accesses, context.counted.count, clock.ghz, false)
            .ok_or(NoLoads::NoLatencies),
    };
    let executed = function.executed(block).max(1.0);
    let each = |found: Loads| (found.at_most.high / executed, found.unknown / executed);
    found.map(each).map_err(|why| Why(why.to_string()))
}

fn ends(of: Interval) -> (f64, f64, f64) {
    (of.value, of.low, of.high)
}
