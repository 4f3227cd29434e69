//! The control-flow graph of a function: basic blocks, edges, loops.
//!
//! | file | concern |
//! |---|---|
//! | `graph` | the control-flow graph as data |
//! | `partition` | bytes → instructions → blocks and edges |
//! | `jump_tables`, `slice_state` | targets of indirect jumps: sliced backwards, read from memory and checked |
//! | `transfer`, `value` | effects of instructions on symbolic values; symbolic values |
//! | `iteration` | one iteration of a loop body in terms of the registers at its start |
//! | `loops` | dominators and natural loops |
//! | `image` | a program's memory, from its ELF file |
//!
//! Unknown edges are marked, never guessed. Time and memory are bounded by the size of the function.
//! Bytes that do not decode are listed in [`Flow::undecoded`].

mod graph;
mod image;
mod iteration;
mod jump_tables;
mod loops;
mod partition;
mod slice_state;
mod transfer;
mod value;

use crate::code::{Inst, InstBuilder};
use iced_x86::Instruction;

pub use graph::{BasicBlock, Edge, Flow, Loop, stored};
pub use image::{Image, Memory, NoImage};
pub use iteration::{Exit, Iteration, Linear, LinearAccess, Loaded, Term};
pub use value::merged;

/// The control flow of the function with the bytes `code` at `start` (p_vaddr). `observed` are branch
/// targets seen in a recording, which also begin blocks; those outside the function are ignored.
///
/// ```
/// use isa::code::parse_hex;
/// use isa::flow::{Edge, flow};
///
/// // 1000: xor eax, eax
/// // 1002: add eax, edi; dec edi; jne 1002
/// // 1008: ret
/// let code = parse_hex("31 c0, 01 f8, ff cf, 75 fa, c3")?;
/// let found = flow(&code, 0x1000, &[], &());
/// let starts: Vec<u64> = found.blocks.iter().map(|block| block.start).collect();
/// assert_eq!(starts, [0x1000, 0x1002, 0x1008]);
/// assert_eq!(found.blocks[1].edges, [Edge::Block(1), Edge::Block(2)]);
///
/// let [inner] = &found.loops[..] else { panic!("one loop") };
/// assert_eq!((inner.head, &inner.blocks[..], inner.depth), (1, &[1][..], 1));
/// assert_eq!(found.block_at(0x1004), Some(1));
/// # Ok::<(), tma::Error>(())
/// ```
pub fn flow(code: &[u8], start: u64, observed: &[u64], memory: &dyn Memory) -> Flow {
    let (found, decoded) = decoded_flow(code, start, observed, memory);
    Flow { instructions: instructions(code, start, &decoded), ..found }
}

/// As [`flow`] without texts: the instructions come beside it, and [`Flow::instructions`] is empty.
pub fn decoded_flow(
    code: &[u8],
    start: u64,
    observed: &[u64],
    memory: &dyn Memory,
) -> (Flow, Vec<Instruction>) {
    let (disassembly, partition, tables) = resolve(code, start, observed, memory);
    let mut blocks = partition.blocks;
    let successors: Vec<_> = blocks.iter().map(jump_tables::successors).collect();
    let found = loops::loops(&successors);
    for (block, innermost) in blocks.iter_mut().zip(found.innermost) {
        block.innermost = innermost;
    }
    let flow = Flow {
        blocks,
        loops: found.loops,
        instructions: Vec::new(),
        undecoded: disassembly.undecoded,
        tables: tables.into_iter().collect(),
        padding: partition.padding,
        irreducible: found.irreducible,
        loops_incomplete: found.incomplete,
    };
    (flow, disassembly.instructions)
}

/// Only the basic blocks of a function, as [`flow`] finds them, without instruction texts and loops.
pub fn blocks(code: &[u8], start: u64, observed: &[u64], memory: &dyn Memory) -> Vec<BasicBlock> {
    resolve(code, start, observed, memory).1.blocks
}

fn resolve(
    code: &[u8],
    start: u64,
    observed: &[u64],
    memory: &dyn Memory,
) -> (partition::Disassembly, partition::Partition, partition::Tables) {
    let length = u64::try_from(code.len()).unwrap_or(u64::MAX).min(u64::MAX - start);
    let bytes = &code[..usize::try_from(length).unwrap_or(code.len())];
    jump_tables::resolve(&jump_tables::Code {
        bytes,
        range: start..start + length,
        observed,
        memory,
    })
}

