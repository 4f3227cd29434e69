//! The tables in `events/latency/`: their format, and looking values up.
//!
//! ```toml
//! schema = 1
//!
//! [sources]                           # named by the entries below
//! llvm = "LLVM 14.0.6, scheduling model of znver3"
//!
//! [load]                              # from an address to the loaded value, the cache having it
//! gpr = 4
//! indexed = 5                         # with an index register
//! vector = 7
//! source = "notes"
//!
//! [lea]                               # by the shape of the address
//! plain = 1                           # base, base + displacement, base + index
//! three = 2                           # base + index + displacement
//! scaled = 1                          # index × 2, 4 or 8
//! scaled_displaced = 2
//! source = "notes"
//!
//! [high_byte]                         # of ah, bh, ch, dh; absent: as any other
//! cycles = 3
//! source = "measured"
//!
//! [pending]                           # behind an addition done by renaming (`pending`); absent: 0
//! store = 1
//! shift = 2
//! cmov = 1
//! source = "measured"
//!
//! [forwarding]
//! stack = [0, 1]                      # a range where it depends on circumstances
//! source = "notes"
//!
//! [[latency]]                         # later entries go before earlier ones
//! mnemonics = ["add", "sub"]
//! class = "gpr imm"                   # all of these among the operands; absent: any
//! register = 1                        # from a register or loaded value to the result
//! kept = 1                            # from a value kept in part; absent: as `register`
//! from_flags = 1                      # from flags to the result; absent: as `register`
//! to_flags = 1                        # to flags; absent: as `register`
//! flags = 1                           # from flags to flags; absent: as `to_flags`
//! chained = 2                         # `register` of one right behind another with this key
//! source = "llvm"
//! ```
//!
//! Classes: `gpr` with `gpr8`, `gpr16`, `gpr32`, `gpr64`; `xmm`, `ymm`, `zmm`, `mm`, `k`, `x87`;
//! `imm`, `cl`.

use super::model::{Forward, Input, Latency, Output, Source};
use super::pending::Pending;
use super::source_name::{Name, intern};
use crate::effects::Effects;
use iced_x86::{Code, Instruction, Mnemonic, Register};
use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};

/// One of them, resolved to forms.
#[derive(Debug)]
pub(super) struct Table {
    entries: Vec<Entry>,
    /// For each code, the number of its entry counted from 1, or 0.
    by_code: Vec<u16>,
    load: Load,
    lea: Lea,
    high_byte: Option<Latency>,
    pending: Option<Pending>,
    forwarding: BTreeMap<Forward, Latency>,
}

#[derive(Debug)]
struct Entry {
    values: Values,
    source: &'static str,
}

impl Table {
    /// A table from its text.
    ///
    /// # Errors
    /// Why it is not sound.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse(text)
    }

    /// From operands to results, memory left out.
    pub fn execution(&self, instruction: &Instruction, from: Input, to: Output) -> Option<Latency> {
        if instruction.mnemonic() == Mnemonic::Lea {
            return Some(self.lea.of(instruction));
        }
        if let Some(merging) = self.high_byte.filter(|_| uses_high_byte(instruction)) {
            return Some(merging);
        }
        let entry = self.entry(instruction)?;
        let values = &entry.values;
        let to_flags = values.to_flags.unwrap_or(values.register);
        let range = match (from, to) {
            (Input::Flags, Output::Flags) => values.flags.unwrap_or(to_flags),
            (Input::Flags, _) => values.from_flags.unwrap_or(values.register),
            (_, Output::Flags) => to_flags,
            (Input::Merged, _) => values.kept.unwrap_or(values.register),
            _ => values.register,
        };
        Some(range.latency(entry.source))
    }

    fn entry(&self, instruction: &Instruction) -> Option<&Entry> {
        let number = *self.by_code.get(instruction.code() as usize)?;
        self.entries.get(usize::from(number).checked_sub(1)?)
    }

    /// Of an instruction that is quicker behind one of its kind: what it takes behind `producer`
    /// if that is of its kind, and what it takes else.
    pub fn chained(
        &self,
        producer: &Instruction,
        instruction: &Instruction,
    ) -> Option<(Option<Latency>, Latency)> {
        let entry = self.entry(instruction)?;
        let quick = entry.values.chained?.latency(entry.source);
        let behind = self.entry(producer).is_some_and(|e| e.values.chained.is_some());
        Some((behind.then_some(quick), entry.values.register.latency(entry.source)))
    }

    /// What additions done by renaming leave to be done.
    pub fn pending(&self) -> Option<&Pending> {
        self.pending.as_ref()
    }

    /// From an address to the loaded value.
    pub fn load(&self, instruction: &Instruction, effects: &Effects) -> Latency {
        let indexed = effects.memory.iter().any(|m| m.load && m.index != Register::None);
        let vector = instruction.op0_register().is_vector_register()
            || instruction.op1_register().is_vector_register();
        let range = match () {
            () if vector => self.load.vector,
            () if indexed => self.load.indexed,
            () => self.load.gpr,
        };
        range.latency(self.load.source.0)
    }

    /// From a store's data to its load's result.
    pub fn forwarding(&self, forward: Forward) -> Option<Latency> {
        self.forwarding.get(&forward).copied()
    }
}

/// A number of cycles, or least and most.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Range {
    One(f64),
    Two([f64; 2]),
}

