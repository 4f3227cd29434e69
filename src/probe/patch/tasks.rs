//! Separates counters by task of a command: each has its own copy, addressed by its base of gs. If there are more
//! tasks at once than copies, the others share the last one, and counts become atomic.
//!
//! A count is `inc [rip+x]` with two prefixes without effect that can be replaced: gs adds its base
//! to the address, `lock` makes the count atomic (Intel SDM vol. 2, 2.1.1). Compilers and C
//! libraries do not use gs on x86-64 Linux (System V ABI, AMD64 supplement, 3.4.6); if a task
//! already has a base when another one is created, all count atomically in one copy.

use super::unprobed::Unprobed;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The two prefixes of a count.
pub(super) type Prefixes = [u8; 2];

/// ds, without effect.
const NONE: u8 = 0x3e;
const LOCK: u8 = 0xf0;
const GS: u8 = 0x65;
/// The prefixes of an atomic count.
pub(super) const LOCKED: Prefixes = [LOCK, NONE];

/// Copies of the counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copies {
    /// Number of copies; with fewer than two, several tasks count atomically in one.
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
    /// As [`Self::Apart`], but some share one, and counts are atomic.
    Full,
    /// All count atomically in one copy.
    Atomic,
}

impl Mode {
    /// The prefixes of all counts; `None` for the initial ones.
    pub fn prefixes(self) -> Option<Prefixes> {
        match self {
            Self::Alone => None,
            Self::Apart => Some([NONE, GS]),
            Self::Full => Some([LOCK, GS]),
            Self::Atomic => Some(LOCKED),
        }
    }
}

/// Tasks with the same counters: threads and forked processes.
#[derive(Debug, Clone, Default)]
pub(super) struct Tasks(Rc<RefCell<Numbers>>);

#[derive(Debug, Default)]
struct Numbers {
    /// Threads → numbers of their copies; the first task has copy 0.
    copies: BTreeMap<i32, u64>,
    /// Copies used so far, without copy 0.
    given: u64,
    free: Vec<u64>,
    /// Whether tasks share the last copy.
    is_full: bool,
}

impl Tasks {
    /// Adds the task `tid`, created by one with the base of gs `base`; the mode of all tasks, and
    /// its own base of gs.
    ///
    /// # Errors
    /// The program has set its own base while tasks were separate.
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
            numbers.copies.insert(tid, number);
        }
        let mode = if numbers.is_full { Mode::Full } else { Mode::Apart };
        Ok((mode, number.min(last) * copies.stride))
    }

    /// A task has ended: its copy is free.
    pub fn end(&self, tid: i32) {
        let mut numbers = self.0.borrow_mut();
        if let Some(number) = numbers.copies.remove(&tid) {
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
        // All others share the last copy atomically, even when another one becomes free.
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
