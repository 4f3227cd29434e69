//! Opens a plan's events on the measured tasks or CPUs, with one ring buffer per CPU, and runs the
//! thread that empties them.

use super::drain::{CpuRing, Drain};
use super::output::{Attached, Batch, MappedFile, Output, Sink, Summary};
use super::plan::Plan;
use super::precision::with_group;
use super::record_statistics::RecordStatistics;
use super::run_hooks::{Attachment, RunHooks};
use super::synthesis::Synthesis;
use crate::machine::Machine;
use crate::perf::{DUMMY, Opening, Sampled, SampledTasks, find_cgroup, raise_file_limit};
use crate::{Target, build_id};
use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};
use tma::error::{Error, Result};

/// Minimum size of a ring buffer.
const SMALLEST_RING: usize = 4096;

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

    fn open_all(&mut self, to: &Attachment<'_>) -> Result<Vec<CpuRing>> {
        let group = match to.target {
            Target::Cgroup(folder) => Some(open_cgroup(folder)?),
            _ => None,
        };
        let subjects: Vec<SampledTasks<'_>> = match &group {
            Some(group) => vec![SampledTasks::Cgroup(group)],
            None if to.target.is_by_cpu() => vec![SampledTasks::All],
            None => to.tasks.iter().map(|t| SampledTasks::Task(*t)).collect(),
        };
        let mut rings = Vec::new();
        for &cpu in &to.cpus {
            let mut owner = None;
            for &tasks in &subjects {
                self.open_at(to, tasks, cpu, &mut owner, &mut rings)?;
            }
        }
        Ok(rings)
    }

    /// Opens the tracking event and all sampling events of one subject on one CPU. `owner` is the
    /// tracking event that has the CPU's ring buffer. Ended tasks and offline CPUs are omitted.
    fn open_at(
        &mut self,
        to: &Attachment<'_>,
        tasks: SampledTasks<'_>,
        cpu: u32,
        owner: &mut Option<usize>,
        rings: &mut Vec<CpuRing>,
    ) -> Result<()> {
        let tracking = Opening {
            encoding: DUMMY,
            precise: 0,
            rate: None,
            format: self.plan.format(),
            tasks,
            cpu: Some(cpu),
            inherit: to.inherit && matches!(tasks, SampledTasks::Task(_)),
            user_only: self.plan.user_only,
            enable_on_exec: to.enable_on_exec,
            // Mappings made while /proc is read must be recorded.
            enabled: !to.enable_on_exec,
            build_ids: self.plan.ability.build_ids,
            watermark: u32::try_from(self.plan.ring / 2).unwrap_or(u32::MAX),
        };
        let Some((event, _)) = self.opened(&tracking, None, to)? else { return Ok(()) };
        match *owner {
            Some(at) => redirect(&event, &self.tracking[at])?,
            None => {
                rings.push(CpuRing { cpu, ring: self.ring(&event)? });
                *owner = Some(self.tracking.len());
            }
        }
        self.tracking.push(event);
        let owner = owner.unwrap_or_default();
        for at in 0..self.plan.events.len() {
            let planned = &self.plan.events[at];
            if planned.cpus.as_ref().is_some_and(|cpus| !cpus.contains(&cpu)) {
                continue;
            }
            let opening = Opening {
                encoding: planned.encoding,
                precise: planned.precise,
                rate: Some(planned.rate),
                user_only: self.plan.user_only && !planned.encoding.kernel_only,
                enabled: false,
                build_ids: false,
                format: planned.extra.added_to(tracking.format),
                ..tracking
            };
            let opening = Opening { inherit: opening.inherit && planned.inherits, ..opening };
            if let Some((event, counted)) = self.opened(&opening, Some(at), to)? {
                redirect(&event, &self.tracking[owner])?;
                self.events[at].push(event);
                self.counted[at].push(counted);
            }
        }
        Ok(())
    }

    /// The event, and those counted in its group; `None` if the task has ended or the CPU is offline.
    /// `planned`: its place in the plan, if it samples.
    fn opened(
        &self,
        opening: &Opening<'_>,
        planned: Option<usize>,
        to: &Attachment<'_>,
    ) -> Result<Option<(Sampled, Vec<Sampled>)>> {
        let open = || match planned {
            Some(at) => with_group(&self.plan.events[at], opening),
            None => Sampled::open(opening).map(|event| (event, Vec::new())),
        };
        let opened = match open() {
            Err(Errno::EMFILE) if raise_file_limit() => open(),
            other => other,
        };
        match opened {
            Ok(event) => Ok(Some(event)),
            Err(Errno::ESRCH | Errno::ENODEV) => Ok(None),
            Err(errno @ (Errno::EACCES | Errno::EPERM)) => {
                let (cause, remedy) = self.machine.kernel.why_denied();
                let subject = match to.target {
                    Target::System | Target::Cpus(_) => "whole CPUs",
                    Target::Cgroup(_) => "a control group",
                    _ => "this process",
                };
                Err(Error::failed(format!("not permitted to sample {subject} ({})", errno.desc()))
                    .because(cause)
                    .hint(format!("{remedy}\nor count without samples: --no-samples")))
            }
            Err(Errno::EMFILE | Errno::ENFILE) => {
                let each = (self.plan.events.len() + 1) * to.cpus.len();
                let needed = each * to.tasks.len().max(1) + 64;
                Err(Error::failed("too many threads to sample for the limit on open files")
                    .because(format!("{each} events for each of {} threads", to.tasks.len()))
                    .hint(format!("ulimit -n {needed}, or sample all CPUs with -a")))
            }
            Err(errno) => Err(refused(errno)),
        }
    }

    /// A ring buffer, smaller than planned if no more memory can be locked.
    fn ring(&mut self, event: &Sampled) -> Result<crate::perf::Ring> {
        let mut size = self.plan.ring.max(SMALLEST_RING);
        loop {
            match event.ring(size) {
                Ok(ring) => {
                    if size < self.plan.ring {
                        let note = "ring buffers are smaller than planned because this user may \
                                    lock no more memory (kernel.perf_event_mlock_kb); more samples \
                                    may be lost";
                        self.note(note);
                        self.plan.ring = size;
                    }
                    return Ok(ring);
                }
                Err(Errno::EPERM | Errno::ENOMEM) if size > SMALLEST_RING => size /= 2,
                Err(Errno::EPERM) => {
                    return Err(Error::failed("no memory can be locked for the ring buffers")
                        .because("kernel.perf_event_mlock_kb is used up by other recordings")
                        .hint(
                            "end them, raise ulimit -l, or count without samples: --no-samples",
                        ));
                }
                Err(errno) => {
                    return Err(
                        Error::failed("cannot map a ring buffer for samples").because(errno.desc())
                    );
                }
            }
        }
    }

    fn note(&mut self, note: &str) {
        if !self.summary.notes.iter().any(|n| n == note) {
            self.summary.notes.push(note.to_owned());
        }
    }

    /// Records of the state before the recording.
    fn synthesized(&self, to: &Attachment<'_>, id: u64) -> Vec<u8> {
        let mut made = Synthesis::new(id);
        if !self.plan.user_only {
            made.kernel();
        }
        match to.target {
            // Its exec is recorded.
            Target::Command => {}
            Target::Process(pid) | Target::Thread(pid) => {
                if let Some(pid) = process_of(*pid) {
                    made.process(pid);
                }
            }
            Target::System | Target::Cpus(_) | Target::Cgroup(_) => made.all_processes(),
        }
        made.into_bytes()
    }

    /// Files with code that have a build-id.
    fn files(statistics: &mut RecordStatistics) -> Vec<MappedFile> {
        let mut files = Vec::new();
        for (path, build_id) in statistics.files.drain() {
            let build_id = build_id.or_else(|| {
                let is_file = path.starts_with('/') && !path.starts_with("//");
                is_file.then(|| build_id::of_file(Path::new(&path))).flatten()
            });
            files.extend(build_id.map(|build_id| MappedFile { path, build_id }));
        }
        files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
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
        self.summary.files = Self::files(&mut statistics);
        (self.summary.samples, self.summary.bytes) = (statistics.samples, statistics.bytes);
        self.summary.throttled = statistics.throttled;
    }
}

impl Drop for Sampler<'_> {
    fn drop(&mut self) {
        self.finish();
    }
}

fn redirect(event: &Sampled, to: &Sampled) -> Result<()> {
    event.redirect(to).map_err(refused)
}

fn refused(errno: Errno) -> Error {
    Error::failed("the kernel refuses to sample")
        .because(errno.desc())
        .hint("try another event (-e cpu-clock), or count without samples: --no-samples")
}

/// The process of a thread.
fn process_of(tid: i32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

fn open_cgroup(folder: &Path) -> Result<File> {
    let path = find_cgroup(folder);
    File::open(&path)
        .map_err(|e| Error::failed(format!("cannot open {}", path.display())).because(e))
}

/// CPU time of this process, all its threads.
fn cpu_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    let time = |t: nix::sys::time::TimeVal| {
        let (seconds, micros) = (u64::try_from(t.tv_sec()), u64::try_from(t.tv_usec()));
        Duration::from_secs(seconds.unwrap_or(0)) + Duration::from_micros(micros.unwrap_or(0))
    };
    time(usage.user_time()) + time(usage.system_time())
}
