//! Probes a live process in a time window: it is analysed while it runs, stopped and patched at the beginning, and
//! restored at the end.

use super::instance::Instance;
use super::mapped::Mapped;
use super::patched::Condition;
use super::patcher::{Patcher, Process};
use super::prepared::{Prepared, prepared};
use super::probes::Probes;
use super::target::{Blocks, Target, Wanted, Work, targets_with};
use super::unprobed::Unprobed;
use crate::process::{Living, Tracee, Watched, Watcher, watch};
use pmu::perf::Signals;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tma::{Error, Result};

/// Most plans, if the process changes meanwhile.
const MOST_PLANS: usize = 5;
/// Poll interval of the analysis.
const POLL: Duration = Duration::from_millis(2);
/// Interval at which progress is shown and the process checked.
const SHOWN: Duration = Duration::from_millis(50);

/// Shows the progress of the analysis before a process is stopped: steps done, all steps.
pub type Progress<'a> = &'a mut dyn FnMut(usize, usize);

/// A time window of a process.
#[derive(Clone, Copy)]
pub struct Window<'a> {
    /// The process.
    pub pid: i32,
    /// Whether it is a child of this process, which awaits its end: signals are passed on to it.
    pub is_child: bool,
    /// Length, from when the code is patched.
    pub length: Duration,
    /// Signals that end it early.
    pub signals: &'a Signals,
}

/// Analysis and plans, made before the process is stopped.
struct Plan<P: Probes> {
    targets: Arc<[Target]>,
    probes: P,
    prepared: Vec<Option<std::result::Result<Prepared<P>, Unprobed>>>,
}

/// Probes a process, and those that it forks, for a window, and restores its code: `probes` makes
/// the probes when the code is known, `collect` reads their results. The process runs untraced
/// until everything is planned. `Err`: the signal that interrupted this.
///
/// # Errors
/// The process cannot be traced or stopped, or has ended.
pub fn watched<P, R>(
    window: &Window<'_>,
    wanted: &[Wanted],
    probes: impl FnOnce(&[Target]) -> P,
    collect: &(dyn Fn(Patcher<P>, &Watched) -> R + Sync),
    progress: Progress<'_>,
) -> Result<std::result::Result<R, i32>>
where
    P: Probes + Send + 'static,
    P::Plan: Send,
    R: Send,
{
    let living = Living::find(window.pid, window.is_child)?;
    let all = 2 * wanted.len();
    let mut waited = |done: usize| progress(done.min(all), all);
    waited(0);
    let work = Arc::new(Work::default());
    let (of, own) = (wanted.to_vec(), Arc::clone(&work));
    let reading = std::thread::spawn(move || targets_with(&of, Blocks::All, &own));
    let targets = match finished(&living, reading, &work, window.signals, &mut waited)? {
        Ok(targets) => targets,
        Err(signal) => return Ok(Err(signal)),
    };
    let known = Plan { probes: probes(&targets), targets, prepared: Vec::new() };
    // Half of the work is done.
    let mut waited = |done: usize| waited(done.saturating_add(wanted.len()));
    planned(&living, known, window, collect, &mut waited)
}

/// As [`watched`], of files that are analysed.
///
/// # Errors
/// As [`watched`].
pub fn watched_again<P, R>(
    window: &Window<'_>,
    targets: Arc<[Target]>,
    probes: P,
    collect: &(dyn Fn(Patcher<P>, &Watched) -> R + Sync),
) -> Result<std::result::Result<R, i32>>
where
    P: Probes + Send + 'static,
    P::Plan: Send,
    R: Send,
{
    let living = Living::find(window.pid, window.is_child)?;
    let known = Plan { probes, targets, prepared: Vec::new() };
    planned(&living, known, window, collect, &mut |_| {})
}

