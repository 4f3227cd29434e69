//! Assembly text → bytes, with the system's assembler (`as` of GNU binutils).
//!
//! GNU as knows every instruction in both syntaxes, which no crate does. Where it is not installed,
//! only assembly input is unavailable.

use super::{directives, pasted};
use object::{Object as _, ObjectSection as _};
use std::io::Write as _;
use std::process::{Command, Stdio};
use tma::temporary::TemporaryFolder;
use tma::{Error, Result};

/// Assembly syntax.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// `add rax, rbx`: destination first.
    Intel,
    /// `addq %rbx, %rax`: destination last.
    Att,
}

impl Syntax {
    /// The directive that selects the syntax, with a newline.
    pub(super) fn directive(self) -> &'static str {
        match self {
            Self::Intel => ".intel_syntax noprefix\n",
            Self::Att => ".att_syntax prefix\n",
        }
    }
}

/// Assembles `text`: instructions separated by newlines or `;`.
///
/// # Errors
/// The assembler is missing or rejects a line, or the text contains a directive or an undefined
/// symbol.
pub fn assemble(text: &str, syntax: Syntax) -> Result<Vec<u8>> {
    let source = source(text, syntax)?;
    let object = run(&source, "instruction").map_err(|e| hinted(e, syntax))?;
    let failed = |cause: String| Error::failed("cannot read the assembled block").because(cause);
    let file = object::File::parse(&*object).map_err(|e| failed(e.to_string()))?;
    let section = file.section_by_name(".text").ok_or_else(|| failed("no .text".to_owned()))?;
    if section.relocations().next().is_some() {
        return Err(Error::failed("cannot assemble the block")
            .because("it refers to a symbol that it does not define")
            .hint("jump to a label of the block, or to an offset in it: jne 0"));
    }
    let bytes = section.data().map_err(|e| failed(e.to_string()))?.to_vec();
    if bytes.is_empty() {
        return Err(Error::failed("the block is empty"));
    }
    Ok(bytes)
}

/// The text for the assembler: the syntax directive, then one statement per line. Directives are
/// rejected because some of them read files.
fn source<'t>(text: &'t str, syntax: Syntax) -> Result<String> {
    if text.contains("/*") {
        // The check for directives below would miss one that follows such a comment.
        return Err(Error::failed("cannot assemble the block")
            .because("`/*` comments are not supported")
            .hint("start comments with #"));
    }
    directives::check_forbidden(text)?;
    if let (Syntax::Intel, Some(sign)) = (syntax, att_sign(text)) {
        // GNU as accepts `%rax` in Intel syntax too, but then takes the destination first.
        return Err(Error::usage("cannot assemble the block")
            .because(format!("`{sign}` is AT&T syntax, but the block is read as Intel syntax"))
            .hint("did you mean --att?"));
    }
    let code = |line: &'t str| line.split('#').next().unwrap_or_default().trim();
    let lines: Vec<&str> = text.split([';', '\n']).map(code).collect();
    if let Some((name, _)) = lines.iter().find_map(|line| directives::directive(line)) {
        return Err(Error::failed("cannot assemble the block")
            .because(format!("`{name}` is a directive, not an instruction")));
    }
    let statements = pasted::statements(&lines, syntax == Syntax::Intel);
    Ok(format!("{}{}\n", syntax.directive(), statements.join("\n")))
}

/// The first `%register` or `$immediate` outside comments.
fn att_sign(text: &str) -> Option<&str> {
    let code = text.split([';', '\n']).map(|line| line.split('#').next().unwrap_or_default());
    code.filter_map(sign).next()
}

