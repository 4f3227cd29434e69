//! Decodes a sample, field by field, in the order of the kernel's `perf_output_sample()`
//! (kernel/events/core.c). The comment in linux/perf_event.h has AUX before the page sizes; the
//! kernel writes it last.

use super::branch::{self, Layout};
use super::cursor::{Cursor, Malformed};
use super::fields::{Sample, Weight};
use super::{chain, readings, registers};
use pmu::records::format::{SampleFormat, branch as branch_type, field, misc as header};

/// Decodes the body of a sample (what follows the 8 bytes of its header) whose header has this
/// `misc`. Little endian. The output of a hardware trace is skipped; the bytes of fields unknown to this version are counted in `unread`.
///
/// # Errors
/// The body ends inside a field, or a field claims more than there is.
///
/// ```
/// use pmu::records::format::{SampleFormat, field, misc};
/// use profile::sample::decode;
///
/// // The order of fields is the kernel's (perf_event_open(2)): ip, pid and tid, time, period.
/// let sample_type = field::IP | field::TID | field::TIME | field::PERIOD;
/// let format = SampleFormat { sample_type, ..SampleFormat::default() };
/// let words: [u64; 4] = [0x40_1000, 12 << 32 | 11, 5_000_000, 100_003];
/// let body = words.map(u64::to_le_bytes).concat();
///
/// let sample = decode(&body, misc::USER, &format)?;
/// assert_eq!((sample.ip, sample.pid, sample.tid), (Some(0x40_1000), Some(11), Some(12)));
/// assert_eq!((sample.period, sample.user), (Some(100_003), Some(true)));
/// assert!(decode(&body[..12], misc::USER, &format).is_err(), "the body ends inside a field");
/// # Ok::<(), profile::sample::Malformed>(())
/// ```
pub fn decode(body: &[u8], misc: u16, format: &SampleFormat) -> Result<Sample, Malformed> {
    let layouts = Layout::possible(format);
    let first = decode_as(body, misc, format, layouts[0]);
    let fits = |sample: &Result<Sample, Malformed>| matches!(sample, Ok(s) if s.unread == 0);
    if layouts.len() == 1 || fits(&first) {
        return first;
    }
    let others = layouts[1..].iter().map(|layout| decode_as(body, misc, format, *layout));
    others.into_iter().find(fits).unwrap_or(first)
}

/// Decodes a body with this layout of the branch stack.
fn decode_as(
    body: &[u8],
    misc: u16,
    format: &SampleFormat,
    layout: Layout,
) -> Result<Sample, Malformed> {
    let mut body = Cursor::new(body);
    let mode = misc & header::CPUMODE_MASK;
    let mut sample = Sample {
        exact: misc & header::EXACT_IP != 0,
        user: match mode {
            header::KERNEL => Some(false),
            header::USER => Some(true),
            _ => None,
        },
        ..Sample::default()
    };
    place(&mut sample, &mut body, format)?;
    let known = context(&mut sample, &mut body, format, mode, layout)?;
    if known {
        memory(&mut sample, &mut body, format)?;
    }
    if body.left() > 0 {
        sample.details().unread = body.left();
    }
    Ok(sample)
}

/// IDENTIFIER to PERIOD: event, time and place of the sample.
fn place(s: &mut Sample, body: &mut Cursor, format: &SampleFormat) -> Result<(), Malformed> {
    let has = |bit| format.sample_type & bit != 0;
    if has(field::IDENTIFIER) {
        s.id = Some(body.u64("IDENTIFIER")?);
    }
    if has(field::IP) {
        s.ip = Some(body.u64("IP")?);
    }
    if has(field::TID) {
        (s.pid, s.tid) = (Some(body.u32("TID")?), Some(body.u32("TID")?));
    }
    if has(field::TIME) {
        s.time = Some(body.u64("TIME")?);
    }
    if has(field::ADDR) {
        s.details().addr = Some(body.u64("ADDR")?);
    }
    if has(field::ID) {
        s.id = Some(body.u64("ID")?);
    }
    if has(field::STREAM_ID) {
        s.details().stream_id = Some(body.u64("STREAM_ID")?);
    }
    if has(field::CPU) {
        s.cpu = Some(body.u32("CPU")?);
        body.u32("CPU")?; // reserved
    }
    if has(field::PERIOD) {
        s.period = Some(body.u64("PERIOD")?);
    }
    Ok(())
}

