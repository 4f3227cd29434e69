//! Costs of functions and of the calls between them, as callgrind's format has them.

/// The costs of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Costs {
    /// The command.
    pub command: String,
    /// Remarks, one line each.
    pub remarks: Vec<String>,
    /// Kind of positions: `instr` (an address) or `line`.
    pub positions: &'static str,
    /// Names of the counts.
    pub events: Vec<String>,
    /// Sums over all functions.
    pub summary: Vec<u64>,
    /// The functions.
    pub functions: Vec<FunctionCosts>,
}

/// A function, by its names.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId {
    /// Its module.
    pub object: String,
    /// Its source file; `None`: not known.
    pub file: Option<String>,
    /// Its name.
    pub name: String,
}

/// Costs of a function.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FunctionCosts {
    /// Identity of the function.
    pub id: FunctionId,
    /// Its own costs.
    pub lines: Vec<LineCosts>,
    /// Costs of what it calls, callees included.
    pub calls: Vec<CallCosts>,
}

/// The own costs of a function at one place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LineCosts {
    /// The source file where it is not the function's: inlined code.
    pub file: Option<String>,
    /// Address or line.
    pub position: String,
    /// Costs in the order of the events.
    pub costs: Vec<u64>,
}

/// A call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CallCosts {
    /// The function that is called.
    pub callee: FunctionId,
    /// How often.
    pub count: u64,
    /// Inclusive costs in the order of the events.
    pub costs: Vec<u64>,
}
