//! µops against published figures; bounds against calculations by hand.

use super::*;
use crate::code::parse_hex;
use crate::deps::Code;
use tma::Core;

fn core(name: &str) -> (Core, Ports) {
    let core = Core::modelled(&events::library(), name).unwrap();
    let ports = Ports::of(&core).unwrap().unwrap();
    (core, ports)
}

/// The µops of the instructions in `hex`.
fn uops(name: &str, hex: &str) -> Vec<Option<Uops>> {
    let (core, ports) = core(name);
    let code = Code::of_bytes(&parse_hex(hex).unwrap(), core.facts()).unwrap();
    ports.uops(&code.instructions, &code.effects)
}

fn text(name: &str, hex: &str) -> String {
    let (_, ports) = core(name);
    ports.text(uops(name, hex)[0].as_ref().unwrap())
}

fn bound(name: &str, hex: &str) -> f64 {
    spread(&uops(name, hex), core(name).1.names().len()).bound
}

#[test]
fn every_table_parses_and_every_core_that_names_one_has_it() {
    for (name, packed) in events::BUNDLE.ports {
        assert_eq!(Ports::parse(&packed.text().unwrap()).err(), None, "{name}");
    }
    for name in
        ["icl", "tgl", "rkl", "icx", "spr", "emr", "gnr", "adl", "mtl", "zen3", "zen4", "zen5"]
    {
        core(name);
    }
}

/// uops.info, Ice Lake and Alder Lake P (ports in hexadecimal there: A is 10, B is 11).
#[test]
fn intels_uops_are_those_of_uops_info() {
    for (name, hex, expected) in [
        ("icl", "4801d8", "p0|p1|p5|p6"),         // add rax,rbx
        ("icl", "480fafc3", "p1"),                // imul rax,rbx
        ("icl", "48d3e0", "2*p0|p6"),             // shl rax,cl
        ("icl", "480303", "p0|p1|p5|p6 + p2|p3"), // add rax,[rbx]
        ("icl", "488903", "p4|p9 + p7|p8"),       // mov [rbx],rax
        ("icl", "480103", "p0|p1|p5|p6 + p2|p3 + p4|p9 + p7|p8"), // add [rbx],rax
        ("icl", "c5f55ec2", "8*div + p0"),        // vdivpd ymm0,ymm1,ymm2
        ("icl", "c5f558c2", "p0|p1"),             // vaddpd ymm0,ymm1,ymm2
        ("icl", "f2480f2ac0", "p0|p1 + p5"),      // cvtsi2sd xmm0,rax
        ("icl", "53", "p4|p9 + p7|p8"),           // push rbx
        ("icl", "75fe", "p0|p6"),                 // jne
        ("icl", "ebfe", "p6"),                    // jmp
        ("spr", "4801d8", "p0|p1|p5|p6|p11"),
        ("spr", "488b03", "p2|p3|p10"), // mov rax,[rbx]
        ("spr", "c5f558c2", "p1|p5"),
        ("spr", "f20f5ec1", "4*div + p0"), // divsd xmm0,xmm1
    ] {
        assert_eq!(text(name, hex), expected, "{name} {hex}");
    }
}

/// `llvm-mca-22 -mcpu=znver4 -instruction-tables=full` (LLVM 22.1.8), and AMD's optimization guide for
/// family 19h: four ALUs, multiplication on ALU1, FP additions on pipes 2 and 3, products on 0 and 1;
/// two stores of general registers a cycle, one of a vector.
#[test]
fn amds_uops_are_those_of_llvm_and_the_guide() {
    for (hex, expected) in [
        ("4801d8", "alu0|alu1|alu2|alu3"),
        ("480fafc3", "alu1"),
        ("488d4308", "alu0|alu1|alu2|alu3"), // lea rax,[rbx+8]
        ("75fe", "alu0|br1"),
        ("c5f558c2", "fp2|fp3"),
        ("c5f559c2", "fp0|fp1"),   // vmulpd ymm0,ymm1,ymm2
        ("c4e2f5b8c2", "fp0|fp1"), // vfmadd231pd ymm0,ymm1,ymm2
        ("488b03", "agu0|agu1|agu2"),
        ("488903", "agu0|agu1|agu2 + st0|st1"),
        ("c5fd2903", "agu0|agu1|agu2 + st0"), // vmovapd [rbx],ymm0
    ] {
        assert_eq!(text("zen4", hex), expected, "{hex}");
    }
}

/// OSACA's machine file of Zen 5 (commit 1c058435; its ports 0, 2, 1, 3 are FP0 to FP3); `lea` as in GCC's
/// pipeline description (gcc/config/i386/zn4zn5.md, `znver5_lea`).
#[test]
fn zen5s_uops_are_those_of_osaca_and_gcc() {
    let any = "alu0|alu1|alu2|alu3|alu4|alu5";
    let address = "agu0|agu1|agu2|agu3";
    for (hex, expected) in [
        ("4801d8", any.to_owned()),
        ("480fafc3", "alu0|alu1|alu2".to_owned()),
        ("c5f558c2", "fp2|fp3".to_owned()),
        ("c5f559c2", "fp0|fp1".to_owned()),
        ("c4e27100c2", "fp1|fp2".to_owned()), // vpshufb xmm0,xmm1,xmm2
        ("c5f45ec2", "fp0|fp1 + 2.5*div".to_owned()), // vdivps ymm0,ymm1,ymm2: 5 on two dividers
        ("62f1744858c2", "fp2|fp3".to_owned()), // vaddps zmm0,zmm1,zmm2
        ("488b03", address.to_owned()),
        ("488903", format!("{address} + st0|st1")),
        ("c5fd2903", format!("{address} + fp4|fp5 + st0|st1")),
        ("488d0448", any.to_owned()), // lea rax,[rax+rcx*2]
    ] {
        assert_eq!(text("zen5", hex), expected, "{hex}");
    }
    // A 512-bit operation takes one slot.
    assert_eq!(uops("zen5", "62f1744858c2")[0].as_ref().unwrap().slots, 1.0);
}

