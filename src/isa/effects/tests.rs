//! Effects against expectations from Intel SDM vol. 2, AMD APM vol. 3 and 4, and the measurements in
//! docs/results/accuracy.md.

use super::*;
use iced_x86::{Decoder, DecoderOptions};
use proptest::prelude::*;

/// `reads > writes`, sorted by name: `~` marks a merged read, `@` an address register and `^` a
/// stack-engine read. Then the accesses: `L4` loads 4 bytes, `S8` stores 8, `M4` does both; a `?` marks
/// a conditional one.
fn shown(hex: &str, uarch: Option<&str>) -> String {
    let effects = effects(hex, uarch);
    let mut reads: Vec<_> = effects
        .reads
        .iter()
        .map(|r| {
            let mark = match r.role {
                Role::Data => "",
                Role::Merged => "~",
                Role::Address(_) => "@",
                Role::Stack => "^",
            };
            format!("{mark}{}", r.reg.name())
        })
        .collect();
    reads.sort();
    reads.dedup();
    let mut writes: Vec<_> = effects.writes.iter().map(|w| w.reg.name()).collect();
    writes.sort();
    let memory = effects.memory.iter().map(|m| {
        let kind = match (m.load, m.store) {
            (true, true) => "M",
            (false, true) => "S",
            _ => "L",
        };
        format!(" {kind}{}{}", m.bytes, if m.conditional { "?" } else { "" })
    });
    let memory: String = memory.collect();
    format!("{} > {}{memory}", reads.join(" "), writes.join(" "))
}

fn effects(hex: &str, uarch: Option<&str>) -> Effects {
    let bytes = crate::code::parse_hex(hex).unwrap();
    let instruction = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
    Finder::new(crate::test_core(uarch).facts()).effects(&instruction)
}