/// The first `%register` or `$immediate` of a statement without comments.
pub(super) fn sign(statement: &str) -> Option<&str> {
    statement.split([' ', '\t', ',', '(', ')', '*', ':', '[', ']', '+']).find(|word| {
        let rest = word.strip_prefix(['%', '$']);
        rest.is_some_and(|r| r.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-'))
    })
}

/// What to check in instructions that the assembler refused.
fn hinted(error: Error, syntax: Syntax) -> Error {
    match (error.remedy(), syntax) {
        (Some(_), _) => error,
        (None, Syntax::Intel) => {
            error.hint("the block is read as `add DESTINATION, SOURCE`; --att reads AT&T syntax")
        }
        (None, Syntax::Att) => error.hint(
            "the block is read as `addq SOURCE, DESTINATION`; without --att it is Intel syntax",
        ),
    }
}

/// Runs `as` on `source` in a private directory and returns the object file. Errors give the line
/// as "`unit` N", where N counts from 1 after the syntax directive.
pub(super) fn run(source: &str, unit: &str) -> Result<Vec<u8>> {
    let failed = |cause: String| Error::failed("cannot assemble the block").because(cause);
    let folder = TemporaryFolder::new().map_err(|e| failed(e.to_string()))?;
    let out = folder.path().join("block.o");
    let mut child = Command::new("as")
        .args(["--64", "-o"])
        .arg(&out)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| {
            failed(format!("cannot start the assembler `as`: {e}"))
                .hint("install binutils, or give the block as hexadecimal bytes")
        })?;
    if let Some(mut stdin) = child.stdin.take() {
        // The assembler closes its input when it gives up; its message on stderr matters then.
        let _ = stdin.write_all(source.as_bytes());
    }
    let done = child.wait_with_output().map_err(|e| failed(e.to_string()))?;
    if !done.status.success() {
        return Err(failed(messages(&String::from_utf8_lossy(&done.stderr), unit)));
    }
    std::fs::read(&out).map_err(|e| failed(e.to_string()))
}

/// Most messages of the assembler shown: later ones usually follow from the first.
const MAX_MESSAGES: usize = 4;

/// The assembler's first messages, without its name and with line numbers as in the input: its
/// line 1 is the syntax directive.
fn messages(text: &str, unit: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("{standard input}:"))
        .filter_map(|line| {
            let (number, message) = line.split_once(": Error: ")?;
            Some(format!("{unit} {}: {message}", number.parse::<usize>().ok()? - 1))
        })
        .collect();
    match lines.len() {
        0 => text.trim().to_owned(),
        all if all <= MAX_MESSAGES + 1 => lines.join("\n"),
        all => format!("{}\nand {} more", lines[..MAX_MESSAGES].join("\n"), all - MAX_MESSAGES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_syntaxes_assemble_to_the_manuals_encoding() {
        // add rax,rbx = 48 01 d8; lea rcx,[rax+1] = 48 8d 48 01
        let intel = assemble("add rax, rbx; lea rcx, [rax+1]", Syntax::Intel).unwrap();
        let att = assemble("addq %rbx, %rax\nleaq 1(%rax), %rcx", Syntax::Att).unwrap();
        assert_eq!(intel, [0x48, 0x01, 0xd8, 0x48, 0x8d, 0x48, 0x01]);
        assert_eq!(att, intel);
    }

    #[test]
    fn att_text_is_rejected_in_intel_syntax() {
        for text in ["mov %rax,%rbx", "nop; add $1, %rax", "lea 8(%rsp), %rcx", "mov $-1, rax"] {
            let error = assemble(text, Syntax::Intel).unwrap_err();
            assert!(error.remedy().is_some_and(|r| r.contains("--att")), "{text}: {error:?}");
        }
        assert!(assemble("mov rax, rbx # %rax", Syntax::Intel).is_ok());
    }

    /// A regression: concurrent assemblers could share one output file.
    #[test]
    fn concurrent_assemblers_do_not_interfere() {
        let one = |i: u8| {
            let bytes = assemble(&format!("add al, {i}"), Syntax::Intel).unwrap();
            assert_eq!(bytes, [0x04, i]); // add al, imm8
        };
        std::thread::scope(|s| {
            for i in 0..16 {
                s.spawn(move || one(i));
            }
        });
    }

    #[test]
    fn errors_name_the_instruction_and_directives_are_rejected() {
        let error = assemble("nop; bogus rax", Syntax::Intel).unwrap_err().to_string();
        assert!(error.contains("instruction 2"), "{error}");
        for text in [".incbin \"/etc/passwd\"", "a: .INCBIN \"/etc/pass:wd\"", "b: .zero 9"] {
            let error = assemble(text, Syntax::Intel).unwrap_err().to_string();
            assert!(error.contains("directive"), "{text}: {error}");
        }
        let error = assemble("/**/.incbin \"/etc/passwd\"", Syntax::Intel).unwrap_err().to_string();
        assert!(error.contains("comment"), "{error}");
        assert!(assemble("call elsewhere", Syntax::Intel).is_err());
    }
}
