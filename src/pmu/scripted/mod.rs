//! A simulated kernel: multiplexed counters, known rates, and scripted refusals. All decisions of the collector are
//! tested against it without a PMU and without waiting. `calls` has its calls, `model` its state.
//!
//! The model: every CPU has the same number of counters; each hardware event takes one, software
//! events none. Groups that do not fit together are multiplexed with period [`Scripted::rotation`].
//! An event counts its rate times the time it runs. Time passes only in `Kernel::wait`.

mod calls;
mod model;

use crate::Exit;
use crate::kernel::{Event, Handle, Order};
use nix::errno::Errno;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tma::error::Error;

/// The script of the simulated kernel, and a record of its calls.
#[derive(Debug, Clone)]
pub struct Scripted {
    /// Counts per nanosecond of each `config` (or `config` and `config1`).
    pub rates: BTreeMap<u64, f64>,
    /// Other rates in every second phase of the program.
    pub other_rates: BTreeMap<u64, f64>,
    /// When phases begin.
    pub phases: Vec<Duration>,
    /// Result of [`crate::kernel::Kernel::seed`].
    pub seed: u64,
    /// Counters of a CPU.
    pub counters: usize,
    /// Counters in use by other programs, by CPU; `u32::MAX`: on every CPU.
    pub busy: BTreeMap<u32, usize>,
    /// Groups of another program that counts whole CPUs, multiplexed with ours: from when, to when, and how many
    /// counters each needs.
    pub others: Vec<(Duration, Duration, usize)>,
    /// Time that reading a group of hardware events takes.
    pub reading: Duration,
    /// Period of multiplexing.
    pub rotation: Duration,
    /// Configs this kernel does not have (ENOENT).
    pub absent: BTreeSet<u64>,
    /// Refuses events that count the kernel (paranoid 2), or all (`Some(true)`).
    pub denied: Option<bool>,
    /// Refuses inherited groups, as before Linux 4.13.
    pub no_inherited_groups: bool,
    /// CPUs of each PMU type that is not on all of them.
    pub pmu_cpus: BTreeMap<u32, Vec<u32>>,
    /// Non-idle share of each CPU; other CPUs are unknown.
    pub loads: BTreeMap<u32, f64>,
    /// CPUs that are busy in a system-wide measurement, and on which tasks run: from when.
    pub task_on: Vec<(Duration, u32)>,
    /// Threads of the watched process; empty: there is none.
    pub threads: Vec<i32>,
    /// Threads in `threads` that have ended but are still listed.
    pub ended_threads: BTreeSet<i32>,
    /// CPUs that went offline after the topology was read.
    pub offline: BTreeSet<u32>,
    /// When CPUs go offline: their events stop, their groups fall apart.
    pub leaving: Vec<(Duration, u32)>,
    /// Configs that a CPU refuses, and how.
    pub refusals: Vec<(u32, u64, Errno)>,
    /// When reading the event with this config fails (EIO): from, to.
    pub unreadable: Vec<(u64, Duration, Duration)>,
    /// Lifetime of the command (or the watched process) once started.
    pub lifetime: Duration,
    /// How the command ends at the end of its lifetime.
    pub exit: Exit,
    /// Why exec fails.
    pub exec_error: Option<Error>,
    /// The command does not end by SIGINT.
    pub stubborn: bool,
    /// The command ends by no signal but SIGKILL.
    pub deaf: bool,
    /// The command's exit went to another process: how it ended is unknown.
    pub reaped_elsewhere: bool,
    /// Signals to this process: when, which, from a terminal.
    pub signals: Vec<(Duration, i32, bool)>,
    /// Commands of the control pipe: when, which.
    pub orders: Vec<(Duration, Order)>,
    /// How many of them were acknowledged.
    pub acknowledged: usize,
    /// Times in which this process is not scheduled: from when, and for how long. A wait that ends in
    /// one returns late.
    pub stalls: Vec<(Duration, Duration)>,
    /// Open files allowed, and the limit after raising it.
    pub files: (usize, usize),
    /// Every event opened, with its leader.
    pub opened: Vec<(Event, Option<Handle>)>,
    /// How often a group of hardware events was read.
    pub read: usize,
    /// CPUs that the reading thread went to; `None`: it was let go.
    pub visited: Vec<Option<u32>>,
    /// Signals sent to the command.
    pub sent: Vec<i32>,
    /// How often a command was started.
    pub started: u32,
    /// State of the simulation.
    pub so_far: SoFar,
}

/// State of a simulation.
#[derive(Debug, Clone, Default)]
pub struct SoFar {
    now: Duration,
    began: Option<Duration>,
    ended: Option<Exit>,
    events: Vec<Option<State>>,
    /// Open events of each group, by leader.
    members: BTreeMap<usize, Vec<usize>>,
    rotations: usize,
}

impl SoFar {
    /// Time since its start.
    pub fn now(&self) -> Duration {
        self.now
    }
}

#[derive(Debug, Clone)]
struct State {
    event: Event,
    leader: usize,
    on: bool,
    enabled: Duration,
    running: Duration,
    value: f64,
}

impl Default for Scripted {
    fn default() -> Self {
        Self {
            rates: BTreeMap::new(),
            other_rates: BTreeMap::new(),
            phases: Vec::new(),
            seed: 1,
            counters: 4,
            busy: BTreeMap::new(),
            others: Vec::new(),
            reading: Duration::ZERO,
            rotation: Duration::from_millis(4),
            absent: BTreeSet::new(),
            denied: None,
            no_inherited_groups: false,
            pmu_cpus: BTreeMap::new(),
            loads: BTreeMap::new(),
            task_on: vec![(Duration::ZERO, 0)],
            threads: Vec::new(),
            ended_threads: BTreeSet::new(),
            offline: BTreeSet::new(),
            leaving: Vec::new(),
            refusals: Vec::new(),
            unreadable: Vec::new(),
            lifetime: Duration::from_secs(1),
            exit: Exit::Status(0),
            exec_error: None,
            stubborn: false,
            deaf: false,
            reaped_elsewhere: false,
            signals: Vec::new(),
            orders: Vec::new(),
            acknowledged: 0,
            stalls: Vec::new(),
            files: (1024, 1024),
            opened: Vec::new(),
            read: 0,
            visited: Vec::new(),
            sent: Vec::new(),
            started: 0,
            so_far: SoFar::default(),
        }
    }
}
