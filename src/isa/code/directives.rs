//! The directives that an assembly file may contain: those that compilers emit.
//!
//! Directives that read other files, repeat or generate text (a macro could generate a directive
//! that reads files), or emit unbounded data are rejected.

use tma::{Error, Result};

/// Directives that read files or generate text. They are rejected anywhere in the text, even in
/// comments: this module and the assembler may disagree on what a comment is.
const FORBIDDEN: [&str; 10] = [
    ".incbin",
    ".include",
    ".macro",
    ".rept",
    ".rep",
    ".irp",
    ".irpc",
    ".altmacro",
    ".exitm",
    ".mri",
];

/// Directives that compilers emit.
const KNOWN: [&str; 59] = [
    ".file",
    ".ident",
    ".loc",
    ".line",
    ".text",
    ".data",
    ".bss",
    ".section",
    ".subsection",
    ".pushsection",
    ".popsection",
    ".previous",
    ".globl",
    ".global",
    ".local",
    ".weak",
    ".weakref",
    ".hidden",
    ".internal",
    ".protected",
    ".type",
    ".size",
    ".symver",
    ".version",
    ".set",
    ".equ",
    ".equiv",
    ".byte",
    ".2byte",
    ".4byte",
    ".8byte",
    ".word",
    ".short",
    ".value",
    ".hword",
    ".int",
    ".long",
    ".quad",
    ".octa",
    ".float",
    ".single",
    ".double",
    ".tfloat",
    ".string",
    ".string8",
    ".ascii",
    ".base64",
    ".asciz",
    ".sleb128",
    ".uleb128",
    ".intel_syntax",
    ".att_syntax",
    ".code64",
    ".addrsig",
    ".addrsig_sym",
    ".comm",
    ".lcomm",
    ".largecomm",
    ".tls_common",
];

/// Directives that emit as many bytes as their operand says, with the largest accepted operand.
const SIZED: [(&str, u64); 9] = [
    (".zero", 1 << 20),
    (".skip", 1 << 20),
    (".space", 1 << 20),
    (".fill", 1 << 17),
    (".nops", 1 << 16),
    (".align", 1 << 12),
    (".balign", 1 << 12),
    (".p2align", 12),
    (".org", 1 << 20),
];

/// Rejects directives that compilers do not emit.
///
/// # Errors
/// The text contains such a directive; the error gives its line.
pub fn check(text: &str) -> Result<()> {
    check_forbidden(text)?;
    for (number, line) in text.lines().enumerate() {
        let refused = |cause: String| {
            Error::failed(format!("line {}: cannot use this assembly", number + 1))
                .because(cause)
                .hint("give compiler output (-S), or only the region to analyse")
        };
        let statements =
            statements(line).ok_or_else(|| refused("a comment spans several lines".to_owned()))?;
        for statement in &statements {
            let Some((name, operands)) = directive(statement) else { continue };
            let limit = SIZED.iter().find(|(sized, _)| *sized == name).map(|(_, limit)| *limit);
            let cfi = name.starts_with(".cfi_");
            match limit {
                Some(limit) if !is_at_most(operands, limit) => {
                    return Err(refused(format!(
                        "the operand of `{name}` must be a number up to {limit}"
                    )));
                }
                None if !cfi && !KNOWN.contains(&name.as_str()) => {
                    return Err(refused(format!(
                        "`{name}` is not a directive that compilers emit"
                    )));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Rejects text that contains a directive of [`FORBIDDEN`] anywhere.
pub fn check_forbidden(text: &str) -> Result<()> {
    let lower = text.to_ascii_lowercase();
    let in_symbol = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    for word in FORBIDDEN {
        if lower.match_indices(word).any(|(at, _)| !lower[at + word.len()..].starts_with(in_symbol))
        {
            return Err(Error::failed("cannot assemble the block")
                .because(format!("the directive `{word}` can read files or generate text")));
        }
    }
    Ok(())
}

/// Whether the first operand is a number of at most `limit`.
fn is_at_most(operands: &str, limit: u64) -> bool {
    let first = operands.split(',').next().unwrap_or_default().trim();
    let value = match first.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => first.parse(),
    };
    // `.fill repeat, size, value`: only `repeat` is checked, as sizes above 8 count as 8.
    value.is_ok_and(|v| v <= limit)
}

/// The statements of a line, without comments; `None` if a comment continues on the next line.
pub(super) fn statements(line: &str) -> Option<Vec<String>> {
    let mut all = vec![String::new()];
    let (mut quoted, mut escaped) = (false, false);
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '#' if !quoted => break,
            '/' if !quoted && rest.as_str().starts_with('*') => {
                let (_, after) = rest.as_str().split_once("*/")?;
                rest = after.chars();
                continue;
            }
            ';' if !quoted => {
                all.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(last) = all.last_mut() {
            last.push(c);
        }
    }
    Some(all)
}

/// The directive of a statement, after any labels: its name in lower case and its operands.
pub fn directive(statement: &str) -> Option<(String, &str)> {
    let mut rest = statement.trim();
    let in_symbol = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '@' | '"');
    while let Some((label, after)) = rest.split_once(':')
        && label.trim_end().chars().all(in_symbol)
    {
        rest = after.trim_start();
    }
    let (name, operands) = rest.split_at(rest.find(|c| !in_symbol(c)).unwrap_or(rest.len()));
    let assigned = operands.trim_start().starts_with('=');
    (name.starts_with('.') && !assigned).then(|| (name.to_ascii_lowercase(), operands))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_output_is_accepted() {
        let text = ".file \"a;b.c\"\n.text\n.p2align 4,,10\n.p2align 3\n.L3: .cfi_startproc\n.LC0 = 5\n\
                    jne .L3; .long 0 # a comment; .bogus\n.string \"a#b\\\"c;.bogus\"\n.section .rodata\n.zero 400\n";
        check(text).unwrap();
    }

    #[test]
    fn directives_that_read_files_generate_text_or_emit_unbounded_data_are_rejected() {
        for text in [
            ".incbin \"/etc/passwd\"",
            ".INCLUDE \"x\"",
            "/**/.incbin \"x\"",
            "nop; a: b: .include \"x\"",
            ".macro m a b\n.\\a\\b\n.endm",
            ".rept 9999999",
            ".irp x,1,2",
            ".zero 99999999999",
            ".zero x-y",
            ".fill 1048577, 8, 0",
            ".p2align 40",
            ".align 1048576",
            ".org 0xffffffff",
            ".bogus",
            ".endm",
            ".if 1",
            "\"a\": .unknown 3",
            "/* a */ .zero 99999999999",
            "/* a\n*/ nop",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
        let error = check("nop\nnop\n.bogus 3").unwrap_err();
        assert!(error.what().contains("line 3"), "{error}");
    }
}
