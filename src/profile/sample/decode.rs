//! Decodes a sample, field by field, in the order of the kernel's `perf_output_sample()` (kernel/events/core.c). The
//! comment in linux/perf_event.h has AUX before the page sizes; the kernel writes it last.

use super::{
    Branch, Context, Cursor, Frame, Malformed, Reading, Readings, Registers, Sample, Weight,
};
use pmu::records::format::{
    SampleFormat, branch, branch as branch_type, field, misc, misc as header, read,
};

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
        s.details().readings = decode_readings(body, format.read_format)?;
        if s.readings.is_none() {
            return Ok(false);
        }
    }
    if has(field::CALLCHAIN) {
        if format.leave_chains {
            skip(body)?;
        } else {
            s.chain = decode_chain(body, mode)?;
        }
    }
    if has(field::RAW) {
        let size = body.u32("RAW")?;
        s.details().raw = body.bytes(size.into(), "RAW")?.to_vec();
    }
    if has(field::BRANCH_STACK) {
        let branches = decode_branches(body, layout)?;
        if format.branch_sample_type & branch_type::CALL_STACK == 0 {
            s.details().branches = branches;
        } else if !format.leave_chains {
            s.chain = of_calls(s, &branches);
        }
    }
    if has(field::REGS_USER) {
        s.details().registers = decode_registers(body, format.regs_user, "REGS_USER")?;
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
        s.details().interrupt_registers = decode_registers(body, format.regs_intr, "REGS_INTR")?;
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

const KNOWN: u64 =
    read::TOTAL_TIME_ENABLED | read::TOTAL_TIME_RUNNING | read::ID | read::GROUP | read::LOST;

/// Decodes a READ field (`struct read_format` in linux/perf_event.h); `None` (and nothing is read) if the format has
/// unknown bits.
fn decode_readings(body: &mut Cursor, format: u64) -> Result<Option<Readings>, Malformed> {
    if format & !KNOWN != 0 {
        return Ok(None);
    }
    let has = |bit| format & bit != 0;
    let mut word = |wanted: bool| wanted.then(|| body.u64("READ")).transpose();
    let group = has(read::GROUP);
    // The first word is the number of values of a group, or the value of a single event.
    let first = word(true)?.unwrap_or_default();
    let enabled = word(has(read::TOTAL_TIME_ENABLED))?;
    let running = word(has(read::TOTAL_TIME_RUNNING))?;
    if !group {
        let reading =
            Reading { value: first, id: word(has(read::ID))?, lost: word(has(read::LOST))? };
        return Ok(Some(Readings { enabled, running, values: vec![reading] }));
    }
    let size = 8 * (1 + u64::from(has(read::ID)) + u64::from(has(read::LOST)));
    let mut values = Cursor::new(body.bytes(first.saturating_mul(size), "READ")?);
    let mut readings = Readings { enabled, running, values: Vec::new() };
    while values.left() > 0 {
        let mut word = |wanted: bool| wanted.then(|| values.u64("READ")).transpose();
        let value = word(true)?.unwrap_or_default();
        readings.values.push(Reading {
            value,
            id: word(has(read::ID))?,
            lost: word(has(read::LOST))?,
        });
    }
    Ok(Some(readings))
}

// `enum perf_callchain_context`, negative numbers there.
const KERNEL: u64 = 128_u64.wrapping_neg();
const USER: u64 = 512_u64.wrapping_neg();
const USER_DEFERRED: u64 = 640_u64.wrapping_neg();
const MAX: u64 = 4095_u64.wrapping_neg();

/// Skips a CALLCHAIN field.
fn skip(body: &mut Cursor) -> Result<(), Malformed> {
    let count = body.u64("CALLCHAIN")?;
    body.bytes(count.saturating_mul(8), "CALLCHAIN").map(|_| ())
}

/// The chain of a sample whose branch stack holds the calls that have not returned, newest first: its own in the kernel,
/// then where it is in user mode, and the calls. Chains have return addresses after the first: one within the call.
fn of_calls(s: &Sample, calls: &[Branch]) -> Box<[Frame]> {
    let (user, kernel): (Vec<&Frame>, Vec<&Frame>) =
        s.chain.iter().partition(|frame| frame.context == Context::User);
    let own = s.ip.filter(|_| s.user == Some(true));
    let first = own.or(user.first().map(|frame| frame.ip)).or(calls.first().map(|call| call.to));
    let calls = calls.iter().map(|call| call.from.saturating_add(1));
    let user = first.into_iter().chain(calls).map(|ip| Frame { context: Context::User, ip });
    kernel.into_iter().copied().chain(user).collect()
}

/// Decodes a CALLCHAIN field. Addresses before the first marker have the `mode` of the header.
fn decode_chain(body: &mut Cursor, mode: u16) -> Result<Box<[Frame]>, Malformed> {
    let count = body.u64("CALLCHAIN")?;
    let mut words = body.words::<1>(count, "CALLCHAIN")?;
    let mut frames = Vec::with_capacity(words.len());
    let mut context = match mode {
        misc::KERNEL => Context::Kernel,
        misc::USER => Context::User,
        _ => Context::Other,
    };
    while let Some([ip]) = words.next() {
        match ip {
            KERNEL => context = Context::Kernel,
            USER => context = Context::User,
            // The user part comes in a record of its own; the next word is that record's number.
            USER_DEFERRED => {
                context = Context::User;
                words.next();
            }
            MAX.. => context = Context::Other,
            _ => frames.push(Frame { context, ip }),
        }
    }
    Ok(frames.into_boxed_slice())
}

/// `PERF_BR_EXTEND_ABI`: the kind is in `new_type`.
const EXTENDED: u8 = 15;
/// `PERF_BR_SPEC_WRONG_PATH`.
const WRONG_PATH: u64 = 1;

/// Words around the entries. The format alone does not decide them: the kernel leaves the index out of a sample without
/// a stack, and the counts out if the hardware gave none. The layout that uses up the body is the right one.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The index precedes the entries, if there are any.
    index: bool,
    /// The index is there without entries, too.
    index_of_none: bool,
    /// A word of counts for each entry follows them.
    counters: bool,
}

