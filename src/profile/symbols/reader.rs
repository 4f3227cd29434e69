//! How DWARF is read: from copies of the sections.

use gimli::{EndianArcSlice, RunTimeEndian};

/// The data of a section.
pub(super) type Reader = EndianArcSlice<RunTimeEndian>;
