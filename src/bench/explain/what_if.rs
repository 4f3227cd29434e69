//! What would lower a block's time: chains broken, instructions left out, each measured again.

use super::apart::{Apart, apart};
use super::budget::Waiting;
use super::cut::{cut, cuts};
use super::explainer::{Explainer, Subject};
use super::found::Found;
use super::variants::{preceded, without};
use crate::{Values, WhatIf};
use isa::code::Block;
use isa::deps::Kind;
use isa::deps::recurrence::Recurrence;
use isa::effects::{ArchReg, ArchRegSet, Role};
use tma::Result;

/// Chains that are tried, the slowest first.
const CHAINS: usize = 4;
/// Instructions that are tried.
const INSTRUCTIONS: usize = 32;

impl Explainer {
    /// The list, chains first.
    pub(super) fn what_if(&mut self, subject: &Subject<'_>, found: &Found) -> Result<Vec<WhatIf>> {
        let Some(values) = subject.measurement.values.clone() else { return Ok(Vec::new()) };
        let mut list = Vec::new();
        let mut waiting = Waiting::of(self.budget);
        let chains = found.analysis.recurrences.iter().take(CHAINS);
        let droppable: Vec<usize> = droppable(found).into_iter().take(INSTRUCTIONS).collect();
        let all = chains.len() + droppable.len();
        let mut step = 0;
        for chain in chains {
            step += 1;
            self.watch.begin(format!("what if {step} of {all}: a chain broken"));
            list.push(self.broken_chain(found, chain, subject.block, &values, &mut waiting)?);
        }
        // Chains of one length hide each other: breaking one of them gains nothing.
        let memory = |r: &&Recurrence| r.path.iter().any(|way| way.kind == Kind::Memory);
        if found.analysis.recurrences.iter().filter(|r| !memory(r)).count() > 1
            && let Some(all) = cuts(&found.analysis, &values, subject.block, &[])
            && let Some(variant) = preceded(&all, subject.block)
        {
            let change = "all chains through registers broken".to_owned();
            self.watch.begin(format!("what if: {change}"));
            list.push(self.changed(change, &variant, &values, &mut waiting)?);
        }
        for index in droppable {
            step += 1;
            let Some(rest) = without(subject.block, index) else { continue };
            let change = format!("without `{}`", subject.block.instructions[index].text);
            self.watch.begin(format!("what if {step} of {all}: {change}"));
            list.push(self.changed(change, &rest, &values, &mut waiting)?);
        }
        self.bench.set_budget(self.budget);
        Ok(list)
    }

    /// The block with a chain cut where it comes back; through memory, with all memory kept apart.
    fn broken_chain(
        &mut self,
        found: &Found,
        chain: &Recurrence,
        block: &Block,
        values: &Values,
        waiting: &mut Waiting,
    ) -> Result<WhatIf> {
        let code = &found.code;
        let steps: Vec<String> = chain.path.iter().map(|way| code.text(way.reader)).collect();
        let change = format!("chain of {:.2} cycles ({}) broken", chain.cycles, steps.join(" → "));
        if chain.path.iter().any(|way| way.kind == Kind::Memory) {
            let change = format!("{change}, all memory kept apart");
            return match apart(block, &code.effects, values, &[]) {
                Ok(Apart { block, copies }) => {
                    let mut what = self.changed(change, &block, values, waiting)?;
                    for cycles in [&mut what.cycles, &mut what.low, &mut what.high] {
                        *cycles = cycles.map(|c| c / copies as f64);
                    }
                    Ok(what)
                }
                Err(why) => Ok(not_measured(change, why.to_owned())),
            };
        }
        let ends = chain.path.iter().filter(|way| way.delta > 0);
        let regs: Option<Vec<ArchReg>> = ends.map(|way| way.reg).collect();
        let cuts = regs
            .and_then(|all| all.iter().map(|p| cut(*p, values, block)).collect::<Option<Vec<_>>>());
        match cuts.and_then(|cuts| preceded(&cuts.concat(), block)) {
            Some(variant) => self.changed(change, &variant, values, waiting),
            None => {
                let why = "no instruction sets its register without reading it".to_owned();
                Ok(not_measured(change, why))
            }
        }
    }

    fn changed(
        &mut self,
        change: String,
        variant: &Block,
        values: &Values,
        waiting: &mut Waiting,
    ) -> Result<WhatIf> {
        Ok(match self.trusted_within(&variant.bytes, values, Some(waiting))? {
            Ok(t) => WhatIf {
                change,
                cycles: Some(t.cycles),
                low: Some(t.low),
                high: Some(t.high),
                reason: None,
            },
            Err(why) => not_measured(change, why),
        })
    }
}

fn not_measured(change: String, why: String) -> WhatIf {
    WhatIf { change, cycles: None, low: None, high: None, reason: Some(why) }
}

/// Instructions without which every access keeps its address: no address, and no value stored or
/// left to the final jump, comes of what they write, however far.
fn droppable(found: &Found) -> Vec<usize> {
    let code = &found.code;
    let count = code.effects.len();
    let mut needed = vec![false; count];
    let is_address = |reader: usize, reg: ArchReg| {
        let reads = &code.effects[reader].reads;
        reads.iter().any(|r| r.reg == reg && matches!(r.role, Role::Address(_)))
    };
    loop {
        let mut grew = false;
        for link in &found.analysis.register_deps {
            let wanted = needed[link.reader] || is_address(link.reader, link.reg);
            if wanted && !needed[link.writer] {
                needed[link.writer] = true;
                grew = true;
            }
        }
        // What is stored may be loaded again as an address.
        for carried in &found.analysis.memory.dependencies {
            if needed[carried.reader] && !needed[carried.writer] {
                needed[carried.writer] = true;
                grew = true;
            }
        }
        if !grew {
            break;
        }
    }
    let stack = ArchRegSet::from_iter([ArchReg::gpr(4)]);
    (0..count)
        .filter(|i| !needed[*i] && code.effects[*i].written().and(stack).is_empty())
        .filter(|_| count > 1)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::deps::memory::Settings;
    use isa::deps::{Analyser, Code};

    fn dropped(hex: &str) -> Vec<usize> {
        let code =
            Code::of_bytes(&isa::code::parse_hex(hex).unwrap(), tma::Core::default().facts())
                .unwrap();
        let search = Settings { window: 64, runs: 2, initial_values: Vec::new() };
        let analysis = Analyser::default().analyse(&code, &search);
        droppable(&Found::without_evidence(analysis, code))
    }

    #[test]
    fn what_addresses_are_made_of_stays() {
        // add rbx,8; mov rax,[rbx]; add rcx,rdx
        assert_eq!(dropped("4883c308 488b03 4801d1"), [1, 2]);
        // mov rax,[rax]: its own address
        assert_eq!(dropped("488b00 4801d1"), [1]);
        // mov [rbx],rcx; mov rax,[rbx]; mov rdx,[rax]: through memory, too
        assert_eq!(dropped("48890b 488b03 488b10"), [2]);
    }

    #[test]
    fn the_stack_pointer_and_a_block_of_one_stay() {
        // push rax; pop rcx; add rdx,rsi
        assert_eq!(dropped("50 59 4801f2"), [2]);
        assert!(dropped("4801f2").is_empty());
    }
}