/// The instructions with their addresses.
fn instructions(code: &[u8], start: u64, decoded: &[Instruction]) -> Vec<(u64, Inst)> {
    let mut builder = InstBuilder::default();
    let inst = |&decoded: &Instruction| {
        let offset = usize::try_from(decoded.ip() - start).unwrap_or(usize::MAX);
        let bytes = code.get(offset..offset.saturating_add(decoded.len())).unwrap_or_default();
        (decoded.ip(), builder.inst(decoded, bytes, offset))
    };
    decoded.iter().map(inst).collect()
}

#[cfg(test)]
mod tests {
    //! Control flow of hand-written code.

    use super::{Edge, Flow, Memory, flow};
    use crate::code::parse_hex;

    /// Memory of eight-byte words from 0x2000; nothing else is readable.
    struct Words(Vec<u64>);

    impl Memory for Words {
        fn read(&self, address: u64, length: usize) -> Option<Vec<u8>> {
            let offset = usize::try_from(address.checked_sub(0x2000)?).ok()?;
            let bytes: Vec<u8> = self.0.iter().flat_map(|w| w.to_le_bytes()).collect();
            bytes.get(offset..offset + length).map(<[u8]>::to_vec)
        }

        fn is_code(&self, _: u64) -> bool {
            false
        }
    }

    fn at_0x1000(hex: &str, words: &[u64]) -> Flow {
        flow(&parse_hex(hex).unwrap(), 0x1000, &[], &Words(words.to_vec()))
    }

    fn starts(flow: &Flow) -> Vec<u64> {
        flow.blocks.iter().map(|b| b.start).collect()
    }

    #[test]
    fn a_table_at_a_fixed_address_is_read_up_to_the_bound() {
        // 1000: cmp edi,3; ja 1012; 1005: mov edi,edi; 1007: notrack jmp [rdi*8+0x2000]; 100f: 4 ret
        let code = "83ff03 770d 89ff 3eff24fd00200000 c3c3c3c3";
        let targets = [0x100f, 0x1010, 0x1011, 0x100f];
        let found = at_0x1000(code, &targets);
        assert_eq!(found.tables, [(0x1007, targets.to_vec())]);
        assert_eq!(starts(&found), [0x1000, 0x1005, 0x100f, 0x1010, 0x1011, 0x1012]);
        assert_eq!(found.blocks[1].edges, [2, 3, 4].map(Edge::Block));
        assert_eq!(found.blocks[0].edges, [Edge::Block(5), Edge::Block(1)]);
        // A block that begins between the comparison and the jump.
        let split = flow(&parse_hex(code).unwrap(), 0x1000, &[0x1003], &Words(targets.to_vec()));
        assert_eq!((split.tables, split.blocks.len()), (found.tables, found.blocks.len() + 1));
        // An entry that cannot be read, or is not the address of code.
        for words in [&targets[..3], &[0x100f, 0x1010, 0x1011, 0x3000]] {
            let found = at_0x1000(code, words);
            assert!(found.tables.is_empty() && found.blocks[1].unresolved, "{words:x?}");
        }
    }

    #[test]
    fn a_base_from_before_the_loop_is_found_and_a_call_may_not_return() {
        // 1000: test esi,esi; jne 100d; 1004: lea rbx,[0x2000]; jmp 1012; 100d: call 0x9000
        // 1012: cmp rdi,1; ja 1024; 1018: movsxd rax,[rbx+rdi*4]; add rax,rbx; 101f: jmp rax
        // 1021: jmp 1012; 1023: ret; 1024: ret
        let hoisted = "85f6 7509 488d1df50f0000 eb05 e8ee7f0000
        4883ff01 770c 486304bb 4801d8 ffe0 ebef c3 c3";
        let distances = [0xffff_f023_ffff_f021];
        let found = at_0x1000(hoisted, &distances);
        assert_eq!(found.tables, [(0x101f, vec![0x1021, 0x1023])]);
        // In rdx, which the caller may have set: the same with the second byte of the registers.
        let passed =
            hoisted.replace("488d1d", "488d15").replace("04bb", "04ba").replace("4801d8", "4801d0");
        assert!(at_0x1000(&passed, &distances).tables.is_empty());
    }

