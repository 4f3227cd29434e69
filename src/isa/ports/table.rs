//! Tables of ports, lookup by instruction form, and instructions that need no port of their own.

use super::file::{File, Invalid};
use super::{PortSet, Uops, Use};
use crate::code::is_hint;
use crate::effects::{Access, Effects};
use crate::latency::{Address, Form, Mask, code_named};
use crate::names::{name, small};
use iced_x86::{ConditionCode, EncodingKind, FlowControl, Instruction, Mnemonic, OpKind};
use std::collections::HashMap;
use tma::{Core, Error, Result};

/// Limit on the ports of a table: the bound tries sets of them.
const MAX_PORTS: usize = 24;

/// The ports of a core and the µops of its instructions.
///
/// ```
/// use isa::code::parse_hex;
/// use isa::deps::Code;
/// use isa::ports::Ports;
/// use tma::Core;
///
/// let core = Core::modelled(&events::library(), "icl")?;
/// let ports = Ports::of(&core)?.expect("a table");
/// // imul rax, rbx; add rcx, [rdx]
/// let code = Code::of_bytes(&parse_hex("48 0f af c3, 48 03 0a")?, core.facts())?;
/// let uops = ports.uops(&code.instructions, &code.effects);
/// // uops.info, Ice Lake: 1*p1; 1*p0156+1*p23.
/// assert_eq!(ports.text(uops[0].as_ref().expect("a form of the table")), "p1");
/// assert_eq!(ports.text(uops[1].as_ref().expect("a form of the table")), "p0|p1|p5|p6 + p2|p3");
/// # Ok::<(), tma::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ports {
    names: Vec<String>,
    entries: Vec<Entry>,
    by_form: HashMap<Form, usize>,
    fused: Vec<String>,
    load: [Vec<Use>; 3],
    store: [Vec<Use>; 3],
    update_slots: f64,
    sources: Vec<String>,
}

#[derive(Debug, Clone)]
struct Entry {
    uses: Vec<Use>,
    slots: f64,
    complete: bool,
    source: usize,
}

impl Ports {
    /// The ports of `core`, if it has a table.
    pub fn of(core: &Core) -> Result<Option<Self>> {
        let Some((text, origin)) = &core.ports else { return Ok(None) };
        let table = Self::parse(text).map_err(|e| {
            Error::failed(format!("cannot read the table of ports {origin}"))
                .because(e)
                .hint("src/isa/ports/file.rs describes the format")
        })?;
        Ok(Some(table))
    }

    /// Parses a table.
    pub fn parse(text: &str) -> std::result::Result<Self, Invalid> {
        let file = File::parse(text)?;
        let (load, store) = (&file.load, &file.store);
        let accesses =
            [&load.gpr, &load.vector, &load.wide, &store.gpr, &store.vector, &store.wide];
        let names = port_names(file.uops.iter().map(|r| &r.ports).chain(accesses))?;
        let uses = |text: &String| uses(text, &names);
        let mut sources = Vec::new();
        let mut source = |key: &String| {
            let name = file.sources.get(key).ok_or_else(|| Invalid::Source(key.clone()))?;
            let known = sources.iter().position(|s| s == name);
            Ok::<_, Invalid>(known.unwrap_or_else(|| {
                sources.push(name.clone());
                sources.len() - 1
            }))
        };
        source(&load.source)?;
        source(&store.source)?;
        let (mut entries, mut by_form) = (Vec::new(), HashMap::new());
        for row in &file.uops {
            let (slots, complete) = (row.slots, row.complete);
            let source = source(&row.source)?;
            entries.push(Entry { uses: uses(&row.ports)?, slots, complete, source });
            for name in row.forms.split_whitespace() {
                let form = Form::parse(name).ok_or_else(|| Invalid::Form(name.to_owned()))?;
                if by_form.insert(form, entries.len() - 1).is_some() {
                    return Err(Invalid::Twice(name.to_owned()));
                }
            }
        }
        let load = [uses(&load.gpr)?, uses(&load.vector)?, uses(&load.wide)?];
        let store = [uses(&store.gpr)?, uses(&store.vector)?, uses(&store.wide)?];
        let (fused, update_slots) = (file.fused, file.store.update_slots);
        Ok(Self { names, entries, by_form, fused, load, store, update_slots, sources })
    }

