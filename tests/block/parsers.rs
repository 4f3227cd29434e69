//! Random, nearly right and damaged input into every parser of block inputs.

use crate::fuzz::parsers;
use proptest::prelude::*;

/// iacaMarks.h of Intel's Architecture Code Analyzer 3.0.
pub const IACA_START: [u8; 8] = [0xbb, 0x6f, 0, 0, 0, 0x64, 0x67, 0x90];
pub const IACA_END: [u8; 8] = [0xbb, 0xde, 0, 0, 0, 0x64, 0x67, 0x90];
pub const ADD: [u8; 3] = [0x48, 0x01, 0xd8]; // add rax,rbx

/// A program of one function with IACA markers, and its object file; marked.s is their source.
pub const PROGRAM: &[u8] = include_bytes!("../fixtures/block/marked");
pub const OBJECT: &[u8] = include_bytes!("../fixtures/block/marked.o");

/// Pieces that the parsers know, between arbitrary bytes.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let known: Vec<&[u8]> = vec![
        &IACA_START,
        &IACA_END,
        b"# LLVM-MCA-BEGIN a\n",
        b"# LLVM-MCA-END a\n",
        b"# OSACA-BEGIN\n",
        b"/* OSACA-END */\n",
        b".string \"",
        b"/*",
        b"*/",
        b".p2align 4,,10\n",
        b"\"",
        b",",
        b"\r\n",
        b"4801d8",
        b"\\x48 0x01",
        b"hex,status,reason,cycles,low,high,unrolled,loop,pages\n",
        b"\xef\xbb\xbf",
        b"\x7fELF\x02\x01\x01",
        b"rax=0x",
        b"r8d=-1",
        b"mem=18446744073709551615",
        b"a.out:main+",
        b":401000..401008",
        b"{\"schema\":\"tdtool.block/2\",\"block\":{\"hex\":\"90\"},\"values\":",
    ];
    let known = proptest::sample::select(known).prop_map(<[u8]>::to_vec);
    let bytes = proptest::collection::vec(any::<u8>(), 0..12);
    proptest::collection::vec(prop_oneof![3 => known, 1 => bytes], 0..10)
        .prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    /// Whatever the bytes are, each parser ends with a value or with an error that says something.
    #[test]
    fn no_input_breaks_a_parser(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        parsers::feed(&bytes);
    }

    /// The same of input that gets further into them.
    #[test]
    fn no_nearly_right_input_breaks_a_parser(bytes in pieces()) {
        parsers::feed(&bytes);
    }

    /// The same of a real program, with some bytes changed or its end cut off.
    #[test]
    fn no_broken_program_breaks_a_parser(
        linked in any::<bool>(),
        changes in proptest::collection::vec((0usize..800, any::<u8>()), 1..6),
        end in 64usize..1600,
    ) {
        let mut data = if linked { PROGRAM } else { OBJECT }.to_vec();
        for (at, byte) in changes {
            let at = at % data.len();
            data[at] = byte;
        }
        data.truncate(end);
        parsers::feed(&data);
    }
}
