//! How the tasks of a command that share counters are kept apart: each has a copy of its own, which its base of gs leads to,
//! as long as there are enough of them; else counts are atomic.
//!
//! A count is `inc [rip+x]` with a prefix without effect, for which another one can be put: with that of gs the base of
//! gs is added to the address, and with `lock` the count is atomic (Intel SDM vol. 2, 2.1.1). Nothing of x86-64 Linux
//! uses gs (System V ABI, AMD64 supplement, 3.4.6); a task whose base is none of ours makes counts atomic.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The prefix with which `inc` is atomic.
pub(super) const LOCK: u8 = 0xf0;
/// The prefix of an address in gs.
const GS: u8 = 0x65;

/// Copies of the counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Copies {
    /// How many there are; with one, counts of several tasks are atomic.
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
    /// All have the same, by atomic instructions.
    Atomic,
}

impl Mode {
    /// The prefix of all counts.
    pub fn prefix(self) -> Option<u8> {
        match self {
            Self::Alone => None,
            Self::Apart => Some(GS),
            Self::Atomic => Some(LOCK),
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
}

impl Tasks {
    /// How the task `tid`, created by one whose base of gs is `base`, and those before it count; and its own base of gs.
    pub fn create(&self, copies: Copies, tid: i32, base: u64) -> (Mode, u64) {
        let mut numbers = self.0.borrow_mut();
        let is_ours = base == 0
            || copies.stride > 0
                && base.is_multiple_of(copies.stride)
                && base / copies.stride <= numbers.given;
        let number = numbers.free.pop().unwrap_or_else(|| {
            numbers.given += 1;
            numbers.given
        });
        if number >= copies.number || !is_ours {
            return (Mode::Atomic, 0);
        }
        numbers.of.insert(tid, number);
        (Mode::Apart, number * copies.stride)
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
        let (tasks, copies) = (Tasks::default(), Copies { number: 3, stride: 4096 });
        assert_eq!(tasks.create(copies, 11, 0), (Mode::Apart, 4096));
        assert_eq!(tasks.create(copies, 12, 4096), (Mode::Apart, 8192));
        tasks.end(11);
        assert_eq!(tasks.create(copies, 13, 0), (Mode::Apart, 4096), "of one that has ended");
        assert_eq!(tasks.create(copies, 14, 0).0, Mode::Atomic, "there are no more");
        let other = Tasks::default();
        assert_eq!(other.create(copies, 15, 0x1234).0, Mode::Atomic, "the program uses gs");
        assert_eq!(other.create(Copies::default(), 16, 0).0, Mode::Atomic);
    }
}
