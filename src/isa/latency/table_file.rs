//! The file format of the tables in `events/latency/`, and mistakes in files of latencies.
//!
//! ```toml
//! schema = 1
//!
//! [sources]                           # names that the entries below refer to
//! llvm = "LLVM 14.0.6, scheduling model of znver3"
//!
//! [load]                              # load-to-use latency for L1 hits
//! gpr = 4
//! indexed = 5                         # with an index register
//! unscaled = 4                        # that is not scaled; absent: as `indexed`
//! vector = 7
//! source = "notes"
//! indexed_source = "range"            # of scaled index registers; absent: as `source`
//! vector_source = "half"              # absent: as `source`
//!
//! [lea]                               # by the components of the address
//! plain = 1                           # base, base + displacement, base + index
//! three = 2                           # base + index + displacement
//! scaled = 1                          # index × 2, 4 or 8
//! scaled_displaced = 2
//! source = "notes"
//!
//! [high_byte]                         # operands ah, bh, ch, dh; absent: as other registers
//! cycles = 3
//! source = "measured"
//!
//! [pending]                           # after an addition done at renaming (`deferred_add`); absent: 0
//! store = 1
//! shift = 2
//! cmov = 1
//! source = "measured"
//!
//! [forwarding]                        # store-to-load forwarding, by class
//! stack = [0, 1]                      # a range if it depends on circumstances
//! source = "notes"
//!
//! [[latency]]                         # later entries override earlier ones
//! mnemonics = ["add", "sub"]
//! class = "gpr imm"                   # all of these must be among the operands; absent: any
//! register = 1                        # from a register or loaded value to the result
//! kept = 1                            # from a merged register; absent: as `register`
//! from_flags = 1                      # from flags to the result; absent: as `register`
//! to_flags = 1                        # to flags; absent: as `register`
//! flags = 1                           # from flags to flags; absent: as `to_flags`
//! chained = 2                         # `register` if the producer's entry also has this key
//! alone = 1                           # at least, where few instructions wait in the scheduler
//! source = "llvm"
//! ```
//!
//! Classes: `gpr` with `gpr8`, `gpr16`, `gpr32`, `gpr64`; `xmm`, `ymm`, `zmm`, `mm`, `k`, `x87`;
//! `imm`, `cl`.

use super::{Latency, Output, Source};
use iced_x86::{ConditionCode, Instruction, Mnemonic};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use tma::Cause;

/// A latency in cycles, or its minimum and maximum.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub(super) enum Range {
    One(f64),
    Two([f64; 2]),
}

impl Range {
    pub fn latency(self, source: &'static str) -> Latency {
        let [low, high] = match self {
            Self::One(cycles) => [cycles, cycles],
            Self::Two(range) => range,
        };
        Latency { low, high, source: Source::Table(source) }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    schema: u32,
    sources: HashMap<String, String>,
    pub load: Load,
    pub lea: Lea,
    pub high_byte: Option<HighByte>,
    #[serde(rename = "pending")]
    pub deferred_add: Option<DeferredAdd>,
    pub forwarding: ForwardingTable,
    pub latency: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Load {
    pub gpr: Range,
    pub indexed: Range,
    pub unscaled: Option<Range>,
    pub vector: Range,
    pub source: Name,
    pub indexed_source: Option<Name>,
    pub vector_source: Option<Name>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lea {
    pub plain: Range,
    pub three: Range,
    pub scaled: Range,
    pub scaled_displaced: Range,
    pub source: Name,
}

#[derive(Debug, Deserialize)]
pub(super) struct ForwardingTable {
    pub source: Name,
    #[serde(flatten)]
    pub classes: BTreeMap<String, Range>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HighByte {
    pub cycles: Range,
    pub source: Name,
}

/// The latencies of an entry, with the keys described above.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Values {
    pub register: Range,
    #[serde(rename = "kept")]
    pub merged: Option<Range>,
    pub from_flags: Option<Range>,
    pub to_flags: Option<Range>,
    pub flags: Option<Range>,
    #[serde(rename = "chained")]
    pub back_to_back: Option<Range>,
    pub alone: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Row {
    pub mnemonics: Vec<String>,
    #[serde(default)]
    pub class: String,
    pub source: Name,
    #[serde(flatten)]
    pub values: Values,
}

impl File {
    /// Parses a table and replaces the keys of sources by their names.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let mut file: Self = toml::from_str(text)?;
        if file.schema != 1 {
            return Err(Invalid::Schema(file.schema, 1));
        }
        let high_byte = file.high_byte.iter_mut().map(|high| &mut high.source);
        let deferred_add = file.deferred_add.iter_mut().map(|add| &mut add.source);
        let rows = file.latency.iter_mut().map(|row| &mut row.source);
        let tables = [&mut file.load.source, &mut file.lea.source, &mut file.forwarding.source];
        for source in tables.into_iter().chain(high_byte).chain(deferred_add).chain(rows) {
            let key = source.0;
            let name = file.sources.get(key);
            source.0 = intern(name.ok_or_else(|| Invalid::Source(key.to_owned()))?);
        }
        Ok(file)
    }
}

/// The key of a source in a table's `[sources]`; its full name once the table is parsed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name(pub(super) &'static str);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|name| Self(intern(&name)))
    }
}

/// Interns a source name for the lifetime of the program; there are only a few.
fn intern(name: &str) -> &'static str {
    static NAMES: std::sync::Mutex<Vec<&'static str>> = std::sync::Mutex::new(Vec::new());
    let mut names = NAMES.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(known) = names.iter().find(|n| **n == name) {
        return known;
    }
    let leaked: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.push(leaked);
    leaked
}

