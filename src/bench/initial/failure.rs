//! Why a block cannot be run, as the document reports it.

use crate::harness::program::Program;
use crate::sandbox::{Ended, Fault, layout as at};

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

impl Failure {
    /// A failure of the block as a whole.
    pub fn of_block(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), copy: None, instruction: None, address: None }
    }

    /// No run was attempted.
    pub fn not_attempted() -> Self {
        Self::of_block("no run was attempted")
    }

    /// Copy and instruction that failed: how far the run got.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.copy.zip(self.instruction)
    }
}

/// Start of the reason where the processor lacks an instruction: no values help.
pub const ILLEGAL: &str = "illegal instruction";

/// The reason where the block's time is up.
pub const LATE: &str = "it takes too long";

/// Start of the reason where a block writes more lines than the harness can restore.
pub const TOO_MANY_LINES: &str = "it writes ";

/// The failure for the way in which a run ended.
pub fn explain(ended: &Ended, program: &Program, page_limit: usize) -> Failure {
    let (reason, fault) = match ended {
        Ended::TooManyPages(fault) if page_limit == 0 => {
            ("a page fault, and mapping on demand is disabled".to_owned(), Some(fault))
        }
        Ended::Done => ("it ran".to_owned(), None),
        Ended::Fault(fault) => (fault_reason(fault), Some(fault)),
        Ended::MapRefused(fault) => ("the kernel refuses to map the page".to_owned(), Some(fault)),
        Ended::TooManyPages(fault) => (format!("more than {page_limit} pages"), Some(fault)),
        Ended::TimedOut => ("the watchdog stopped it after 100 ms".to_owned(), None),
        Ended::OutOfTime => (LATE.to_owned(), None),
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
        (libc::SIGILL, _) => format!("{ILLEGAL}: this processor does not support it"),
        (libc::SIGTRAP, _) => "a trap".to_owned(),
        (signal, trap) => format!("signal {signal}, trap {trap}"),
    }
}
