//! Making a block runnable: which initial values, which pages, which lines it writes, which way
//! its final jump goes, and every address it touches.

use super::Options;
use super::engine::{BLOCK_CODE, Engine, Segment};
use super::program::{self, Needs, Program, Shape};
use super::sandbox::layout::{self as at};
use super::sandbox::{Ended, Fault};
use super::values::Values;
use crate::Result;
use crate::code::{Block, Inst};
use iced_x86::Register;

/// Why a block cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The reason, without a full stop.
    pub reason: String,
    /// In which copy, from 0.
    pub copy: Option<usize>,
    /// At which instruction, from 0.
    pub instruction: Option<usize>,
    /// The address it touched, where there is one.
    pub address: Option<u64>,
}

/// One access of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Copy, from 0.
    pub copy: usize,
    /// Instruction, from 0.
    pub instruction: usize,
    /// First byte.
    pub address: u64,
    /// Bytes; 0 where the size is not fixed (`rep`).
    pub size: u64,
    /// Whether it reads.
    pub reads: bool,
    /// Whether it writes.
    pub writes: bool,
}

/// A block that runs.
#[derive(Debug, Clone)]
pub struct Found {
    /// Initial values.
    pub values: Values,
    /// Copies that are known to run.
    pub copies: usize,
    /// Pages mapped, in the order of discovery.
    pub pages: Vec<u64>,
    /// Lines that it writes.
    pub lines: Vec<u64>,
    /// For each copy, whether the final jump is taken.
    pub taken: Vec<bool>,
    /// Registers set again before every copy.
    pub reseeded: Vec<u8>,
    /// Accesses of all copies.
    pub accesses: Vec<Access>,
    /// Whether the trace holds every access.
    pub complete: bool,
}

impl Found {
    /// Whether every instruction accesses the same addresses in every copy but the first, as far
    /// as the trace tells.
    pub fn is_stationary(&self) -> bool {
        let of = |copy: usize| {
            let at = self.accesses.partition_point(|a| a.copy < copy);
            let own = self.accesses[at..].iter().take_while(move |a| a.copy == copy);
            own.map(|a| (a.instruction, a.address, a.size))
        };
        self.complete
            && self.accesses.iter().all(|a| a.size > 0)
            && (2..self.copies).all(|copy| of(copy).eq(of(1)))
    }
}

/// Finds values and pages with which `copies` copies of the block run, or fewer if need be.
///
/// # Errors
/// The sandbox cannot be started. A block that does not run is a [`Failure`].
pub fn discover(
    engine: &mut Engine,
    block: &Block,
    needs: &Needs,
    copies: usize,
    options: &Options,
) -> Result<std::result::Result<Found, Failure>> {
    let mut first: Option<Failure> = None;
    let clobbered = clobbered_addresses(block);
    let all = options.candidates();
    let reseeds: &[&[u8]] =
        if options.reseed && !clobbered.is_empty() { &[&[], &clobbered] } else { &[&[]] };
    for reseeded in reseeds {
        for values in &all {
            let mut copies = copies;
            loop {
                let tried = attempt(engine, block, needs, copies, reseeded, values, options)?;
                let (failure, fewer) = match tried {
                    Ok(found) => return Ok(Ok(found)),
                    Err(tried) => tried,
                };
                let hopeless = failure.reason.starts_with(ILLEGAL);
                first.get_or_insert(failure);
                if hopeless {
                    return Ok(Err(first.unwrap_or_else(Failure::nothing)));
                }
                if !fewer || copies < 8 {
                    break;
                }
                copies /= 2;
            }
        }
    }
    Ok(Err(first.unwrap_or_else(Failure::nothing)))
}

/// Start of the reason when the processor lacks an instruction: no value helps.
const ILLEGAL: &str = "illegal instruction";

impl Failure {
    /// Before anything was tried.
    pub fn nothing() -> Self {
        let reason = "nothing was tried".to_owned();
        Self { reason, copy: None, instruction: None, address: None }
    }
}

