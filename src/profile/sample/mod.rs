//! One sample, and the only decoder of samples (`decode`), for live ring buffers, sessions and perf.data files.

mod decode;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::LazyLock;

pub use decode::decode;

/// Context of a frame in a call chain (`PERF_CONTEXT_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// Kernel mode.
    Kernel,
    /// User mode.
    User,
    /// A hypervisor, a guest, or one unknown to this version.
    Other,
}

/// One frame of a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Context it ran in.
    pub context: Context,
    /// Instruction pointer; for callers the return address.
    pub ip: u64,
}

/// One taken branch (`struct perf_branch_entry`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Branch {
    /// Address of the branch.
    pub from: u64,
    /// Its target.
    pub to: u64,
    /// Whether it was mispredicted; `None` if the hardware does not report it.
    pub mispredicted: Option<bool>,
    /// Whether it was in a transaction, and whether it aborted one.
    pub transaction: (bool, bool),
    /// Cycles since the branch before; `None` if no entry of the stack has any.
    pub cycles: Option<u16>,
    /// Kind of branch: `PERF_BR_*`, 0 unknown; `PERF_BR_NEW_*` + 16 from 16 on.
    pub kind: u8,
    /// Whether it was on a wrong path of speculation (`PERF_BR_SPEC_WRONG_PATH`).
    pub wrong_path: bool,
}

/// How the branches of a sample were recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Recorded {
    /// The last ones before a sample.
    #[default]
    Sampled,
    /// The first piece of a trace.
    TraceBegins,
    /// A piece of a trace: its oldest branch was taken after the newest one of the sample before.
    TraceContinues,
}

/// Latency of a memory access or instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// Total latency in core cycles.
    pub total: u64,
    /// Second and third part of WEIGHT_STRUCT; their meaning depends on the processor.
    pub parts: Option<(u16, u16)>,
}

/// One count of a READ field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// The count.
    pub value: u64,
    /// Id of the event, if the format has it.
    pub id: Option<u64>,
    /// Lost samples, if the format has them.
    pub lost: Option<u64>,
}

/// A READ field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readings {
    /// Enabled time in nanoseconds.
    pub enabled: Option<u64>,
    /// Running time in nanoseconds.
    pub running: Option<u64>,
    /// One for each event of the group.
    pub values: Vec<Reading>,
}

/// Registers at the sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registers {
    /// Whether the task ran in 64-bit mode (`PERF_SAMPLE_REGS_ABI_64`), else in 32-bit mode.
    pub wide: bool,
    /// Number (as in `enum perf_event_x86_regs`) and value.
    pub values: Vec<(u8, u64)>,
}

/// One sample; fields that its format lacks are `None` or empty. The fields that most samples lack
/// are in [`Details`], which it dereferences to: recordings have hundreds of thousands of samples,
/// and most of the time to read them goes to the memory they take.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Instruction pointer.
    pub ip: Option<u64>,
    /// Whether `ip` has no skid (`PERF_RECORD_MISC_EXACT_IP`).
    pub exact: bool,
    /// Whether it was taken in user mode, by the header; `None` for guests and hypervisors.
    pub user: Option<bool>,
    /// Process.
    pub pid: Option<u32>,
    /// Thread.
    pub tid: Option<u32>,
    /// Nanoseconds of the recording's clock.
    pub time: Option<u64>,
    /// Id of the event (IDENTIFIER or ID).
    pub id: Option<u64>,
    /// CPU.
    pub cpu: Option<u32>,
    /// Sampling period: events since the last sample.
    pub period: Option<u64>,
    /// Call chain, innermost first, without context markers.
    pub chain: Box<[Frame]>,
    /// The other fields, if it has any of them.
    details: Option<Box<Details>>,
}

