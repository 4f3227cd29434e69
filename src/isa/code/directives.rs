//! Which directives an assembly file may hold: those that compilers write.
//!
//! Refused is what reads other files, what repeats or builds text (a macro could build a directive
//! that reads files), and what fills memory without bound.

use tma::{Error, Result};

/// Directives that read files or build text. No spelling of the text may hold one, so that what
/// this file takes for a comment and the assembler does not makes no difference.
const NEVER: [&str; 10] = [
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

/// What compilers write.
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

/// Directives that make as many bytes as their operand says, and the most it may say.
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

/// Refuses what a compiler's output does not hold.
///
/// # Errors
/// Such a directive, with its line.
pub fn check(text: &str) -> Result<()> {
    never(text)?;
    for (number, line) in text.lines().enumerate() {
        let refused = |cause: String| {
            Error::failed(format!("line {}: cannot take this assembly", number + 1))
                .because(cause)
                .hint("give what a compiler writes with -S, or the region by itself")
        };
        let statements =
            statements(line).ok_or_else(|| refused("a comment over several lines".to_owned()))?;
        for statement in &statements {
            let Some((name, operands)) = directive(statement) else { continue };
            let limit = SIZED.iter().find(|(sized, _)| *sized == name).map(|(_, limit)| *limit);
            let cfi = name.starts_with(".cfi_");
            match limit {
                Some(limit) if !is_at_most(operands, limit) => {
                    return Err(refused(format!("`{name}` takes a number up to {limit} here")));
                }
                None if !cfi && !KNOWN.contains(&name.as_str()) => {
                    return Err(refused(format!("`{name}` is no directive that compilers write")));
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// Refuses text that holds a directive of [`NEVER`] anywhere.
///
/// # Errors
/// It does.
pub fn never(text: &str) -> Result<()> {
    let lower = text.to_ascii_lowercase();
    let in_symbol = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$');
    for word in NEVER {
        if lower.match_indices(word).any(|(at, _)| !lower[at + word.len()..].starts_with(in_symbol))
        {
            return Err(Error::failed("cannot assemble the block")
                .because(format!("`{word}` is a directive that could read files or build text")));
        }
    }
    Ok(())
}

/// Whether the first operand is a number of at most `limit`; that of `.p2align` may be left out.
fn is_at_most(operands: &str, limit: u64) -> bool {
    let first = operands.split(',').next().unwrap_or_default().trim();
    let value = match first.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => first.parse(),
    };
    // `.fill repeat, size, value`: sizes above 8 count as 8.
    value.is_ok_and(|v| v <= limit)
}

/// The statements of a line, without its comments; `None` if a comment goes on in the next line.
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
                let (_, behind) = rest.as_str().split_once("*/")?;
                rest = behind.chars();
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

/// The directive of a statement behind its labels, in lower case, and its operands.
pub fn directive(statement: &str) -> Option<(String, &str)> {
    let mut rest = statement.trim();
    let in_symbol = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '$' | '@' | '"');
    while let Some((label, behind)) = rest.split_once(':')
        && label.trim_end().chars().all(in_symbol)
    {
        rest = behind.trim_start();
    }
    let (name, operands) = rest.split_at(rest.find(|c| !in_symbol(c)).unwrap_or(rest.len()));
    let assigned = operands.trim_start().starts_with('=');
    (name.starts_with('.') && !assigned).then(|| (name.to_ascii_lowercase(), operands))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gcc_writes_passes() {
        let text = ".file \"a;b.c\"\n.text\n.p2align 4,,10\n.p2align 3\n.L3: .cfi_startproc\n.LC0 = 5\n\
                    jne .L3; .long 0 # a comment; .bogus\n.string \"a#b\\\"c;.bogus\"\n.section .rodata\n.zero 400\n";
        check(text).unwrap();
    }

    #[test]
    fn what_reads_files_builds_text_or_fills_the_disk_does_not() {
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
