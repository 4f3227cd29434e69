//! Assembly text → bytes, through the system's assembler (`as`, GNU binutils).
//!
//! The assembler that people's toolchains use anyway knows every instruction and both syntaxes;
//! no crate does. Without it only this input is missing.

use super::directives;
use object::{Object as _, ObjectSection as _};
use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::process::{Command, Stdio};
use tma::{Error, Result};

/// How operands are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Syntax {
    /// `add rax, rbx`: destination first.
    Intel,
    /// `addq %rbx, %rax`: destination last.
    Att,
}

impl Syntax {
    /// The line that tells the assembler.
    pub(super) fn directive(self) -> &'static str {
        match self {
            Self::Intel => ".intel_syntax noprefix\n",
            Self::Att => ".att_syntax prefix\n",
        }
    }
}

/// Assembles `text`: one instruction per line, or several separated by `;`.
///
/// # Errors
/// No assembler, a directive, a line that the assembler refuses, or a symbol it cannot resolve.
pub fn assemble(text: &str, syntax: Syntax) -> Result<Vec<u8>> {
    let source = source(text, syntax)?;
    let object = run(&source, "instruction")?;
    let failed = |cause: String| Error::failed("cannot read the assembled block").because(cause);
    let file = object::File::parse(&*object).map_err(|e| failed(e.to_string()))?;
    let section = file.section_by_name(".text").ok_or_else(|| failed("no .text".to_owned()))?;
    if section.relocations().next().is_some() {
        return Err(Error::failed("cannot assemble the block")
            .because("it names a symbol outside itself")
            .hint("write addresses as numbers; a block has no labels but its own"));
    }
    let bytes = section.data().map_err(|e| failed(e.to_string()))?.to_vec();
    if bytes.is_empty() {
        return Err(Error::failed("the block is empty"));
    }
    Ok(bytes)
}

/// The text between the lines that choose the syntax. Directives are refused: they could read
/// files, and none of them is an instruction.
fn source(text: &str, syntax: Syntax) -> Result<String> {
    if text.contains("/*") {
        // A directive behind such a comment would not be seen as one below.
        return Err(Error::failed("cannot assemble the block")
            .because("`/*` starts a comment")
            .hint("write comments behind #"));
    }
    directives::never(text)?;
    if let (Syntax::Intel, Some(sign)) = (syntax, att_sign(text)) {
        // GNU as takes `%rax` in Intel syntax too, and then with the operands the other way round.
        return Err(Error::usage("cannot assemble the block")
            .because(format!("`{sign}` is AT&T syntax, and operands are read in Intel's order"))
            .hint("did you mean --att?"));
    }
    let mut source = String::from(syntax.directive());
    for line in text.split([';', '\n']) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if let Some((name, _)) = directives::directive(line) {
            return Err(Error::failed("cannot assemble the block")
                .because(format!("`{name}` is a directive, not an instruction")));
        }
        source.push_str(line);
        source.push('\n');
    }
    Ok(source)
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

/// Runs `as` on `source` in a folder of its own and returns the object file. Complaints name the
/// line, from 1 behind the one that chooses the syntax, as an `each`.
pub(super) fn run(source: &str, each: &str) -> Result<Vec<u8>> {
    let failed = |cause: String| Error::failed("cannot assemble the block").because(cause);
    let folder = TemporaryFolder::new().map_err(|e| failed(e.to_string()))?;
    let out = folder.0.join("block.o");
    let mut child = Command::new("as")
        .args(["--64", "-o"])
        .arg(&out)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| {
            failed(format!("the assembler `as` does not start: {e}"))
                .hint("install binutils, or give the block as hexadecimal bytes")
        })?;
    if let Some(mut stdin) = child.stdin.take() {
        // An assembler that has given up closes its input; its message follows.
        let _ = stdin.write_all(source.as_bytes());
    }
    let done = child.wait_with_output().map_err(|e| failed(e.to_string()))?;
    if !done.status.success() {
        return Err(failed(complaints(&String::from_utf8_lossy(&done.stderr), each)));
    }
    std::fs::read(&out).map_err(|e| failed(e.to_string()))
}

/// So many of the assembler's messages are passed on: the rest mostly follows from the first.
const SHOWN: usize = 4;

/// The assembler's first messages without its name; its line 1 is the syntax line.
fn complaints(text: &str, each: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("{standard input}:"))
        .filter_map(|line| {
            let (number, message) = line.split_once(": Error: ")?;
            Some(format!("{each} {}: {message}", number.parse::<usize>().ok()? - 1))
        })
        .collect();
    match lines.len() {
        0 => text.trim().to_owned(),
        all if all <= SHOWN + 1 => lines.join("\n"),
        all => format!("{}\nand {} more like these", lines[..SHOWN].join("\n"), all - SHOWN),
    }
}

/// A folder of our own that is removed again. The assembler removes its output file before it
/// writes a new one, so a name in a shared folder could be taken in between.
struct TemporaryFolder(std::path::PathBuf);

impl TemporaryFolder {
    /// Creates a folder that nobody else can write to.
    fn new() -> std::io::Result<Self> {
        let folder = std::env::temp_dir();
        for attempt in 0..1000u32 {
            let path = folder.join(format!("tdtool-{}-{attempt}", std::process::id()));
            match std::fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(std::io::Error::other("no free name for a temporary folder"))
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_syntaxes_give_the_bytes_of_the_manual() {
        // add rax,rbx = 48 01 d8; lea rcx,[rax+1] = 48 8d 48 01
        let intel = assemble("add rax, rbx; lea rcx, [rax+1]", Syntax::Intel).unwrap();
        let att = assemble("addq %rbx, %rax\nleaq 1(%rax), %rcx", Syntax::Att).unwrap();
        assert_eq!(intel, [0x48, 0x01, 0xd8, 0x48, 0x8d, 0x48, 0x01]);
        assert_eq!(att, intel);
    }

    #[test]
    fn att_text_is_not_read_in_intels_order() {
        for text in ["mov %rax,%rbx", "nop; add $1, %rax", "lea 8(%rsp), %rcx", "mov $-1, rax"] {
            let error = assemble(text, Syntax::Intel).unwrap_err();
            assert!(error.remedy().is_some_and(|r| r.contains("--att")), "{text}: {error:?}");
        }
        assert!(assemble("mov rax, rbx # %rax", Syntax::Intel).is_ok());
    }

    /// Once two assemblers at work at the same time could be given one output file.
    #[test]
    fn many_at_once_do_not_get_in_each_others_way() {
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
    fn a_wrong_line_is_named_and_a_directive_refused() {
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