#[test]
fn instructions_have_the_effects_of_the_manuals() {
    let expected = [
        ("4801d8", "rax rbx > CF OF SZAP rax"),         // add rax,rbx
        ("01d8", "rax rbx > CF OF SZAP rax"),           // add eax,ebx
        ("480303", "@rbx rax > CF OF SZAP rax L8"),     // add rax,[rbx]
        ("480103", "@rbx rax > CF OF SZAP M8"),         // add [rbx],rax
        ("4811d8", "CF rax rbx > CF OF SZAP rax"),      // adc rax,rbx
        ("48ffc0", "rax > OF SZAP rax"),                // inc rax
        ("ffc8", "rax > OF SZAP rax"),                  // dec eax
        ("4839d8", "rax rbx > CF OF SZAP"),             // cmp rax,rbx
        ("4885c0", "rax > CF OF SZAP"),                 // test rax,rax
        ("31c0", " > CF OF SZAP rax"),                  // xor eax,eax
        ("4829c0", " > CF OF SZAP rax"),                // sub rax,rax
        ("30c0", "rax > CF OF SZAP rax"),               // xor al,al
        ("6631c0", "rax > CF OF SZAP rax"),             // xor ax,ax
        ("4889d8", "rbx > rax"),                        // mov rax,rbx
        ("88d8", "rbx ~rax > rax"),                     // mov al,bl
        ("88dc", "rbx ~rax > rax"),                     // mov ah,bl
        ("6689d8", "rbx ~rax > rax"),                   // mov ax,bx
        ("0fb6c3", "rbx > rax"),                        // movzx eax,bl
        ("488d0418", "rax rbx > rax"),                  // lea rax,[rax+rbx]
        ("480f44c3", "SZAP rax rbx > rax"),             // cmove rax,rbx
        ("0f46c3", "CF SZAP rax rbx > rax"),            // cmovbe eax,ebx
        ("0f94c0", "SZAP ~rax > rax"),                  // sete al
        ("480fafc3", "rax rbx > CF OF SZAP rax"),       // imul rax,rbx
        ("48f7e3", "rax rbx > CF OF SZAP rax rdx"),     // mul rbx
        ("48f7f3", "rax rbx rdx > CF OF SZAP rax rdx"), // div rbx
        ("480fbcc3", "rbx ~rax > CF OF SZAP rax"),      // bsf rax,rbx
        ("f3480fb8c3", "rbx > CF OF SZAP rax"),         // popcnt rax,rbx
        ("48d3e0", "rax rcx ~CF ~OF ~SZAP > CF OF SZAP rax"), // shl rax,cl
        ("48c1e003", "rax > CF OF SZAP rax"),           // shl rax,3
        ("c1c003", "rax > CF OF rax"),                  // rol eax,3
        ("480fa3d8", "rax rbx > CF OF"),                // bt rax,rbx
        ("480fa318", "@rax @rbx rbx > CF OF L0"),       // bt [rax],rbx
        ("4893", "rax rbx > rax rbx"),                  // xchg rax,rbx
        ("50", "@rsp ^rsp rax > rsp S8"),               // push rax
        ("58", "@rsp ^rsp > rax rsp L8"),               // pop rax
        ("c3", "@rsp ^rsp > rsp L8"),                   // ret
        ("4899", "rax > rdx"),                          // cqo
        ("4898", "rax > rax"),                          // cdqe
        ("480fc8", "rax > rax"),                        // bswap rax
        ("f9", " > CF"),                                // stc
        ("f5", "CF > CF"),                              // cmc
        ("9e", "rax > CF SZAP"),                        // sahf
        ("c4e2fbf6c3", "rbx rdx > rax"),                // mulx rax,rax,rbx
        ("66480f38f6c3", "CF rax rbx > CF rax"),        // adcx rax,rbx
        ("f3480f38f6c3", "OF rax rbx > OF rax"),        // adox rax,rbx
        ("66480f6ec0", "rax > zmm0"),                   // movq xmm0,rax
        ("660ffec1", "zmm0 zmm1 > zmm0"),               // paddd xmm0,xmm1
        ("660fefc0", " > zmm0"),                        // pxor xmm0,xmm0
        ("660f76c0", " > zmm0"),                        // pcmpeqd xmm0,xmm0
        ("660f66c0", " > zmm0"),                        // pcmpgtd xmm0,xmm0
        ("660fdfc0", "zmm0 > zmm0"),                    // pandn xmm0,xmm0
        ("c5fd76c0", " > zmm0"),                        // vpcmpeqd ymm0,ymm0,ymm0
        ("c5f458c2", "zmm1 zmm2 > zmm0"),               // vaddps ymm0,ymm1,ymm2
        ("f2480f2ac0", "rax ~zmm0 > zmm0"),             // cvtsi2sd xmm0,rax
        ("f20f51c1", "zmm1 ~zmm0 > zmm0"),              // sqrtsd xmm0,xmm1
        ("f20f10c1", "zmm1 ~zmm0 > zmm0"),              // movsd xmm0,xmm1
        ("f20f1000", "@rax > zmm0 L8"),                 // movsd xmm0,[rax]
        ("0f2900", "@rax zmm0 > S16"),                  // movaps [rax],xmm0
        ("660f2ec1", "zmm0 zmm1 > CF OF SZAP"),         // ucomisd xmm0,xmm1
        ("c4e2f5b8c2", "zmm0 zmm1 zmm2 > zmm0"),        // vfmadd231pd ymm0,ymm1,ymm2
        ("62f17549fec2", "k1 zmm1 zmm2 ~zmm0 > zmm0"),  // vpaddd zmm0{k1},zmm1,zmm2
        ("62f175c9fec2", "k1 zmm1 zmm2 > zmm0"),        // vpaddd zmm0{k1}{z},zmm1,zmm2
        ("62f17c491100", "@rax k1 zmm0 > S64?"),        // vmovups [rax]{k1},zmm0
        ("62f17dc9efc0", "k1 zmm0 > zmm0"),             // vpxord zmm0{k1}{z},zmm0,zmm0
        ("62f17d4876c8", " > k1"),                      // vpcmpeqd k1,zmm0,zmm0
        ("86c4", "rax > rax"),                          // xchg al,ah
        ("480fc1d8", "rax rbx > CF OF SZAP rax rbx"),   // xadd rax,rbx
        ("54", "@rsp ^rsp rsp > rsp S8"),               // push rsp
        ("c5f877", " > "),                              // vzeroupper
    ];
    let mut wrong = Vec::new();
    for (hex, wanted) in expected {
        let wanted = wanted.replace(" > S", " >  S");
        let found = shown(hex, Some("emr"));
        if found != wanted {
            wrong.push(format!("{hex}: {found} instead of {wanted}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn effects_differ_between_processors_as_documented() {
    let popcnt = "f3480fb8c3";
    assert_eq!(shown(popcnt, Some("skl")), "rbx ~rax > CF OF SZAP rax"); // uops.info
    assert_eq!(shown("660fdfc0", Some("zen3")), " > zmm0"); // pandn, AMD's guide
    assert_eq!(shown("4819c0", Some("zen3")), "CF > CF OF SZAP rax"); // sbb rax,rax
    assert_eq!(shown("48d3e0", Some("zen3")), "rax rcx > CF OF SZAP rax"); // shl rax,cl
    assert!(effects("4889d8", Some("emr")).may_be_eliminated);
    assert!(!effects("4889d8", Some("icl")).may_be_eliminated);
}

#[test]
fn a_gather_has_one_load_per_lane() {
    let gather = effects("c4e26d90040a", Some("zen3")); // vpgatherdd ymm0,[rdx+ymm1],ymm2
    assert_eq!(gather.memory.len(), 8);
    assert!(gather.memory.iter().all(|m| m.bytes == 4 && m.conditional && m.load));
    // Masked-off elements keep their old values (Intel SDM, VPGATHERDD).
    let destination = gather.reads.iter().find(|r| r.reg == ArchReg::vector(0)).unwrap();
    assert_eq!(destination.role, Role::Merged);
}

#[test]
fn the_stack_engine_read_flows_only_to_rsp() {
    let pop = effects("58", Some("emr"));
    let stack = pop.reads.iter().find(|r| r.role == Role::Stack).unwrap();
    let to = |reg: ArchReg| *pop.writes.iter().find(|w| w.reg == reg).unwrap();
    assert!(pop.flows(stack, &to(ArchReg::gpr(4))));
    assert!(!pop.flows(stack, &to(ArchReg::gpr(0))));
    assert!(!pop.loaded_flows(&to(ArchReg::gpr(4))));
}

/// Intel SDM vol. 2: which operands flow to which results.
#[test]
fn values_flow_as_the_manual_defines() {
    let flows = |hex: &str, from: ArchReg, to: ArchReg| {
        let effects = effects(hex, Some("emr"));
        let (reads, writes) = (effects.reads.iter(), &effects.writes);
        reads
            .filter(|r| r.reg == from)
            .any(|r| writes.iter().any(|w| w.reg == to && effects.flows(r, w)))
    };
    let (rax, rbx, rsi) = (ArchReg::gpr(0), ArchReg::gpr(3), ArchReg::gpr(6));
    assert!(flows("86c4", rax, rax), "xchg al,ah: both in one register");
    assert!(flows("86d8", rax, rax), "xchg al,bl: the rest of rax is unchanged");
    assert!(!flows("4893", rax, rax), "xchg rax,rbx");
    assert!(flows("480fc1d8", rax, rbx) && flows("480fc1d8", rbx, rax), "xadd rax,rbx");
    assert!(flows("480fc1d8", rax, rax) && !flows("480fc1d8", rbx, rbx), "xadd rax,rbx");
    assert!(flows("ac", ArchReg::DIRECTION, rsi) && !flows("ac", ArchReg::DIRECTION, rax), "lodsb");
    let pop = effects("5c", Some("emr")); // pop rsp
    assert!(pop.writes.iter().any(|w| w.reg == ArchReg::gpr(4) && pop.loaded_flows(w)));
}

proptest! {
    #[test]
    fn any_bytes_have_bounded_effects(bytes in proptest::collection::vec(any::<u8>(), 1..16)) {
        let instruction = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
        for uarch in [None, Some("zen3"), Some("skl"), Some("emr")] {
            let effects = Finder::new(crate::test_core(uarch).facts()).effects(&instruction);
            prop_assert!(effects.memory.len() <= 64);
            // The largest operands are those of xrstor and fxsave, and 64 tile rows.
            prop_assert!(effects.memory.iter().all(|m| m.bytes <= 8192));
        }
    }
}
