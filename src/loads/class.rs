//! Classes of loads by how their addresses are made: one vocabulary for what recorded addresses show ([`pattern`])
//! and what the code says ([`access`]).
//!
//! Classes by the operations that compute the address, after Ayers, Litz, Kozyrakis and Ranganathan,
//! "Classifying Memory Access Patterns for Prefetching" (ASPLOS 2020).
//!
//! [`pattern`]: crate::pattern
//! [`access`]: crate::access

use serde::{Deserialize, Serialize};
use std::fmt;

/// How a later address can be known before the iterations in between are done; from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ahead {
    /// From counters of the loop, whatever the distance.
    Directly,
    /// By all the steps in between: a second copy of the computation, with a state of its own, runs ahead of the
    /// loop's. As of a generator of random numbers.
    ByCopy,
    /// Not at all: loads in between are needed, or it is not known.
    No,
}

/// Names of the classes in documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// [`Class::Constant`].
    Constant,
    /// [`Class::Stride`], [`Class::UnknownStride`].
    Stride,
    /// [`Class::Chase`].
    PointerChase,
    /// [`Class::OffsetOfChase`].
    ChaseOffset,
    /// [`Class::IndirectDelta`].
    IndirectDelta,
    /// [`Class::Indirect`].
    Indirect,
    /// [`Class::Complex`].
    Complex,
    /// [`Class::Irregular`].
    #[default]
    Irregular,
}

/// As in documents.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// How the addresses of a load are made. `L` names other loads: an index, or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class<L = usize> {
    /// Always the same.
    Constant,
    /// The last one plus this many bytes.
    Stride(i64),
    /// The last one plus a fixed number of bytes that the code does not show.
    UnknownStride,
    /// `offset` + `scale` × a value that the load has loaded itself, or another one in a ring of such
    /// loads.
    Chase {
        /// 1 for a pointer, the size of an element for an index.
        scale: i64,
        /// Bytes added to it.
        offset: i64,
    },
    /// A pointer that the chase `of` loads, plus this offset.
    OffsetOfChase {
        /// The load of the chase.
        of: L,
        /// Bytes added to it.
        offset: i64,
    },
    /// The last one plus a value that another load loads.
    IndirectDelta {
        /// The other load.
        of: L,
    },
    /// An offset + `scale` × a value that another load loads.
    Indirect {
        /// The other load.
        of: L,
        /// Size of an element; 1 for a pointer.
        scale: i64,
        /// The other load's class.
        inner: Box<Class<L>>,
    },
    /// Computed by other operations: a hash, several loaded values.
    Complex {
        /// Whether a later address can be computed without the loads before it: no chase takes part.
        ahead: Ahead,
    },
    /// None of these, or not known: random numbers, the result of a call.
    Irregular,
}

impl<L> Class<L> {
    /// Which one, in documents.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Constant => Kind::Constant,
            Self::Stride(_) | Self::UnknownStride => Kind::Stride,
            Self::Chase { .. } => Kind::PointerChase,
            Self::OffsetOfChase { .. } => Kind::ChaseOffset,
            Self::IndirectDelta { .. } => Kind::IndirectDelta,
            Self::Indirect { .. } => Kind::Indirect,
            Self::Complex { .. } => Kind::Complex,
            Self::Irregular => Kind::Irregular,
        }
    }

    /// How the address of a later execution can be computed before the loads in between are done.
    pub fn ahead(&self) -> Ahead {
        match self {
            Self::Constant | Self::Stride(_) | Self::UnknownStride => Ahead::Directly,
            Self::Complex { ahead } => *ahead,
            Self::Indirect { inner, .. } => inner.ahead(),
            Self::Chase { .. }
            | Self::OffsetOfChase { .. }
            | Self::IndirectDelta { .. }
            | Self::Irregular => Ahead::No,
        }
    }

    /// Whether it can.
    pub fn is_computable_ahead(&self) -> bool {
        self.ahead() != Ahead::No
    }
}

impl Class<u64> {
    /// It in words; other loads by address.
    ///
    /// ```
    /// use loads::class::Class;
    ///
    /// let inner = Box::new(Class::Stride(4));
    /// let class = Class::Indirect { of: 0x401b48, scale: 8, inner };
    /// assert_eq!(class.words(), "indirect: 8 × what 0x401b48 loads (stride 4)");
    /// ```
    pub fn words(&self) -> String {
        match self {
            Self::Constant => "constant".to_owned(),
            Self::Stride(step) => format!("stride {step}"),
            Self::UnknownStride => {
                "stride by a number of bytes that the code does not tell".to_owned()
            }
            Self::Chase { scale: 1, offset: 0 } => "pointer chase".to_owned(),
            Self::Chase { scale: 1, offset } => format!("pointer chase at offset {offset}"),
            Self::Chase { scale, .. } => format!("chase of indices × {scale}"),
            Self::OffsetOfChase { of, offset } => {
                format!("offset {offset} of the pointer that {of:#x} chases")
            }
            Self::IndirectDelta { of } => format!("advances by what {of:#x} loads"),
            Self::Indirect { of, scale: 1, inner } => {
                format!("indirect: a pointer that {of:#x} loads ({})", inner.words())
            }
            Self::Indirect { of, scale, inner } => {
                format!("indirect: {scale} × what {of:#x} loads ({})", inner.words())
            }
            Self::Complex { ahead: Ahead::Directly } => {
                "complex: computed by other operations, which can be done ahead".to_owned()
            }
            Self::Complex { ahead: Ahead::ByCopy } => {
                "complex: computed from its own earlier values, one iteration after the other"
                    .to_owned()
            }
            Self::Complex { ahead: Ahead::No } => {
                "complex: computed from loads that need their own earlier values".to_owned()
            }
            Self::Irregular => "irregular".to_owned(),
        }
    }
}
