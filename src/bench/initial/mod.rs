//! Makes a block runnable: initial values, mapped pages and an address trace; or says why it cannot be run.
//!
//! | file | concern |
//! |---|---|
//! | `discover` | entry points of the search |
//! | `value_search`, `proposals` | candidates in order, the values that a failing instruction depends on |
//! | `traced_run`, `trace` | one traced run, and reading its trace |
//! | `run_setup` | the setup found, and what its masked accesses select |

pub(crate) mod discover;
pub(crate) mod proposals;
pub(crate) mod run_setup;
pub(crate) mod trace;
pub(crate) mod traced_run;
pub(crate) mod value_search;

use crate::harness::Program;
use crate::harness::loop_counter::NoCounter;
use crate::sandbox::{Ended, Fault, layout as at};
use std::fmt;

/// The reason of a failure: a variant where it decides the next attempt, else a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// The processor lacks an instruction: no values help.
    Illegal,
    /// The block's time is up.
    Late,
    /// The worker was not scheduled.
    Taken,
    /// The measurement was cancelled.
    Interrupted,
    /// It writes so many lines, more than the harness can restore.
    TooManyLines(usize),
    /// Nothing can count its iterations.
    NoCounter(NoCounter),
    /// Any other.
    Other(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Illegal => f.write_str("illegal instruction: this processor does not support it"),
            Self::Late => f.write_str("it takes too long"),
            Self::Interrupted => f.write_str("interrupted"),
            Self::Taken => f.write_str("another process occupied the core"),
            Self::TooManyLines(lines) => write!(f, "it writes {lines} cache lines"),
            Self::NoCounter(why) => why.fmt(f),
            Self::Other(text) => f.write_str(text),
        }
    }
}

impl From<NoCounter> for Why {
    fn from(why: NoCounter) -> Self {
        Self::NoCounter(why)
    }
}

impl From<String> for Why {
    fn from(text: String) -> Self {
        Self::Other(text)
    }
}

impl From<&str> for Why {
    fn from(text: &str) -> Self {
        Self::Other(text.to_owned())
    }
}

/// Why a block cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The reason, without a full stop.
    pub reason: Why,
    /// In which copy, from 0.
    pub copy: Option<usize>,
    /// At which instruction, from 0.
    pub instruction: Option<usize>,
    /// The address it touched, where there is one.
    pub address: Option<u64>,
}

impl Failure {
    /// A failure of the block as a whole.
    pub fn of_block(reason: impl Into<Why>) -> Self {
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

/// The failure for the way in which a run ended.
pub fn explain(ended: &Ended, program: &Program, page_limit: usize) -> Failure {
    let (reason, fault) = match ended {
        Ended::TooManyPages(fault) if page_limit == 0 => {
            ("a page fault, and mapping on demand is disabled".into(), Some(fault))
        }
        Ended::Done => ("it ran".into(), None),
        Ended::Fault(fault) => (fault_reason(fault), Some(fault)),
        Ended::MapRefused(fault) => ("the kernel refuses to map the page".into(), Some(fault)),
        Ended::TooManyPages(fault) => (format!("more than {page_limit} pages").into(), Some(fault)),
        Ended::TimedOut => ("the watchdog stopped it after 100 ms".into(), None),
        Ended::OutOfTime => (Why::Late, None),
        Ended::Died(how) => (format!("the worker died: {how}").into(), None),
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

fn fault_reason(fault: &Fault) -> Why {
    let text = match (fault.signal, fault.trap) {
        (libc::SIGILL, _) => return Why::Illegal,
        (libc::SIGSEGV, 14) if fault.cr2 < 0x1_0000 => {
            "an address below vm.mmap_min_addr, which cannot be mapped"
        }
        (libc::SIGSEGV, 14) if fault.cr2 >= at::USER_TOP => "an address of the kernel's half",
        (libc::SIGSEGV, 14) => "an address of the harness itself",
        (libc::SIGSEGV, _) => {
            "a general protection fault: non-canonical address or misaligned vector"
        }
        (libc::SIGBUS, 12) => "a stack fault: non-canonical address",
        (libc::SIGBUS, 17) => "an alignment check",
        (libc::SIGBUS, _) => "a bus error",
        (libc::SIGFPE, 0) => "a division error",
        (libc::SIGFPE, _) => "an unmasked floating-point exception",
        (libc::SIGTRAP, _) => "a trap",
        (signal, trap) => return format!("signal {signal}, trap {trap}").into(),
    };
    text.into()
}
