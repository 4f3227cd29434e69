//! Finds how calls of counted functions nest, and for how many loads of its own block a branch waits.
//!
//! Calls and returns follow from recorded entries: a function called with a stack pointer not above that of a later
//! entry has returned before it. Returns are mispredicted only where calls nest deeply, which takes functions that
//! may call themselves, directly or through others of the same set.

use branches::predictor::{Branch, Kind};
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};
use probe::count::Wanted;
use probe::facts::{Function, Module};
use probe::plan::{Request, What};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// The address of all calls for the model, which has no row for them.
const CALLS: u64 = 0;

/// The calls of one thread that have not returned, as far as known.
#[derive(Debug, Default)]
pub struct Nesting {
    frames: Vec<Frame>,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    stack: u64,
    back: u64,
    address: u64,
}

impl Nesting {
    /// Adds the returns before an entry of the function that the model has at `address`, and its call.
    pub fn enter(&mut self, address: u64, value: u64, branches: &mut Vec<Branch>) {
        let (stack, back) = ((value & !0xffff).swap_bytes(), value & 0xffff);
        while let Some(frame) = self.frames.pop_if(|frame| frame.stack <= stack) {
            let kind = Kind::Return { target: frame.back };
            branches.push(Branch { address: frame.address, kind });
        }
        self.frames.push(Frame { stack, back, address });
        branches.push(Branch { address: CALLS, kind: Kind::Call { back } });
    }
}

/// The request to record entries of a function.
pub fn entered(function: &Function) -> Option<Request> {
    let first = function.blocks.first().filter(|block| block.start == function.range.start)?;
    let mut all = first.instructions.iter();
    let at = all.find(|i| i.mnemonic() != Mnemonic::Endbr64)?.ip();
    Some(Request { at, what: What::Entered })
}

/// The numbers of functions on a cycle of direct calls and jumps, and of some between such cycles.
pub fn recursive(wanted: &[Wanted]) -> BTreeSet<usize> {
    let mut starts: BTreeMap<(&PathBuf, u64), usize> = BTreeMap::new();
    for (number, of) in wanted.iter().enumerate() {
        starts.insert((&of.path, of.range.start), number);
    }
    let paths: BTreeSet<&PathBuf> = wanted.iter().map(|of| &of.path).collect();
    let mut edges: Vec<(usize, usize)> = Vec::new();
    for path in paths {
        let Ok(module) = Module::read(path) else { continue };
        let own = wanted.iter().enumerate().filter(|(_, of)| of.path == *path);
        for (number, of) in own {
            let Some(code) = module.code(of.range.clone()) else { continue };
            let decoder = Decoder::with_ip(64, code, of.range.start, DecoderOptions::NONE);
            let near = decoder.into_iter().filter(|i| i.op0_kind() == OpKind::NearBranch64);
            // To the own start only calls: a jump there is a loop.
            let calls =
                near.filter(|i| i.is_call_near() || !of.range.contains(&i.near_branch_target()));
            let callees = calls.filter_map(|i| starts.get(&(path, i.near_branch_target())));
            edges.extend(callees.map(|callee| (number, *callee)));
        }
    }
    on_cycles(edges)
}

/// The nodes that are left when all that nothing leads to, or that lead to nothing, are taken away.
fn on_cycles(mut edges: Vec<(usize, usize)>) -> BTreeSet<usize> {
    loop {
        let from: BTreeSet<usize> = edges.iter().map(|edge| edge.0).collect();
        let to: BTreeSet<usize> = edges.iter().map(|edge| edge.1).collect();
        let before = edges.len();
        edges.retain(|(a, b)| to.contains(a) && from.contains(b));
        if edges.len() == before {
            return from;
        }
    }
}

/// Loads of the block, one after another, that its last instruction, a branch, waits for; with its own.
pub fn loads(block: &[Instruction]) -> u32 {
    let mut factory = InstructionInfoFactory::new();
    let mut behind = Behind::default();
    let mut waits = 0;
    for instruction in block {
        let flags = instruction.rflags_read();
        let inputs = read(&mut factory, instruction);
        waits = behind.most(&inputs, flags) + u32::from(has_load(&mut factory, instruction));
        if matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
            // A call's result was loaded elsewhere, if at all.
            behind = Behind::default();
        }
        behind.write(&written(&mut factory, instruction), instruction.rflags_modified(), waits);
    }
    waits
}

/// How many loads of the block, one after another, lead to what is in a register or flag.
#[derive(Default)]
struct Behind {
    registers: BTreeMap<Register, u32>,
    flags: BTreeMap<u32, u32>,
}

impl Behind {
    fn most(&self, registers: &BTreeSet<Register>, flags: u32) -> u32 {
        let of_registers = registers.iter().filter_map(|register| self.registers.get(register));
        let of_flags = bits(flags).filter_map(|flag| self.flags.get(&flag));
        of_registers.chain(of_flags).copied().max().unwrap_or(0)
    }

    fn write(&mut self, registers: &BTreeSet<Register>, flags: u32, loads: u32) {
        self.registers.extend(registers.iter().map(|register| (*register, loads)));
        self.flags.extend(bits(flags).map(|flag| (flag, loads)));
    }
}

