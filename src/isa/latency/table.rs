//! Shipped latency tables, resolved to iced-x86's instruction codes.

use super::table_file::{DeferredAdd, File, Invalid, Lea, Load, Row, Values};
use super::{Forward, Input, Latency, Output};
use crate::effects::Effects;
use crate::names::{name, small};
use iced_x86::{Code, Instruction, Mnemonic, Register};
use std::collections::{BTreeMap, HashMap};

#[derive(Debug)]
pub(super) struct Table {
    entries: Vec<Entry>,
    /// For each code, the number of its entry counted from 1, or 0.
    by_code: Vec<u16>,
    load: Load,
    lea: Lea,
    high_byte: Option<Latency>,
    deferred_add: Option<DeferredAdd>,
    forwarding: BTreeMap<Forward, Latency>,
}

#[derive(Debug)]
struct Entry {
    values: Values,
    source: &'static str,
}

impl Table {
    /// Parses a table.
    pub fn parse(text: &str) -> Result<Self, Invalid> {
        let file = File::parse(text)?;
        let by_code = resolve(&file.latency)?;
        let source = file.forwarding.source.0;
        let mut forwarding = BTreeMap::new();
        for (class, range) in &file.forwarding.classes {
            let known = Forward::ALL.into_iter().find(|f| f.name() == class);
            let unknown = || Invalid::Unknown("forwarding class", class.clone());
            forwarding.insert(known.ok_or_else(unknown)?, range.latency(source));
        }
        let rows = file.latency.into_iter();
        Ok(Self {
            entries: rows.map(|r| Entry { values: r.values, source: r.source.0 }).collect(),
            by_code,
            load: file.load,
            lea: file.lea,
            high_byte: file.high_byte.map(|high| high.cycles.latency(high.source.0)),
            deferred_add: file.deferred_add,
            forwarding,
        })
    }

    /// From an operand to a result, without memory accesses.
    pub fn execution(&self, instruction: &Instruction, from: Input, to: Output) -> Option<Latency> {
        if instruction.mnemonic() == Mnemonic::Lea {
            return Some(lea(&self.lea, instruction));
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
            (Input::Merged, _) => values.merged.unwrap_or(values.register),
            _ => values.register,
        };
        let found = range.latency(entry.source);
        Some(match values.alone.filter(|_| from != Input::Flags && to != Output::Flags) {
            Some(alone) => found.at_least(alone),
            None => found,
        })
    }

    /// The latency where few instructions wait in the scheduler, if that is less than in chains.
    pub fn alone(&self, instruction: &Instruction) -> Option<f64> {
        self.entry(instruction)?.values.alone
    }

    fn entry(&self, instruction: &Instruction) -> Option<&Entry> {
        let number = *self.by_code.get(instruction.code() as usize)?;
        self.entries.get(usize::from(number).checked_sub(1)?)
    }

    /// For an instruction with a shorter latency after a producer of its own kind: that latency if
    /// `producer` is of that kind, and the usual one.
    pub fn back_to_back(
        &self,
        producer: &Instruction,
        instruction: &Instruction,
    ) -> Option<(Option<Latency>, Latency)> {
        let entry = self.entry(instruction)?;
        let short = entry.values.back_to_back?.latency(entry.source);
        let same_kind = self.entry(producer).is_some_and(|e| e.values.back_to_back.is_some());
        Some((same_kind.then_some(short), entry.values.register.latency(entry.source)))
    }

    /// Extra latencies after additions done at renaming.
    pub fn deferred_add(&self) -> Option<&DeferredAdd> {
        self.deferred_add.as_ref()
    }

    /// Load-to-use latency: from the address to the loaded value.
    pub fn load(&self, instruction: &Instruction, effects: &Effects) -> Latency {
        let indexed = effects.memory.iter().find(|m| m.load && m.index != Register::None);
        let is_scaled = indexed.is_some() && instruction.memory_index_scale() > 1;
        let vector = instruction.op0_register().is_vector_register()
            || instruction.op1_register().is_vector_register();
        let load = &self.load;
        let (range, own) = match load.unscaled.filter(|_| !is_scaled) {
            _ if vector => (load.vector, load.vector_source),
            Some(unscaled) if indexed.is_some() => (unscaled, None),
            _ if indexed.is_some() => (load.indexed, load.indexed_source),
            _ => (load.gpr, None),
        };
        range.latency(own.unwrap_or(load.source).0)
    }

    /// From a store's data to the result of the load that it is forwarded to.
    pub fn forwarding(&self, forward: Forward) -> Option<Latency> {
        self.forwarding.get(&forward).copied()
    }
}

/// By the components of the address.
fn lea(table: &Lea, instruction: &Instruction) -> Latency {
    let index = instruction.memory_index() != Register::None;
    let base = instruction.memory_base() != Register::None;
    let displaced = instruction.memory_displacement64() != 0;
    let scaled = index && instruction.memory_index_scale() > 1;
    let range = match () {
        () if scaled && displaced => table.scaled_displaced,
        () if scaled => table.scaled,
        () if index && base && displaced => table.three,
        () => table.plain,
    };
    range.latency(table.source.0)
}

fn uses_high_byte(instruction: &Instruction) -> bool {
    let high = |r| matches!(r, Register::AH | Register::BH | Register::CH | Register::DH);
    high(instruction.op0_register()) || high(instruction.op1_register())
}

/// The entry number of each code: the last entry that lists its mnemonic and whose classes are all
/// among its operands.
fn resolve(rows: &[Row]) -> Result<Vec<u16>, Invalid> {
    let mut rows_of: HashMap<&str, Vec<u16>> = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        let number = u16::try_from(at + 1).map_err(|_| Invalid::ManyEntries)?;
        for mnemonic in &row.mnemonics {
            rows_of.entry(mnemonic).or_default().push(number);
        }
    }
    let mut found = vec![0; Code::values().len()];
    for code in Code::values() {
        let mnemonic = small(code.mnemonic());
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

/// The classes of a code's operands, from the names of iced-x86's operand kinds.
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
        let name = name(*kind);
        let found = PREFIXES.iter().find(|(prefix, _)| name.starts_with(prefix));
        classes.extend(found.iter().flat_map(|(_, classes)| classes.iter().copied()));
    }
    classes
}