/// Plans the probes of `known`, and runs the window; plans again if the process changes meanwhile.
fn planned<P, R>(
    living: &Living,
    mut known: Plan<P>,
    window: &Window<'_>,
    collect: &(dyn Fn(Patcher<P>, &Watched) -> R + Sync),
    waited: &mut dyn FnMut(usize),
) -> Result<std::result::Result<R, i32>>
where
    P: Probes + Send + 'static,
    P::Plan: Send,
    R: Send,
{
    for _ in 0..MOST_PLANS {
        let work = Arc::new(Work::default());
        let planning = start(*living, known, Arc::clone(&work));
        let plan = match finished(living, planning, &work, window.signals, waited)? {
            Ok(plan) => plan,
            Err(signal) => return Ok(Err(signal)),
        };
        waited(usize::MAX);
        match traced(living, plan, window, collect)? {
            Ok(found) => return Ok(Ok(found)),
            Err(unused) => known = unused,
        }
    }
    Err(Error::not_possible(format!("process {} cannot be probed now", window.pid))
        .because("its code or its mappings change all the time")
        .hint("try again, or count from its start: `tdtool count -- COMMAND`"))
}

/// Starts planning in another thread.
fn start<P>(living: Living, known: Plan<P>, work: Arc<Work>) -> JoinHandle<Plan<P>>
where
    P: Probes + Send + 'static,
    P::Plan: Send,
{
    std::thread::spawn(move || {
        let Plan { probes, targets, .. } = known;
        let prepared = match living.thread() {
            Some(tid) => prepared(&probes, &targets, tid, &work),
            None => Vec::new(),
        };
        Plan { targets, probes, prepared }
    })
}