/// READ to STACK_USER. False if a READ field of an unknown format hides where the rest begins.
fn context(
    s: &mut Sample,
    body: &mut Cursor,
    format: &SampleFormat,
    mode: u16,
    layout: Layout,
) -> Result<bool, Malformed> {
    let has = |bit| format.sample_type & bit != 0;
    if has(field::READ) {
        s.details().readings = readings::decode(body, format.read_format)?;
        if s.readings.is_none() {
            return Ok(false);
        }
    }
    if has(field::CALLCHAIN) {
        if format.leave_chains {
            chain::skip(body)?;
        } else {
            s.chain = chain::decode(body, mode)?;
        }
    }
    if has(field::RAW) {
        let size = body.u32("RAW")?;
        s.details().raw = body.bytes(size.into(), "RAW")?.to_vec();
    }
    if has(field::BRANCH_STACK) {
        let branches = branch::decode(body, layout)?;
        if format.branch_sample_type & branch_type::CALL_STACK == 0 {
            s.details().branches = branches;
        } else if !format.leave_chains {
            s.chain = chain::of_calls(s, &branches);
        }
    }
    if has(field::REGS_USER) {
        s.details().registers = registers::decode(body, format.regs_user, "REGS_USER")?;
    }
    if has(field::STACK_USER) {
        let size = body.u64("STACK_USER")?;
        let copy = body.bytes(size, "STACK_USER")?;
        if size != 0 {
            let valid = body.u64("STACK_USER")?;
            if !format.leave_chains {
                let valid = usize::try_from(valid).unwrap_or(usize::MAX).min(copy.len());
                s.details().stack = copy[..valid].to_vec();
            }
        }
    }
    Ok(true)
}

/// WEIGHT to AUX: the memory access, and fields of later kernels.
fn memory(s: &mut Sample, body: &mut Cursor, format: &SampleFormat) -> Result<(), Malformed> {
    let has = |bit| format.sample_type & bit != 0;
    if has(field::WEIGHT) {
        s.details().weight = Some(Weight { total: body.u64("WEIGHT")?, parts: None });
    } else if has(field::WEIGHT_STRUCT) {
        let word = body.u64("WEIGHT_STRUCT")?;
        let parts = Some(((word >> 32) as u16, (word >> 48) as u16));
        s.details().weight = Some(Weight { total: word & 0xffff_ffff, parts });
    }
    if has(field::DATA_SRC) {
        s.details().data_source = Some(body.u64("DATA_SRC")?);
    }
    if has(field::TRANSACTION) {
        s.details().transaction = Some(body.u64("TRANSACTION")?);
    }
    if has(field::REGS_INTR) {
        s.details().interrupt_registers = registers::decode(body, format.regs_intr, "REGS_INTR")?;
    }
    if has(field::PHYS_ADDR) {
        s.details().physical = Some(body.u64("PHYS_ADDR")?);
    }
    if has(field::CGROUP) {
        s.details().cgroup = Some(body.u64("CGROUP")?);
    }
    if has(field::DATA_PAGE_SIZE) {
        s.details().data_page = Some(body.u64("DATA_PAGE_SIZE")?);
    }
    if has(field::CODE_PAGE_SIZE) {
        s.details().code_page = Some(body.u64("CODE_PAGE_SIZE")?);
    }
    if has(field::AUX) {
        let size = body.u64("AUX")?;
        body.bytes(size, "AUX")?;
    }
    Ok(())
}
