//! A model of a processor's branch predictors: a stream of executed branches in, mispredictions out.
//!
//! | module | concern |
//! |---|---|
//! | `history` | the global history and its folded copies; sizes |
//! | `tage` | TAGE for conditional branches, ITTAGE for indirect jumps and calls, and the banks that they share |
//!
//! Seznec and Michaud, "A case for (partially) TAgged GEometric history length branch prediction"
//! (JILP 8, 2006); Seznec, "A new case for the TAGE branch predictor" and "A 64-Kbytes ITTAGE
//! indirect branch predictor" (both 2011). The predictors of real cores are not published; what they
//! cannot do either (random branches) and what all do (short periods, correlation) is alike, so results
//! are *modelled*, not counted.

mod history;
mod tage;
#[cfg(test)]
mod tests;

use history::History;
use std::collections::BTreeMap;
use tage::{Direction, Target};
use tma::self_test::{Below, Room, Rules, TargetHistory};

/// One executed branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Branch {
    /// Where it is.
    pub address: u64,
    /// Its kind, and what it did.
    pub kind: Kind,
}

/// Kind of a branch, and what it did. Direct jumps need no prediction that can fail for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A conditional jump.
    Conditional {
        /// Whether it was taken.
        taken: bool,
    },
    /// A jump through a register or memory.
    Indirect {
        /// Where it went.
        target: u64,
    },
    /// A direct call.
    Call {
        /// The address after it.
        back: u64,
    },
    /// A call through a register or memory of which the return is not seen.
    Called {
        /// Where it went.
        target: u64,
        /// The address of the function's only return, if it has one and that is known.
        returns: Option<u64>,
    },
    /// A call through a register or memory.
    IndirectCall {
        /// Where it went.
        target: u64,
        /// The address after it.
        back: u64,
    },
    /// A return.
    Return {
        /// Where it went.
        target: u64,
    },
}

impl Kind {
    /// Whether it is an indirect call.
    pub fn is_call(self) -> bool {
        matches!(self, Self::Called { .. } | Self::IndirectCall { .. })
    }
}

/// Return addresses that are predicted: the depth of the return stacks of Zen 2 to Zen 4 (AMD's
/// optimization guides), also measured on Zen 5; Intel's have 16 to 24.
const RETURNS: usize = 32;

/// Bytes that compilers align functions to.
const FUNCTIONS: u64 = 16;
/// Bytes within which returns are alike for histories that have the lowest bits of addresses: those of functions in turn are
/// predicted from a difference of 4 on, on a Zen 4.
const RETURN: u64 = 4;

/// The longest history, in branches, unless a core's is known. Seznec's predictors of 2011 use 640 to
/// 3,000.
pub const LONGEST_HISTORY: usize = 640;

/// Predicts branches in the order in which they ran, and learns from each.
///
/// ```
/// use branches::predictor::{Branch, Kind, Predictor};
///
/// // A loop of 10 trips: the last branch of every 10 is not taken.
/// let taken = |n: u64| Branch { address: 0x40, kind: Kind::Conditional { taken: n % 10 != 9 } };
/// let mut predictor = Predictor::default();
/// (0..2_000).for_each(|n| _ = predictor.run(taken(n)));
/// let mispredicted = (0..1_000).filter(|n| !predictor.run(taken(*n))).count();
/// assert_eq!(mispredicted, 0);
/// ```
#[derive(Debug)]
pub struct Predictor {
    history: History,
    direction: Direction,
    target: Target,
    /// The last return addresses, the latest at `top`.
    returns: [u64; RETURNS],
    top: usize,
    /// How many of them are of calls that have not returned.
    held: usize,
    /// Calls that have not returned.
    depth: usize,
    below: Below,
    rules: Rules,
}

impl Default for Predictor {
    fn default() -> Self {
        Self::new(LONGEST_HISTORY, &Rules::default(), Room::default().typical)
    }
}

impl Predictor {
    /// A predictor that knows nothing yet, sees `longest` branches back, follows these rules, and has banks of 2^`size` entries
    /// for conditional branches.
    pub fn new(longest: usize, rules: &Rules, size: u32) -> Self {
        let rule = rules.targets.unwrap_or_default();
        let (direction, target) = (Direction::new(size), Target::new(rule));
        Self {
            history: History::new(longest),
            direction,
            target,
            returns: [0; RETURNS],
            top: 0,
            held: 0,
            depth: 0,
            below: rules.returns,
            rules: rules.clone(),
        }
    }

