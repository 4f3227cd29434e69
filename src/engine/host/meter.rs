//! Measurements in threads, each from interval to interval for as long as the program runs, and begun again when it
//! ends: a control group that was removed and made anew is another one to the kernel.

use super::commands::Commands;
use super::describe;
use super::estimates::Estimates;
use super::modes::Modes;
use super::rows::{DEEPEST, Rows};
use crate::topdown::live::{CountedCore, prepare, request};
use crate::topdown::{Ask, LiveAsk};
use fleet::metrics::{Interval, NotMeasured, Reason, Subject};
use fleet::window::{Host, Owner};
use pmu::kernel::Kernel;
use pmu::machine::Machine;
use pmu::perf::{Ending, Live, NoHooks, find_cgroup, measure_through};
use pmu::{Aggregate, CorePlan, Progress, Target};
use smol_str::SmolStr;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tma::tables::Library;
use tma::{Core, Error, ErrorKind, Result};

/// What to measure of a host.
#[derive(Debug, Clone)]
pub struct HostAsk {
    /// Force this table.
    pub uarch: Option<String>,
    /// The core.
    pub core: Arc<Core>,
    /// Length of an interval.
    pub interval: Duration,
    /// Each socket, too.
    pub per_socket: bool,
    /// Control groups, by folders absolute or below the mount.
    pub cgroups: Vec<PathBuf>,
    /// Commands, by the names of their processes.
    pub commands: Vec<SmolStr>,
    /// Reports with estimates.
    pub estimates: Vec<PathBuf>,
}

/// What a measurement found in an interval.
#[derive(Debug, Clone)]
pub struct Update {
    /// Its number: 0 is the host's.
    pub measurement: usize,
    /// The rows.
    pub rows: Interval,
    /// Why it failed, if it did.
    pub failed: Option<Error>,
}

/// A host to measure.
pub struct Meter<'a> {
    machine: &'a Machine,
    cores: Vec<CountedCore>,
    scopes: Vec<Scope>,
    ask: HostAsk,
}

/// A measurement: of the host, or of a control group.
struct Scope {
    live: LiveAsk,
    owner: Owner,
    ending: Arc<Ending>,
}

impl<'a> Meter<'a> {
    /// Chooses tables, nodes and groups.
    ///
    /// # Errors
    /// An unknown table.
    pub fn prepare(machine: &'a Machine, library: &Library, ask: HostAsk) -> Result<Self> {
        let host = LiveAsk {
            ask: Ask { level: Some(DEEPEST), without_details: true, ..Ask::default() },
            uarch: ask.uarch.clone(),
            target: Target::System,
            aggregate: if ask.per_socket { Aggregate::Socket } else { Aggregate::All },
            interval: Some(ask.interval),
            ..LiveAsk::of(Arc::clone(&ask.core))
        };
        let (cores, _) = prepare(machine, library, &host)?;
        let group = |folder: &PathBuf| {
            let (target, aggregate) = (Target::Cgroup(folder.clone()), Aggregate::All);
            let live = LiveAsk { target, aggregate, ..host.clone() };
            let cgroup = Some(SmolStr::new(folder.to_string_lossy()));
            Scope::new(live, Owner { cgroup, ..Owner::default() })
        };
        let groups: Vec<Scope> = ask.cgroups.iter().map(group).collect::<Result<_>>()?;
        let mut scopes = vec![Scope::new(host, Owner::default())?];
        scopes.extend(groups);
        Ok(Self { machine, cores, scopes, ask })
    }

    /// The host, its processor and table.
    pub fn host(&self) -> Host {
        let names: Vec<&str> = self.cores.iter().map(|core| core.table.name.as_str()).collect();
        let table = Some(names.join("+")).filter(|names| !names.is_empty());
        describe(self.machine, table.as_deref())
    }

    /// Measures until [`Self::end`]; `on_update` is called from several threads.
    pub fn run(&self, on_update: &(dyn Fn(Update) + Sync)) {
        std::thread::scope(|threads| {
            for number in 0..self.scopes.len() {
                threads.spawn(move || self.follow(number, on_update));
            }
        });
    }

    /// Ends all measurements.
    pub fn end(&self) {
        self.scopes.iter().for_each(|scope| scope.ending.end());
    }

    /// One measurement after the other.
    fn follow(&self, number: usize, on_update: &(dyn Fn(Update) + Sync)) {
        let scope = &self.scopes[number];
        let mut beside = Beside::new(self, number);
        while !scope.ending.is_for_ever() {
            scope.ending.begin();
            let kernel = &mut Live::until(Arc::clone(&scope.ending));
            let Err(error) = self.measure(number, kernel, &mut beside, on_update) else { continue };
            let (rows, failed) = self.failure(number, error, &mut beside);
            on_update(Update { measurement: number, rows, failed });
            scope.ending.wait(self.ask.interval);
        }
    }

