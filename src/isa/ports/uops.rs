//! Ports, and the µops of an instruction, as data.

/// A set of ports: bit n is the table's n-th port.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortSet(pub u32);

impl PortSet {
    /// Whether it has port `n`.
    pub fn has(self, n: usize) -> bool {
        self.0 >> n & 1 == 1
    }

    /// Whether all of its ports are in `other`.
    pub fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Number of ports.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }
}

/// µops of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Use {
    /// The ports that they can use.
    pub ports: PortSet,
    /// Number of µops, or cycles that they occupy a unit that is not pipelined.
    pub amount: f64,
}

/// The µops of an instruction.
#[derive(Debug, Clone, PartialEq)]
pub struct Uops {
    /// By the ports that they can use.
    pub uses: Vec<Use>,
    /// Issue slots.
    pub slots: f64,
    /// Why it has no µop of its own besides loads: a zero idiom, an eliminated move, a fused pair.
    pub without: Option<&'static str>,
    /// Source of the figures.
    pub source: String,
}
