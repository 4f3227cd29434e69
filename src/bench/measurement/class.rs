//! Classes of bounds of a block, and causes of assists.

use super::bound_names;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The class of a block's bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Class {
    /// Fetching and decoding: slower than the pipeline is wide.
    FrontEnd,
    /// Issue slots: as many operations as the pipeline issues per cycle.
    IssueWidth,
    /// Execution ports, or a unit that is not pipelined.
    Ports,
    /// A loop-carried dependency through registers and flags.
    Dependency,
    /// A loop-carried dependency through memory, or loads that wait for stores.
    StoreForwarding,
    /// Where in the L1 data cache loads and stores lie: its banks, or lines that stores are committed to.
    L1Access,
    /// Assists, for this cause.
    Assist(Cause),
    /// Several bounds reach the time within the errors.
    Undecided,
    /// No bound does.
    Unexplained,
}

impl Class {
    /// All classes.
    pub const ALL: [Self; 12] = [
        Self::FrontEnd,
        Self::IssueWidth,
        Self::Ports,
        Self::Dependency,
        Self::StoreForwarding,
        Self::L1Access,
        Self::Assist(Cause::Transition),
        Self::Assist(Cause::X87Stack),
        Self::Assist(Cause::Subnormals),
        Self::Assist(Cause::SuppressedFaults),
        Self::Undecided,
        Self::Unexplained,
    ];

    /// As documents have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::FrontEnd => bound_names::FRONT_END,
            Self::IssueWidth => bound_names::WIDTH,
            Self::Ports => bound_names::PORTS,
            Self::Dependency => bound_names::DEPENDENCY,
            Self::StoreForwarding => bound_names::FORWARDING,
            Self::L1Access => bound_names::L1_ACCESS,
            Self::Assist(cause) => cause.name(),
            Self::Undecided => "undecided",
            Self::Unexplained => "unexplained",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Nothing that bounds a block has this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoClass(String);

impl fmt::Display for NoClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing bounds a block that is called `{}`", self.0)
    }
}

impl From<Class> for String {
    fn from(class: Class) -> Self {
        class.name().to_owned()
    }
}

impl TryFrom<String> for Class {
    type Error = NoClass;

    fn try_from(name: String) -> Result<Self, NoClass> {
        let found = Self::ALL.into_iter().find(|class| class.name() == name);
        found.ok_or(NoClass(name))
    }
}

/// The cause of an assist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// Legacy SSE code where upper halves of vector registers are not zero.
    Transition,
    /// The x87 register stack overflows, or an empty register is read.
    X87Stack,
    /// Subnormal operands or results.
    Subnormals,
    /// Masked accesses to pages that are not mapped.
    SuppressedFaults,
}

impl Cause {
    /// As documents have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Transition => bound_names::TRANSITION,
            Self::X87Stack => bound_names::X87_STACK,
            Self::Subnormals => bound_names::SUBNORMALS,
            Self::SuppressedFaults => bound_names::SUPPRESSED_FAULTS,
        }
    }

    /// Description of the measurement without it.
    pub fn avoided(self) -> &'static str {
        match self {
            Self::Transition => "vzeroupper before its SSE instructions",
            Self::X87Stack => "its x87 stack filled before and emptied after each iteration",
            Self::Subnormals => "no subnormal numbers",
            Self::SuppressedFaults => "masks that select everything",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents have these names.
    #[test]
    fn names_are_those_of_documents() {
        let names = [
            "front-end",
            "issue-width",
            "ports",
            "dependency",
            "store-forwarding",
            "l1-access",
            "sse-avx-transition",
            "x87-stack",
            "subnormals",
            "suppressed-faults",
            "undecided",
            "unexplained",
        ];
        for (class, name) in Class::ALL.into_iter().zip(names) {
            assert_eq!(serde_json::to_value(class).unwrap(), name);
            assert_eq!(serde_json::from_value::<Class>(name.into()).unwrap(), class);
        }
        assert!(serde_json::from_value::<Class>("slots".into()).is_err());
    }
}
