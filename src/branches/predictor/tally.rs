use super::branch::Kind;

/// Executions and mispredictions of one branch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often it ran.
    pub executions: u64,
    /// How often it was taken; all executions of a branch that is not conditional.
    pub taken: u64,
    /// How often the model mispredicts it.
    pub mispredicted: u64,
}

impl Tally {
    /// Adds an execution.
    pub(super) fn count(&mut self, kind: Kind, right: bool) {
        self.executions += 1;
        self.taken += u64::from(kind != Kind::Conditional { taken: false });
        self.mispredicted += u64::from(!right);
    }

    /// Share of the executions that the model mispredicts; `None` if it never ran.
    pub fn mispredicted_share(&self) -> Option<f64> {
        (self.executions > 0).then(|| self.mispredicted as f64 / self.executions as f64)
    }
}
