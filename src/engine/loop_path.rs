//! The path that most iterations of a captured loop take: its instructions, and the same as one block.

use bench::{LoopPath, NoPath};
use iced_x86::FlowControl;
use isa::code::{Block, Inst, text};
use probe::capture::{Branch, End, Walk};
use std::collections::{BTreeSet, HashMap};

/// Most instructions of a path.
const LONGEST: usize = 4096;

/// The most frequent path of a walk from `head` on through the loop with this code (p_vaddr and bytes).
///
/// # Errors
/// Why there is none.
pub fn most_frequent(walk: &Walk, head: u64, code: &[(u64, Vec<u8>)]) -> Result<LoopPath, NoPath> {
    let instructions = decoded(code)?;
    let mut counts: HashMap<u32, (usize, Vec<u64>)> = HashMap::new();
    let mut all = 0;
    for number in &walk.sequence {
        let Some(branches) = walk.paths.get(*number as usize) else { continue };
        let followed = || follow(&instructions, head, branches);
        // A path that has left the loop is no iteration.
        let addresses = counts.get(number).map_or_else(followed, |(_, known)| Some(known.clone()));
        let Some(addresses) = addresses else { continue };
        counts.entry(*number).or_insert((0, addresses)).0 += 1;
        all += 1;
    }
    let most = counts.into_values().max_by_key(|(count, addresses)| (*count, addresses.len()));
    let (count, addresses) = most.ok_or(NoPath::NoIteration)?;
    let path: Vec<(u64, &Inst)> =
        addresses.iter().filter_map(|at| Some((*at, instructions.get(at)?))).collect();
    let body = body(&path, head)?;
    let lines = path.iter().map(|(at, inst)| {
        let mut decoded = inst.decoded;
        let branch = inst.decoded.is_jcc_short_or_near() || inst.decoded.is_jmp_short_or_near();
        if branch {
            decoded.set_near_branch64(
                inst.decoded.near_branch_target().wrapping_add(at - inst.offset as u64),
            );
        }
        (*at, inst.bytes.clone(), text(&decoded))
    });
    Ok(LoopPath { instructions: lines.collect(), body, share: count as f64 / all as f64 })
}

/// The part of a loop's code that a walk from `head` on has executed, up to the first iteration with a call:
/// p_vaddr and bytes.
pub fn executed(walk: &Walk, head: u64, code: &[(u64, Vec<u8>)]) -> Vec<(u64, Vec<u8>)> {
    let Ok(instructions) = decoded(code) else { return Vec::new() };
    let free = walk.before_call.map_or(walk.sequence.len(), |before| before.iterations as usize);
    let paths: BTreeSet<u32> = walk.sequence.iter().take(free).copied().collect();
    let mut addresses = BTreeSet::new();
    for path in paths.iter().filter_map(|number| walk.paths.get(*number as usize)) {
        trace(&instructions, head, path, |at| {
            addresses.insert(at);
        });
    }
    let mut parts: Vec<(u64, Vec<u8>)> = Vec::new();
    for (at, inst) in addresses.iter().filter_map(|at| Some((*at, instructions.get(at)?))) {
        match parts.last_mut().filter(|(start, bytes)| start + bytes.len() as u64 == at) {
            Some((_, bytes)) => bytes.extend(&inst.bytes),
            None => parts.push((at, inst.bytes.clone())),
        }
    }
    parts
}

/// Where a walk that was followed to the end of the loop left to.
pub fn left_to(walk: &Walk, head: u64, code: &[(u64, Vec<u8>)]) -> Option<u64> {
    let instructions = decoded(code).ok()?;
    let last = walk.sequence.last().filter(|_| walk.end == End::Left)?;
    let to = trace(&instructions, head, walk.paths.get(*last as usize)?, |_| {});
    (!instructions.contains_key(&to)).then_some(to)
}