/// The fields that most samples lack.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// Data address.
    pub addr: Option<u64>,
    /// Id of the event itself, not of its group's leader (STREAM_ID).
    pub stream_id: Option<u64>,
    /// Counts (READ).
    pub readings: Option<Readings>,
    /// Raw data of a tracepoint or of IBS.
    pub raw: Vec<u8>,
    /// Last branches, newest first.
    pub branches: Vec<Branch>,
    /// How they were recorded.
    pub recorded: Recorded,
    /// User registers.
    pub registers: Option<Registers>,
    /// A copy of the user stack, from the stack pointer on (STACK_USER).
    pub stack: Vec<u8>,
    /// Registers at the interrupt (REGS_INTR).
    pub interrupt_registers: Option<Registers>,
    /// Latency (WEIGHT).
    pub weight: Option<Weight>,
    /// `union perf_mem_data_src`.
    pub data_source: Option<u64>,
    /// Transaction flags.
    pub transaction: Option<u64>,
    /// Physical address.
    pub physical: Option<u64>,
    /// Id of the control group.
    pub cgroup: Option<u64>,
    /// Page size of `addr` in bytes.
    pub data_page: Option<u64>,
    /// Page size of `ip` in bytes.
    pub code_page: Option<u64>,
    /// Bytes after the last field that this version knows.
    pub unread: usize,
}

/// The details of a sample that has none.
static NONE: LazyLock<Details> = LazyLock::new(Details::default);

impl Sample {
    /// A sample of branches, newest first.
    pub fn of_branches(branches: Vec<Branch>, recorded: Recorded) -> Self {
        let mut sample = Self::default();
        sample.details().branches = branches;
        sample.details().recorded = recorded;
        sample
    }

    /// The fields that most samples lack, to be filled in.
    fn details(&mut self) -> &mut Details {
        self.details.get_or_insert_default()
    }
}

impl std::ops::Deref for Sample {
    type Target = Details;

    fn deref(&self) -> &Details {
        self.details.as_deref().unwrap_or(&NONE)
    }
}

/// Why a record cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// Field or record, by its name in linux/perf_event.h.
    pub field: &'static str,
    /// The defect, in words.
    pub why: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.field, self.why)
    }
}

/// The part of a body that is not read yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// At the start of a body.
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// Bytes left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: u64, field: &'static str) -> Result<&'a [u8], Malformed> {
        let parts = usize::try_from(count).ok().and_then(|n| self.rest.split_at_checked(n));
        let (taken, rest) = parts.ok_or_else(|| self.missing(count, field))?;
        self.rest = rest;
        Ok(taken)
    }

    /// The next 8 bytes.
    pub fn u64(&mut self, field: &'static str) -> Result<u64, Malformed> {
        let (word, rest) = self.rest.split_first_chunk().ok_or_else(|| self.missing(8, field))?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*word))
    }

    /// The next 4 bytes.
    pub fn u32(&mut self, field: &'static str) -> Result<u32, Malformed> {
        let (word, rest) = self.rest.split_first_chunk().ok_or_else(|| self.missing(4, field))?;
        self.rest = rest;
        Ok(u32::from_le_bytes(*word))
    }

    /// The next `count` items of `N` words each; all of them are known to be there when this
    /// returns, so that the caller may allocate.
    pub fn words<const N: usize>(
        &mut self,
        count: u64,
        field: &'static str,
    ) -> Result<impl ExactSizeIterator<Item = [u64; N]> + use<'a, N>, Malformed> {
        let bytes = self.bytes(count.saturating_mul(8 * N as u64), field)?;
        Ok(bytes.chunks_exact(8 * N).map(|item| {
            let mut words = [0; N];
            for (word, bytes) in words.iter_mut().zip(item.as_chunks().0) {
                *word = u64::from_le_bytes(*bytes);
            }
            words
        }))
    }

    fn missing(&self, count: u64, field: &'static str) -> Malformed {
        let why = format!("takes {count} bytes, {} are left", self.rest.len());
        Malformed { field, why }
    }
}
