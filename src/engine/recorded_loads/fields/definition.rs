//! The instruction that gave a register the value that it has at an instruction.

use super::super::code::Code;
use super::operand::Operand;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpAccess, OpKind, Register};
use isa::code::Inst;
use isa::flow::{Edge, Flow};
use profile::address_space::ModuleAddress;

/// How a register got its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Definition {
    /// A copy of another register.
    Copy(Register),
    /// Loaded.
    Load(Operand),
    /// Computed as the address of an operand.
    Address(Operand),
}

/// Most blocks followed backwards.
const MOST_BLOCKS: usize = 16;

/// The definition of `register` before the instruction at `place`, and where it is; `None` if there are several, or
/// none that is followed.
pub(super) fn definition(
    place: ModuleAddress,
    register: Register,
    code: &mut Code,
) -> Option<(ModuleAddress, Definition)> {
    let flow = code.flow(place)?;
    let mut block = flow.block_at(place.address)?;
    let mut before = place.address;
    for _ in 0..MOST_BLOCKS {
        let own = flow.blocks.get(block)?;
        for (address, inst) in within(&flow, own.start, before).iter().rev() {
            if writes(inst, register) {
                let found = of(&inst.decoded, register)?;
                return Some((ModuleAddress { address: *address, ..place }, found));
            }
        }
        block = before_block(&flow, block, register)?;
        before = flow.blocks.get(block)?.end;
    }
    None
}

/// Instructions from `start` to `end`.
fn within(flow: &Flow, start: u64, end: u64) -> &[(u64, Inst)] {
    let at = |address: u64| flow.instructions.partition_point(|(own, _)| *own < address);
    flow.instructions.get(at(start)..at(end)).unwrap_or_default()
}

/// Whether an instruction changes a register; calls change those that the ABI does not preserve.
fn writes(inst: &Inst, register: Register) -> bool {
    use Register::{R12, R13, R14, R15, RBP, RBX, RSP};
    let is_call =
        matches!(inst.decoded.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
    if is_call && ![RBX, RBP, RSP, R12, R13, R14, R15].contains(&register) {
        return true;
    }
    inst.registers.iter().any(|used| {
        used.register().full_register() == register
            && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess)
    })
}

/// The one block that comes before: of the head of a loop that does not change the register, the one outside.
fn before_block(flow: &Flow, block: usize, register: Register) -> Option<usize> {
    let mut all: Vec<usize> = (0..flow.blocks.len())
        .filter(|from| flow.blocks[*from].edges.contains(&Edge::Block(block)))
        .collect();
    let around = flow.blocks.get(block)?.innermost.and_then(|number| flow.loops.get(number));
    if let Some(around) = around.filter(|around| around.head == block) {
        let changes =
            around.blocks.iter().filter_map(|number| flow.blocks.get(*number)).any(|own| {
                within(flow, own.start, own.end).iter().any(|(_, inst)| writes(inst, register))
            });
        if !changes {
            all.retain(|from| !around.blocks.contains(from));
        }
    }
    match all.as_slice() {
        [one] => Some(*one),
        _ => None,
    }
}

fn of(instruction: &Instruction, register: Register) -> Option<Definition> {
    if instruction.op_count() != 2 || instruction.op0_register().full_register() != register {
        return None;
    }
    let is_whole = instruction.op0_register() == register;
    let operand = || Operand::of(instruction);
    let constant = |displacement| Operand {
        base: None,
        index: None,
        scale: 1,
        is_relative: false,
        displacement,
    };
    let plus = |displacement| Operand { base: Some(register), ..constant(displacement) };
    match (instruction.mnemonic(), instruction.op1_kind()) {
        (Mnemonic::Mov, OpKind::Register) if is_whole => {
            Some(Definition::Copy(instruction.op1_register().full_register()))
        }
        (Mnemonic::Mov, OpKind::Memory) if is_whole => operand().map(Definition::Load),
        // Addresses of static data below 4 GiB are loaded into the lower half.
        (Mnemonic::Mov, OpKind::Immediate32 | OpKind::Immediate64 | OpKind::Immediate32to64) => {
            Some(Definition::Address(constant(instruction.immediate(1) as i64)))
        }
        (Mnemonic::Lea, OpKind::Memory) if is_whole => operand().map(Definition::Address),
        (Mnemonic::Add, OpKind::Immediate8to64 | OpKind::Immediate32to64) => {
            Some(Definition::Address(plus(instruction.immediate(1) as i64)))
        }
        (Mnemonic::Sub, OpKind::Immediate8to64 | OpKind::Immediate32to64) => {
            Some(Definition::Address(plus((instruction.immediate(1) as i64).checked_neg()?)))
        }
        (Mnemonic::Add, OpKind::Register) if is_whole => Some(Definition::Address(Operand {
            index: Some(instruction.op1_register().full_register()),
            ..plus(0)
        })),
        _ => None,
    }
}
