//! Encodings of one operation: `add r64, r/m64` and `add r/m64, r64` have one latency between registers.

use crate::names::name;
use iced_x86::Code;
use std::collections::HashMap;
use std::sync::OnceLock;

/// All codes with the mnemonic, encoding and operand classes of `code`, itself included.
pub(super) fn twins(code: Code) -> &'static [Code] {
    static GROUPS: OnceLock<(Vec<Vec<Code>>, Vec<usize>)> = OnceLock::new();
    let (groups, group_of) = GROUPS.get_or_init(|| {
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut groups: Vec<Vec<Code>> = Vec::new();
        let mut group_of = Vec::new();
        for code in Code::values() {
            let at = *known.entry(operation(code)).or_insert(groups.len());
            if at == groups.len() {
                groups.push(Vec::new());
            }
            groups[at].push(code);
            group_of.push(at);
        }
        (groups, group_of)
    });
    group_of.get(code as usize).map_or(&[], |at| groups[*at].as_slice())
}

/// Mnemonic, encoding and the class of each operand: `r64_or_mem` and `r64_reg` are both `r64`.
fn operation(code: Code) -> String {
    let about = code.op_code();
    let mut text = format!("{} {}", name(code.mnemonic()), name(about.encoding()));
    for kind in about.op_kinds() {
        let kind = name(*kind);
        text.push(' ');
        text.push_str(kind.split('_').next().unwrap_or_default());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_directions_are_one_operation() {
        assert!(twins(Code::Add_r64_rm64).contains(&Code::Add_rm64_r64));
        assert!(!twins(Code::Add_r64_rm64).contains(&Code::Add_r32_rm32));
        assert!(!twins(Code::Add_r64_rm64).contains(&Code::Sub_r64_rm64));
        assert!(!twins(Code::Mulps_xmm_xmmm128).contains(&Code::VEX_Vmulps_xmm_xmm_xmmm128));
    }
}