#[test]
fn idioms_eliminated_moves_and_fused_compares_use_no_port() {
    // xor eax,eax; mov rax,rbx; cmp rax,rbx; jne
    let all = uops("zen4", "31c0 4889d8 4839d8 75f0");
    let without: Vec<_> = all.iter().map(|u| u.as_ref().unwrap().without).collect();
    let expected =
        [Some("zero idiom"), Some("eliminated at renaming"), Some("fused with the branch"), None];
    assert_eq!(without, expected);
    assert!(all[..3].iter().flatten().all(|u| u.uses.is_empty()));
    // Ice Lake executes moves of general registers (uops.info); an all-ones idiom needs a port.
    assert_eq!(text("icl", "4889d8"), "p0|p1|p5|p6");
    assert_eq!(text("icl", "660f76c0"), "p0|p1"); // pcmpeqd xmm0,xmm0
    // Sign and overflow are not fused with cmp (Intel's optimization manual): cmp; js.
    assert_eq!(uops("icl", "4839d8 78fe")[0].as_ref().unwrap().without, None);
    // A load stays: cmp rax,[rbx]; jne.
    assert_eq!(text("icl", "483b03 75fe"), "p2|p3");
}

#[test]
fn forms_without_an_entry_are_unknown_and_not_free() {
    // lock add [rbx],rax; fld st1
    for hex in ["f0480103", "d9c1"] {
        assert_eq!(uops("icl", hex), [None], "{hex}");
    }
}

/// Bounds worked by hand.
#[test]
fn the_bound_is_that_of_the_densest_ports() {
    // Three imul on p1 and two add on p0156: 3; six add: 6/4.
    assert_eq!(bound("icl", "480fafc3 480fafcb 480fafd3 4801d8 4801d9"), 3.0);
    assert_eq!(bound("icl", "4801d8 4801d9 4801da 4801de 4801df 4901d8"), 1.5);
    // Two shifts (p06) and a jcc (p06): 3/2, though four add would fit p15 beside them: 7/4.
    assert_eq!(bound("icl", "48c1e003 48c1e103 75f6"), 1.5);
    assert_eq!(bound("icl", "4801d8 4801d9 4801da 4801de 48c1e003 48c1e103 75f6"), 1.75);
    // The last add is fused with the jcc: 6/4.
    assert_eq!(bound("icl", "48c1e003 48c1e103 4801d8 4801d9 4801da 4801de 75f6"), 1.5);
    // Two vaddpd (p01) and one vfmadd231pd (p01) and one imul (p1): 4/2.
    assert_eq!(bound("icl", "c5f558c2 c5f558c2 c4e2f5b8c2 480fafc3"), 2.0);
    // Three stores of vectors on Zen 4: one a cycle; of general registers: two.
    assert_eq!(bound("zen4", "c5fd2903 c5fd2903 c5fd2903"), 3.0);
    assert_eq!(bound("zen4", "488903 488903 488903"), 1.5);
}

#[test]
fn the_spread_reaches_the_bound_and_keeps_every_uop() {
    let one = |ports, amount| {
        let uses = vec![Use { ports: PortSet(ports), amount }];
        Some(Uops { uses, slots: 1.0, without: None, source: String::new() })
    };
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..500 {
        let block: Vec<_> = (0..random.usize(1..12))
            .map(|_| one(random.u32(1..256), f64::from(random.u32(1..4))))
            .collect();
        let found = spread(&block, 8);
        // The definition, over all sets of ports.
        let brute = (1_u32..256).map(|set| {
            let inside = block.iter().flatten().flat_map(|u| &u.uses);
            let inside = inside.filter(|u| u.ports.is_within(PortSet(set)));
            inside.map(|u| u.amount).sum::<f64>() / f64::from(set.count_ones())
        });
        let expected = brute.fold(0.0, f64::max);
        assert!((found.bound - expected).abs() < 1e-9, "{block:?}");
        let busiest = found.total.iter().copied().fold(0.0, f64::max);
        assert!((busiest - expected).abs() < 1e-3, "{busiest} {expected} {block:?}");
        for (row, uops) in found.rows.iter().zip(&block) {
            let wanted = uops.as_ref().unwrap().uses[0];
            assert!((row.iter().sum::<f64>() - wanted.amount).abs() < 1e-6);
            assert!(
                row.iter().enumerate().all(|(p, cycles)| wanted.ports.has(p) || *cycles == 0.0)
            );
        }
    }
}
