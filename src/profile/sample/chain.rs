//! The CALLCHAIN field: addresses, with markers of their context in between.

use super::cursor::{Cursor, Malformed};
use super::fields::{Branch, Context, Frame, Sample};
use pmu::records::format::misc;

// `enum perf_callchain_context`, negative numbers there.
const KERNEL: u64 = 128_u64.wrapping_neg();
const USER: u64 = 512_u64.wrapping_neg();
const USER_DEFERRED: u64 = 640_u64.wrapping_neg();
const MAX: u64 = 4095_u64.wrapping_neg();

/// Skips a CALLCHAIN field.
pub fn skip(body: &mut Cursor) -> Result<(), Malformed> {
    let count = body.u64("CALLCHAIN")?;
    body.bytes(count.saturating_mul(8), "CALLCHAIN").map(|_| ())
}

/// The chain of a sample whose branch stack holds the calls that have not returned, newest first: its own in the kernel,
/// then where it is in user mode, and the calls. Chains have return addresses after the first: one within the call.
pub fn of_calls(s: &Sample, calls: &[Branch]) -> Box<[Frame]> {
    let (user, kernel): (Vec<&Frame>, Vec<&Frame>) =
        s.chain.iter().partition(|frame| frame.context == Context::User);
    let own = s.ip.filter(|_| s.user == Some(true));
    let first = own.or(user.first().map(|frame| frame.ip)).or(calls.first().map(|call| call.to));
    let calls = calls.iter().map(|call| call.from.saturating_add(1));
    let user = first.into_iter().chain(calls).map(|ip| Frame { context: Context::User, ip });
    kernel.into_iter().copied().chain(user).collect()
}

/// Decodes a CALLCHAIN field. Addresses before the first marker have the `mode` of the header.
pub fn decode(body: &mut Cursor, mode: u16) -> Result<Box<[Frame]>, Malformed> {
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