/// One value set: a traced run. The flag says whether fewer copies could help.
fn attempt(
    engine: &mut Engine,
    block: &Block,
    needs: &Needs,
    copies: usize,
    reseeded: &[u8],
    values: &Values,
    options: &Options,
) -> Result<std::result::Result<Found, (Failure, bool)>> {
    engine.prepare(values, options.physical_pages, options.pages_allowed())?;
    let shape =
        Shape { block, needs, copies, lines: false, reseeded, taken: &[], start: BLOCK_CODE };
    let program = program::trace(&shape);
    if program.end() > at::CODE + at::CODE_SIZE {
        let reason = "the copies do not fit the harness".to_owned();
        let failure = Failure { reason, copy: None, instruction: None, address: None };
        return Ok(Err((failure, true)));
    }
    engine.worker()?.write(program.start, &program.bytes);
    let segment = Segment { entry: program.start, repeat: 1 };
    let (ended, _) = engine.run(&[segment], &[(0, 1)])?;
    if ended != Ended::Done {
        let fewer = matches!(ended, Ended::TooManyPages(_));
        return Ok(Err((explain(&ended, &program, options.pages_allowed()), fewer)));
    }
    let pages = engine.pages();
    let lines = engine.changed_lines(&pages, values.memory, options.physical_pages);
    if lines.len() > at::LINES_MAX {
        let reason = format!("it writes {} cache lines", lines.len());
        let failure = Failure { reason, copy: None, instruction: None, address: None };
        return Ok(Err((failure, true)));
    }
    let worker = engine.worker()?;
    let taken = worker.read(program.conditions, copies).iter().map(|b| *b != 0).collect();
    let slots = worker.read(at::TRACE, 8 * program.slots.len());
    let (accesses, complete) = accesses(block, &program, &slots, worker.base());
    let region = worker.base()..worker.base() + at::SIZE as u64;
    if let Some(access) = accesses.iter().find(|a| region.contains(&a.address)) {
        let failure = Failure {
            reason: "an address of the harness itself".to_owned(),
            copy: Some(access.copy),
            instruction: Some(access.instruction),
            address: Some(access.address),
        };
        engine.discard();
        return Ok(Err((failure, false)));
    }
    Ok(Ok(Found {
        values: values.clone(),
        copies,
        pages,
        lines,
        taken,
        reseeded: reseeded.to_vec(),
        accesses,
        complete,
    }))
}

/// Address registers whose initial value the block uses and then overwrites.
fn clobbered_addresses(block: &Block) -> Vec<u8> {
    let written =
        |register: Register| {
            block.instructions.iter().flat_map(|i| &i.registers).any(|used| {
                used.register().full_register() == register && Inst::writes(used.access())
            })
        };
    let inputs = block.inputs();
    let mut found = Vec::new();
    for memory in block.instructions.iter().flat_map(|i| &i.memory) {
        for register in [memory.base(), memory.index()].map(Register::full_register) {
            let number = register.number() as u8;
            if register.is_gpr64()
                && inputs.contains(&register)
                && !found.contains(&number)
                && written(register)
            {
                found.push(number);
            }
        }
    }
    found
}