/// Visits the instructions of a path from `head` on, up to the first that is not of the loop, or to `head` again, or
/// to a branch that the path lacks; where that is.
fn trace(code: &HashMap<u64, Inst>, head: u64, path: &[Branch], mut visit: impl FnMut(u64)) -> u64 {
    let mut branches = path.iter().peekable();
    let mut at = head;
    while let Some(inst) = code.get(&at) {
        visit(at);
        at = match branches.next_if(|branch| branch.at == at) {
            Some(branch) => branch.to,
            None if inst.decoded.flow_control() == FlowControl::Next => {
                at + inst.bytes.len() as u64
            }
            None => break,
        };
        if at == head {
            break;
        }
    }
    at
}

/// Every instruction by its address; branch targets are relative to the start of its range.
pub(crate) fn decoded(code: &[(u64, Vec<u8>)]) -> tma::Result<HashMap<u64, Inst>> {
    let mut all = HashMap::new();
    for (start, bytes) in code {
        let block = Block::decode(bytes)?;
        all.extend(block.instructions.into_iter().map(|inst| (start + inst.offset as u64, inst)));
    }
    Ok(all)
}

/// The addresses of an iteration with these branches; `None` if it does not come back to `head`.
fn follow(code: &HashMap<u64, Inst>, head: u64, branches: &[Branch]) -> Option<Vec<u64>> {
    let (mut at, mut all, mut branches) = (head, Vec::new(), branches.iter().peekable());
    while all.len() < LONGEST {
        all.push(at);
        at = match branches.next_if(|branch| branch.at == at) {
            Some(branch) => branch.to,
            None => at + code.get(&at)?.bytes.len() as u64,
        };
        if at == head {
            return branches.next().is_none().then_some(all);
        }
    }
    None
}

/// The path without its jumps, as one block at the address of the loop: `[rip+x]` accesses what it does there.
pub(crate) fn body(path: &[(u64, &Inst)], head: u64) -> Result<Vec<u8>, NoPath> {
    let mut bytes = Vec::new();
    for (at, inst) in path {
        if inst.decoded.is_jcc_short_or_near() || inst.decoded.is_jmp_short_or_near() {
            continue;
        }
        let mut own = inst.bytes.to_vec();
        if let Some(field) = inst.rip_displacement {
            let range_start = at - inst.offset as u64;
            let target = range_start.wrapping_add(inst.decoded.ip_rel_memory_address());
            let end = head.wrapping_add((bytes.len() + own.len()) as u64);
            let distance = target.wrapping_sub(end) as i64;
            let short = i32::try_from(distance).map_err(|_| NoPath::FarData)?;
            own[field..field + 4].copy_from_slice(&short.to_le_bytes());
        }
        bytes.extend(own);
    }
    if bytes.is_empty() {
        return Err(NoPath::OnlyJumps);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0x1000: test byte [rdi],1; 0x1003: je 0x1008; 0x1005: inc rax; 0x1008: inc rdi; 0x100b: cmp rdi,rsi;
    /// 0x100e: jne 0x1000. By hand.
    #[test]
    fn the_path_of_most_iterations_has_its_blocks_in_order() {
        let code =
            vec![(0x1000, isa::code::parse_hex("f60701 7403 48ffc0 48ffc7 4839f7 75f0").unwrap())];
        let branch = |at, to, taken| Branch { at, to, taken };
        let skips = vec![branch(0x1003, 0x1008, true), branch(0x100e, 0x1000, true)];
        let counts = vec![branch(0x1003, 0x1005, false), branch(0x100e, 0x1000, true)];
        let leaves = vec![branch(0x1003, 0x1005, false), branch(0x100e, 0x1010, false)];
        let walk = Walk {
            paths: vec![counts, skips, leaves],
            sequence: vec![0, 1, 1, 1, 2],
            ..Walk::default()
        };
        let path = most_frequent(&walk, 0x1000, &code).unwrap();
        let at: Vec<u64> = path.instructions.iter().map(|(at, _, _)| *at).collect();
        assert_eq!(at, [0x1000, 0x1003, 0x1008, 0x100b, 0x100e]);
        assert!(path.instructions[1].2.contains("1008"), "{:?}", path.instructions);
        assert_eq!(
            (path.share, path.body),
            (0.75, isa::code::parse_hex("f60701 48ffc7 4839f7").unwrap())
        );
    }
}
