//! The runs after the counted one, in order. Chooses the code whose loads are recorded: that which is unexplained
//! without them, as far as time allows.

use super::ask::{Functions, Progress};
use super::callees;
use super::contended;
use super::evidence::Context;
use super::expected::MOST;
use super::further::{Counted, Further, Wanted};
use super::groups::{Waits, divide_calls, group_time};
use super::known::{Isolations, Known, Measured, Recorded, not_yet, waiting};
use super::listing::of_profile;
use super::pieces::{Function, Piece};
use super::pooled::evidence;
use super::repeated::{Repeated, UNTOLD};
use super::rows;
use super::tail::Pooled;
use super::windows::spread;
use crate::left::{Left, Times};
use crate::steps::Places;
use estimate::{Part, divide_all};
use profile::hot::Profile;
use report::documents::Purpose;
use report::documents::estimate::{Estimate, Run};
use report::documents::evidence::Tail;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use tma::Result;

/// Share of the time that is worth a run: mispredictions may take it, or it is unexplained without loads.
const WORTH: f64 = 0.02;

/// Share of that for which runs with loads are planned, as the cost of probes is known roughly.
const PLANNED: f64 = 0.95;

/// The note where loads are not recorded everywhere.
const PART: &str = "some loads were not recorded: their probes would have taken too long for what they could explain";

/// Why it is not known whether two runs do the same.
const NOT_REPEATED: &str = "entries of blocks were counted in one run: another would have taken too long, so whether every \
                            run does the same was not checked";

