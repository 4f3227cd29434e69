//! Probes for requests: an observer for every block with one.

use super::gate::{Beside, Gate, Image};
use super::heap::needs;
use super::request::{Observed, Pace, Recorded};
use crate::emit::{MOST_TIMED, count, countdown, most};
use crate::facts::Function;
use crate::patch::{
    Code, Patcher, Probed, Probes, Shared, Target, Unprobed, Written, most_of, refusal,
    write_observers,
};
use crate::plan::{Observation, Request, Room, What, observe, observe_live};
use crate::process::{Followed, Watched};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

/// Spreads numbers over 32 bits: 2^32 by the golden ratio (Knuth, The Art of Computer Programming, volume
/// 3, 6.4).
const SPREAD: u32 = 0x9e37_79b9;
/// Most program images recorded.
const MOST_IMAGES: usize = 64;

/// The requests of a run, and its gates.
pub(super) struct Observing {
    /// Whether the code has been running.
    is_live: bool,
    /// Whether probes of such code may replace several instructions.
    joins: bool,
    observed: Vec<Observed>,
    /// (Target, function in it) → index of its first request, and their number.
    ranges: BTreeMap<(usize, usize), (usize, usize)>,
    pace: Pace,
    gates: Vec<Gate>,
    /// Images that have had a gate.
    images: usize,
    /// Patched targets.
    patched: BTreeSet<usize>,
    /// Most probes in one process.
    probes: usize,
}

impl Observing {
    /// Collects the requests of all functions whose code is known; `is_live`: the code has been
    /// running.
    pub fn new(
        targets: &[Target],
        requests: &dyn Fn(usize, &Function) -> Vec<Request>,
        pace: Pace,
        is_live: bool,
    ) -> Self {
        let (mut observed, mut ranges) = (Vec::new(), BTreeMap::new());
        for (number, target) in targets.iter().enumerate() {
            for (index, member) in target.functions.iter().enumerate() {
                let Ok(facts) = &member.facts else { continue };
                let own = requests(member.number, facts);
                ranges.insert((number, index), (observed.len(), own.len()));
                let function = member.number;
                observed.extend(own.into_iter().map(|request| Observed {
                    function,
                    request,
                    refused: None,
                }));
            }
        }
        let (gates, patched) = (Vec::new(), BTreeSet::new());
        let joins = false;
        Self { is_live, joins, observed, ranges, pace, gates, images: 0, patched, probes: 0 }
    }

    /// The same requests, without anything recorded yet; whether probes of code that has been running `joins`
    /// instructions.
    pub fn again(&self, joins: bool) -> Self {
        let (observed, ranges) = (self.unobserved(), self.ranges.clone());
        let (gates, patched) = (Vec::new(), BTreeSet::new());
        Self { joins, observed, ranges, gates, patched, images: 0, probes: 0, ..*self }
    }

    /// The requests, before anything is recorded.
    pub fn unobserved(&self) -> Vec<Observed> {
        self.observed.iter().map(|o| Observed { refused: None, ..o.clone() }).collect()
    }

    /// The requests of a function, and the index of the first.
    fn requests(&self, function: (usize, usize)) -> (usize, Vec<Request>) {
        let (first, length) = self.ranges.get(&function).copied().unwrap_or_default();
        (first, self.observed[first..first + length].iter().map(|o| o.request).collect())
    }

    /// The first N requests may have a record quota.
    fn quotas(&self) -> u32 {
        let has = |o: &Observed| matches!(o.request.what, What::Registers { .. });
        let last = self.observed.iter().rposition(has);
        last.map_or(0, |last| u32::try_from(last + 1).unwrap_or(MOST_TIMED).min(MOST_TIMED))
    }

    /// The gate of the newest image of a process.
    fn gate(&mut self, process: i32) -> Option<&mut Gate> {
        self.gates.iter_mut().rev().find(|gate| gate.image.process == process)
    }

    fn beside(&self) -> Beside {
        let quotas = self.quotas();
        let has_addresses = self.observed.iter().any(|o| o.request.what == What::Address);
        Beside { quotas, maps: quotas > 0 || has_addresses, logs: self.logs() }
    }

    /// Whether calls are logged.
    fn logs(&self) -> bool {
        self.observed.iter().any(|o| matches!(o.request.what, What::Allocated { .. }))
    }

    /// Sets at which execution each load is first timed.
    fn start(&self, shared: &Shared) {
        for (number, observed) in (0..MOST_TIMED).zip(&self.observed) {
            let What::Latency { bits, .. } = observed.request.what else { continue };
            let executions = (number.wrapping_mul(SPREAD) >> (32 - u32::from(bits))) as u16;
            // If this fails, it is the 16,384th.
            let _ = shared.write(&count(executions + 1), countdown(number));
        }
    }
}

impl Probes for Observing {
    type Plan = Observation;
    const IS_COMMON: bool = true;

