//! Counts as probes: a counter for every block.

use crate::emit::emit;
use crate::facts::Function;
use crate::patch::{Code, Instance, Member, Probes, Target, Written};
use crate::plan::{LONGEST, Placement, Planned, Room, derive, plan};

/// Bytes of a counter.
const COUNTER: u64 = 8;

/// Counts of all blocks.
pub(super) struct Counting;

/// The counters of the functions before this one.
fn first(target: &Target, index: usize) -> u64 {
    target.functions[..index].iter().map(Member::blocks).sum::<usize>() as u64 * COUNTER
}

impl Probes for Counting {
    type Plan = Planned;
    const IS_COMMON: bool = false;

    fn needs(&self, (_, target): (usize, &Target)) -> (u64, u64) {
        let blocks = target.functions.iter().map(Member::blocks).sum::<usize>() as u64;
        (blocks * COUNTER, blocks * LONGEST)
    }

    fn plan(&self, _: (usize, usize), facts: &Function, room: &mut Room) -> Planned {
        plan(facts, room)
    }

    fn write(
        &self,
        code: &Code,
        (_, target, index): (usize, &Target, usize),
        facts: &Function,
        plan: &mut Planned,
        written: &mut Written,
    ) {
        let first = code.shared + first(target, index);
        let counter = |block: usize| first + block as u64 * COUNTER;
        let inside = |address: u64| (address - facts.range.start) as usize;
        let mut any = false;
        for number in 0..plan.placements.len() {
            let Placement::Placed(site) = &plan.placements[number] else { continue };
            let bytes = &facts.bytes[inside(site.at)..inside(site.next)];
            let to = written.place(code, site.trampoline);
            match emit(site, bytes, code.bias, counter, to) {
                Ok(patch) => {
                    let bytes = (patch.trampoline, patch.jump);
                    written.add(code, (site.trampoline, site.at), bytes, &patch.prefixes);
                }
                Err(why) => {
                    plan.refuse(number, &why);
                    any = true;
                }
            }
        }
        if any {
            derive(facts, &mut plan.placements);
        }
    }
}

/// The counters of a function of the target.
pub(super) fn counters(
    instance: &Instance<Counting>,
    target: &Target,
    index: usize,
) -> std::io::Result<Vec<u64>> {
    let mut bytes = vec![0; target.functions[index].blocks() * COUNTER as usize];
    instance.shared.read(&mut bytes, first(target, index))?;
    Ok(bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word)).collect())
}
