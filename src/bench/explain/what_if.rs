//! Measures the block with one dependency broken or one instruction removed (what-if measurements).

use super::cycles::span;
use super::disjoint_memory::{Disjoint, disjoint_memory};
use super::evidence::Untrusted;
use super::explainer::{Explainer, Findings, Subject, WaitBudget};
use super::variants::{Variant, breaker, breakers, preceded, without};
use crate::{Values, WhatIf};
use isa::code::Block;
use isa::deps::Kind;
use isa::deps::recurrence::Recurrence;
use isa::effects::{ArchReg, ArchRegSet, Role};
use tma::Result;

/// Most loop-carried dependencies to break, the slowest first.
const MAX_DEPENDENCIES: usize = 4;
/// Most instructions to remove.
const MAX_INSTRUCTIONS: usize = 32;

impl Explainer {
    /// Measures the changes, dependencies first.
    pub(super) fn what_if(
        &mut self,
        subject: &Subject<'_>,
        findings: &Findings,
    ) -> Result<Vec<WhatIf>> {
        let Some(values) = subject.measurement.values.clone() else { return Ok(Vec::new()) };
        let mut list = Vec::new();
        let mut wait_budget = WaitBudget::of(self.budget);
        let recurrences = findings.analysis.recurrences.iter().take(MAX_DEPENDENCIES);
        let removable: Vec<usize> =
            removable(findings).into_iter().take(MAX_INSTRUCTIONS).collect();
        let all = recurrences.len() + removable.len();
        let mut step = 0;
        for recurrence in recurrences {
            step += 1;
            self.progress.begin(format!("what if {step} of {all}: a dependency broken"));
            list.push(self.broken(
                findings,
                recurrence,
                subject.block,
                &values,
                &mut wait_budget,
            )?);
        }
        // Dependencies of the same latency hide each other: breaking one of them gains nothing.
        let memory = |r: &&Recurrence| r.path.iter().any(|step| step.kind == Kind::Memory);
        if findings.analysis.recurrences.iter().filter(|r| !memory(r)).count() > 1
            && let Some(all) = breakers(&findings.analysis, &values, subject.block, &[])
            && let Some(variant) = preceded(&all, subject.block)
        {
            let change = "all register dependencies broken".to_owned();
            self.progress.begin(format!("what if: {change}"));
            list.push(self.changed(change, &variant, &values, &mut wait_budget)?);
        }
        for index in removable {
            step += 1;
            let Some(rest) = without(subject.block, index) else { continue };
            let change = format!("without `{}`", subject.block.instructions[index].text);
            self.progress.begin(format!("what if {step} of {all}: {change}"));
            let what = self.changed(change, &rest, &values, &mut wait_budget)?;
            list.push(WhatIf { cuts: cuts(findings, index), ..what });
        }
        self.bench.set_budget(self.budget);
        Ok(list)
    }

    /// The block with one loop-carried dependency broken; if it is through memory, with all memory
    /// dependencies broken.
    fn broken(
        &mut self,
        findings: &Findings,
        recurrence: &Recurrence,
        block: &Block,
        values: &Values,
        wait_budget: &mut WaitBudget,
    ) -> Result<WhatIf> {
        let code = &findings.code;
        let steps: Vec<String> =
            recurrence.path.iter().map(|step| code.text(step.reader)).collect();
        let (cycles, steps) = (span(recurrence.low, recurrence.high), steps.join(" → "));
        let change = format!("dependency of {cycles} cycles ({steps}) broken");
        if recurrence.path.iter().any(|step| step.kind == Kind::Memory) {
            let change = format!("{change}, with all memory dependencies");
            return match disjoint_memory(block, &code.effects, values, &[]) {
                Ok(Disjoint { variant: Variant { block, copies }, .. }) => {
                    let mut what = self.changed(change, &block, values, wait_budget)?;
                    for cycles in [&mut what.cycles, &mut what.low, &mut what.high] {
                        *cycles = cycles.map(|c| c / copies as f64);
                    }
                    Ok(what)
                }
                Err(why) => Ok(not_measured(change, why.to_string().into())),
            };
        }
        let ends = recurrence.path.iter().filter(|step| step.delta > 0);
        let regs: Option<Vec<ArchReg>> = ends.map(|step| step.reg).collect();
        let breakers = regs.and_then(|all| {
            all.iter().map(|reg| breaker(*reg, values, block)).collect::<Option<Vec<_>>>()
        });
        match breakers.and_then(|breakers| preceded(&breakers.concat(), block)) {
            Some(variant) => self.changed(change, &variant, values, wait_budget),
            None => {
                let why = "no instruction overwrites its register without reading it";
                Ok(not_measured(change, why.into()))
            }
        }
    }

