//! The canonical frame address by the unwind tables.

use super::location::Base;
use crate::unwind::{Cfa, Table};
use std::fmt;

/// The unwind tables of a program.
pub(super) struct Frames {
    table: Table,
}

impl Frames {
    pub fn new(program: &object::File<'_>) -> Self {
        Self { table: Table::new(program, None) }
    }

    /// Register and offset of the canonical frame address at `address`.
    pub fn at(&mut self, address: u64) -> Base {
        match self.table.row(address)?.cfa {
            Cfa::Offset(register, offset) => Some((register, offset)),
            Cfa::Expression(_) => None,
        }
    }
}

impl fmt::Debug for Frames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Frames").finish_non_exhaustive()
    }
}