    #[test]
    fn the_lowest_case_may_be_subtracted_and_the_range_may_end_at_the_largest_value() {
        // lea eax,[rdi+5]; cmp edi,-5; jb 100f (gcc's test for -5 to -1); jmp [rax*8+0x2000]; 2 ret
        let found = at_0x1000("8d4705 83fffb 7208 ff24c500200000 c3c3", &[0x100f; 5]);
        assert_eq!(found.tables, [(0x1008, vec![0x100f; 5])]);
        // movzx eax,byte [rdi]; sub eax,0x61; cmp al,2; ja 1016; movzx eax,al; jmp [rax*8+0x2000]
        let found =
            at_0x1000("0fb607 83e861 3c02 770c 0fb6c0 ff24c500200000 c3c3 c3", &[0x1014; 3]);
        assert_eq!(found.tables, [(0x100d, vec![0x1014; 3])]);
    }

    #[test]
    fn an_index_in_memory_is_bounded_only_until_a_store_may_change_it() {
        // mov [rsp-8],edi; cmp dword [rsp-8],3; ja 101c; a store; mov eax,[rsp-8];
        // jmp [rax*8+0x2000]; 3 ret
        let code = |store: &str| {
            format!("897c24f8 837c24f803 7711 {store} 8b4424f8 ff24c500200000 c3c3c3")
        };
        for (store, resolved) in [
            ("897424fc", true),  // mov [rsp-4],esi: adjacent
            ("897424fa", false), // mov [rsp-6],esi: overlapping
            ("89169090", false), // mov [rsi],edx: unknown address
        ] {
            let found = at_0x1000(&code(store), &[0x101a, 0x101b, 0x101a, 0x101b]);
            assert_eq!(!found.tables.is_empty(), resolved, "{store}");
        }
    }

    #[test]
    fn a_bound_on_only_one_of_two_paths_does_not_count() {
        // test esi,esi; jne 100b; cmp edi,3; ja 1016; xchg ax,ax; 100b: mov edi,edi;
        // jmp [rdi*8+0x2000]; 3 ret
        let found =
            at_0x1000("85f6 7507 83ff03 770d 6690 89ff ff24fd00200000 c3c3c3", &[0x1014; 300]);
        assert!(found.tables.is_empty());
        // With `and edi,3` before the jump, both paths are bounded.
        let found =
            at_0x1000("85f6 7508 83ff03 770e 6690 90 83e703 ff24fd00200000 c3c3c3", &[0x1017; 300]);
        assert_eq!(found.tables, [(0x100f, vec![0x1017; 4])]);
    }

    #[test]
    fn a_branch_past_a_lock_prefix_leads_to_the_locked_instruction() {
        // je over the prefix; lock cmpxchg [rdi],edx; ret
        let found = at_0x1000("7401 f00fb117 c3", &[]);
        assert_eq!(starts(&found), [0x1000, 0x1002]);
        assert_eq!(found.blocks[0].edges, [Edge::Block(1)]);
    }

    #[test]
    fn data_between_code_is_marked_and_the_code_after_it_is_found() {
        // jmp over three bytes that are no instruction; ret
        let found = at_0x1000("eb03 ffffff c3", &[]);
        assert_eq!(found.undecoded, [(0x1002, 0x1005)]);
        assert_eq!(starts(&found), [0x1000, 0x1005]);
    }

    #[test]
    fn nothing_follows_a_call_that_does_not_return() {
        // 1000: test edi,edi; je 100a; 1004: call 2000; nop; 100a: test esi,esi; jne 100f; ret;
        // 100f: call 2000, the last instruction
        let found = at_0x1000("85ff 7406 e8f70f0000 90 85f6 7501 c3 e8ec0f0000", &[]);
        assert_eq!(found.padding, [(0x1009, 0x100a)]);
        let call = &found.blocks[found.block_at(0x1004).unwrap()];
        assert!(call.is_exit && call.edges.is_empty());
    }

    #[test]
    fn an_observed_target_begins_a_block() {
        // inc eax; inc ecx; ret
        let code = parse_hex("ffc0 ffc1 c3").unwrap();
        let found = flow(&code, 0x1000, &[0x1002, 0x5000], &());
        assert_eq!(starts(&found), [0x1000, 0x1002]);
        assert_eq!(found.instructions[1].1.text, "inc ecx");
    }
}
