//! How the addresses of a load are made: one vocabulary for what recorded addresses show ([`pattern`]) and
//! what the code says ([`access`]).
//!
//! Classes by the operations that compute the address, after Ayers, Litz, Kozyrakis and Ranganathan,
//! "Classifying Memory Access Patterns for Prefetching" (ASPLOS 2020).
//!
//! [`pattern`]: crate::pattern
//! [`access`]: crate::access

/// How the addresses of a load are made. `L` names other loads: an index, or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Class<L = usize> {
    /// Always the same.
    Constant,
    /// The last one plus this many bytes.
    Stride(i64),
    /// The last one plus a number of bytes that stays the same and that the code does not tell.
    UnknownStride,
    /// `offset` + `scale` × a value that the load has loaded itself, or another one in a ring of such
    /// loads.
    Chase {
        /// 1 for a pointer, the size of an element for an index.
        scale: i64,
        /// What is added.
        offset: i64,
    },
    /// A pointer that the chase `of` loads, plus this offset.
    OffsetOfChase {
        /// The load of the chase.
        of: L,
        /// What is added.
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
        ahead: bool,
    },
    /// None of these, or not known: random numbers, the result of a call.
    Irregular,
}

impl<L> Class<L> {
    /// Its name in documents.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Constant => "constant",
            Self::Stride(_) | Self::UnknownStride => "stride",
            Self::Chase { .. } => "pointer_chase",
            Self::OffsetOfChase { .. } => "chase_offset",
            Self::IndirectDelta { .. } => "indirect_delta",
            Self::Indirect { .. } => "indirect",
            Self::Complex { .. } => "complex",
            Self::Irregular => "irregular",
        }
    }

    /// Whether the address of a later execution can be computed before the loads in between are done.
    pub fn is_computable_ahead(&self) -> bool {
        match self {
            Self::Constant | Self::Stride(_) | Self::UnknownStride => true,
            Self::Complex { ahead } => *ahead,
            Self::Indirect { inner, .. } => inner.is_computable_ahead(),
            Self::Chase { .. }
            | Self::OffsetOfChase { .. }
            | Self::IndirectDelta { .. }
            | Self::Irregular => false,
        }
    }
}