    /// Names of the ports.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The µops of each instruction of a block; `None` where the table lacks its form.
    pub fn uops(&self, block: &[Instruction], effects: &[Effects]) -> Vec<Option<Uops>> {
        let one = |(at, (instruction, effects)): (usize, (&Instruction, &Effects))| {
            let next = block.get(at + 1).filter(|next| self.is_fused(instruction, next));
            let mut uops = self.own(instruction, effects)?;
            if next.is_some() {
                let uses = self.accesses(instruction, effects);
                uops = Uops { uses, slots: 0.0, without: Some("fused with the branch"), ..uops };
            }
            Some(uops)
        };
        block.iter().zip(effects).enumerate().map(one).collect()
    }

    /// The ports that µops can use: `p0|p1|p5|p6 + p2|p3`.
    pub fn text(&self, uops: &Uops) -> String {
        let one = |u: &Use| match u.amount {
            1.0 => self.set_name(u.ports),
            amount => format!("{amount}*{}", self.set_name(u.ports)),
        };
        uops.uses.iter().map(one).collect::<Vec<_>>().join(" + ")
    }

    /// The ports of a set: `p0|p1`.
    pub fn set_name(&self, ports: PortSet) -> String {
        let names = self.names.iter().enumerate().filter(|(n, _)| ports.has(*n));
        names.map(|(_, name)| name.as_str()).collect::<Vec<_>>().join("|")
    }

    fn is_fused(&self, instruction: &Instruction, next: &Instruction) -> bool {
        let name = small(instruction.mnemonic());
        self.fused.contains(&name) && fuses(instruction, next)
    }

    /// The µops of an instruction that is not fused with the next one.
    fn own(&self, instruction: &Instruction, effects: &Effects) -> Option<Uops> {
        if let Some(why) = without_port(instruction, effects) {
            let source = "done at renaming, by the facts of the event table".to_owned();
            return Some(Uops { uses: Vec::new(), slots: 1.0, without: Some(why), source });
        }
        let unknown = instruction.has_lock_prefix()
            || instruction.has_rep_prefix()
            || instruction.has_repne_prefix();
        let entry = self.entry(instruction).filter(|_| !unknown)?;
        let mut uses = entry.uses.clone();
        let mut slots = entry.slots;
        if !entry.complete {
            uses.extend(self.accesses(instruction, effects));
            let updates = effects.memory.iter().any(|m| m.load && m.store);
            slots += if updates { self.update_slots } else { 0.0 };
        }
        Some(Uops { uses, slots, without: None, source: self.sources[entry.source].clone() })
    }

    /// Loads and stores.
    fn accesses(&self, instruction: &Instruction, effects: &Effects) -> Vec<Use> {
        let class = |access: &Access| match access.bytes {
            64 => 2,
            _ => usize::from((0..instruction.op_count()).any(|at| {
                let register = instruction.op_register(at);
                register.is_vector_register() || register.is_k()
            })),
        };
        let mut uses = Vec::new();
        for access in &effects.memory {
            if access.load {
                uses.extend(&self.load[class(access)]);
            }
            if access.store {
                uses.extend(&self.store[class(access)]);
            }
        }
        if is_hint(instruction.mnemonic()) && effects.memory.is_empty() {
            uses.extend(&self.load[0]);
        }
        uses
    }

    fn entry(&self, instruction: &Instruction) -> Option<&Entry> {
        let form = Form { mask: Mask::None, ..Form::of(instruction) };
        let form = match instruction.mnemonic() {
            Mnemonic::Lea => form,
            _ => Form { address: Address::Based, ..form },
        };
        let known = |form: Form| {
            let register = Form { memory: false, ..form };
            self.by_form.get(&form).or_else(|| self.by_form.get(&register))
        };
        let found = known(form).or_else(|| {
            let code = vex(form)?;
            known(Form { code, ..form })
        });
        found.map(|at| &self.entries[*at])
    }
}

/// The VEX code of the same operation on the same registers.
fn vex(form: Form) -> Option<iced_x86::Code> {
    if form.code.encoding() != EncodingKind::EVEX {
        return None;
    }
    let name = name(form.code);
    let part = |part: &str| match part {
        "EVEX" => Some("VEX".to_owned()),
        "k1" | "k1z" | "er" | "sae" => None,
        part => {
            // `xmmm128b32`: with a broadcast of 32 bits.
            let broadcast = part.rfind('b').filter(|at| *at > 4 && part.contains("mmm"));
            Some(part[..broadcast.unwrap_or(part.len())].to_owned())
        }
    };
    code_named(&name.split('_').filter_map(part).collect::<Vec<_>>().join("_"))
}