impl Layout {
    /// The layouts that a sample of this format may have, the most likely first.
    pub fn possible(format: &SampleFormat) -> &'static [Self] {
        const fn of(index: bool, index_of_none: bool, counters: bool) -> Layout {
            Layout { index, index_of_none, counters }
        }
        const PLAIN: &[Layout] = &[of(false, false, false)];
        const INDEX: &[Layout] = &[of(true, true, false), of(true, false, false)];
        const COUNTERS: &[Layout] = &[of(false, false, true), of(false, false, false)];
        const BOTH: &[Layout] =
            &[of(true, true, true), of(true, true, false), of(true, false, false)];
        if format.sample_type & field::BRANCH_STACK == 0 {
            return PLAIN;
        }
        let has = |bit| format.branch_sample_type & bit != 0;
        match (has(branch::HW_INDEX), has(branch::COUNTERS)) {
            (false, false) => PLAIN,
            (true, false) => INDEX,
            (false, true) => COUNTERS,
            (true, true) => BOTH,
        }
    }
}

/// Decodes a BRANCH_STACK field.
fn decode_branches(body: &mut Cursor, layout: Layout) -> Result<Vec<Branch>, Malformed> {
    let count = body.u64("BRANCH_STACK")?;
    if if count == 0 { layout.index_of_none } else { layout.index } {
        body.u64("BRANCH_STACK")?;
    }
    let entries = body.words::<3>(count, "BRANCH_STACK")?;
    let mut branches: Vec<Branch> = entries.map(entry).collect();
    if layout.counters {
        body.bytes(count.saturating_mul(8), "BRANCH_STACK")?;
    }
    if branches.iter().all(|b| b.cycles == Some(0)) {
        branches.iter_mut().for_each(|b| b.cycles = None);
    }
    Ok(branches)
}

/// `struct perf_branch_entry`: mispred:1, predicted:1, in_tx:1, abort:1, cycles:16, type:4, spec:2,
/// new_type:4, priv:3.
fn entry([from, to, flags]: [u64; 3]) -> Branch {
    let bit = |n: u32| flags >> n & 1 != 0;
    let kind = (flags >> 20 & 15) as u8;
    Branch {
        from,
        to,
        mispredicted: (bit(0) || bit(1)).then(|| bit(0)),
        transaction: (bit(2), bit(3)),
        cycles: Some((flags >> 4) as u16),
        kind: if kind == EXTENDED { 16 + (flags >> 26 & 15) as u8 } else { kind },
        wrong_path: flags >> 24 & 3 == WRONG_PATH,
    }
}

/// `PERF_SAMPLE_REGS_ABI_64`; 0 means none: a kernel thread has no user registers.
const ABI_64: u64 = 2;

/// Decodes a field of registers; `mask` has a bit for each.
fn decode_registers(
    body: &mut Cursor,
    mask: u64,
    field: &'static str,
) -> Result<Option<Registers>, Malformed> {
    let abi = body.u64(field)?;
    if abi == 0 {
        return Ok(None);
    }
    let words = body.words::<1>(mask.count_ones().into(), field)?;
    let numbers = (0..64).filter(|n| mask >> n & 1 != 0);
    let values = numbers.zip(words).map(|(number, [value])| (number, value)).collect();
    Ok(Some(Registers { wide: abi == ABI_64, values }))
}
