//! Opens the events of a plan, and the ring buffers that they write to.

use super::{CpuRing, Sampler};
use crate::Target;
use crate::perf::{
    Attachment, DUMMY, Opening, Ring, Sampled, SampledTasks, find_cgroup, raise_file_limit,
};
use crate::sampling::plan::with_group;
use nix::errno::Errno;
use std::fs::File;
use std::path::Path;
use tma::error::{Error, Result};

/// Minimum size of a ring buffer.
const SMALLEST_RING: usize = 4096;

impl Sampler<'_> {
    pub(super) fn open_all(&mut self, to: &Attachment<'_>) -> Result<Vec<CpuRing>> {
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
    fn ring(&mut self, event: &Sampled) -> Result<Ring> {
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
}

fn redirect(event: &Sampled, to: &Sampled) -> Result<()> {
    event.redirect(to).map_err(refused)
}

fn refused(errno: Errno) -> Error {
    Error::failed("the kernel refuses to sample")
        .because(errno.desc())
        .hint("try another event (-e cpu-clock), or count without samples: --no-samples")
}

fn open_cgroup(folder: &Path) -> Result<File> {
    let path = find_cgroup(folder);
    File::open(&path)
        .map_err(|e| Error::failed(format!("cannot open {}", path.display())).because(e))
}
