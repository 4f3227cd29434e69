//! Linkage stubs: one jump through a slot that is bound once, so that it is always predicted. They have no probes, and are
//! entered at least as often as the counted code of their file calls them.

use super::further::Counted;
use super::pieces::Function;
use iced_x86::{FlowControl, Mnemonic, Register};
use std::collections::{HashMap, HashSet};

/// The end of the names of a linkage table's entries (`profile::symbols`).
const SUFFIX: &str = "@plt";

/// Addresses of a file, by its path, with how often each is called, or jumped to.
pub(super) type Direct<'a> = HashMap<(&'a str, u64), f64>;

/// How often each address is called, or jumped to, by its address.
pub(super) fn direct(functions: &[Function]) -> Direct<'_> {
    let mut all = Direct::new();
    for function in functions {
        for block in 0..function.flow.blocks.len() {
            if let Some(to) = called(function, block) {
                let to = (function.module.as_str(), to);
                *all.entry(to).or_default() += function.executed(block);
            }
        }
    }
    all
}

/// The address that a block calls, or jumps to.
fn called(function: &Function, block: usize) -> Option<u64> {
    let (_, last) = function.instructions(block).last()?;
    let kind = last.decoded.flow_control();
    let is_one = matches!(kind, FlowControl::Call | FlowControl::UnconditionalBranch);
    is_one.then(|| last.decoded.near_branch_target())
}

/// Enters how often the counted code calls each stub, unless code that was not counted does, too.
pub(super) fn enter(functions: &mut [Function], counted: &Counted) {
    let all = direct(functions);
    let uncounted: HashSet<(&str, u64)> = functions.iter().flat_map(uncounted).collect();
    let calls = |function: &Function| {
        let at = (function.module.as_str(), function.start()?);
        let is_open = function.is_stub && function.entries[0].is_err() && !uncounted.contains(&at);
        all.get(&at).copied().filter(|calls| is_open && *calls > 0.0)
    };
    let calls: Vec<Option<f64>> = functions.iter().map(calls).collect();
    for (function, calls) in functions.iter_mut().zip(calls) {
        if let Some(calls) = calls {
            function.enter(0, calls as u64, counted);
        }
    }
}

/// What sampled code without a count calls.
fn uncounted(function: &Function) -> impl Iterator<Item = (&str, u64)> {
    let blocks = 0..function.flow.blocks.len();
    let open = blocks.filter(|at| function.samples[*at] > 0 && function.entries[*at].is_err());
    open.filter_map(|at| Some((function.module.as_str(), called(function, at)?)))
}

/// Whether a function with this name is a stub: the name is that of an entry of a linkage table, which begins with the jump.
pub(super) fn is_stub(name: &str, function: &Function) -> bool {
    if !name.ends_with(SUFFIX) || function.flow.blocks.is_empty() {
        return false;
    }
    let Some(((_, last), before)) = function.instructions(0).split_last() else { return false };
    let jump = &last.decoded;
    jump.flow_control() == FlowControl::IndirectBranch
        && jump.memory_base() == Register::RIP
        && before.iter().all(|(_, inst)| inst.decoded.mnemonic() == Mnemonic::Endbr64)
}

#[cfg(test)]
mod tests {
    use super::super::further::Uncounted;
    use super::super::pieces::Seen;
    use super::*;
    use isa::code::parse_hex;
    use isa::flow::{BasicBlock, stored};
    use report::documents::count::Count;
    use std::sync::Arc;

    /// A function of one file with blocks of these bytes and counts, from an address on.
    fn function(
        number: usize,
        start: u64,
        blocks: &[(&str, Option<u64>)],
        count: &Count,
    ) -> Function {
        let (mut at, mut found, mut bytes) = (start, Vec::new(), Vec::new());
        for (hex, _) in blocks {
            let own = parse_hex(hex).unwrap();
            let end = at + own.len() as u64;
            found.push(BasicBlock { start: at, end, ..BasicBlock::default() });
            bytes.extend(own);
            at = end;
        }
        let flow = Arc::new(stored(found, Vec::new(), &[(start, bytes)]).unwrap());
        let entries = blocks.iter().map(|(_, count)| count.ok_or(Uncounted::NotProbed)).collect();
        let seen = Seen { samples: vec![20; blocks.len()], entries, latency: Vec::new() };
        Function::of_flow(number, "a.out".to_owned(), flow, seen, &Counted::new(count))
    }

    /// Bytes of linkage tables by GNU ld: the second has `endbr64` (`-z ibt`), the first what binds it lazily. A function
    /// that calls through a pointer may be the same code.
    #[test]
    fn a_stub_is_entered_as_often_as_it_is_called() {
        let count = Count::default();
        let marked = "f3 0f 1e fa f2 ff 25 d5 2f 00 00";
        let lazy = [("ff 25 a2 8f 00 00", None), ("68 05 00 00 00 e9 90 ff ff ff", None)];
        let calls = [
            ("e8 fb 0f 00 00", Some(70)), // call 0x2000
            ("e8 f6 0f 00 00", Some(30)), // call 0x2000
            ("e9 f1 1f 00 00", Some(5)),  // jmp 0x3000
        ];
        // call 0x5000 from 0x6000
        let not_counted = [("e8 fb ef ff ff", None)];
        let from_counted = [("e8 fb df ff ff", Some(9))];
        let of = |number, start, blocks: &[_]| function(number, start, blocks, &count);
        let mut all = [
            of(0, 0x1000, &calls),
            of(1, 0x2000, &lazy),
            of(2, 0x3000, &[(marked, None)]),
            of(3, 0x4000, &[("48 83 c7 01 ff 25 d5 2f 00 00", None)]),
            of(4, 0x5000, &[(marked, None)]),
            of(5, 0x6000, &not_counted),
            of(6, 0x7000, &from_counted),
        ];
        for one in &mut all {
            one.is_stub = is_stub("puts@plt", one);
        }
        let stubs: Vec<usize> = (0..all.len()).filter(|at| all[*at].is_stub).collect();
        assert_eq!(stubs, [1, 2, 4]);
        assert!(!is_stub("calls_a_hook", &all[2]));
        enter(&mut all, &Counted::new(&count));
        let entries = |at: usize| all[at].entries[0].clone().ok();
        assert_eq!((entries(1), entries(2), all[1].pieces[0].entries), (Some(100), Some(5), 100.0));
        assert_eq!(entries(4), None, "code without a count calls it, too");
        let most = |of: &Function| super::super::callees::most(&Counted::new(&count), of, 0);
        assert_eq!(most(&all[1]), 0.0);
        all[1].is_stub = false;
        assert_eq!(most(&all[1]), 100.0, "what calls through a pointer may be mispredicted");
    }
}