/// The single bits that are set.
fn bits(all: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).map(|n| 1 << n).filter(move |bit| all & bit != 0)
}

fn has_load(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> bool {
    let loads = |access| !matches!(access, OpAccess::Write | OpAccess::NoMemAccess);
    // The return address is predicted.
    instruction.flow_control() != FlowControl::Return
        && factory.info(instruction).used_memory().iter().any(|m| loads(m.access()))
}

fn read(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> BTreeSet<Register> {
    registers(factory, instruction, |access| {
        !matches!(access, OpAccess::Write | OpAccess::CondWrite | OpAccess::NoMemAccess)
    })
}

fn written(factory: &mut InstructionInfoFactory, instruction: &Instruction) -> BTreeSet<Register> {
    registers(factory, instruction, |access| !matches!(access, OpAccess::Read | OpAccess::CondRead))
}

fn registers(
    factory: &mut InstructionInfoFactory,
    instruction: &Instruction,
    is_so: impl Fn(OpAccess) -> bool,
) -> BTreeSet<Register> {
    let used = factory.info(instruction).used_registers();
    used.iter().filter(|r| is_so(r.access())).map(|r| r.register().full_register()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};
    use isa::code::parse_hex;

    /// By hand: f calls g twice at depth 1, then f is called anew.
    #[test]
    fn entries_tell_what_has_returned() {
        let (mut nesting, mut all) = (Nesting::default(), Vec::new());
        let value = |stack: u64, back: u64| stack.swap_bytes() | back;
        for (address, stack, back) in [
            (1, 0x7ff0_0000_1000, 0x10),
            (2, 0x7ff0_0000_0f00, 0x20),
            (2, 0x7ff0_0000_0f00, 0x24),
            (1, 0x7ff0_0000_1000, 0x14),
        ] {
            nesting.enter(address, value(stack, back), &mut all);
        }
        let call = |back| Branch { address: CALLS, kind: Kind::Call { back } };
        let back = |address, target| Branch { address, kind: Kind::Return { target } };
        let expected = [
            call(0x10),
            call(0x20),
            back(2, 0x20),
            call(0x24),
            back(2, 0x24),
            back(1, 0x10),
            call(0x14),
        ];
        assert_eq!(all, expected);
    }

    #[test]
    fn what_leads_to_a_cycle_is_not_on_it() {
        // 0 → 1 ⇄ 2 → 3; 4 → 4.
        let edges = vec![(0, 1), (1, 2), (2, 1), (2, 3), (4, 4)];
        assert_eq!(on_cycles(edges), BTreeSet::from([1, 2, 4]));
        assert!(on_cycles(vec![(0, 1), (1, 2)]).is_empty());
    }

    fn waits(hex: &str) -> u32 {
        let code = parse_hex(hex).unwrap();
        let decoder = Decoder::with_ip(64, &code, 0x1000, DecoderOptions::NONE);
        loads(&decoder.into_iter().collect::<Vec<_>>())
    }

    /// By hand.
    #[test]
    fn a_branch_waits_for_what_its_flags_come_from() {
        // movzx eax,byte [rdi]; test al,1; jne
        assert_eq!(waits("0f b6 07, a8 01, 75 00"), 1);
        // cmp byte [rdi],0; mov rax,rsi; jne
        assert_eq!(waits("80 3f 00, 48 89 f0, 75 00"), 1);
        // mov rax,[rdi]; add rbx,rax; sub rbx,rcx; jne
        assert_eq!(waits("48 8b 07, 48 01 c3, 48 29 cb, 75 00"), 1);
        // mov rax,[rdi]; cmp dword [rax],0; jne
        assert_eq!(waits("48 8b 07, 83 38 00, 75 00"), 2);
        // mov rax,[rdi]; test ecx,ecx; jne: it loads for others
        assert_eq!(waits("48 8b 07, 85 c9, 75 00"), 0);
        // mov rax,[rdi]; mov eax,5; cmp rax,rcx; jne: overwritten
        assert_eq!(waits("48 8b 07, b8 05 00 00 00, 48 39 c8, 75 00"), 0);
        // mov [rdi],rax; and edx,4; je
        assert_eq!(waits("48 89 07, 83 e2 04, 74 00"), 0);
        assert_eq!((waits("75 00"), loads(&[])), (0, 0));
    }

    /// By hand, the code of gcc 12 for `switch (d[i])` and `o[d[i]].table->act(…)`.
    #[test]
    fn targets_wait_for_the_loads_that_lead_to_them() {
        // movzx ecx,byte [rdi+rdx]; movsxd rcx,[rsi+rcx*4]; add rcx,rsi; jmp rcx
        assert_eq!(waits("0f b6 0c 17, 48 63 0c 8e, 48 01 f1, ff e1"), 2);
        // movzx edi,byte [rbx]; add rbx,1; shl rdi,4; add rdi,rbp; mov rax,[rdi]; call [rax]
        assert_eq!(waits("0f b6 3b, 48 83 c3 01, 48 c1 e7 04, 48 01 ef, 48 8b 07, ff 10"), 3);
        // mov rax,[rdi]; call [rip]: the first load is for others
        assert_eq!(waits("48 8b 07, ff 15 00 00 00 00"), 1);
    }
}