/// All ports, in the order of their numbers.
fn port_names<'a>(
    texts: impl Iterator<Item = &'a String>,
) -> std::result::Result<Vec<String>, Invalid> {
    let mut names: Vec<(String, u32)> = Vec::new();
    for kind in texts.flat_map(|text| text.split_whitespace()) {
        for name in kind.split('*').next().unwrap_or_default().split('|') {
            let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            let key = (name[..name.len() - digits.len()].to_owned(), digits.parse().unwrap_or(0));
            if !names.contains(&key) {
                names.push(key);
            }
        }
    }
    // Dividers are units at a port: last.
    names.sort_by_key(|(kind, number)| (kind.ends_with("div"), kind.clone(), *number));
    if names.len() > MAX_PORTS {
        return Err(Invalid::ManyPorts(names.len(), MAX_PORTS));
    }
    let write = |(kind, number): (String, u32)| match kind.ends_with("div") {
        true => kind,
        false => format!("{kind}{number}"),
    };
    Ok(names.into_iter().map(write).collect())
}

/// The µops that `text` names: `p0|p1*2 p5`.
fn uses(text: &str, names: &[String]) -> std::result::Result<Vec<Use>, Invalid> {
    let one = |kind: &str| {
        let (ports, amount) = kind.split_once('*').unwrap_or((kind, "1"));
        let amount: f64 = amount.parse().map_err(|_| Invalid::Number(amount.to_owned()))?;
        let mut set = 0;
        for port in ports.split('|') {
            let at = names.iter().position(|n| n == port);
            set |= 1 << at.ok_or_else(|| Invalid::Port(port.to_owned()))?;
        }
        (amount > 0.0 && amount.is_finite())
            .then_some(Use { ports: PortSet(set), amount })
            .ok_or_else(|| Invalid::Amount(kind.to_owned()))
    };
    text.split_whitespace().map(one).collect()
}

/// Why renaming completes the instruction, if it does.
fn without_port(instruction: &Instruction, effects: &Effects) -> Option<&'static str> {
    if effects.may_be_eliminated {
        return Some("eliminated at renaming");
    }
    // All-ones idioms, `sbb` and `cmp` break the dependency but execute.
    (effects.breaks_dependency && gives_zero(instruction.mnemonic())).then_some("zero idiom")
}

fn gives_zero(mnemonic: Mnemonic) -> bool {
    const ZERO: [&str; 8] = ["xor", "sub", "pxor", "xorp", "psub", "pcmpgt", "pandn", "andnp"];
    let name = small(mnemonic);
    let plain = name.strip_prefix('v').unwrap_or(&name);
    ZERO.iter().any(|zero| plain.starts_with(zero))
}

/// Whether decoding fuses `instruction`, whose mnemonic the core can fuse, with the conditional
/// branch `next`. Intel's optimization manual, "Macro-fusion": no memory destination, no memory
/// operand together with an immediate; after `cmp`, `add` and `sub` no branch on sign, overflow or
/// parity; after `inc` and `dec` no branch on the carry either. AMD's cores fuse more branches, which
/// compilers do not emit.
fn fuses(instruction: &Instruction, next: &Instruction) -> bool {
    use ConditionCode as C;
    if next.flow_control() != FlowControl::ConditionalBranch || !next.is_jcc_short_or_near() {
        return false;
    }
    let kind = |at| instruction.op_kind(at);
    let compares = matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test);
    let memory = (0..instruction.op_count()).any(|at| kind(at) == OpKind::Memory);
    let immediate = (0..instruction.op_count())
        .any(|at| !matches!(kind(at), OpKind::Memory | OpKind::Register));
    if memory && (immediate || !compares && kind(0) == OpKind::Memory) {
        return false;
    }
    let condition = next.condition_code();
    let signs = matches!(condition, C::o | C::no | C::s | C::ns | C::p | C::np);
    let carry = matches!(condition, C::b | C::ae | C::be | C::a);
    match instruction.mnemonic() {
        Mnemonic::Cmp | Mnemonic::Add | Mnemonic::Sub => !signs,
        Mnemonic::Inc | Mnemonic::Dec => !signs && !carry,
        _ => true,
    }
}
