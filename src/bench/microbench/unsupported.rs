//! Encodings without a form: one of their operands cannot be chosen freely.

use super::form::Form;
use iced_x86::{Code, EncodingKind, OpCodeOperandKind};
use isa::names::name;
use serde::Serialize;

/// A form in the list, or an encoding without one.
#[derive(Debug, Clone, Serialize)]
pub struct Listed {
    /// Its name.
    pub form: String,
    /// iced-x86's name of its encoding, with the choice of its operand.
    pub code: String,
    /// Extensions that it needs.
    pub extensions: Vec<String>,
    /// Why it cannot be measured here, if it cannot.
    pub reason: Option<String>,
}

/// Encodings of 64-bit code without a form whose name or mnemonic `hit` accepts, with the reason.
pub fn unsupported(hit: impl Fn(&str) -> bool) -> Vec<Listed> {
    let known = |code: &Code| {
        let op = code.op_code();
        op.is_instruction() && op.mode64() && op.encoding() != EncodingKind::MVEX
    };
    let listed = |code: Code| {
        let encoding = name(code);
        let mnemonic = name(code.mnemonic());
        (hit(&encoding) || hit(&mnemonic)).then(|| Listed {
            form: mnemonic.to_uppercase(),
            code: encoding,
            extensions: code.cpuid_features().iter().map(|f| name(*f)).collect(),
            reason: Some(reason(code).to_owned()),
        })
    };
    let all = Code::values().filter(known).filter(|code| Form::all_of(*code).is_empty());
    let mut all: Vec<Listed> = all.filter_map(listed).collect();
    all.sort_by(|a, b| (&a.form, &a.code).cmp(&(&b.form, &b.code)));
    all
}

fn reason(code: Code) -> &'static str {
    let kinds = code.op_code().op_kinds();
    let any = |is: fn(OpCodeOperandKind) -> bool| kinds.iter().any(|kind| is(*kind));
    use OpCodeOperandKind as K;
    if any(|k| {
        let vector_addresses = [
            K::mem_vsib32x,
            K::mem_vsib64x,
            K::mem_vsib32y,
            K::mem_vsib64y,
            K::mem_vsib32z,
            K::mem_vsib64z,
        ];
        vector_addresses.contains(&k)
    }) {
        "gather or scatter: its addresses come from a vector register"
    } else if any(|k| [K::seg_rSI, K::es_rDI, K::seg_rDI, K::seg_rBX_al].contains(&k)) {
        "string instruction: its address registers are fixed"
    } else if code.is_jcc_short_or_near() || code.is_jmp_short_or_near() || any(is_target) {
        "branch: control would leave the microbenchmark"
    } else if any(|k| [K::st0, K::sti_opcode].contains(&k)) {
        "operates on the x87 stack"
    } else if any(|k| [K::cr_reg, K::dr_reg, K::tr_reg].contains(&k)) {
        "system register: privileged"
    } else if any(|k| [K::seg_reg, K::es, K::cs, K::ss, K::ds, K::fs, K::gs].contains(&k)) {
        "segment register"
    } else if any(|k| [K::tmm_reg, K::tmm_rm, K::tmm_vvvv, K::sibmem].contains(&k)) {
        "operates on tiles (AMX)"
    } else if any(|k| k == K::mem_offs) {
        "constant address"
    } else {
        "an operand cannot be chosen freely"
    }
}

fn is_target(kind: OpCodeOperandKind) -> bool {
    use OpCodeOperandKind as K;
    let targets = [
        K::br16_1,
        K::br32_1,
        K::br64_1,
        K::br16_2,
        K::br32_4,
        K::br64_4,
        K::xbegin_2,
        K::xbegin_4,
        K::brdisp_2,
        K::brdisp_4,
        K::farbr2_2,
        K::farbr4_2,
    ];
    targets.contains(&kind)
}
