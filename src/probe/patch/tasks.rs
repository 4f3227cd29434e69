//! How the tasks of a command that share counters are kept apart: each has a copy of its own, which its base of gs leads to;
//! if there are more tasks at once than copies, the others share the last one, and counts are atomic from then on.
//!
//! A count is `inc [rip+x]` with two prefixes without effect, for which others can be put: with that of gs the base of
//! gs is added to the address, and with `lock` the count is atomic (Intel SDM vol. 2, 2.1.1). Compilers and C libraries
//! do not use gs on x86-64 Linux (System V ABI, AMD64 supplement, 3.4.6); where a task has a base before another one is
//! created, all count atomically in one copy.

use super::unprobed::Unprobed;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// What stands before a count.
pub(super) type Prefixes = [u8; 2];

/// Without effect: ds.
const NONE: u8 = 0x3e;
const LOCK: u8 = 0xf0;
const GS: u8 = 0x65;
/// The prefixes with which a count is atomic.
pub(super) const LOCKED: Prefixes = [LOCK, NONE];

/// Copies of the counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copies {
    /// How many there are; with fewer than two, counts of several tasks are atomic in one.
    pub number: u64,
    /// Bytes from one to the next.
    pub stride: u64,
}

/// How the tasks of a process count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Mode {
    /// There is one task.
    #[default]
    Alone,
    /// Each has a copy of the counters.
    Apart,
    /// The same, but for some that share one, by atomic instructions.
    Full,
    /// All have the same, by atomic instructions.
    Atomic,
}

impl Mode {
    /// The prefixes of all counts, if they are not as at first.
    pub fn prefixes(self) -> Option<Prefixes> {
        match self {
            Self::Alone => None,
            Self::Apart => Some([NONE, GS]),
            Self::Full => Some([LOCK, GS]),
            Self::Atomic => Some(LOCKED),
        }
    }
}

/// The tasks with the same counters: threads, and processes that were forked from one.
#[derive(Debug, Clone, Default)]
pub(super) struct Tasks(Rc<RefCell<Numbers>>);

#[derive(Debug, Default)]
struct Numbers {
    /// The copies of tasks, by thread; the first task has copy 0.
    of: BTreeMap<i32, u64>,
    /// How many were given, without that.
    given: u64,
    free: Vec<u64>,
    /// Some share the last copy.
    is_full: bool,
}

impl Tasks {
    /// How the task `tid`, created by one whose base of gs is `base`, and those before it count; and its own base of gs.
    ///
    /// # Errors
    /// The program has set a base of its own while its tasks were kept apart.
    pub fn create(&self, copies: Copies, tid: i32, base: u64) -> Result<(Mode, u64), Unprobed> {
        let mut numbers = self.0.borrow_mut();
        let last = copies.number.saturating_sub(1);
        let is_ours = base == 0
            || copies.stride > 0
                && base.is_multiple_of(copies.stride)
                && base / copies.stride <= last;
        match (is_ours, numbers.given) {
            (false, 1..) => return Err(Unprobed::GsBase),
            (false, 0) => return Ok((Mode::Atomic, 0)),
            _ if last == 0 => return Ok((Mode::Atomic, 0)),
            _ => {}
        }
        let number = numbers.free.pop().unwrap_or_else(|| {
            numbers.given += 1;
            numbers.given
        });
        if number >= last {
            numbers.is_full = true;
        } else {
            numbers.of.insert(tid, number);
        }
        let mode = if numbers.is_full { Mode::Full } else { Mode::Apart };
        Ok((mode, number.min(last) * copies.stride))
    }

    /// A task does not count any more.
    pub fn end(&self, tid: i32) {
        let mut numbers = self.0.borrow_mut();
        if let Some(number) = numbers.of.remove(&tid) {
            numbers.free.push(number);
        }
    }

    /// Whether they have the same counters.
    pub fn are(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_have_copies_as_long_as_there_are_some() {
        let (tasks, copies) = (Tasks::default(), Copies { number: 4, stride: 4096 });
        assert_eq!(tasks.create(copies, 11, 0), Ok((Mode::Apart, 4096)));
        assert_eq!(tasks.create(copies, 12, 4096), Ok((Mode::Apart, 8192)));
        tasks.end(11);
        assert_eq!(tasks.create(copies, 13, 0), Ok((Mode::Apart, 4096)), "of one that has ended");
        // The last is for all others, by atomic instructions, also while another one is free again.
        assert_eq!(tasks.create(copies, 14, 0), Ok((Mode::Full, 12288)));
        assert_eq!(tasks.create(copies, 15, 0), Ok((Mode::Full, 12288)));
        tasks.end(13);
        assert_eq!(tasks.create(copies, 16, 0), Ok((Mode::Full, 4096)));
        assert!(tasks.create(copies, 17, 0x1234).is_err(), "the program uses gs");
        let other = Tasks::default();
        assert_eq!(other.create(copies, 18, 0x1234), Ok((Mode::Atomic, 0)), "it did before");
        assert_eq!(other.create(Copies::default(), 19, 0), Ok((Mode::Atomic, 0)));
    }
}
