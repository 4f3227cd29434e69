//! Dependencies of blocks that follow by hand from their text; the loops are those that dependency
//! finders are usually tried on. Addresses in comments are those of the assembled code.

use crate::support::processor::described;
use isa::code::parse_hex;
use isa::deps::memory::Settings;
use isa::deps::{Analyser, Analysis, Code, Overlap};
use isa::latency::{Calibration, Form, Input, Latencies, Output, Value};
use proptest::prelude::*;

fn analyse(hex: &str) -> (Code, Analysis) {
    let code = Code::of_bytes(&parse_hex(hex).unwrap(), described(Some("zen3")).facts()).unwrap();
    let settings = Settings { window: 256, runs: 3, initial_values: Vec::new() };
    let analysis =
        Analyser::new(Latencies::new(&described(Some("zen3"))).unwrap()).analyse(&code, &settings);
    (code, analysis)
}

/// (writer, reader, iterations between, overlap) by index of instruction.
fn memory(hex: &str) -> Vec<(usize, usize, u32, Overlap)> {
    let carried = analyse(hex).1.memory.dependencies;
    carried.iter().map(|c| (c.writer, c.reader, c.delta, c.overlap)).collect()
}

#[test]
fn memory_carries_values_to_the_iteration_that_reads_them() {
    use Overlap::{Blocked, Full};
    for (what, hex, expected) in [
        // mov eax,[rdi+rcx*4-4]; add eax,[rsi+rcx*4]; mov [rdi+rcx*4],eax; inc rcx
        ("A[i]=A[i-1]+B[i]", "8b448ffc 03048e 89048f 48ffc1", vec![(2, 0, 1, Full)]),
        // movsd xmm0,[rdi+rcx*8-24]; mulsd xmm0,xmm1; movsd [rdi+rcx*8],xmm0; inc rcx
        ("A[i]=A[i-3]*b", "f20f1044cfe8 f20f59c1 f20f1104cf 48ffc1", vec![(2, 0, 3, Full)]),
        // add [rdi],eax; add rsi,4
        ("C[0]+=a", "0107 4883c604", vec![(0, 0, 1, Full)]),
        // mov [rsp],eax; mov [rsp+4],edx; mov rax,[rsp]
        (
            "two stores, one load",
            "890424 89542404 488b0424",
            vec![(0, 2, 0, Blocked), (1, 2, 0, Blocked)],
        ),
        // movzx eax,byte [rdi-3]; mov [rdi],al; inc rdi
        ("LZ copy, distance 3", "0fb647fd 8807 48ffc7", vec![(1, 0, 3, Full)]),
        // mov eax,[rbp-4]; add [rbp-8],eax; inc dword [rbp-4]
        (
            "-O0 sum",
            "8b45fc 0145f8 ff45fc",
            vec![(2, 0, 1, Full), (1, 1, 1, Full), (2, 2, 1, Full)],
        ),
        // push rbx; push rax; pop rcx; pop rdx
        ("push and pop", "53 50 59 5a", vec![(1, 2, 0, Full), (0, 3, 0, Full)]),
        // mov [rdi],rax; mov rcx,[rsi]: nothing says whether they meet
        ("two pointers", "488907 488b0e", vec![]),
        // movq xmm0,rdi; movaps [rsp],xmm0; mov rax,[rsp]; mov [rax],ecx; mov edx,[rdi]
        (
            "a pointer spilled through xmm",
            "66480f6ec7 0f290424 488b0424 8908 8b17",
            vec![(1, 2, 0, Full), (3, 4, 0, Full)],
        ),
    ] {
        assert_eq!(memory(hex), expected, "{what}");
    }
}

#[test]
fn a_narrow_store_and_a_wide_load_overlap_in_part() {
    // mov [rsp],al; mov rcx,[rsp]; dec rsp … the rest of the load's bytes is older than the code
    assert_eq!(memory("880424 488b0c24"), [(0, 1, 0, Overlap::Partial)]);
}

#[test]
fn the_bound_is_the_sum_of_latencies_over_iterations() {
    // A made-up processor: 3 cycles for every value in a register, 5 from an address.
    for (hex, expected) in [
        ("480fafc0", 3.0),          // imul rax,rax
        ("480fafc0 480fafc0", 6.0), // twice
        ("488b00", 5.0),            // mov rax,[rax]
        ("488b00 480fafc0", 8.0),   // both
        ("31c0 480fafc0", 0.0),     // xor eax,eax begins anew
    ] {
        let code =
            Code::of_bytes(&parse_hex(hex).unwrap(), described(Some("zen3")).facts()).unwrap();
        let mut made_up = Calibration::default();
        made_up.machine.uarch = "zen3".to_owned();
        for instruction in &code.instructions {
            for (input, cycles) in [(Input::Register, 3.0), (Input::Address, 5.0)] {
                let key = (Form::of(instruction), input, Output::Register);
                made_up.values.insert(key, Value { cycles, spread: 0.0 });
            }
        }
        let settings = Settings { window: 256, runs: 3, initial_values: Vec::new() };
        let latencies = Latencies::new(&described(Some("zen3"))).unwrap().with(made_up);
        let found = Analyser::new(latencies).analyse(&code, &settings).recurrences;
        assert_eq!(found.first().map_or(0.0, |r| r.low), expected, "{hex}");
    }
}

#[test]
fn a_value_used_three_iterations_later_is_divided_by_three() {
    // imul rax,[rdi-24],3; mov [rdi],rax; add rdi,8: forwarding and 3 cycles, over 3 iterations
    let (_, analysis) = analyse("486b47e803 488907 4883c708");
    let slow = analysis.recurrences.iter().find(|r| r.path.iter().any(|w| w.forward.is_some()));
    assert_eq!(slow.unwrap().iterations, 3);
}

#[test]
fn random_bytes_end_in_rows_not_in_panics() {
    proptest!(ProptestConfig::with_cases(300), |(bytes in prop::collection::vec(any::<u8>(), 1..60))| {
        if let Ok(code) = Code::of_bytes(&bytes, described(None).facts()) {
            let settings = Settings { window: 512, runs: 2, initial_values: Vec::new() };
            let analysis = Analyser::new(Latencies::new(&described(None)).unwrap()).analyse(&code, &settings);
            for d in analysis.dependencies(&code) {
                prop_assert!(d.writer < code.instructions.len() && d.reader < code.instructions.len());
            }
        }
    });
}

#[test]
fn a_call_that_is_not_followed_ends_what_its_callee_may_change() {
    // call 5; add rax,1; imul rax,rbx; add r12,1: rax is the callee's to change, r12 is preserved
    // (System V ABI for x86-64, 3.2.1).
    let (_, analysis) = analyse("e800000000 4883c001 480fafc3 4983c401");
    let carried = |name: &str| {
        analysis.register_deps.iter().filter(|d| d.delta > 0 && d.reg.name() == name).count()
    };
    assert_eq!((carried("rax"), carried("r12")), (0, 1), "{:?}", analysis.register_deps);
    assert!(analysis.recurrences.iter().all(|r| r.low <= 1.0), "{:?}", analysis.recurrences);
    // imul rdx,rdx; call; ret: the return is the region's own.
    for hex in ["480fafd2 e8fb000000", "480fafd2 e8fb000000 c3"] {
        let (_, analysis) = analyse(hex);
        assert!(analysis.recurrences.iter().all(|r| r.low == 0.0), "{:?}", analysis.recurrences);
    }
}