impl Range {
    fn latency(self, source: &'static str) -> Latency {
        let [low, high] = match self {
            Self::One(cycles) => [cycles, cycles],
            Self::Two(range) => range,
        };
        Latency { low, high, source: Source::Table(source) }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    sources: HashMap<String, String>,
    load: Load,
    lea: Lea,
    high_byte: Option<HighByte>,
    pending: Option<Pending>,
    forwarding: ForwardingTable,
    latency: Vec<Row>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Load {
    gpr: Range,
    indexed: Range,
    vector: Range,
    source: Name,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Lea {
    plain: Range,
    three: Range,
    scaled: Range,
    scaled_displaced: Range,
    source: Name,
}

impl Lea {
    fn of(&self, instruction: &Instruction) -> Latency {
        let index = instruction.memory_index() != Register::None;
        let base = instruction.memory_base() != Register::None;
        let displaced = instruction.memory_displacement64() != 0;
        let scaled = index && instruction.memory_index_scale() > 1;
        let range = match () {
            () if scaled && displaced => self.scaled_displaced,
            () if scaled => self.scaled,
            () if index && base && displaced => self.three,
            () => self.plain,
        };
        range.latency(self.source.0)
    }
}

#[derive(Debug, Deserialize)]
struct ForwardingTable {
    source: Name,
    #[serde(flatten)]
    classes: BTreeMap<String, Range>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HighByte {
    cycles: Range,
    source: Name,
}

fn uses_high_byte(instruction: &Instruction) -> bool {
    let high = |r| matches!(r, Register::AH | Register::BH | Register::CH | Register::DH);
    high(instruction.op0_register()) || high(instruction.op1_register())
}

/// An entry's values; what they are is told above.
#[derive(Debug, Clone, Deserialize)]
struct Values {
    register: Range,
    kept: Option<Range>,
    from_flags: Option<Range>,
    to_flags: Option<Range>,
    flags: Option<Range>,
    chained: Option<Range>,
}

#[derive(Debug, Deserialize)]
struct Row {
    mnemonics: Vec<String>,
    #[serde(default)]
    class: String,
    source: String,
    #[serde(flatten)]
    values: Values,
}

/// A table from its text; why not, if it is not sound.
fn parse(text: &str) -> Result<Table, String> {
    let mut file: File = toml::from_str(text).map_err(|e| e.to_string())?;
    if file.schema != 1 {
        return Err(format!("schema {} is not 1", file.schema));
    }
    let name =
        |key: &str| file.sources.get(key).cloned().ok_or(format!("the source {key} is not named"));
    let keys = [file.load.source.0, file.lea.source.0, file.forwarding.source.0];
    let [load, lea, forwarding] = keys.map(name);
    let high_byte = match &file.high_byte {
        Some(high) => Some(high.cycles.latency(intern(&name(high.source.0)?))),
        None => None,
    };
    if let Some(pending) = &mut file.pending {
        let key = pending.source.0;
        let source = file.sources.get(key).ok_or(format!("the source {key} is not named"))?;
        pending.source = Name(intern(source));
    }
    let entries = file
        .latency
        .iter()
        .map(|row| Ok(Entry { values: row.values.clone(), source: intern(&name(&row.source)?) }))
        .collect::<Result<Vec<_>, String>>()?;
    let by_code = resolve(&file.latency)?;
    let forwarding_source = intern(&forwarding?);
    let (load, lea) = (load?, lea?);
    let mut classes = BTreeMap::new();
    for (class, range) in &file.forwarding.classes {
        let known = Forward::ALL.into_iter().find(|f| f.name() == class);
        let known = known.ok_or(format!("no class of forwarding {class}"))?;
        classes.insert(known, range.latency(forwarding_source));
    }
    (file.load.source, file.lea.source) = (Name(intern(&load)), Name(intern(&lea)));
    Ok(Table {
        entries,
        by_code,
        load: file.load,
        lea: file.lea,
        high_byte,
        pending: file.pending,
        forwarding: classes,
    })
}

/// Which entry each code has: the last that names its mnemonic and whose classes are among its
/// operands.
fn resolve(rows: &[Row]) -> Result<Vec<u16>, String> {
    let mut rows_of: HashMap<&str, Vec<u16>> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        let number = u16::try_from(at + 1).map_err(|_| "too many entries".to_owned())?;
        for mnemonic in &row.mnemonics {
            rows_of.entry(mnemonic).or_default().push(number);
        }
    }
    let mut found = vec![0; Code::values().len()];
    for code in Code::values() {
        let mnemonic = format!("{:?}", code.mnemonic()).to_ascii_lowercase();
        let Some(numbers) = rows_of.get(mnemonic.as_str()) else { continue };
        let classes = classes(code);
        let fits = |number: &&u16| {
            let wanted = &rows[usize::from(**number) - 1].class;
            wanted.split_whitespace().all(|class| classes.contains(&class))
        };
        found[code as usize] = numbers.iter().rev().find(fits).copied().unwrap_or(0);
    }
    Ok(found)
}

/// The classes of a code's operands, by the names of iced-x86's operand kinds.
fn classes(code: Code) -> Vec<&'static str> {
    const PREFIXES: [(&str, &[&str]); 17] = [
        ("r8", &["gpr", "gpr8"]),
        ("r16", &["gpr", "gpr16"]),
        ("r32", &["gpr", "gpr32"]),
        ("r64", &["gpr", "gpr64"]),
        ("al", &["gpr", "gpr8"]),
        ("ax", &["gpr", "gpr16"]),
        ("eax", &["gpr", "gpr32"]),
        ("rax", &["gpr", "gpr64"]),
        ("xmm", &["xmm"]),
        ("ymm", &["ymm"]),
        ("zmm", &["zmm"]),
        ("mm", &["mm"]),
        ("k_", &["k"]),
        ("kp1", &["k"]),
        ("st", &["x87"]),
        ("imm", &["imm"]),
        ("cl", &["cl"]),
    ];
    let mut classes = Vec::new();
    for kind in code.op_code().op_kinds() {
        let name = format!("{kind:?}");
        let found = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
        classes.extend(found.iter().flat_map(|(_, classes)| classes.iter().copied()));
    }
    classes
}
