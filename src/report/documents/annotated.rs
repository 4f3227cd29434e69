//! The part of a report about one function's source: its lines with the assembly below each.

use super::report_code::EventPart;
use serde::{Deserialize, Serialize};
use tma::Address;

/// A function, line by line. Shares are of the function's samples, 0 to 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct AnnotatedFunction {
    /// Demangled name.
    pub function: String,
    /// File name of its module.
    pub module: String,
    /// First address, as in the ELF file.
    pub start: Address,
    /// End address, exclusive.
    pub end: Address,
    /// Share of all samples that are in it.
    pub share: f64,
    /// Its samples.
    pub samples: u64,
    /// Why lines or their text are missing; empty if none are.
    pub missing: Vec<String>,
    /// Its lines, file by file: the function's own file first, lines in order, then those of inlined code.
    /// Without lines in the program one row has all instructions.
    pub lines: Vec<SourceLine>,
    /// Limits that a reader must know.
    pub notes: Vec<String>,
}

/// A source line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceLine {
    /// Source file, as the program names it; absent where the line is not known.
    pub file: Option<String>,
    /// Line, from 1.
    pub line: Option<u32>,
    /// Its text; absent if the file was not found.
    pub text: Option<String>,
    /// Share of the function's samples.
    pub share: f64,
    /// Half width of its 95 % interval, sampling error only.
    pub error: f64,
    /// Samples.
    pub samples: u64,
    /// Whether no line has more.
    pub hottest: bool,
    /// Share of the samples of each event, where several were sampled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<EventPart>,
    /// Its instructions, in order of address.
    pub instructions: Vec<SourceInstruction>,
}

/// An instruction of a source line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceInstruction {
    /// Address, as in the ELF file.
    pub address: Address,
    /// Intel syntax.
    pub text: String,
    /// Share of the function's samples.
    pub share: f64,
    /// Samples.
    pub samples: u64,
}
