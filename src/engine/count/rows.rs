//! Counts of a function as rows of the document. Reports each run of a count as it begins, with the time that is
//! left.

use super::ask::CountAsk;
use super::choice::Chosen;
use crate::left::{Left, Times};
use crate::steps::Step;
use probe::count::{FunctionCounts, LoopCount, Uncounted};
use probe::plan::Kind;
use report::documents::count::{
    BlockRow, BranchKind, BranchRow, Count, EdgeRow, How, LoopRow, ProbeKind, Refused, Trips,
};
use tma::Address;

/// Fewest entries of a loop, in a window of a live process, for which the mean of its trips is given: an execution of
/// each thread is cut at the beginning and at the end, up to one in a hundred of these.
const LEAST_IN_WINDOW: u64 = 200;

/// A function or block without a count.
pub(super) fn refused(of: &Chosen, start: u64, why: &Uncounted) -> Refused {
    Refused {
        module: of.wanted.path.display().to_string(),
        function: of.name.clone(),
        start: Address(start),
        reason: why.to_string(),
    }
}

fn probe(kind: Kind) -> ProbeKind {
    match kind {
        Kind::Retarget => ProbeKind::Retarget,
        Kind::Single => ProbeKind::Single,
        Kind::Multi => ProbeKind::Multi,
        Kind::Pun(_) => ProbeKind::Pun,
    }
}

/// Adds the counts of a function, with the samples of its blocks if it was chosen by them.
pub(super) fn enter(
    document: &mut Count,
    of: &Chosen,
    found: &FunctionCounts,
    samples: Option<&Vec<(u64, u64)>>,
) {
    let module = of.wanted.path.display().to_string();
    for block in &found.blocks {
        let count = match &block.count {
            Ok(count) => *count,
            Err(why) => {
                document.refused.push(refused(of, block.start, why));
                continue;
            }
        };
        let probe = block.kind.map(probe);
        document.blocks.push(BlockRow {
            module: module.clone(),
            function: of.name.clone(),
            start: Address(block.start),
            end: Address(block.end),
            instructions: block.instructions,
            count,
            how: if probe.is_some() { How::Placed } else { How::Derived },
            probe,
            samples: samples.map(|all| {
                let own = all.iter().filter(|(at, _)| (block.start..block.end).contains(at));
                own.map(|(_, number)| number).sum()
            }),
        });
    }
    document.edges.extend(found.edges.iter().map(|edge| EdgeRow {
        module: module.clone(),
        from: Address(edge.from),
        to: Address(edge.to),
        count: edge.count,
    }));
    let executions = |at: u64| {
        let block = found.blocks.iter().find(|block| (block.start..block.end).contains(&at))?;
        block.count.as_ref().ok().copied()
    };
    document.branches.extend(found.branches.iter().map(|branch| BranchRow {
        module: module.clone(),
        function: of.name.clone(),
        address: Address(branch.address),
        executions: executions(branch.address),
        taken: branch.taken,
        not_taken: branch.not_taken,
        kind: BranchKind::Conditional,
        ..BranchRow::default()
    }));
    // A window cuts executions at both ends.
    let least = if document.process.is_some() { LEAST_IN_WINDOW } else { 1 };
    let mean = |entries: Option<u64>, iterations: Option<u64>| {
        entries.zip(iterations).filter(|(n, _)| *n >= least).map(|(n, all)| all as f64 / n as f64)
    };
    // Threads that were inside at either end of the window.
    let window = document.process.map(|_| found.slack.div_ceil(2));
    document.loops.extend(found.loops.iter().map(|one| {
        let mean = mean(one.entries, one.iterations);
        let reason = one.reason.as_ref().map(Uncounted::to_string);
        LoopRow {
            module: module.clone(),
            function: of.name.clone(),
            head: Address(one.head),
            entries: one.entries,
            iterations: one.iterations,
            reason: reason.or_else(|| no_mean(one, mean, window)),
            trips: Trips { mean, ..Trips::default() },
        }
    }));
    document.checked += found.checked;
    let name = &of.name;
    document.contradictions.extend(found.contradictions.iter().map(|c| format!("{name} {c}")));
}

