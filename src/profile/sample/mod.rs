//! One sample. The only decoder of sample bodies, for live rings and files alike.
//!
//! | file | concern |
//! |---|---|
//! | `cursor` | reading on, never past the end |
//! | `fields` | the fields, in the order in which the kernel writes them |
//! | `readings`, `chain`, `branch`, `registers` | the fields that have parts |

mod branch;
mod chain;
pub(super) mod cursor;
mod fields;
mod readings;
mod registers;
#[cfg(test)]
mod tests;

use pmu::records::format::SampleFormat;

/// Contexts in call chains: what follows ran there (`PERF_CONTEXT_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// Kernel mode.
    Kernel,
    /// User mode.
    User,
    /// A hypervisor, a guest, or one that this version does not know.
    Other,
}

/// One call frame, the innermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Where it ran.
    pub context: Context,
    /// Instruction pointer; of callers the return address.
    pub ip: u64,
}

/// One taken branch, the newest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Branch {
    /// Address of the branch.
    pub from: u64,
    /// Its target.
    pub to: u64,
    /// Whether it was mispredicted; `None` where the hardware does not tell.
    pub mispredicted: Option<bool>,
    /// In a transaction, aborted one.
    pub transaction: (bool, bool),
    /// Cycles since the branch before; `None` where none of the stack has any.
    pub cycles: Option<u16>,
    /// Kind of branch, `PERF_BR_*`; 0 unknown; from 16 on those of the extended list
    /// (`PERF_BR_NEW_*` + 16).
    pub kind: u8,
    /// Whether it was on a wrong path (`PERF_BR_SPEC_WRONG_PATH`).
    pub wrong_path: bool,
}

/// Latency of a memory access or instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Weight {
    /// The whole, in cycles.
    pub total: u64,
    /// The second and third part of WEIGHT_STRUCT; their meaning depends on the processor.
    pub parts: Option<(u16, u16)>,
}

/// One count of a READ field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reading {
    /// The count.
    pub value: u64,
    /// Id of the event, where the format has it.
    pub id: Option<u64>,
    /// Lost samples, where the format has it.
    pub lost: Option<u64>,
}

/// A READ field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Readings {
    /// Nanoseconds enabled.
    pub enabled: Option<u64>,
    /// Nanoseconds counting.
    pub running: Option<u64>,
    /// One for each event of the group.
    pub values: Vec<Reading>,
}

/// Registers at the sample.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registers {
    /// 64-bit mode (`PERF_SAMPLE_REGS_ABI_64`), or 32.
    pub wide: bool,
    /// Number (of `enum perf_event_x86_regs`) and value.
    pub values: Vec<(u8, u64)>,
}

/// One sample; what its format does not have is `None` or empty. The fields that most samples lack
/// are its [`Details`], and read as its own: recordings have hundreds of thousands of samples, and
/// what they take in memory is most of the time that reading them takes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sample {
    /// Instruction pointer.
    pub ip: Option<u64>,
    /// Whether `ip` is of the instruction itself (`PERF_RECORD_MISC_EXACT_IP`).
    pub exact: bool,
    /// Whether it ran in user mode, by the record's header; `None` for guests and hypervisors.
    pub user: Option<bool>,
    /// Process.
    pub pid: Option<u32>,
    /// Thread.
    pub tid: Option<u32>,
    /// Nanoseconds of the recording's clock.
    pub time: Option<u64>,
    /// Id of the event, by IDENTIFIER or ID.
    pub id: Option<u64>,
    /// CPU.
    pub cpu: Option<u32>,
    /// Events since the last sample.
    pub period: Option<u64>,
    /// Call chain, innermost first, without context markers.
    pub chain: Box<[Frame]>,
    /// The other fields, where it has any of them.
    details: Option<Box<Details>>,
}

/// The fields that most samples lack.
#[derive(Debug, Clone, PartialEq)]
pub struct Details {
    /// Data address.
    pub addr: Option<u64>,
    /// Id of the event itself.
    pub stream_id: Option<u64>,
    /// Counts.
    pub readings: Option<Readings>,
    /// Raw data.
    pub raw: Vec<u8>,
    /// Last branches, newest first.
    pub branches: Vec<Branch>,
    /// User registers.
    pub registers: Option<Registers>,
    /// Registers at the interrupt.
    pub interrupt_registers: Option<Registers>,
    /// Latency.
    pub weight: Option<Weight>,
    /// `union perf_mem_data_src`.
    pub data_source: Option<u64>,
    /// Transaction flags.
    pub transaction: Option<u64>,
    /// Physical address.
    pub physical: Option<u64>,
    /// Control group.
    pub cgroup: Option<u64>,
    /// Page size of `addr` in bytes.
    pub data_page: Option<u64>,
    /// Page size of `ip` in bytes.
    pub code_page: Option<u64>,
    /// Bytes of the body behind the last field that this version knows.
    pub unread: usize,
}

/// Those of a sample that has none.
static NONE: Details = Details {
    addr: None,
    stream_id: None,
    readings: None,
    raw: Vec::new(),
    branches: Vec::new(),
    registers: None,
    interrupt_registers: None,
    weight: None,
    data_source: None,
    transaction: None,
    physical: None,
    cgroup: None,
    data_page: None,
    code_page: None,
    unread: 0,
};

impl Sample {
    /// The fields that most samples lack, to be filled in.
    fn details(&mut self) -> &mut Details {
        self.details.get_or_insert_with(|| Box::new(NONE.clone()))
    }
}

impl std::ops::Deref for Sample {
    type Target = Details;

    fn deref(&self) -> &Details {
        self.details.as_deref().unwrap_or(&NONE)
    }
}

/// Why a sample cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The field, by its name in the kernel's header.
    pub field: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.field, self.why)
    }
}

/// Decodes the body of a sample (what follows the 8 bytes of its header) whose header's `misc` is
/// given. Little endian. A copy of the user stack and the output of a hardware trace are passed
/// over; of bits of the format that are not known yet the bytes are counted in `unread`.
///
/// # Errors
/// The body ends inside a field, or a field claims more than there is.
pub fn decode(body: &[u8], misc: u16, format: &SampleFormat) -> Result<Sample, Malformed> {
    let layouts = branch::Layout::possible(format);
    let first = fields::decode(body, misc, format, layouts[0]);
    let fits = |sample: &Result<Sample, Malformed>| matches!(sample, Ok(s) if s.unread == 0);
    if layouts.len() == 1 || fits(&first) {
        return first;
    }
    let others = layouts[1..].iter().map(|layout| fields::decode(body, misc, format, *layout));
    others.into_iter().find(fits).unwrap_or(first)
}
