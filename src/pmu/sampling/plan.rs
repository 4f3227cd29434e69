//! A plan of events, tasks and options to sample. Tests on this process, before anything is recorded, which
//! sampling features and precision this kernel allows with these privileges.

use crate::machine::Encoding;
use crate::perf::{DUMMY, FORMAT_LOST, Opening, Rate, Sampled, SampledTasks};
use crate::records::format::{SampleFormat, branch, field, read};
use nix::errno::Errno;

/// Default samples per second: near 1000, but not synchronous with activity of programs and kernels
/// every millisecond, which would be sampled always or never.
pub const FREQUENCY: u64 = 999;
/// Default size of a ring buffer in bytes. With its first page this is what `perf_event_mlock_kb`
/// (516 by default) permits every user to lock per CPU.
pub const RING: usize = 512 << 10;

/// An event to sample.
#[derive(Debug, Clone, PartialEq)]
pub struct SampledEvent {
    /// perf's or the table's name, without modifiers.
    pub name: String,
    /// Its encoding.
    pub encoding: Encoding,
    /// `precise_ip`.
    pub precise: u8,
    /// How often.
    pub rate: Rate,
    /// CPUs of the PMU that counts it, if not all.
    pub cpus: Option<Vec<u32>>,
    /// Fields of its samples beyond those that all samples have.
    pub extra: Extra,
    /// Events counted in its group, the leader first: `mem-loads-aux` of Alder Lake and Sapphire Rapids, without
    /// which the kernel refuses to sample loads there (`arch/x86/events/intel/core.c`); or what each sample reads.
    pub group: Vec<CountedEvent>,
    /// Children and new threads too, where the measurement includes them.
    pub inherits: bool,
}

/// An event that is counted beside a sampled one.
#[derive(Debug, Clone, PartialEq)]
pub struct CountedEvent {
    /// The table's name.
    pub name: String,
    /// Its encoding.
    pub encoding: Encoding,
}

/// Fields of an event's samples beyond those that all samples have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extra {
    /// `PERF_SAMPLE_*`: further fields.
    pub fields: u64,
    /// `PERF_SAMPLE_BRANCH_*`: which branches a BRANCH_STACK field holds.
    pub branches: u64,
}

impl Extra {
    /// The counts of the group so far (`PERF_SAMPLE_READ`).
    pub const COUNTS: Self = Self { fields: field::READ, branches: 0 };
    /// The last branches taken in user mode.
    pub const BRANCHES: Self =
        Self { fields: field::BRANCH_STACK, branches: branch::USER | branch::ANY };
    /// Address, origin of the data and latency in three parts (from Linux 5.12).
    pub const LOADS: Self =
        Self { fields: field::ADDR | field::DATA_SRC | field::WEIGHT_STRUCT, branches: 0 };
    /// `LOADS` for older kernels.
    pub const LOADS_BEFORE_5_12: Self =
        Self { fields: field::ADDR | field::DATA_SRC | field::WEIGHT, branches: 0 };

    /// Adds the calls in user mode that have not returned.
    #[must_use]
    pub fn with_calls(self) -> Self {
        let (fields, branches) = (field::BRANCH_STACK, branch::USER | branch::CALL_STACK);
        Self { fields: self.fields | fields, branches: self.branches | branches }
    }

    /// The layout of samples with these fields too.
    pub fn added_to(self, format: SampleFormat) -> SampleFormat {
        SampleFormat {
            sample_type: format.sample_type | self.fields,
            branch_sample_type: self.branches,
            read_format: match self.fields & field::READ {
                0 => format.read_format,
                _ => read::GROUP | read::ID | read::TOTAL_TIME_ENABLED | read::TOTAL_TIME_RUNNING,
            },
            ..format
        }
    }
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

/// Whether and how callers are recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallChains {
    /// Not at all.
    #[default]
    None,
    /// By frame pointers, by the kernel.
    FramePointers,
    /// In user mode by the calls that have not returned, as the hardware records them (LBR).
    Branches,
    /// By a copy of this many bytes from the top of the stack, and unwind tables later.
    Stacks(u16),
}

impl CallChains {
    /// Bytes of the stack that are copied: what perf copies by default.
    pub const USUAL: u16 = 8192;
    /// The most that the kernel copies: a record has less than 64 KiB, in words of 8 bytes.
    pub const LARGEST: u16 = 65528;

    /// Bytes of the stack that are copied.
    fn copied(self) -> u32 {
        match self {
            Self::Stacks(bytes) => bytes.into(),
            Self::None | Self::FramePointers | Self::Branches => 0,
        }
    }
}

/// Events, tasks and options to sample; the kernel is known to accept them.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The events, at least one.
    pub events: Vec<SampledEvent>,
    /// Call chains with every sample.
    pub call_chains: CallChains,
    /// User registers with every sample.
    pub registers: bool,
    /// User mode only.
    pub user_only: bool,
    /// Bytes of each ring buffer.
    pub ring: usize,
    /// Sampling features of the kernel.
    pub ability: Ability,
}

/// User registers: instruction and stack pointer and all general ones (`enum perf_event_x86_regs`
/// of asm/perf_regs.h: AX to IP are 0 to 8, R8 to R15 are 16 to 23; of AArch64 X0 to PC, 0 to 32).
const REGISTERS: u64 = if cfg!(target_arch = "aarch64") { (1 << 33) - 1 } else { 0xff_01ff };