    /// Whether `branch` is predicted. It is in the history of the next one.
    pub fn run(&mut self, branch: Branch) -> bool {
        let Branch { address, kind } = branch;
        match kind {
            Kind::Conditional { taken } => {
                let right = self.direction.run(&self.history, address, taken);
                self.history.push(taken);
                right
            }
            Kind::Indirect { target } => self.indirect(address, target, self.rules.jumps, None),
            Kind::Called { target, returns } => {
                self.indirect(address, target, self.rules.calls, returns)
            }
            Kind::Call { back } => {
                self.call(back);
                true
            }
            Kind::IndirectCall { target, back } => {
                let right = self.indirect(address, target, self.rules.calls, None);
                self.call(back);
                right
            }
            Kind::Return { target } => self.back(address, target),
        }
    }

    /// A branch by the target; what the history has of it.
    fn indirect(
        &mut self,
        address: u64,
        target: u64,
        history: TargetHistory,
        returns: Option<u64>,
    ) -> bool {
        let right = self.target.run(&self.history, address, target);
        self.history.push_target(match (history, returns) {
            (TargetHistory::With | TargetHistory::Unknown, _) => target,
            (TargetHistory::Low, _) if self.rules.apart == Some(false) => target % FUNCTIONS,
            (TargetHistory::Low, Some(at)) => {
                target % FUNCTIONS + FUNCTIONS * (at % FUNCTIONS / RETURN)
            }
            (TargetHistory::Low, None) if self.rules.alike => target % FUNCTIONS,
            (TargetHistory::Low, None) => target,
        });
        right
    }

    /// Overwrites the oldest return address.
    fn call(&mut self, back: u64) {
        self.top = (self.top + 1) % RETURNS;
        self.returns[self.top] = back;
        self.held = (self.held + 1).min(RETURNS);
        self.depth += 1;
    }

    /// A return whose call was not seen is taken to be predicted.
    fn back(&mut self, address: u64, target: u64) -> bool {
        if self.depth == 0 {
            return true;
        }
        self.depth -= 1;
        if self.held == 0 && self.below == Below::History {
            return self.indirect(address, target, TargetHistory::With, None);
        }
        let predicted = self.returns[self.top];
        // On Zen 5, 1 − 1/p of the returns below the stack are mispredicted for calls alternating among p places,
        // whatever p is.
        let stays = self.below == Below::Oldest && self.held == 1;
        if !stays {
            self.top = (self.top + RETURNS - 1) % RETURNS;
            self.held = self.held.saturating_sub(1);
        }
        predicted == target
    }

    /// Forgets open calls: the branches that follow are from another time.
    pub fn forget_calls(&mut self) {
        (self.depth, self.held) = (0, 0);
    }
}

/// Executions and modelled mispredictions of each branch of a stream, by address.
pub fn tally(
    predictor: &mut Predictor,
    stream: impl IntoIterator<Item = Branch>,
) -> BTreeMap<u64, Tally> {
    let mut all: BTreeMap<u64, Tally> = BTreeMap::new();
    for branch in stream {
        let right = predictor.run(branch);
        all.entry(branch.address).or_default().count(branch.kind, right);
    }
    all
}

/// Executions and mispredictions of one branch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often it ran.
    pub executions: u64,
    /// How often it was taken; all executions of a branch that is not conditional.
    pub taken: u64,
    /// How often the model mispredicts it.
    pub mispredicted: u64,
    /// Executions as an indirect jump, and as an indirect call.
    pub jumped: u64,
    /// See `jumped`.
    pub called: u64,
}

impl Tally {
    /// Adds an execution.
    pub(super) fn count(&mut self, kind: Kind, right: bool) {
        self.executions += 1;
        self.taken += u64::from(kind != Kind::Conditional { taken: false });
        self.mispredicted += u64::from(!right);
        self.jumped += u64::from(matches!(kind, Kind::Indirect { .. }));
        self.called += u64::from(kind.is_call());
    }

    /// Share of the executions that the model mispredicts; `None` if it never ran.
    pub fn mispredicted_share(&self) -> Option<f64> {
        (self.executions > 0).then(|| self.mispredicted as f64 / self.executions as f64)
    }
}