    fn changed(
        &mut self,
        change: String,
        variant: &Block,
        values: &Values,
        wait_budget: &mut WaitBudget,
    ) -> Result<WhatIf> {
        Ok(match self.trusted_within(&variant.bytes, values, Some(wait_budget))? {
            Ok(t) => WhatIf {
                change,
                cycles: Some(t.cycles),
                low: Some(t.low),
                high: Some(t.high),
                ..WhatIf::default()
            },
            Err(untrusted) => not_measured(change, untrusted),
        })
    }
}

/// A change that was not measured, and why.
pub(super) fn not_measured(change: String, untrusted: Untrusted) -> WhatIf {
    let Untrusted { why, disturbed } = untrusted;
    WhatIf { change, reason: Some(why), disturbed, ..WhatIf::default() }
}

/// Whether an instruction carries a loop-carried dependency from one register to another, or through memory. One that
/// changes a register leaves the dependency shorter.
fn cuts(findings: &Findings, index: usize) -> bool {
    let mut recurrences = findings.analysis.recurrences.iter();
    recurrences.any(|recurrence| {
        let path = &recurrence.path;
        let next = path.iter().cycle().skip(1);
        path.iter().zip(next).any(|(step, next)| step.reader == index && step.reg != next.reg)
    })
}

/// Instructions that can be removed without changing any address: no address depends on what they
/// write, directly or through other instructions and memory.
fn removable(findings: &Findings) -> Vec<usize> {
    let code = &findings.code;
    let count = code.effects.len();
    let mut needed = vec![false; count];
    let is_address = |reader: usize, reg: ArchReg| {
        let reads = &code.effects[reader].reads;
        reads.iter().any(|r| r.reg == reg && matches!(r.role, Role::Address(_)))
    };
    loop {
        let mut changed = false;
        for dep in &findings.analysis.register_deps {
            let wanted = needed[dep.reader] || is_address(dep.reader, dep.reg);
            if wanted && !needed[dep.writer] {
                needed[dep.writer] = true;
                changed = true;
            }
        }
        // A stored value may be loaded again as an address.
        for dep in &findings.analysis.memory.dependencies {
            if needed[dep.reader] && !needed[dep.writer] {
                needed[dep.writer] = true;
                changed = true;
            }
        }
        if !changed {
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

    fn findings(hex: &str) -> Findings {
        let code =
            Code::of_bytes(&isa::code::parse_hex(hex).unwrap(), tma::Core::default().facts())
                .unwrap();
        let search = Settings { window: 64, runs: 2, initial_values: Vec::new() };
        let analysis = Analyser::default().analyse(&code, &search);
        Findings::without_evidence(analysis, code)
    }

    fn removed(hex: &str) -> Vec<usize> {
        removable(&findings(hex))
    }

    #[test]
    fn copies_cut_the_dependency_that_they_carry_and_arithmetic_does_not() {
        let cut = |hex: &str, all: usize| -> Vec<usize> {
            let findings = findings(hex);
            (0..all).filter(|index| cuts(&findings, *index)).collect()
        };
        // mov rax,rdx; imul rax,rbx; mov rdx,rax
        assert_eq!(cut("4889d0 480fafc3 4889c2", 3), [0, 2]);
        // imul rax,rbx; add rax,rcx; add rsi,rdi
        assert_eq!(cut("480fafc3 4801c8 4801fe", 3), [0usize; 0]);
        // mov rax,[rbx]; add rax,rcx; mov [rbx],rax: through memory
        assert_eq!(cut("488b03 4801c8 488903", 3), [0, 2]);
    }

    #[test]
    fn instructions_that_addresses_depend_on_stay() {
        // add rbx,8; mov rax,[rbx]; add rcx,rdx
        assert_eq!(removed("4883c308 488b03 4801d1"), [1, 2]);
        // mov rax,[rax]: its own address
        assert_eq!(removed("488b00 4801d1"), [1]);
        // mov [rbx],rcx; mov rax,[rbx]; mov rdx,[rax]: including memory
        assert_eq!(removed("48890b 488b03 488b10"), [2]);
    }

    #[test]
    fn the_stack_pointer_and_a_block_of_one_stay() {
        // push rax; pop rcx; add rdx,rsi
        assert_eq!(removed("50 59 4801f2"), [2]);
        assert!(removed("4801f2").is_empty());
    }
}
