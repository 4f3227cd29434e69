//! The shape of a block: its instructions without what changes when code or data move.

/// Smallest constant that is taken for an address.
const ADDRESS: u64 = 0x1000;

/// Instructions without addresses, separated by `; `.
///
/// ```
/// use report::documents::code_shape::shape;
///
/// let of = |text: &[&str]| shape(text.iter().copied());
/// assert_eq!(of(&["add rax,[rip+2f10h]", "jne 0x1140"]), of(&["add rax,[rip+2e08h]", "jne 0x1150"]));
/// assert_ne!(of(&["add rax,8"]), of(&["add rax,16"]));
/// ```
pub fn shape<'a>(instructions: impl Iterator<Item = &'a str>) -> String {
    instructions.map(one).collect::<Vec<_>>().join("; ")
}

/// The mnemonics of a shape.
pub fn mnemonics(shape: &str) -> String {
    let first = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
    shape.split("; ").map(first).collect::<Vec<_>>().join("; ")
}

/// An instruction without addresses: targets of branches, what is relative to `rip`, large constants.
fn one(text: &str) -> String {
    let (mnemonic, operands) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let is_branch = mnemonic.starts_with('j') || mnemonic.starts_with("loop") || mnemonic == "call";
    if is_branch && number(operands.rsplit(' ').next().unwrap_or_default()).is_some() {
        return mnemonic.to_owned();
    }
    let mut out = format!("{mnemonic} ");
    let mut rest = operands;
    while let Some(at) = rest.find('[') {
        let (before, inside) = rest.split_at(at);
        let end = inside.find(']').map_or(inside.len(), |end| end + 1);
        out += &constants(before);
        let inner = inside[1..end].trim_start();
        let fixed = inner.starts_with("rip") || inner.starts_with("rel ") || is_digit(inner);
        out += if fixed { "[#]" } else { &inside[..end] };
        rest = &inside[end..];
    }
    (out + &constants(rest)).trim_end().to_owned()
}

fn is_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// The operands with `#` in place of what may be an address.
fn constants(text: &str) -> String {
    let word = |word: &str| match number(word) {
        Some(value) if value >= ADDRESS => "#".to_owned(),
        _ => word.to_owned(),
    };
    text.split(',').map(word).collect::<Vec<_>>().join(",")
}

/// A number as disassemblers write it: `0x1f`, `1fh`, `31`.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    match (text.strip_prefix("0x"), text.strip_suffix(['h', 'H'])) {
        (Some(hex), _) => u64::from_str_radix(hex, 16).ok(),
        (_, Some(hex)) if is_digit(hex) => u64::from_str_radix(hex, 16).ok(),
        _ => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moves_is_left_out_and_what_computes_is_not() {
        let cases = [
            ("jne 0x1140", "jne"),
            ("jne short 00001140h", "jne"),
            ("jmp rax", "jmp rax"),
            ("call qword ptr [rip+0x2fe0]", "call qword ptr [#]"),
            ("lea rdi,[0x2004]", "lea rdi,[#]"),
            ("mov edi,0x404040", "mov edi,#"),
            ("mov eax,dword ptr [rdi+rcx*4+0x10]", "mov eax,dword ptr [rdi+rcx*4+0x10]"),
            ("imul rax,rax,0x1f", "imul rax,rax,0x1f"),
            ("mov eax,dword ptr [rdi", "mov eax,dword ptr [rdi"),
            ("ret", "ret"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(one(text), expected, "{text}");
        }
        assert_eq!(mnemonics("mov eax,#; add eax,1; jne"), "mov; add; jne");
    }
}