    fn needs(&self, number: usize, target: &Target) -> (u64, u64) {
        let trampolines = target.functions.iter().enumerate().map(|(index, member)| {
            let requests = self.requests((number, index)).1;
            let parts = requests.iter().map(|request| request.what.parts()).sum();
            let facts = member.facts.as_ref().ok().filter(|_| parts > 0);
            facts.map_or(most(0, 0), |facts| most_of(facts, parts)) + 5 * requests.len() as u64
        });
        let log = if self.logs() { needs() } else { 0 };
        (Gate::needs(&self.pace).max(log), trampolines.sum())
    }

    fn joins(&self) -> bool {
        self.is_live && self.joins
    }

    fn plan(&self, function: Probed<'_>, room: &mut Room) -> Observation {
        let Probed { number, index, facts, .. } = function;
        let requests = self.requests((number, index)).1;
        match self.is_live && !self.joins {
            true => observe_live(facts, &requests, room, most),
            false => observe(facts, &requests, room, most),
        }
    }

    fn write(
        &self,
        code: &Code,
        function: Probed<'_>,
        plan: &mut Observation,
        written: &mut Written,
    ) {
        let Probed { number, index, facts, .. } = function;
        let (first, requests) = self.requests((number, index));
        let request = |number: usize| (requests[number], (first + number) as u32);
        write_observers(code, facts, plan, written, &request);
    }

    fn patched(&mut self, process: i32, shared: &Arc<Shared>) {
        if shared.is_copy {
            return;
        }
        if self.gates.len() >= MOST_IMAGES {
            self.gates.retain(|gate| !gate.is_unused());
        }
        if self.gates.len() < MOST_IMAGES {
            self.start(shared);
            let image = Image { number: self.images, process, is_live: self.is_live };
            self.images += 1;
            self.gates.push(Gate::new(Arc::clone(shared), image, self.pace, self.beside()));
        }
    }

    fn forked(&mut self, process: i32) {
        if let Some(gate) = self.gate(process) {
            gate.fork();
        }
    }

    fn process_ending(&mut self, process: i32) {
        if let Some(gate) = self.gate(process) {
            gate.end();
        }
    }

    fn placed(&mut self, target: &Target, shared: &Shared, bias: u64) {
        if let Some(gate) = self.gates.iter_mut().find(|gate| gate.is_of(shared)) {
            gate.biases.insert(target.path.clone(), bias);
        }
    }

    fn closed(
        &mut self,
        number: usize,
        _: &Target,
        plans: Vec<Result<Observation, Unprobed>>,
        _: &Shared,
        probes: usize,
    ) -> Result<(), Unprobed> {
        self.patched.insert(number);
        self.probes = self.probes.max(probes);
        for (index, plan) in plans.into_iter().enumerate() {
            let Some((first, length)) = self.ranges.get(&(number, index)) else { continue };
            let own = &mut self.observed[*first..*first + *length];
            match plan {
                Err(why) => own.iter_mut().for_each(|o| o.refused = Some(why.clone())),
                Ok(plan) => {
                    plan.refused.into_iter().for_each(|(n, why)| own[n].refused = Some(why.into()))
                }
            }
        }
        Ok(())
    }

    fn tick(&mut self) {
        let now = Instant::now();
        self.gates.iter_mut().for_each(|gate| gate.tick(now));
    }
}

/// Ends the recording of a window; its result.
pub(super) fn recorded_of(patcher: Patcher<Observing>, watched: &Watched) -> Recorded {
    let Watched { wall, interrupted, ended, .. } = *watched;
    // Without the first one.
    let tasks = watched.tasks.saturating_sub(1);
    let remains = watched.remains.is_some() && !ended;
    let followed = Followed { wall, exit: None, interrupted, tasks, processes: 0 };
    let recorded = recorded(patcher, &followed);
    Recorded { remains, ..recorded }
}

/// Ends the recording; its result.
pub(super) fn recorded(mut patcher: Patcher<Observing>, followed: &Followed) -> Recorded {
    patcher.finish();
    let Patcher { probes: mut observing, refused, .. } = patcher;
    for ((target, _), (first, length)) in &observing.ranges {
        let own = &mut observing.observed[*first..*first + *length];
        let is_patched = observing.patched.contains(target);
        if let Some(why) = refusal(&refused[*target], is_patched) {
            own.iter_mut().for_each(|o| o.refused = Some(why.clone()));
        }
    }
    let (mut bursts, mut heaps, mut biases) = (Vec::new(), Vec::new(), BTreeMap::new());
    for mut gate in observing.gates.drain(..) {
        gate.finish();
        heaps.extend(gate.heap());
        let number = gate.image.number;
        biases.extend(gate.biases.into_iter().map(|(path, bias)| ((number, path), bias)));
        bursts.append(&mut gate.bursts);
    }
    Recorded {
        observed: observing.observed,
        bursts,
        heaps,
        biases,
        windows: 0,
        wall: followed.wall,
        exit: followed.exit,
        interrupted: followed.interrupted,
        tasks: followed.tasks,
        probes: observing.probes,
        remains: false,
        notes: Vec::new(),
    }
}