    /// One measurement through `kernel`, until it ends.
    ///
    /// # Errors
    /// The kernel refuses it; there is no such control group.
    pub fn measure_through(
        &self,
        kernel: &mut dyn Kernel,
        on_update: &(dyn Fn(Update) + Sync),
    ) -> Result<()> {
        self.measure(0, kernel, &mut Beside::new(self, 0), on_update)
    }

    fn measure(
        &self,
        number: usize,
        kernel: &mut dyn Kernel,
        beside: &mut Beside,
        on_update: &(dyn Fn(Update) + Sync),
    ) -> Result<()> {
        let scope = &self.scopes[number];
        let plans = self.cores.iter().map(|core| CorePlan {
            table: &core.table,
            groups: &core.groups,
            pmu: core.pmu.clone(),
        });
        let request = request(self.machine, plans.collect(), &scope.live);
        let mut rows = Rows::new(&self.cores, scope.owner.clone());
        let identity = scope.identity();
        let mut on_progress = |progress| {
            let Progress::Interval(interval) = progress else { return };
            let mut rows = rows.of(&interval);
            beside.add(&mut rows);
            on_update(Update { measurement: number, rows, failed: None });
            if scope.identity() != identity {
                scope.ending.end_this();
            }
        };
        measure_through(kernel, &request, &mut NoHooks, &mut on_progress).map(drop)
    }

    /// What there is of an interval in which the measurement failed. That a control group is not there is no failure.
    fn failure(
        &self,
        number: usize,
        error: Error,
        beside: &mut Beside,
    ) -> (Interval, Option<Error>) {
        let scope = &self.scopes[number];
        let is_absent = scope.folder().is_some_and(|folder| !folder.exists());
        let reason = match error.kind() {
            _ if is_absent => Reason::Absent,
            ErrorKind::NotPossible => Reason::NotSupported,
            _ => Reason::Failed,
        };
        let subject = Subject { owner: scope.owner.clone(), core: None };
        let missing = |what| NotMeasured { subject: subject.clone(), what, reason };
        let what = ["topdown", "software"].map(SmolStr::new_static);
        let mut rows = Interval { not_measured: what.map(missing).into(), ..Interval::default() };
        beside.add(&mut rows);
        (rows, Some(error).filter(|_| !is_absent))
    }
}

impl Scope {
    fn new(live: LiveAsk, owner: Owner) -> Result<Self> {
        Ok(Self { live, owner, ending: Arc::new(Ending::new()?) })
    }

    /// The folder of the control group.
    fn folder(&self) -> Option<PathBuf> {
        match &self.live.target {
            Target::Cgroup(folder) => Some(find_cgroup(folder)),
            _ => None,
        }
    }

    /// Which control group it is: another one of the same name differs.
    fn identity(&self) -> Option<(u64, u64)> {
        identity(&self.folder()?)
    }
}

fn identity(folder: &Path) -> Option<(u64, u64)> {
    let of = std::fs::metadata(folder).ok()?;
    Some((of.dev(), of.ino()))
}

/// What is read beside the events, at the end of each interval.
struct Beside<'a> {
    meter: &'a Meter<'a>,
    scope: &'a Scope,
    modes: Modes,
    commands: Commands,
    estimates: Estimates,
}

impl<'a> Beside<'a> {
    /// Readings begin now.
    fn new(meter: &'a Meter<'a>, number: usize) -> Self {
        let (scope, ask) = (&meter.scopes[number], &meter.ask);
        let is_host = scope.folder().is_none();
        let (commands, estimates): (&[_], &[_]) =
            if is_host { (&ask.commands, &ask.estimates) } else { (&[], &[]) };
        let (commands, estimates) = (Commands::new(commands), Estimates::new(estimates));
        let mut beside = Self { meter, scope, modes: Modes::default(), commands, estimates };
        beside.add(&mut Interval::default());
        beside
    }

    fn add(&mut self, rows: &mut Interval) {
        let owner = &self.scope.owner;
        let counts = match self.scope.folder() {
            Some(folder) => self.modes.of_cgroup(&folder, owner),
            None => {
                let topology = &self.meter.machine.topology;
                Ok(self.modes.of_host(Some(topology).filter(|_| self.meter.ask.per_socket)))
            }
        };
        match counts {
            Ok(counts) => rows.counts.extend(counts),
            Err(reason) => {
                let subject = Subject { owner: owner.clone(), core: None };
                let what = SmolStr::new_static("cpu");
                rows.not_measured.push(NotMeasured { subject, what, reason });
            }
        }
        self.commands.add(rows);
        self.estimates.add(rows);
    }
}
