//! Marked regions of an assembly file (comments of LLVM-MCA or OSACA, IACA's bytes), or all of its
//! code if nothing is marked.
//!
//! The whole file is assembled so that jumps keep their encoded lengths. Labels inserted in place of
//! the marker comments locate the regions in the object file.

use super::assemble::{Syntax, assemble, run, sign};
use super::directives;
use super::markers::{self, Marked};
use super::region::{Region, cut};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind};
use tma::{Error, Result};

/// Largest accepted assembly file, in bytes.
pub const MAX_LISTING_BYTES: usize = 16 << 20;

/// Detects the syntax of an assembly file, as GNU as and llvm-mca would, and gives the evidence if
/// it is not a directive. Compilers emit AT&T syntax without a directive, and `.intel_syntax`
/// otherwise. A file with neither a directive nor a `%register` or `$immediate` is read as Intel
/// syntax, as on the command line.
pub fn listing_syntax(text: &str) -> (Syntax, Option<String>) {
    for (number, line) in text.lines().enumerate() {
        for statement in directives::statements(line).unwrap_or_default() {
            match directives::directive(&statement) {
                Some((name, _)) if name == ".intel_syntax" => return (Syntax::Intel, None),
                Some((name, _)) if name == ".att_syntax" => return (Syntax::Att, None),
                Some(_) => {}
                None => {
                    if let Some(sign) = sign(&statement) {
                        let evidence =
                            format!("`{sign}` on line {} and no .intel_syntax", number + 1);
                        return (Syntax::Att, Some(evidence));
                    }
                }
            }
        }
    }
    (Syntax::Intel, None)
}

/// The marked regions of an assembly file such as a compiler's `-S` output; without markers, all of its code as one
/// region, unless it is what a compiler wrote of whole functions. Instructions alone may have the columns of listings,
/// as on the command line.
///
/// # Errors
/// The assembler is missing or rejects a line, a directive is not accepted, markers do not pair, or
/// a region contains no code.
pub fn read_listing(text: &str, syntax: Syntax) -> Result<Vec<Region>> {
    read(text, syntax).or_else(|error| match is_bare(text) {
        true => assemble(text, syntax)
            .map(|bytes| vec![Region { name: None, bytes }])
            .map_err(|_| error),
        false => Err(error),
    })
}

/// Whether a text has instructions and labels only, as on the command line.
fn is_bare(text: &str) -> bool {
    let mut all = text.lines().flat_map(|line| directives::statements(line).unwrap_or_default());
    let has_directive = all.any(|statement| directives::directive(&statement).is_some());
    let is_short = text.len() <= MAX_LISTING_BYTES;
    is_short && !has_directive && text.lines().all(|line| markers::comment(line).is_none())
}

fn read(text: &str, syntax: Syntax) -> Result<Vec<Region>> {
    if text.len() > MAX_LISTING_BYTES {
        return Err(Error::failed("the assembly file is too long")
            .because(format!("it has {} bytes; the limit is {MAX_LISTING_BYTES}", text.len())));
    }
    directives::check(text)?;
    let regions = markers::marked(text)?;
    let object =
        run(&labelled(text, syntax, &regions), "line").map_err(|e| hinted(e, text, syntax))?;
    let failed = |cause: String| Error::failed("cannot read the assembled file").because(cause);
    let file = object::File::parse(&*object).map_err(|e| failed(e.to_string()))?;
    if regions.is_empty() {
        return match marked_code(&file)? {
            found if found.is_empty() && has_functions(text) => {
                Err(unmarked("it has whole functions"))
            }
            found if found.is_empty() => whole(&file),
            found => Ok(found),
        };
    }
    regions.iter().enumerate().map(|(number, region)| labels(&file, number, region)).collect()
}

/// The text with a label in place of each marker comment; line numbers do not change.
fn labelled(text: &str, syntax: Syntax, regions: &[Marked]) -> String {
    let mut source = String::from(syntax.directive());
    for (line, content) in text.lines().enumerate() {
        let mut code = match markers::comment(content) {
            Some((code, _)) => code.trim_end().to_owned(),
            None => content.to_owned(),
        };
        for (number, region) in regions.iter().enumerate() {
            for (at, which) in [(region.begin, "begin"), (region.end, "end")] {
                if at == line {
                    let separator = if code.trim().is_empty() { "" } else { "; " };
                    code += &format!("{separator}{}:", label(number, which));
                }
            }
        }
        source.push_str(&code);
        source.push('\n');
    }
    source
}

fn label(number: usize, which: &str) -> String {
    format!("tdtool_region_{number}_{which}")
}

/// The code between the labels of a region.
fn labels(file: &object::File<'_>, number: usize, region: &Marked) -> Result<Region> {
    let failed = |cause: &str| {
        let name = region.name.as_deref().unwrap_or("without a name");
        Error::failed(format!("cannot extract the region {name} at line {}", region.begin + 1))
            .because(cause)
    };
    let find = |which| file.symbol_by_name(&label(number, which));
    let (begin, end) = find("begin")
        .zip(find("end"))
        .ok_or_else(|| failed("the assembled file lacks its labels"))?;
    let section = begin.section_index().filter(|s| end.section_index() == Some(*s));
    let section = section.ok_or_else(|| failed("it starts and ends in different sections"))?;
    let section = file.section_by_index(section).map_err(|e| failed(&e.to_string()))?;
    let bytes = cut(file, &section, begin.address() as usize, end.address() as usize)
        .map_err(|e| failed(e.cause().unwrap_or(e.what())))?;
    Ok(Region { name: region.name.clone(), bytes })
}

