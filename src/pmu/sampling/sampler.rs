//! Opens a plan's events on the measured tasks or CPUs, with one ring buffer per CPU (`opening`), and runs the
//! thread that empties them, after records of what was there `before`.

mod before;
mod opening;

use super::drain::Drain;
use super::elsewhere;
use super::output::{Attached, Batch, MappedFile, Output, Sink, Summary};
use super::plan::Plan;
use super::record_statistics::RecordStatistics;
use crate::build_id;
use crate::machine::{self, Machine};
use crate::perf::{Attachment, RunHooks, Sampled};
use nix::sys::resource::{UsageWho, getrusage};
use std::path::Path;
use std::time::{Duration, Instant};
use tma::error::{Error, Result};

/// Hooks that sample.
pub struct Sampler<'a> {
    machine: &'a Machine,
    plan: Plan,
    sink: Option<Sink>,
    /// Events that track mappings, names and starts.
    tracking: Vec<Sampled>,
    /// Sampling events, by event of the plan.
    events: Vec<Vec<Sampled>>,
    /// Events that only count, by event of the plan in whose groups they are: of each group, in its order.
    counted: Vec<Vec<Vec<Sampled>>>,
    drain: Option<Drain>,
    begin: Option<(Instant, Duration)>,
    summary: Summary,
}

impl<'a> Sampler<'a> {
    /// Samples by `plan` into `sink`.
    pub fn new(machine: &'a Machine, plan: Plan, sink: Sink) -> Self {
        let events = plan.events.iter().map(|_| Vec::new()).collect();
        let counted = plan.events.iter().map(|_| Vec::new()).collect();
        Self {
            machine,
            plan,
            sink: Some(sink),
            tracking: Vec::new(),
            events,
            counted,
            drain: None,
            begin: None,
            summary: Summary::default(),
        }
    }

    /// The summary, after the run.
    pub fn take_summary(&mut self) -> Summary {
        std::mem::take(&mut self.summary)
    }

    fn note(&mut self, note: &str) {
        if !self.summary.notes.iter().any(|n| n == note) {
            self.summary.notes.push(note.to_owned());
        }
    }

    /// Files with code that have a build-id; those that their paths do not lead to are held open.
    fn files(&mut self, statistics: &mut RecordStatistics) -> Vec<MappedFile> {
        let mut files = Vec::new();
        for ((path, recorded), mapped) in statistics.files.drain() {
            // The path most often leads to the file.
            let here = mapped.is_of_file().then(|| build_id::of_file(Path::new(&path))).flatten();
            if !mapped.is_of_file() || (recorded.is_some() && recorded == here) {
                files.extend(recorded.map(|build_id| MappedFile { path, build_id }));
                continue;
            }
            let file = mapped.open();
            let own = file.as_ref().and_then(build_id::of);
            let is_it =
                own.is_some() && recorded.as_ref().is_none_or(|id| own.as_ref() == Some(id));
            if let (Some(file), Some(own), true) = (file, &own, is_it) {
                elsewhere::add(&mut self.summary.elsewhere, &path, file, own);
            }
            // Without a process to ask, the file at the path is the best that is known, unless it was replaced.
            let guessed = || own.or(here.filter(|_| mapped.inode.is_none()));
            let build_id = recorded.or_else(guessed);
            files.extend(build_id.map(|build_id| MappedFile { path, build_id }));
        }
        files.sort_unstable_by(|a, b| (&a.path, &a.build_id).cmp(&(&b.path, &b.build_id)));
        files.dedup();
        files
    }
}

impl RunHooks for Sampler<'_> {
    fn attach(&mut self, to: &Attachment<'_>) -> Result<()> {
        let Some(mut sink) = self.sink.take() else { return Ok(()) };
        self.begin = Some((Instant::now(), cpu_time()));
        let rings = self.open_all(to)?;
        let ids = |events: &[Sampled]| events.iter().map(Sampled::id).collect::<Vec<u64>>();
        let planned = self.plan.events.iter().zip(&self.events);
        let counted = |at: usize, member: usize| -> Vec<u64> {
            self.counted[at].iter().filter_map(|group| group.get(member)).map(Sampled::id).collect()
        };
        let attached: Vec<Attached> = planned
            .enumerate()
            .map(|(at, (event, open))| Attached {
                event: event.clone(),
                ids: ids(open),
                counted: (0..event.group.len()).map(|member| counted(at, member)).collect(),
            })
            .collect();
        let tracking = ids(&self.tracking);
        let id = tracking.first().copied().unwrap_or_default();
        sink(Output::Events(attached, tracking));
        let mut statistics = RecordStatistics::default();
        let bytes = self.synthesized(to, id);
        if !bytes.is_empty() {
            let (records, samples) = statistics.add(&bytes);
            sink(Output::Records(Batch { cpu: None, records, samples, bytes }));
        }
        if self.tracking.is_empty() {
            self.note("nothing was sampled: all its threads had ended");
        }
        let started = Drain::start(rings, sink, statistics);
        let failed =
            |e| Error::failed("cannot start the thread that empties the ring buffers").because(e);
        self.drain = Some(started.map_err(failed)?);
        Ok(())
    }

    fn enable(&mut self) {
        self.counted.iter_mut().flatten().flatten().for_each(Sampled::enable);
        self.events.iter_mut().flatten().for_each(Sampled::enable);
    }

    fn disable(&mut self) {
        self.events.iter_mut().flatten().for_each(Sampled::disable);
        self.counted.iter_mut().flatten().flatten().for_each(Sampled::disable);
    }

    fn finish(&mut self) {
        RunHooks::disable(self);
        self.tracking.iter_mut().for_each(Sampled::disable);
        let Some(drain) = self.drain.take() else { return };
        let mut statistics = drain.finish();
        if let Some((begin, before)) = self.begin.take() {
            self.summary.wall = begin.elapsed();
            self.summary.cpu = cpu_time().saturating_sub(before);
        }
        // A ring buffer that is full at the end has no LOST record; the events count losses.
        let lost: u64 = self.events.iter().flatten().filter_map(Sampled::lost).sum();
        self.summary.lost = statistics.lost.max(lost);
        self.summary.files = self.files(&mut statistics);
        (self.summary.samples, self.summary.bytes) = (statistics.samples, statistics.bytes);
        self.summary.throttled = statistics.throttled;
    }
}

impl Drop for Sampler<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}

/// CPU time of this process, all its threads.
fn cpu_time() -> Duration {
    getrusage(UsageWho::RUSAGE_SELF).map_or(Duration::ZERO, |usage| machine::cpu_time(&usage))
}