impl Known<'_> {
    /// The document as far as it is known.
    pub fn so_far(
        &self,
        profile: &mut Profile,
        further: &Further,
        counted: &Counted,
        measured: &Isolations,
        of: &Recorded,
    ) -> Estimate {
        let seconds = self.found.hot.seconds;
        let mut document = Estimate::default();
        document.runs.push(Run { run: Purpose::Samples, seconds });
        document.runs.extend(further.runs());
        let isolated = waiting(self.functions, measured);
        let code = &mut of_profile(profile);
        let measured = Measured { counted, isolated: &isolated, recorded: of };
        rows::enter(&mut document, self, measured, code);
        not_yet(&mut document, of.recorded);
        document
    }

    /// Records branches, then loads where something is still unexplained, and counts once more if there is time for
    /// that. `after` each run it is called with what was recorded until then.
    pub fn record(
        &self,
        further: &mut Further,
        isolated: &Isolations,
        progress: &mut Progress,
        document: &mut Estimate,
        tail: Option<Tail>,
        after: &mut dyn FnMut(&Further, &Recorded),
    ) -> Recorded {
        let Times { plain, counted, .. } = progress.times;
        let mut noted = |done: Result<()>| {
            let error = done.err().map(|error| error.to_string());
            document.notes.extend(error.clone());
            error.is_none()
        };
        let mut left = self.decided(progress.times, further, isolated, tail.clone());
        let mut of = Recorded { tail, ..Recorded::default() };
        after(further, &of);
        of.wanted = Wanted { branches: left.branches, loads: true };
        if left.runs() > 0 && !further.is_interrupted() {
            progress.plan(&left.words(progress.times()), left);
        }
        let kinds = Left { pinned: false, counts: 0, ..left };
        let in_windows = left.windows && !further.is_interrupted();
        left.windows = false;
        if in_windows && progress.is_due(kinds, "branches and loads in windows") {
            noted(self.in_windows(further, isolated, &mut of, &mut || {
                progress.begin("branches and loads in windows", Left { windows: true, ..left });
            }));
            self.pool(&mut of, further);
            after(further, &of);
            left.branches &= !of.recorded.branches;
            left.loads &= of.wanted.loads && !of.recorded.loads;
            if left.branches || left.loads {
                left = self.with_again(left, progress.times, further.seconds());
                let words = left.words(progress.times());
                progress.plan(&format!("windows missed some code: {words}"), left);
            }
        }
        let branches = Left { branches: left.branches, ..Left::default() };
        if !further.is_interrupted() && progress.is_due(branches, "branches") {
            progress.begin("branches", left);
            let done = noted(further.branches(self.ask, self.branched()));
            of.recorded.branches = done && !further.is_interrupted();
            self.pool(&mut of, further);
            after(further, &of);
        }
        left.branches = false;
        let mut is_part = false;
        if !of.recorded.loads {
            let most = PLANNED * MOST * plain - further.seconds();
            let found = self.unexplained(further, &of, isolated, Time { plain, counted, most });
            of.is_explained = found.share <= WORTH;
            of.wanted.loads = !of.is_explained && !found.places.is_empty();
            (of.places, is_part) = (found.places, found.is_part && !of.is_explained);
        }
        let loads = Left { loads: of.wanted.loads && !of.recorded.loads, ..Left::default() };
        if !further.is_interrupted() && progress.is_due(loads, "loads") {
            progress.begin("loads", left);
            of.recorded.loads =
                noted(further.loads(of.places.clone())) && !further.is_interrupted();
            self.pool(&mut of, further);
            after(further, &of);
        }
        left.loads = false;
        let contends = contended::share(self, further.counts()) > WORTH;
        let pinned = Left { pinned: left.pinned && contends, ..Left::default() };
        if !further.is_interrupted() && progress.is_due(pinned, "samples on one CPU") {
            progress.begin("samples on one CPU", left);
            of.pinned = self.found.parallel.map(|of| further.pinned(self.ask, of));
            after(further, &of);
        }
        left.pinned = false;
        if is_part {
            document.notes.push(PART.to_owned());
        }
        // As it was announced.
        let is_long = left.counts == 0;
        left = Left { counts: 1, ..left };
        let is_known = document.deterministic.is_some() || document.work.is_some();
        let has_runs = self.ask.process.is_none() && !further.is_interrupted() && !is_known;
        if has_runs && (is_long || !progress.is_due(left, "counts again")) {
            document.notes.push(NOT_REPEATED.to_owned());
        } else if has_runs {
            progress.begin("counts again", left);
            count_again(further, self.found, document);
        }
        document.notes.extend(progress.unmade());
        of
    }

    /// What follows the measurements in isolation.
    fn decided(
        &self,
        times: Times,
        further: &Further,
        isolated: &Isolations,
        tail: Option<Tail>,
    ) -> Left {
        let planned = self.planned(further, &Counted::new(further.counts()), times);
        let wanted = Wanted { branches: planned.branches, loads: true };
        let of = Recorded { tail, wanted, ..Recorded::default() };
        let Times { plain, counted, .. } = times;
        let most = match planned.windows {
            true => f64::INFINITY,
            false => PLANNED * MOST * plain - further.seconds(),
        };
        let found = self.unexplained(further, &of, isolated, Time { plain, counted, most });
        let loads = found.share > WORTH && !found.places.is_empty();
        // Only loads show whether threads contend.
        let pinned = planned.pinned && loads;
        let left = Left { loads, pinned, is_open: false, ..planned };
        self.with_again(left, times, further.seconds())
    }

    /// Records branches and loads in windows of one run, as far as they are wanted; `begin` is called before.
    fn in_windows(
        &self,
        further: &mut Further,
        isolated: &Isolations,
        of: &mut Recorded,
        begin: &mut dyn FnMut(),
    ) -> Result<()> {
        let plain = self.found.hot.seconds;
        // Windows cost the same for all loads. Branches may explain less than they could.
        let time = Time { plain, counted: plain, most: f64::INFINITY };
        let found = self.unexplained(further, of, isolated, time);
        of.wanted.loads = found.share > WORTH && !found.places.is_empty();
        let kinds = usize::from(of.wanted.branches) + 2 * usize::from(of.wanted.loads);
        let Some(spread) = spread(plain, kinds) else { return Ok(()) };
        begin();
        of.places = found.places;
        let branches_of = self.branched();
        let places = (branches_of, of.places.clone());
        of.recorded = further.in_windows(self.ask, of.wanted, places, spread)?;
        Ok(())
    }

    /// Time that is unexplained without loads.
    fn unexplained(
        &self,
        further: &Further,
        of: &Recorded,
        isolated: &Isolations,
        time: Time,
    ) -> Unexplained {
        let counted = Counted::new(further.counts());
        let mut context = Context {
            branches: of.recorded.branches,
            branches_wanted: of.wanted.branches,
            ..Context::new(self.shared, &counted)
        };
        context.callee_costs = divide_calls(&context, self.functions, isolated);
        let pool = self.pooled.zip(of.tail.as_ref());
        let pool = pool.map(|(pooled, tail)| Pool::of(pooled, tail, &context));
        let mut found = unexplained(&context, (self.functions, isolated), pool, time);
        let (storing, samples) = contended::storing(self.functions);
        let share = samples as f64 / self.shared.samples.max(1) as f64;
        if self.found.parallel.is_some() && share > WORTH {
            found.share = found.share.max(share);
            let places = Arc::make_mut(&mut found.places);
            add(places, storing.iter().map(|(module, range)| (*module, range.clone())));
        }
        found
    }

    /// Whether mispredictions can matter.
    pub(super) fn branches(&self, counted: &Counted) -> bool {
        let context = Context::new(self.shared, counted);
        let all: u64 = self.functions.iter().flat_map(|function| &function.samples).sum();
        let all = all as f64 + self.pooled.map_or(0.0, |pooled| pooled.samples);
        let cycles = self.shared.cycles * all / self.shared.samples.max(1) as f64;
        let penalty = context.penalty();
        let most = callees::mispredictions(self.functions, counted, penalty);
        let others = self.pooled.map_or(0.0, Pooled::mispredicted);
        most + others * penalty.unwrap_or(callees::LONGEST) > WORTH * cycles
    }

    /// The functions whose branches are recorded, if not those of all are.
    fn branched(&self) -> Option<Places> {
        self.pooled.map(|pooled| pooled.branched(self.functions))
    }

    /// Enters what was recorded of functions with few samples each.
    fn pool(&self, of: &mut Recorded, further: &Further) {
        let counted = Counted::new(further.counts());
        let context = Context {
            branches: of.recorded.branches,
            branches_wanted: of.wanted.branches,
            ..Context::new(self.shared, &counted)
        };
        if let (Some(pooled), Some(tail)) = (self.pooled, &mut of.tail) {
            pooled.recorded(tail, &context);
        }
    }
}