/// The accesses of a trace; `false` if some of them are not in it.
fn accesses(block: &Block, program: &Program, slots: &[u8], base: u64) -> (Vec<Access>, bool) {
    let mut all = Vec::new();
    let mut complete = true;
    let mut next = 0;
    let copies = program.copies.len();
    for copy in 0..copies {
        for (index, inst) in block.instructions.iter().enumerate() {
            let mut stored = Vec::new();
            while let Some((c, i, register)) = program.slots.get(next)
                && (*c, *i) == (copy, index)
            {
                let bytes = &slots[8 * next..8 * next + 8];
                let value = bytes.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b));
                stored.push((*register, value));
                next += 1;
            }
            for memory in &inst.memory {
                if !Inst::reads(memory.access()) && !Inst::writes(memory.access()) {
                    continue;
                }
                let rip = inst.rip_displacement.is_some() && memory.base() == Register::None;
                let address = if rip {
                    let low = inst.decoded.ip_rel_memory_address() as i64 & at::RIP_MASK;
                    Some(base + at::RIP_AREA as u64 + low as u64)
                } else {
                    address(memory, &stored)
                };
                let size = if inst.decoded.has_rep_prefix() || inst.decoded.has_repne_prefix() {
                    0
                } else {
                    memory.memory_size().size() as u64
                };
                match address {
                    Some(address) => {
                        let (reads, writes) =
                            (Inst::reads(memory.access()), Inst::writes(memory.access()));
                        all.push(Access { copy, instruction: index, address, size, reads, writes });
                    }
                    None => complete = false,
                }
            }
        }
    }
    (all, complete)
}

/// The address of an operand, given the 64-bit registers stored before it.
fn address(memory: &iced_x86::UsedMemory, stored: &[(Register, u64)]) -> Option<u64> {
    memory.virtual_address(0, |register, _, _| match register {
        Register::FS => Some(at::FS_BASE),
        Register::GS => Some(at::GS_BASE),
        Register::DS | Register::ES | Register::CS | Register::SS => Some(0),
        _ => {
            let full = register.full_register();
            let (_, value) = stored.iter().find(|(r, _)| *r == full)?;
            match register.size() {
                8 => Some(*value),
                4 => Some(value & 0xffff_ffff),
                _ => None,
            }
        }
    })
}

/// Puts the end of a command into words.
pub fn explain(ended: &Ended, program: &Program, page_limit: usize) -> Failure {
    let (reason, fault) = match ended {
        Ended::TooManyPages(fault) if page_limit == 0 => {
            ("a page fault, and no pages are mapped on request".to_owned(), Some(fault))
        }
        Ended::Done => ("it ran".to_owned(), None),
        Ended::Fault(fault) => (fault_reason(fault), Some(fault)),
        Ended::MapRefused(fault) => ("the kernel refuses to map the page".to_owned(), Some(fault)),
        Ended::TooManyPages(fault) => (format!("more than {page_limit} pages"), Some(fault)),
        Ended::TimedOut => ("the watchdog stopped it after 100 ms".to_owned(), None),
        Ended::Died(how) => (format!("the worker died: {how}"), None),
    };
    let origin = fault.and_then(|f| f.offset).and_then(|offset| program.origin(offset));
    let page_fault = fault.filter(|f| f.trap == 14);
    Failure {
        reason,
        copy: origin.map(|o| o.0),
        instruction: origin.map(|o| o.1),
        address: page_fault.map(|f| f.cr2),
    }
}

fn fault_reason(fault: &Fault) -> String {
    match (fault.signal, fault.trap) {
        (libc::SIGSEGV, 14) if fault.cr2 < 0x1_0000 => {
            "an address below the lowest that may be mapped".to_owned()
        }
        (libc::SIGSEGV, 14) if fault.cr2 >= at::USER_TOP => {
            "an address of the kernel's half".to_owned()
        }
        (libc::SIGSEGV, 14) => "an address of the harness itself".to_owned(),
        (libc::SIGSEGV, _) => {
            "a general protection fault: non-canonical address or misaligned vector".to_owned()
        }
        (libc::SIGBUS, 12) => "a stack fault: non-canonical address".to_owned(),
        (libc::SIGBUS, 17) => "an alignment check".to_owned(),
        (libc::SIGBUS, _) => "a bus error".to_owned(),
        (libc::SIGFPE, 0) => "a division error".to_owned(),
        (libc::SIGFPE, _) => "an unmasked floating-point exception".to_owned(),
        (libc::SIGILL, _) => format!("{ILLEGAL}: this processor does not have it"),
        (libc::SIGTRAP, _) => "a trap".to_owned(),
        (signal, trap) => format!("signal {signal}, trap {trap}"),
    }
}
