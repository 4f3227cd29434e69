//! What would lower a block's time: chains broken, instructions left out, each measured again.

use super::evidence::Found;
use super::variants::{preceded, without};
use super::{Explainer, Subject};
use crate::Result;
use crate::block::{Status, Values, WhatIf};
use crate::code::effects::{Place, Places, Role};
use crate::code::{Block, Inst};
use crate::deps::recurrence::Recurrence;
use crate::deps::{Code, Kind};
use iced_x86::{Code as Asm, Encoder, EncodingKind, Instruction, Register};

/// Chains that are tried, the slowest first.
const CHAINS: usize = 4;
/// Instructions that are tried.
const INSTRUCTIONS: usize = 32;

impl Explainer {
    /// The list, chains first.
    pub(super) fn what_if(&mut self, subject: &Subject<'_>, found: &Found) -> Result<Vec<WhatIf>> {
        let Some(values) = subject.report.values.clone() else { return Ok(Vec::new()) };
        let mut list = Vec::new();
        for chain in found.analysis.recurrences.iter().take(CHAINS) {
            list.push(self.broken(subject.block, chain, &values, &found.code)?);
        }
        let droppable = droppable(found);
        for index in droppable.into_iter().take(INSTRUCTIONS) {
            let Some(rest) = without(subject.block, index) else { continue };
            let change = format!("without `{}`", subject.block.instructions[index].text);
            list.push(self.changed(change, &rest, &values)?);
        }
        Ok(list)
    }

    /// The block with a chain cut where it comes back.
    fn broken(
        &mut self,
        block: &Block,
        chain: &Recurrence,
        values: &Values,
        code: &Code,
    ) -> Result<WhatIf> {
        let ends = chain.path.iter().filter(|way| way.delta > 0);
        let places: Option<Vec<Place>> = ends.map(|way| way.place).collect();
        let steps: Vec<String> = chain.path.iter().map(|way| code.text(way.reader)).collect();
        let named = format!("chain of {:.2} cycles ({})", chain.cycles, steps.join(" → "));
        let cut = places.and_then(|all| {
            let cuts: Option<Vec<_>> = all.iter().map(|p| cut(*p, values, block)).collect();
            preceded(&cuts?.concat(), block)
        });
        match cut {
            Some(variant) => self.changed(format!("{named} broken"), &variant, values),
            None => Ok(WhatIf {
                change: format!("{named} broken"),
                cycles: None,
                low: None,
                high: None,
                reason: Some(match chain.path.iter().any(|w| w.kind == Kind::Memory) {
                    true => "it passes through memory: each copy would need addresses of its own"
                        .to_owned(),
                    false => "no instruction sets its register without reading it".to_owned(),
                }),
            }),
        }
    }

    fn changed(&mut self, change: String, variant: &Block, values: &Values) -> Result<WhatIf> {
        let report = self.bench.block(&variant.bytes, values)?;
        let throughput = report.throughput.filter(|_| report.status == Status::Ok);
        Ok(WhatIf {
            change,
            cycles: throughput.as_ref().map(|t| t.cycles),
            low: throughput.as_ref().map(|t| t.low),
            high: throughput.as_ref().map(|t| t.high),
            reason: report.reason.filter(|_| throughput.is_none()),
        })
    }
}

/// An instruction that gives `place` a value anew: a general-purpose register the one that it
/// starts with, a vector 0, flags anything.
fn cut(place: Place, values: &Values, block: &Block) -> Option<Vec<u8>> {
    let made = if place.is_flag() {
        Instruction::with2(Asm::Test_rm32_r32, Register::ESP, Register::ESP).ok()?
    } else if let Some(number) = place.as_gpr() {
        let (value, number) = (values.registers[usize::from(number)], u32::from(number));
        match u32::try_from(value) {
            Ok(short) => Instruction::with2(Asm::Mov_r32_imm32, Register::EAX + number, short),
            Err(_) => Instruction::with2(Asm::Mov_r64_imm64, Register::RAX + number, value),
        }
        .ok()?
    } else {
        let number = place.index().checked_sub(Place::vector(0).index()).filter(|n| *n < 16)?;
        let register = Register::XMM0 + u32::try_from(number).ok()?;
        let is_legacy = |i: &Inst| i.decoded.op_code().encoding() == EncodingKind::Legacy;
        match block.instructions.iter().all(is_legacy) {
            true => Instruction::with2(Asm::Xorps_xmm_xmmm128, register, register).ok()?,
            false => {
                let code = Asm::VEX_Vxorps_xmm_xmm_xmmm128;
                Instruction::with3(code, register, register, register).ok()?
            }
        }
    };
    let mut encoder = Encoder::new(64);
    encoder.encode(&made, 0).ok()?;
    Some(encoder.take_buffer())
}

/// Instructions without which every access keeps its address: no address, and no value stored or
/// left to the final jump, comes of what they write, however far.
fn droppable(found: &Found) -> Vec<usize> {
    let code = &found.code;
    let count = code.effects.len();
    let mut needed = vec![false; count];
    let is_address = |reader: usize, place: Place| {
        let reads = &code.effects[reader].reads;
        reads.iter().any(|r| r.place == place && matches!(r.role, Role::Address(_)))
    };
    loop {
        let mut grew = false;
        for link in &found.analysis.links {
            let wanted = needed[link.reader] || is_address(link.reader, link.place);
            if wanted && !needed[link.writer] {
                needed[link.writer] = true;
                grew = true;
            }
        }
        // What is stored may be loaded again as an address.
        for carried in &found.analysis.memory.carried {
            if needed[carried.reader] && !needed[carried.writer] {
                needed[carried.writer] = true;
                grew = true;
            }
        }
        if !grew {
            break;
        }
    }
    let stack = Places::from_iter([Place::gpr(4)]);
    (0..count)
        .filter(|i| !needed[*i] && code.effects[*i].written().and(stack).is_empty())
        .filter(|_| count > 1)
        .collect()
}