/// Counts again, and enters how that run and the counted one differ.
pub(super) fn count_again(further: &mut Further, of: &Functions, document: &mut Estimate) {
    let is_by_the_clock = further.is_by_the_clock(of);
    // Until a run tells.
    document.work = is_by_the_clock.then_some(UNTOLD);
    match further.repeated(of) {
        Ok(Some(Repeated { work: None, .. })) if is_by_the_clock => {}
        Ok(Some(found)) => {
            document.deterministic = Some(found.is_same);
            document.differs = Some(found.differs);
            document.work = found.work.filter(|_| !found.is_same);
        }
        Ok(None) => {}
        Err(error) => document.notes.push(error.to_string()),
    }
}

/// Loads are recorded of the pieces that hold this share of the unexplained time.
const LOOKED_AT: f64 = 0.93;
/// Time of a probe that records addresses and of one that times, together, as a multiple of one that counts. This and
/// the following were chosen so that the ten real programs of docs/results/accuracy.md take at most eight times the
/// plain run.
const RECORDING: f64 = 6.0;
/// The least of this multiple.
const RECORDING_AT_LEAST: f64 = 2.0;
/// Seconds of an execution of a probe at least, where the runs differ by chance only: an increment in memory takes some
/// cycles.
const LEAST_EACH: f64 = 1e-9;
/// The unexplained share that is worth a run that may take too long.
const MUCH: f64 = 0.3;
/// Time of both runs at least, as a multiple of a plain one.
const BOTH: f64 = 2.2;

/// Times of the runs before, and the limit of those with loads.
#[derive(Debug, Clone, Copy)]
struct Time {
    /// Seconds of the run without probes, and with counts.
    pub plain: f64,
    pub counted: f64,
    /// Seconds that both runs with loads may take.
    pub most: f64,
}

/// Time that is unexplained without loads.
struct Unexplained {
    /// Its share of all pieces.
    pub share: f64,
    /// The code that has most of it.
    pub places: Places,
    /// Whether there was no time for some of it.
    pub is_part: bool,
}

/// A piece with what is unexplained of it.
#[derive(Clone, Copy)]
struct Candidate<'a> {
    function: &'a Function,
    piece: &'a Piece,
    /// Samples.
    left: f64,
    /// Executions of its blocks with loads or stores.
    executed: f64,
}

/// Functions with few samples each, whose drawn blocks stand for all of them.
#[derive(Clone, Copy)]
struct Pool<'a> {
    pooled: &'a Pooled,
    /// Their samples, and how many of them are unexplained.
    samples: f64,
    left: f64,
}

