//! Arbitrary bytes as a function, and code made to be slow.

use super::check;
use crate::support::quiet::busy;
use isa::flow::{Flow, Memory, flow};
use proptest::prelude::*;

/// Memory whose every word is an address of the code, so that tables are found in garbage too.
struct Everywhere(u64, u64);

impl Memory for Everywhere {
    fn read(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let target = self.0 + address.wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.1;
        target.to_le_bytes().get(..length).map(<[u8]>::to_vec)
    }
}

/// Pieces of switches between arbitrary bytes: indirect jumps, compares, branches, padding.
fn garbage() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&[u8]> = vec![
        &[0x83, 0xf8, 0x12],                         // cmp eax,18
        &[0x77, 0x10],                               // ja +16
        &[0x77, 0xf0],                               // ja -16
        &[0x89, 0xc0],                               // mov eax,eax
        &[0xff, 0x24, 0xc5, 0x00, 0x10, 0x40, 0x00], // jmp [rax*8+0x401000]
        &[0x48, 0x8d, 0x15, 0x00, 0x01, 0x00, 0x00], // lea rdx,[rip+0x100]
        &[0x48, 0x63, 0x04, 0x82],                   // movsxd rax,[rdx+rax*4]
        &[0x48, 0x01, 0xd0],                         // add rax,rdx
        &[0xff, 0xe0],                               // jmp rax
        &[0x48, 0xff, 0xc0],                         // inc rax
        &[0x89, 0x45, 0xf8],                         // mov [rbp-8],eax
        &[0x8b, 0x45, 0xf8],                         // mov eax,[rbp-8]
        &[0x83, 0xe0, 0x07],                         // and eax,7
        &[0xe8, 0x00, 0x00, 0x00, 0x00],             // call
        &[0x0f, 0x1f, 0x00],                         // nop
        &[0xc3],                                     // ret
        &[0xf0],                                     // lock
        &[0x06],                                     // invalid
    ];
    let known = proptest::sample::select(known).prop_map(<[u8]>::to_vec);
    let bytes = proptest::collection::vec(any::<u8>(), 0..6);
    proptest::collection::vec(prop_oneof![4 => known, 1 => bytes], 0..120)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]
    #[test]
    fn arbitrary_bytes_are_cut_into_blocks_that_tile_them(
        code in prop_oneof![proptest::collection::vec(any::<u8>(), 0..600), garbage()],
        start in prop_oneof![Just(0u64), Just(0x40_1000), Just(u64::MAX - 700)],
        observed in proptest::collection::vec(0u64..700, 0..4),
    ) {
        let observed: Vec<u64> = observed.into_iter().map(|o| start + o).collect();
        let memory = Everywhere(start, code.len().max(1) as u64);
        let flow = flow(&code, start, &observed, &memory);
        check(&flow, start, start + code.len() as u64);
        for table in &flow.tables {
            assert!(table.1.len() <= 1 << 16);
        }
    }
}

/// Code made to be slow: a long chain of branches to one place, and many indirect jumps after each
/// other whose index is never bounded.
#[test]
fn code_made_to_be_slow_ends() {
    let _busy = busy();
    // jne to the end (6 bytes), repeated; loop heads nested in each other; jmp rax, repeated.
    let count: u32 = 4000;
    let chain: Vec<u8> = (0..count)
        .flat_map(|i| [&[0x0f, 0x85][..], &(6 * (count - i - 1)).to_le_bytes()].concat())
        .collect();
    let nest: Vec<u8> = (0..count)
        .map(|i| [&[0x0f, 0x85][..], &(-6 * (2 * i64::from(i) + 1)).to_le_bytes()[..4]].concat())
        .fold(vec![0x90; 6 * count as usize], |mut code, jump| {
            code.extend(jump);
            code
        });
    let jumps = [0x48, 0xff, 0xc0, 0x75, 0x02, 0xff, 0xe0].repeat(count as usize);
    for code in [chain, nest, jumps] {
        let flow = flow(&code, 0x1000, &[], &Everywhere(0x1000, code.len() as u64));
        check_tiles(&flow, 0x1000, 0x1000 + code.len() as u64);
    }
}

fn check_tiles(flow: &Flow, start: u64, end: u64) {
    let sizes = flow.blocks.iter().map(|b| (b.start, b.end));
    let rest = flow.padding.iter().chain(&flow.undecoded).copied();
    assert_eq!(sizes.chain(rest).map(|(from, to)| to - from).sum::<u64>(), end - start);
}
