//! Memory dependencies as they were found.

use super::alias::Class;

/// A dependency through memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Carried {
    /// Instruction that stores.
    pub writer: usize,
    /// Instruction that loads.
    pub reader: usize,
    /// Which of its accesses.
    pub access: usize,
    /// Iterations between.
    pub delta: u32,
    /// How they overlap.
    pub overlap: crate::deps::Overlap,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Dependencies, in order of reader.
    pub carried: Vec<Carried>,
    /// Accesses by where their addresses come from.
    pub classes: Vec<Class>,
    /// Instructions whose results nothing is known of.
    pub opaque: Vec<usize>,
    /// Iterations of each run.
    pub iterations: u32,
}