/// Additions deferred by renaming: Golden Cove does not execute additions of small constants but adds the constant
/// where the sum is used. Most consumers do that without extra latency; shifts, conditional moves and stores take
/// these extra cycles.
///
/// Measured in dependency chains of four instructions (tests/figures/native_chains.py). Slow shifts by
/// such a count are documented in "The Alder Lake SHLX anomaly", tavianator.com, 2025.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeferredAdd {
    store: f64,
    shift: f64,
    cmov: f64,
    /// The source of these values.
    pub source: Name,
}

impl DeferredAdd {
    /// Extra cycles of `instruction` if it reads a deferred sum.
    pub fn extra(&self, instruction: &Instruction, output: Output) -> f64 {
        match () {
            () if output == Output::Memory => self.store,
            () if shifts(instruction.mnemonic()) => self.shift,
            () if instruction.condition_code() != ConditionCode::None => self.cmov,
            () => 0.0,
        }
    }

    /// `latency` including the extra cycles.
    pub fn added_to(&self, latency: Latency, instruction: &Instruction, output: Output) -> Latency {
        let extra = self.extra(instruction, output);
        let source = match latency.source {
            Source::Table(_) if extra > 0.0 => Source::Table(self.source.0),
            other => other,
        };
        Latency { low: latency.low + extra, high: latency.high + extra, source }
    }
}

/// Whether `instruction` adds a constant, which renaming does if
/// [`Effects::may_be_eliminated`](crate::effects::Effects::may_be_eliminated) is set.
pub(super) fn adds_constant(instruction: &Instruction) -> bool {
    use Mnemonic::{Add, Dec, Inc, Lea, Sub};
    matches!(instruction.mnemonic(), Add | Sub | Inc | Dec | Lea)
}

fn shifts(mnemonic: Mnemonic) -> bool {
    use Mnemonic::{Bswap, Rol, Ror, Rorx, Sar, Sarx, Shl, Shlx, Shr, Shrx};
    matches!(mnemonic, Shl | Shr | Sar | Rol | Ror | Rorx | Shlx | Shrx | Sarx | Bswap)
}

/// A mistake in a shipped table or a calibration.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Invalid {
    /// It cannot be parsed.
    Toml(Cause<toml::de::Error>),
    /// Its schema, and the one that is known.
    Schema(u32, u32),
    /// A source that it does not name.
    Source(String),
    /// More entries than can be numbered.
    ManyEntries,
    /// A word of a kind (`form`, `input`) that has no such word.
    Unknown(&'static str, String),
    /// A latency and its spread, of which one is no time.
    Value(f64, f64),
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Toml(error) => error.fmt(f),
            Self::Schema(n, known) => write!(f, "schema {n} is not supported; expected {known}"),
            Self::Source(key) => write!(f, "the source {key} is not listed in [sources]"),
            Self::ManyEntries => f.write_str("too many entries"),
            Self::Unknown(kind, word) => write!(f, "unknown {kind} {word}"),
            Self::Value(cycles, spread) => write!(f, "{cycles} ± {spread} is not a valid latency"),
        }
    }
}

impl From<toml::de::Error> for Invalid {
    fn from(error: toml::de::Error) -> Self {
        Self::Toml(error.into())
    }
}
