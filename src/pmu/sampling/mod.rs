//! Sampling beside a measurement: what to sample, the rings, and the records as the kernel wrote
//! them. Nothing here decodes a sample: that is `profile`'s business, for live rings and files
//! alike.
//!
//! | file | concern |
//! |---|---|
//! | `mod.rs` | what to sample ([`Plan`]) and what comes out of it ([`Output`], [`Summary`]) |
//! | `settle.rs` | what of a plan this kernel and these rights allow |
//! | `sampler.rs` | opening events, one ring for each CPU; start and stop |
//! | `drain.rs` | the thread that empties the rings |
//! | `walk.rs` | of raw records: how many, which were lost, which files were mapped |
//! | `synthesis.rs` | records of what was running and mapped before we came |

mod drain;
mod sampler;
mod settle;
mod synthesis;
mod walk;

pub use sampler::Sampler;
pub use settle::{Ability, ability, settle};

use super::Target;
use super::perf::Rate;
use crate::machine::Encoding;
use crate::records::format::{SampleFormat, field};
use std::time::Duration;
use tma::error::Result;

/// Samples a second unless told otherwise: near 1000, yet not in step with what programs and
/// kernels do every millisecond, which would then be sampled always or never.
pub const FREQUENCY: u64 = 999;
/// Bytes of a ring unless told otherwise. With its first page this is what `perf_event_mlock_kb`
/// (516 by default) lets every user lock for each CPU.
pub const RING: usize = 512 << 10;

/// An event to sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledEvent {
    /// perf's or the table's name, without modifiers.
    pub name: String,
    /// How the kernel is asked for it.
    pub encoding: Encoding,
    /// `precise_ip`.
    pub precise: u8,
    /// How often.
    pub rate: Rate,
    /// CPUs of the PMU that counts it, where not all have it.
    pub cpus: Option<Vec<u32>>,
}

impl SampledEvent {
    /// The name with modifiers, as perf writes it: `cycles:ppu`.
    pub fn full_name(&self, user_only: bool) -> String {
        let mut modifiers = "p".repeat(self.precise.into());
        if user_only || self.encoding.user_only {
            modifiers.push('u');
        } else if self.encoding.kernel_only {
            modifiers.push('k');
        }
        match modifiers.as_str() {
            "" => self.name.clone(),
            modifiers => format!("{}:{modifiers}", self.name),
        }
    }
}

/// What to sample, settled: the kernel is known to take it.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The events, at least one.
    pub events: Vec<SampledEvent>,
    /// Call chains with every sample.
    pub call_chains: bool,
    /// User registers with every sample.
    pub registers: bool,
    /// User mode only.
    pub user_only: bool,
    /// Bytes of each ring.
    pub ring: usize,
    /// What the kernel can do.
    pub ability: Ability,
}

/// User registers: instruction and stack pointer and all general ones (`enum perf_event_x86_regs`
/// of asm/perf_regs.h: AX to IP are 0 to 8, R8 to R15 are 16 to 23; of AArch64 X0 to PC, 0 to 32).
const REGISTERS: u64 = if cfg!(target_arch = "aarch64") { (1 << 33) - 1 } else { 0xff_01ff };

impl Plan {
    /// How the samples of every event are laid out.
    pub fn format(&self) -> SampleFormat {
        let mut sample_type =
            field::IDENTIFIER | field::IP | field::TID | field::TIME | field::CPU | field::PERIOD;
        if self.call_chains {
            sample_type |= field::CALLCHAIN;
        }
        if self.registers {
            sample_type |= field::REGS_USER;
        }
        SampleFormat {
            sample_type,
            read_format: if self.ability.lost { super::perf::FORMAT_LOST } else { 0 },
            regs_user: if self.registers { REGISTERS } else { 0 },
            sample_id_all: true,
            ..SampleFormat::default()
        }
    }
}

/// Whom a companion goes with.
#[derive(Debug)]
pub struct Whom<'a> {
    /// As in the request.
    pub target: &'a Target,
    /// Threads, where tasks are measured.
    pub tasks: Vec<i32>,
    /// CPUs they may run on, or that are measured whole.
    pub cpus: Vec<u32>,
    /// Children and new threads too.
    pub inherit: bool,
    /// The task waits for its exec; that starts the measurement.
    pub enable_on_exec: bool,
}

/// What goes on beside a run of the collector.
pub trait Companion {
    /// Makes ready; the command is forked and waits.
    ///
    /// # Errors
    /// It cannot; nothing is measured then.
    fn attach(&mut self, whom: &Whom<'_>) -> Result<()>;
    /// Starts, unless exec does.
    fn enable(&mut self);
    /// The run is over. Called once for each run, whether it was attached or not.
    fn finish(&mut self);
}

/// No companion.
#[derive(Debug)]
pub struct Alone;

impl Companion for Alone {
    fn attach(&mut self, _: &Whom<'_>) -> Result<()> {
        Ok(())
    }
    fn enable(&mut self) {}
    fn finish(&mut self) {}
}

/// An event that was opened.
#[derive(Debug, Clone, PartialEq)]
pub struct Attached {
    /// The event.
    pub event: SampledEvent,
    /// Its ids in records, one for each task and CPU.
    pub ids: Vec<u64>,
}

/// Records of one ring, whole and in the order they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The ring's CPU; `None` for records made by ourselves.
    pub cpu: Option<u32>,
    /// How many.
    pub records: u32,
    /// How many of them are samples.
    pub samples: u32,
    /// Their bytes, headers included.
    pub bytes: Vec<u8>,
}

/// What sampling gives while it runs, in this order: events once, then batches.
#[derive(Debug)]
pub enum Output {
    /// What was opened, and the ids of the events that track mappings, names and starts.
    Events(Vec<Attached>, Vec<u64>),
    /// Records.
    Records(Batch),
}

/// Takes what sampling gives.
pub type Sink = Box<dyn FnMut(Output) + Send>;

/// A file that was mapped executable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFile {
    /// Its path as the process saw it.
    pub path: String,
    /// Its build-id, as the kernel told or the file has it.
    pub build_id: Vec<u8>,
}

/// What a recording took and gave.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Summary {
    /// Samples.
    pub samples: u64,
    /// Samples and other records that the kernel had no room for.
    pub lost: u64,
    /// Times the kernel stopped an event for a while because it came too often.
    pub throttled: u64,
    /// Bytes of records.
    pub bytes: u64,
    /// CPU time of this process meanwhile, all its threads, user and system.
    pub cpu: Duration,
    /// Wall time meanwhile.
    pub wall: Duration,
    /// Files with code that were mapped.
    pub files: Vec<MappedFile>,
    /// What a report must state.
    pub notes: Vec<String>,
}

impl Summary {
    /// CPU time of this process as a share of one CPU; `None` if no time passed.
    pub fn overhead(&self) -> Option<f64> {
        let wall = self.wall.as_secs_f64();
        (wall > 0.0).then(|| self.cpu.as_secs_f64() / wall)
    }
}