/// Waits for a part of the analysis; `Err`: the signal that interrupted it.
fn finished<T>(
    living: &Living,
    part: JoinHandle<T>,
    work: &Work,
    signals: &Signals,
    waited: &mut dyn FnMut(usize),
) -> Result<std::result::Result<T, i32>> {
    let mut shown = Instant::now();
    while !part.is_finished() {
        if let Some(signal) = living.signal(signals) {
            work.cancel();
            waited(usize::MAX);
            return Ok(Err(signal));
        }
        if shown.elapsed() > SHOWN {
            shown = Instant::now();
            if living.thread().is_none() {
                work.cancel();
                waited(usize::MAX);
                return Err(living.ended("while its code was analysed"));
            }
            waited(work.done());
        }
        std::thread::sleep(POLL);
    }
    match part.join() {
        Ok(found) => Ok(Ok(found)),
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// Runs the window; `Err` returns probes and targets, unused, if the process has changed since the
/// analysis.
fn traced<P, R>(
    living: &Living,
    plan: Plan<P>,
    window: &Window<'_>,
    collect: &(dyn Fn(Patcher<P>, &Watched) -> R + Sync),
) -> Result<std::result::Result<R, Plan<P>>>
where
    P: Probes + Send,
    P::Plan: Send,
    R: Send,
{
    let probe = || {
        let mut patcher = Patcher::live(plan.probes, plan.targets, plan.prepared);
        Ok(match watch(living, &mut patcher, window.length, window.signals)? {
            None => {
                let Patcher { probes, targets, .. } = patcher;
                Err(Plan { probes, targets, prepared: Vec::new() })
            }
            Some(watched) => Ok(collect(patcher, &watched)),
        })
    };
    // The end of this thread detaches from all that it still traces (ptrace(2)).
    let found = std::thread::scope(|scope| scope.spawn(probe).join());
    living.settle();
    found.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Notes on a window, before which `restored` probes of an earlier run were removed.
pub fn notes(watched: &Watched, restored: usize) -> Vec<String> {
    let Watched { wall, stopped, executed, ended, remains, still_mapped, .. } = watched;
    let mut notes = Vec::new();
    if restored > 0 {
        notes.push(format!(
            "{restored} probes of an earlier run that was killed were taken back before"
        ));
    }
    let stood = format!("the process was stopped for {:.0} ms", stopped.as_secs_f64() * 1e3);
    notes.push(match (remains, still_mapped) {
        _ if *ended => format!("the process has ended, after {:.2} s", wall.as_secs_f64()),
        (None, None) => format!("{stood}; its code and its mappings are as they were"),
        (None, Some(why)) => format!(
            "{stood}; its code is as it was; trampolines and counters stay mapped in it: {why}"
        ),
        (Some(why), _) => format!(
            "{stood}; ITS PROBES REMAIN, as not all of it could be stopped at the end: {why}; it \
             runs on with them, and counts for nobody, until the next tdtool count -p takes them back"
        ),
    });
    if *executed > 0 {
        notes.push(format!("not counted: {executed} programs that it executed meanwhile"));
    }
    notes
}

/// Most pages with trampolines that are written while a live process is stopped: about a
/// millisecond.
const FEW: usize = 200;

impl<P: Probes> Watcher for Patcher<P> {
    fn is_current(&self, tracee: &Tracee) -> bool {
        let (mappings, memory) = (tracee.mappings(), tracee.memory());
        let is_current =
            |(target, prepared): (&Target, &Option<std::result::Result<Prepared<P>, Unprobed>>)| {
                let address = target.address(&mappings);
                match (prepared, address, &memory) {
                    (None, address, _) => address.is_none(),
                    (Some(Ok(prepared)), Some(address), Ok(memory)) => {
                        prepared.is_current(address, &mappings, memory)
                    }
                    (Some(prepared), address, _) => address.is_some() && prepared.is_err(),
                }
            };
        self.targets.iter().zip(&self.prepared).all(is_current)
    }

    fn reserve(&mut self, tracee: &Tracee) -> bool {
        let pages: usize = self.prepared.iter().flatten().flatten().map(Prepared::pages).sum();
        let Some(memory) = tracee.memory().ok().filter(|_| pages > FEW && !P::IS_COMMON) else {
            return false;
        };
        for prepared in self.prepared.iter_mut().flatten() {
            if let Ok(Err(why)) = prepared.as_mut().map(|one| one.map(tracee, &memory, None)) {
                *prepared = Err(why);
            }
        }
        self.early = Some((tracee.process, memory));
        true
    }

    fn fill(&mut self, most: Duration) -> bool {
        let end = Some(Instant::now() + most);
        let Some((_, memory)) = &self.early else { return true };
        for prepared in self.prepared.iter_mut().flatten() {
            match prepared.as_mut().map(|one| one.fill(memory, end)) {
                Ok(Ok(true)) | Err(_) => {}
                Ok(Ok(false)) => return false,
                Ok(Err(why)) => {
                    self.unused.extend(prepared.as_mut().ok().and_then(Prepared::unused));
                    *prepared = Err(why);
                }
            }
        }
        true
    }

    fn joins(&self) -> bool {
        self.probes.joins()
    }

    fn release(&mut self, tracee: &Tracee) -> usize {
        let prepared = self.prepared.iter_mut().flatten().flatten();
        let all = prepared.filter_map(Prepared::unused).chain(self.unused.drain(..));
        let all: Vec<Mapped> = all.collect();
        match tracee.memory() {
            Ok(memory) => all.into_iter().map(|one| one.unmap(tracee, &memory)).sum(),
            Err(_) => all.len(),
        }
    }

    fn may_return(&self, address: u64) -> bool {
        let mut all = self.processes.values().flat_map(|process| &process.instances);
        let mut prepared = self.prepared.iter().flatten().flatten();
        !all.any(|instance| instance.code.is_inside(address))
            && !prepared.any(|prepared| prepared.is_inside(address))
    }

    fn unused(&self, process: i32) -> Option<Vec<Range<u64>>> {
        let Some(Process { instances, memory: Some(memory), .. }) = self.processes.get(&process)
        else {
            return Some(Vec::new());
        };
        let is_gone = instances.iter().all(|instance| instance.code.is_gone(memory));
        is_gone.then(|| instances.iter().flat_map(|instance| &instance.ranges).cloned().collect())
    }

    fn leave(&mut self) {
        // A child of vfork(2) has the memory of its parent, whose code is already restored.
        let mut restored: Vec<*const Instance<P>> = Vec::new();
        let all: Vec<Process<P>> = self.processes.values().cloned().collect();
        for process in all {
            let Some(memory) = &process.memory else { continue };
            for instance in &process.instances {
                let condition = instance.code.restore(memory);
                let is_first = !restored.contains(&Rc::as_ptr(instance));
                restored.push(Rc::as_ptr(instance));
                if is_first || condition != Condition::Changed {
                    self.judge(instance.target, condition);
                }
            }
        }
        self.is_restored = true;
    }
}