/// The regions between IACA markers in the code sections of an object file or program.
pub fn marked_code(file: &object::File<'_>) -> Result<Vec<Region>> {
    let mut found = Vec::new();
    for section in file.sections().filter(|s| s.kind() == SectionKind::Text) {
        let data = section.data().map_err(|e| Error::failed("cannot read the code").because(e))?;
        for range in markers::iaca(data)? {
            found.push(Region { name: None, bytes: cut(file, &section, range.start, range.end)? });
        }
    }
    Ok(found)
}

/// Whether a text has functions as compilers write them, with calls and returns, and data among them.
fn has_functions(text: &str) -> bool {
    let is_mark = |statement: &String| {
        let found = directives::directive(statement);
        found.is_some_and(|(name, _)| [".cfi_startproc", ".type", ".size"].contains(&&*name))
    };
    text.lines()
        .flat_map(|line| directives::statements(line).unwrap_or_default())
        .any(|s| is_mark(&s))
}

fn unmarked(cause: impl std::fmt::Display) -> Error {
    Error::failed("the file marks no region").because(cause).hint(
        "enclose the block in `# LLVM-MCA-BEGIN` and `# LLVM-MCA-END`, each on its own line; or assemble the file \
         and name a block: FILE.o:FUNCTION+N",
    )
}

/// All code, if it is in a single section.
fn whole(file: &object::File<'_>) -> Result<Vec<Region>> {
    let failed = |cause: &str| unmarked(cause);
    let text = |s: &object::Section<'_, '_>| s.kind() == SectionKind::Text && s.size() > 0;
    let mut sections = file.sections().filter(text);
    match (sections.next(), sections.next()) {
        (Some(one), None) => {
            let bytes = cut(file, &one, 0, one.size() as usize)
                .map_err(|e| unmarked(format!("its code cannot be used as one block: {e}")))?;
            Ok(vec![Region { name: None, bytes }])
        }
        (None, _) => Err(failed("it contains no code")),
        (Some(_), Some(_)) => Err(failed("its code is in several sections")),
    }
}

/// Adds a hint if the text looks like the other syntax.
fn hinted(error: Error, text: &str, syntax: Syntax) -> Error {
    match (syntax, listing_syntax(text).0) {
        (Syntax::Intel, Syntax::Att) => error.hint("the file looks like AT&T syntax: add --att"),
        (Syntax::Att, Syntax::Intel) => {
            error.hint("the file looks like Intel syntax: omit --att or add .intel_syntax noprefix")
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As GNU as reads them (its manual, "AT&T Syntax versus Intel Syntax"). `%d` in a string is not a
    /// register.
    #[test]
    fn the_syntax_is_detected_as_the_assembler_reads_it() {
        let att = "\t.text\nf:\n\tsubq\t%rax, %rbx\n";
        let inline = format!("{att}#APP\n\t.intel_syntax noprefix; nop; .att_syntax\n#NO_APP\n");
        for (text, syntax) in [
            (att, Syntax::Att),
            (&inline, Syntax::Att),
            ("nop\npush $1\n", Syntax::Att),
            ("\t.intel_syntax noprefix\n\tfld %st(0)\n", Syntax::Intel),
            (".att_syntax\nnop\n", Syntax::Att),
            (
                ".section .rodata\n.string \"a; %d\\n\"\n.text\n.intel_syntax noprefix\n",
                Syntax::Intel,
            ),
            ("add rax, rbx # %rax\n", Syntax::Intel),
        ] {
            assert_eq!(listing_syntax(text).0, syntax, "{text}");
        }
        assert!(listing_syntax(att).1.is_some_and(|how| how.contains("line 3")));
    }

    #[test]
    fn a_call_to_a_number_and_the_columns_of_a_listing_are_read_as_on_the_command_line() {
        let call = "add rax, rbx; call 0x100";
        let marked = format!("# LLVM-MCA-BEGIN\n{call}\n# LLVM-MCA-END\n");
        let columns = "0x10 o-> add rax,rbx  d1(-1)\n0x13     jne short 0x10\n";
        for (text, block) in [(&*marked, call), (columns, columns)] {
            let found = read_listing(text, Syntax::Intel).unwrap();
            assert_eq!(found[0].bytes, assemble(block, Syntax::Intel).unwrap(), "{text}");
        }
    }

    #[test]
    fn what_a_compiler_wrote_of_whole_functions_is_no_block() {
        let text = "\t.text\nf:\n\t.cfi_startproc\n\tmovl $1, %eax\n\tret\n\t.cfi_endproc\n";
        let error = read_listing(text, Syntax::Att).unwrap_err();
        assert_eq!(error.what(), "the file marks no region");
        let marked = text.replace("ret", "# LLVM-MCA-BEGIN\n nop\n# LLVM-MCA-END\n ret");
        assert_eq!(read_listing(&marked, Syntax::Att).unwrap()[0].bytes, [0x90]);
    }
}