/// Why a loop whose counts are known has no mean of its trips; in a window with this many threads inside, the least it
/// is.
fn no_mean(of: &LoopCount, mean: Option<f64>, window: Option<u64>) -> Option<String> {
    let entries = of.entries.filter(|_| mean.is_none())?;
    let iterations = of.iterations?;
    Some(match (entries, iterations, window) {
        (0, 0, _) => "it was not entered".to_owned(),
        (0, 1.., None) => "no entry was counted".to_owned(),
        (_, _, threads) => {
            let cut = threads.unwrap_or(0);
            let each = |executions: u64| iterations as f64 / executions.max(1) as f64;
            let most = match entries > cut {
                true => format!(" to {:.1}", each(entries - cut)),
                false => " or more".to_owned(),
            };
            format!(
                "{:.1}{most} iterations each: the window cuts executions at both ends",
                each(entries + cut)
            )
        }
    })
}

/// The runs of the command, or windows of the process, so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Steps {
    number: usize,
    /// Seconds of a run without probes, if known.
    pub plain: Option<f64>,
}

impl Steps {
    /// After the run that was sampled for hot functions, if there is one.
    pub fn new(ask: &CountAsk) -> Self {
        let sampled = ask.hot.as_ref().filter(|_| ask.process.is_none());
        Self { number: usize::from(ask.hot.is_some()), plain: sampled.map(|hot| hot.seconds) }
    }

    /// A step begins, which is the first of those that are left.
    pub fn begin(&mut self, ask: &CountAsk, what: &str, left: Left) {
        let Some(watch) = &ask.watch else { return };
        let of = self.number + left.runs();
        self.number += 1;
        let seconds_left = match ask.process {
            Some((_, window)) => Some(window.as_secs_f64() * left.runs() as f64),
            None => self.plain.map(|plain| left.seconds(Times::of(plain))),
        };
        let (number, runs) = (self.number, ask.process.is_none());
        let what = what.to_owned();
        watch.call(Step { what, number, of, seconds_left, runs, is_plan: false });
    }

    /// All is done.
    pub fn end(self, ask: &CountAsk) {
        if let Some(watch) = &ask.watch {
            watch.call(Step { number: self.number, of: self.number, ..Step::default() });
        }
    }
}

impl CountAsk {
    /// The runs or windows that count.
    pub(super) fn runs(&self) -> Left {
        Left {
            plain: self.plain && self.process.is_none(),
            counts: 1,
            branches: self.branches.is_some(),
            values: self.values.is_some(),
            loads: self.loads,
            ..Left::default()
        }
    }

    /// Shows that the run, or window, begins that is sampled for hot functions.
    pub fn begin_sampling(&self) {
        let window = self.process.map(|(_, window)| window.as_secs_f64());
        let of = 1 + self.runs().runs();
        if let Some(watch) = &self.watch {
            let seconds_left = window.map(|window| window * of as f64);
            let runs = self.process.is_none();
            let what = "samples".to_owned();
            watch.call(Step { what, number: 1, of, seconds_left, runs, is_plan: false });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hot::hottest::Hottest;
    use crate::steps::Callback;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    fn shown(ask: CountAsk) -> Vec<Step> {
        let steps = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&steps);
        let watch = Callback::new(move |step| all.lock().unwrap().push(step));
        let ask = CountAsk { watch: Some(watch), loads: true, ..ask };
        let mut steps_of = Steps::new(&ask);
        steps_of.begin(&ask, "counts", ask.runs());
        steps_of.begin(&ask, "loads", Left { counts: 0, ..ask.runs() });
        steps_of.end(&ask);
        steps.lock().unwrap().clone()
    }

    /// By hand: 1.5 and 3 runs of two seconds, 0.1 s around each of the three, 0.5 s for loads; windows take what they are asked to.
    #[test]
    fn what_is_left_follows_from_a_run_or_window() {
        let hot = Hottest { seconds: 2.0, ..Hottest::default() };
        let steps = shown(CountAsk { hot: Some(hot.clone()), ..CountAsk::default() });
        let numbers: Vec<_> = steps.iter().map(|step| (step.number, step.of)).collect();
        assert_eq!(numbers, [(2, 4), (3, 4), (3, 3)]);
        let left: Vec<_> = steps.iter().filter_map(|step| step.seconds_left).collect();
        assert!((left[0] - 9.8).abs() < 1e-9 && (left[1] - 6.7).abs() < 1e-9, "{left:?}");

        let process = Some((1, Duration::from_secs(5)));
        let steps = shown(CountAsk { process, hot: Some(hot), ..CountAsk::default() });
        assert_eq!((steps[0].seconds_left, steps[1].seconds_left), (Some(15.0), Some(10.0)));
        assert_eq!(shown(CountAsk::default())[0].seconds_left, None, "no run has ended yet");
    }
}
