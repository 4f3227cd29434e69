//! Branches and loads recorded in windows of one further run of a command, as far as these see enough of it.

use super::ask::CountAsk;
use super::first::{First, enter_loads};
use crate::loads;
use crate::mispredicted;
use crate::steps::{self, Subject};
use pmu::perf::Signals;
use probe::bursts::{Pace, Recorded, Spread, Windows};
use probe::count::{Counts, Wanted};
use probe::facts::Function;
use report::documents::Purpose;
use std::collections::BTreeMap;
use tma::Result;

/// The pace of all windows of a kind together: denser than in a whole run, as they are a sample of it themselves.
const BRANCHES: Pace = Pace { length: 1 << 15, bursts: 128, pause: 1.0 };
const ADDRESSES: Pace = Pace { length: 1 << 13, bursts: 256, pause: 1.0 };

/// Records of a block that are enough.
const ENOUGH: u64 = 16;
/// Windows of a kind that miss blocks with more of the samples are of no use.
const MISSED: f64 = 0.05;

/// Kinds whose windows saw enough.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Enough {
    pub branches: bool,
    pub loads: bool,
    /// The signal that interrupted the run.
    pub interrupted: Option<i32>,
}

impl First {
    /// Records branches and loads, as far as asked for, in one run. A kind of which too little was seen is not entered.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn in_windows(
        &mut self,
        ask: &CountAsk,
        signals: &Signals,
        spread: Spread,
    ) -> Result<Enough> {
        let Self { document, counts, chosen, samples, plain, .. } = self;
        let functions: Vec<_> = chosen.iter().map(|c| (c.name.as_str(), &c.wanted)).collect();
        let wanted: Vec<Wanted> = chosen.iter().map(|c| c.wanted.clone()).collect();
        let mut windows = Windows::of(&wanted, signals);
        let of_each = |pace: Pace| Pace { bursts: (pace.bursts / spread.most).max(1), ..pace };
        let branches = ask.branches.as_ref().map(|core| {
            let asked = mispredicted::Asked::new(document, &functions, ask.rarest);
            let requests = |number: usize, function: &Function| match wanted.get(number) {
                Some(of) if ask.has_branches_of(of) => asked.requests(number, function),
                _ => Vec::new(),
            };
            windows.add(&requests, of_each(BRANCHES));
            (asked, core)
        });
        let loads = ask.loads.then(|| {
            let asked = loads::Asked::new(&functions, counts, ask.loads_of.as_ref());
            windows.add(&|number, function| asked.requests(number, function), of_each(ADDRESSES));
            let seconds = spread.length.as_secs_f64() * spread.most as f64;
            let timing = asked.timing(*plain, plain.map_or(1.0, |plain| seconds / plain));
            if let Ok(timing) = &timing {
                windows.add(&|number, _| timing.requests(number), timing.pace);
            }
            (asked, timing)
        });
        let all = windows.run(&ask.command, spread)?;
        let subject = Subject {
            command: &ask.command,
            process: None,
            signals,
            progress: &mut |_, _| {},
            plain: *plain,
            remains: false,
        };
        let mut found = Enough::default();
        if let Some(one) = all.iter().max_by_key(|one| one.probes) {
            document.cost.push(subject.cost(Purpose::Windows, one));
            found.interrupted = one.interrupted;
        }
        if found.interrupted.is_some() {
            return Ok(found);
        }
        let is_enough = |recorded: &Recorded| missed(recorded, counts, samples) <= MISSED;
        let mut all = all.into_iter();
        if let Some((asked, core)) = branches
            && let Some(recorded) = all.next().filter(is_enough)
        {
            document.notes.extend(steps::notes(Purpose::Branches, &recorded));
            mispredicted::add(document, &functions, core, asked, &recorded);
            found.branches = true;
        }
        if let Some((asked, timing)) = loads
            && let Some(recorded) = all.next().filter(is_enough)
        {
            let timed = timing.map(|timing| Some((timing, all.next().filter(is_enough)?)));
            let timed = match timed {
                Ok(Some((timing, recorded))) => timing.read(&recorded),
                Ok(None) => return Ok(found),
                Err(why) => Err(why),
            };
            enter_loads(document, asked.read(&functions, &recorded, Some(timed)));
            found.loads = true;
        }
        Ok(found)
    }

    /// Whether a command is one process, as far as it was counted.
    pub fn is_one_process(&self) -> bool {
        self.counts.processes == 0
    }
}

/// The share of all samples in blocks of which less than enough was recorded.
fn missed(recorded: &Recorded, counts: &Counts, samples: &[Vec<(u64, u64)>]) -> f64 {
    if recorded.windows == 0 && !recorded.observed.is_empty() {
        return 1.0;
    }
    let mut records = vec![0; recorded.observed.len()];
    for record in recorded.bursts.iter().flat_map(|burst| &burst.records) {
        if let Some(number) = records.get_mut(record.site as usize) {
            *number += 1;
        }
    }
    let mut asked: BTreeMap<(usize, u64), u64> = BTreeMap::new();
    // Those of which a probe in a live process was refused have none: one that is there from the start may fit.
    for (one, records) in recorded.observed.iter().zip(records) {
        *asked.entry((one.function, one.request.at)).or_default() += records;
    }
    let is_missed = |function: usize, at: u64| {
        let found = counts.functions.get(function)?.as_ref().ok()?;
        let block = found.blocks.iter().find(|block| block.start == at)?;
        let mut own = asked.range((function, block.start)..(function, block.end)).peekable();
        own.peek()?;
        Some(own.map(|(_, records)| records).sum::<u64>() < ENOUGH)
    };
    let (mut sum, mut all) = (0, 0);
    for (function, own) in samples.iter().enumerate() {
        for (at, samples) in own {
            all += samples;
            sum += if is_missed(function, *at) == Some(true) { *samples } else { 0 };
        }
    }
    sum as f64 / (all as f64).max(1.0)
}
