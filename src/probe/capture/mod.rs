//! Captures a block in its program: registers, memory, trip count and path at one of its entries.
//!
//! The command runs under ptrace(2) until its n-th entry of the block. There its registers are
//! read, and it is stepped through some iterations. Each accessed page is read before the
//! instruction executes, so pages, addresses and branch outcomes are of the same pass.
//!
//! | file | concern |
//! |---|---|
//! | `request` | what to capture, and the limits; addresses of a file |
//! | `snapshot` | the document, `tdtool.snapshot/1` |
//! | `entries` | choice of the entries to capture |
//! | `stopped` | a thread stopped at the block |
//! | `walk` | stepping through iterations |
//! | `operands` | addresses of memory operands |

#[cfg(target_arch = "x86_64")]
mod entries;
#[cfg(target_arch = "x86_64")]
mod operands;
mod request;
mod snapshot;
#[cfg(target_arch = "x86_64")]
mod stopped;
#[cfg(target_arch = "x86_64")]
mod walk;

use tma::Result;

pub use request::{Afterwards, Breakpoints, Entry, Limits, Place, Request, Stop, is_program};
pub use snapshot::{
    BeforeCall, Branch, End, Page, Pages, REGISTERS, Registers, SCHEMA, Snapshot, VectorRegisters,
    Walk,
};
#[cfg(target_arch = "x86_64")]
pub use stopped::Stopped;

/// Runs a command and captures a block at one of its entries.
///
/// # Errors
/// The command cannot be started or traced, or does not enter the block often enough.
#[cfg(target_arch = "x86_64")]
pub fn capture(request: &Request) -> Result<Snapshot> {
    let (mut first, others) = visit_all(request, |stopped| stopped.snapshot(request))?;
    first.others = others;
    Ok(first)
}

/// As [`capture`], but returns the last result of `take`.
///
/// # Errors
/// As [`capture`], and those of `take`.
#[cfg(target_arch = "x86_64")]
pub fn visit<T: Send + AsRef<Walk>>(
    request: &Request,
    take: impl FnMut(&mut Stopped<'_>) -> Result<T> + Send,
) -> Result<T> {
    visit_all(request, take).map(|(first, _)| first)
}

/// As [`visit`], with the results at the starts of further executions.
#[cfg(target_arch = "x86_64")]
fn visit_all<T: Send + AsRef<Walk>>(
    request: &Request,
    take: impl FnMut(&mut Stopped<'_>) -> Result<T> + Send,
) -> Result<(T, Vec<T>)> {
    // When this thread ends, the kernel kills all that it still traces (PTRACE_O_EXITKILL): nothing
    // stays stopped.
    let run = std::thread::scope(|scope| scope.spawn(|| entries::visit(request, take)).join());
    run.unwrap_or_else(|_| Err(tma::Error::failed("the tracer has ended unexpectedly")))
}

/// Not possible on this architecture.
///
/// # Errors
/// Always.
#[cfg(not(target_arch = "x86_64"))]
pub fn capture(_: &Request) -> Result<Snapshot> {
    Err(tma::Error::not_possible("blocks are captured on x86-64 only"))
}