impl<'a> Pool<'a> {
    fn of(pooled: &'a Pooled, tail: &Tail, context: &Context) -> Self {
        let left = divide_all(&evidence(tail, context)).of(Part::Unexplained).value;
        Self { pooled, samples: tail.samples, left: left * tail.samples }
    }
}

/// Time that is unexplained without dependencies between blocks: loads may take what these could.
fn unexplained(
    context: &Context,
    (functions, isolated): (&[Function], &Isolations),
    pool: Option<Pool>,
    time: Time,
) -> Unexplained {
    let mut all: Vec<Candidate> = Vec::new();
    let mut samples = pool.map_or(0.0, |pool| pool.samples);
    let groups = group_time(context, functions, isolated, Waits::Unknown);
    for (function, groups) in functions.iter().zip(groups) {
        for own in groups {
            samples += own.samples;
            let left = own.parts.parts.of(Part::Unexplained).value;
            all.extend(own.pieces.iter().map(|number| {
                let piece = &function.pieces[*number];
                let probed = piece.blocks.iter().filter(|block| function.has_access(**block));
                let executed = probed.map(|block| function.executed(*block)).sum();
                // Each of several pieces analysed together may have it.
                Candidate { function, piece, left: piece.samples as f64 * left, executed }
            }));
        }
    }
    let own: f64 = all.iter().map(|one| one.left).sum();
    let whole = own + pool.map_or(0.0, |pool| pool.left);
    let counted = |function: &Function| -> f64 {
        (0..function.flow.blocks.len()).map(|block| function.executed(block)).sum()
    };
    let probes = functions.iter().map(counted).sum::<f64>()
        + pool.map_or(0.0, |pool| pool.pooled.executed());
    let each = ((time.counted - time.plain) / probes.max(1.0)).max(LEAST_EACH);
    let share = whole / samples.max(1.0);
    // Those with few samples have their part of the time.
    let pool = pool.filter(|pool| pool.left > WORTH * samples);
    let looked_at = |recording: f64| {
        let most = (time.most - BOTH * time.plain).max(0.0) / (recording * each);
        let (mut places, mut is_part, mut taken) = (BTreeMap::new(), false, 0.0);
        if let Some(Pool { pooled, left, .. }) = pool {
            let (blocks, executed, is_all) = pooled.accesses(most * left / whole);
            add(&mut places, blocks.into_iter());
            (taken, is_part) = (executed, !is_all);
        }
        let (chosen, is_some) = chosen(&all, LOOKED_AT * own, most - taken);
        for one in chosen {
            let range = |block: &usize| (one.function.module.as_str(), one.function.range(*block));
            add(&mut places, one.piece.blocks.iter().map(range));
        }
        Unexplained { share, places: Arc::new(places), is_part: is_part || is_some }
    };
    let found = looked_at(RECORDING);
    match found.places.is_empty() && share > MUCH {
        true => looked_at(RECORDING_AT_LEAST),
        false => found,
    }
}

/// Adds ranges of files.
fn add<'a>(
    places: &mut BTreeMap<PathBuf, Vec<Range<u64>>>,
    ranges: impl Iterator<Item = (&'a str, Range<u64>)>,
) {
    for (path, range) in ranges {
        places.entry(PathBuf::from(path)).or_default().push(range);
    }
}

/// The candidates that hold `enough` of what is left; of those, if they are executed more than `most` times, the ones
/// that are worth it most; and whether that is so.
fn chosen<'a>(all: &[Candidate<'a>], enough: f64, most: f64) -> (Vec<Candidate<'a>>, bool) {
    let mut all = all.to_vec();
    all.sort_by(|a, b| b.left.total_cmp(&a.left));
    let mut held = 0.0;
    let number = all.iter().take_while(|one| {
        let before = held;
        held += one.left;
        before < enough
    });
    let number = number.count();
    all.truncate(number);
    let worth = |one: &Candidate| one.left / one.executed.max(1.0);
    all.sort_by(|a, b| worth(b).total_cmp(&worth(a)));
    let mut executed = 0.0;
    all.retain(|one| {
        let fits = executed + one.executed <= most;
        executed += if fits { one.executed } else { 0.0 };
        fits
    });
    let is_part = all.len() < number;
    (all, is_part)
}