impl Plan {
    /// Layout of all samples, without what an event adds.
    pub fn format(&self) -> SampleFormat {
        let mut sample_type =
            field::IDENTIFIER | field::IP | field::TID | field::TIME | field::CPU | field::PERIOD;
        let copied = self.call_chains.copied();
        let registers = self.registers || copied > 0;
        if self.call_chains != CallChains::None {
            sample_type |= field::CALLCHAIN;
        }
        if copied > 0 {
            sample_type |= field::STACK_USER;
        }
        if registers {
            sample_type |= field::REGS_USER;
        }
        SampleFormat {
            sample_type,
            read_format: if self.ability.lost { FORMAT_LOST } else { 0 },
            regs_user: if registers { REGISTERS } else { 0 },
            stack_user: copied,
            sample_id_all: true,
            ..SampleFormat::default()
        }
    }
}

/// Sampling features of this kernel with these privileges.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ability {
    /// Kernel mode may not be sampled.
    pub user_only: bool,
    /// Records of mappings carry build-ids.
    pub build_ids: bool,
    /// Events count lost samples.
    pub lost: bool,
}

/// An event on this process, to be closed at once.
pub(super) fn attempt(encoding: Encoding) -> Opening<'static> {
    Opening {
        encoding,
        precise: 0,
        rate: None,
        format: SampleFormat { sample_type: field::IP, ..SampleFormat::default() },
        tasks: SampledTasks::Task(0),
        cpu: None,
        inherit: false,
        user_only: true,
        enable_on_exec: false,
        enabled: false,
        build_ids: false,
        watermark: 0,
    }
}

/// Tests what sampling can do.
///
/// # Errors
/// The kernel's answer if it opens no event at all.
pub fn ability() -> Result<Ability, Errno> {
    let least = attempt(DUMMY);
    Sampled::open(&least)?;
    let works = |opening: &Opening<'_>| Sampled::open(opening).is_ok();
    let lost = SampleFormat { read_format: FORMAT_LOST, ..least.format };
    Ok(Ability {
        user_only: !works(&Opening { user_only: false, ..least }),
        build_ids: works(&Opening { build_ids: true, ..least }),
        lost: works(&Opening { format: lost, ..least }),
    })
}

/// The event with the highest `precise_ip` that the kernel accepts, at most that of `event`.
///
/// # Errors
/// The kernel's answer if it does not accept the event at all.
pub fn with_supported_precision(
    mut event: SampledEvent,
    user_only: bool,
) -> Result<SampledEvent, Errno> {
    loop {
        let least = attempt(event.encoding);
        let opening = Opening {
            precise: event.precise,
            rate: Some(event.rate),
            user_only: user_only && !event.encoding.kernel_only,
            format: event.extra.added_to(least.format),
            ..least
        };
        match (with_group(&event, &opening).map(drop), event.precise) {
            (Ok(_), _) => return Ok(event),
            (Err(errno), 0) => return Err(errno),
            (Err(_), _) => event.precise -= 1,
        }
    }
}

/// Opens an event after the events that are counted in its group: the event, then those.
pub(super) fn with_group(
    event: &SampledEvent,
    opening: &Opening<'_>,
) -> Result<(Sampled, Vec<Sampled>), Errno> {
    let counted = SampleFormat {
        sample_type: opening.format.sample_type & !event.extra.fields,
        branch_sample_type: 0,
        ..opening.format
    };
    let mut group: Vec<Sampled> = Vec::new();
    for CountedEvent { encoding, .. } in &event.group {
        let member = Opening {
            encoding: *encoding,
            precise: 0,
            rate: Some(Rate::Period(0)),
            format: counted,
            ..*opening
        };
        let open = match group.first_mut() {
            Some(leader) => Sampled::open_in(&member, leader)?,
            None => Sampled::open(&member)?,
        };
        group.push(open);
    }
    let sampled = match group.first_mut() {
        Some(leader) => Sampled::open_in(opening, leader)?,
        None => Sampled::open(opening)?,
    };
    Ok((sampled, group))
}

/// Whether samples of inherited events can hold counts: from Linux 6.13.
pub fn reads_inherited(event: &SampledEvent, user_only: bool) -> bool {
    let least = attempt(event.encoding);
    let opening = Opening {
        precise: event.precise,
        rate: Some(event.rate),
        user_only: user_only && !event.encoding.kernel_only,
        format: event.extra.added_to(SampleFormat {
            sample_type: least.format.sample_type | field::TID,
            ..least.format
        }),
        inherit: true,
        ..least
    };
    with_group(event, &opening).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::Extra;
    use super::*;
    use crate::perf::software;

    #[test]
    fn cpu_clock_is_accepted_if_perf_events_are() {
        let Ok(ability) = ability() else {
            eprintln!("skipped: no perf events here");
            return;
        };
        let event = SampledEvent {
            name: "cpu-clock".into(),
            encoding: software(0),
            precise: 0,
            rate: Rate::Frequency(100),
            cpus: None,
            extra: Extra::default(),
            group: Vec::new(),
            inherits: true,
        };
        assert_eq!(with_supported_precision(event.clone(), ability.user_only), Ok(event));
    }
}
