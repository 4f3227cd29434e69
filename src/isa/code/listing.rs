//! Regions of an assembly file: what comments or IACA's bytes mark, else all of it.
//!
//! The whole file is assembled, so that jumps to labels anywhere get the length they have there;
//! labels of our own in place of the comments say where the regions are.

use super::assemble::{Syntax, run, sign};
use super::directives;
use super::markers::{self, Marked};
use super::region::{Region, cut};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind};
use tma::{Error, Result};

/// Longest assembly file that is read, in bytes.
pub const LONGEST_LISTING: usize = 16 << 20;

/// The syntax of an assembly file where nobody says it, and how that is known: what GNU as and
/// llvm-mca take it for. Compilers write AT&T's, without a word, unless `.intel_syntax` stands at the
/// top; a file with neither a directive nor a `%register` or `$number` is taken as Intel's, as text on
/// the command line is.
pub fn listing_syntax(text: &str) -> (Syntax, Option<String>) {
    for (number, line) in text.lines().enumerate() {
        for statement in directives::statements(line).unwrap_or_default() {
            match directives::directive(&statement) {
                Some((name, _)) if name == ".intel_syntax" => return (Syntax::Intel, None),
                Some((name, _)) if name == ".att_syntax" => return (Syntax::Att, None),
                Some(_) => {}
                None => {
                    if let Some(sign) = sign(&statement) {
                        let how = format!("`{sign}` in line {}, and no .intel_syntax", number + 1);
                        return (Syntax::Att, Some(how));
                    }
                }
            }
        }
    }
    (Syntax::Intel, None)
}

/// The marked regions of an assembly file, such as a compiler writes with `-S`; without markers,
/// all of its code is one.
///
/// # Errors
/// No assembler, a directive that compilers do not write, a line that the assembler refuses,
/// markers that do not pair, or a region without code.
pub fn read_listing(text: &str, syntax: Syntax) -> Result<Vec<Region>> {
    if text.len() > LONGEST_LISTING {
        return Err(Error::failed("the assembly file is too long")
            .because(format!("{} bytes; at most {LONGEST_LISTING} are taken", text.len())));
    }
    directives::check(text)?;
    let regions = markers::marked(text)?;
    let object =
        run(&labelled(text, syntax, &regions), "line").map_err(|e| hinted(e, text, syntax))?;
    let failed = |cause: String| Error::failed("cannot read the assembled file").because(cause);
    let file = object::File::parse(&*object).map_err(|e| failed(e.to_string()))?;
    if regions.is_empty() {
        return match marked_code(&file)? {
            found if found.is_empty() => whole(&file),
            found => Ok(found),
        };
    }
    regions.iter().enumerate().map(|(number, region)| labels(&file, number, region)).collect()
}

/// The text with a label behind each line that is a marker; lines keep their numbers.
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

/// The code between the two labels of a region.
fn labels(file: &object::File<'_>, number: usize, region: &Marked) -> Result<Region> {
    let failed = |cause: &str| {
        let name = region.name.as_deref().unwrap_or("without a name");
        Error::failed(format!("cannot take the region {name} of line {}", region.begin + 1))
            .because(cause)
    };
    let find = |which| file.symbol_by_name(&label(number, which));
    let (begin, end) = find("begin").zip(find("end")).ok_or_else(|| failed("it is lost"))?;
    let section = begin.section_index().filter(|s| end.section_index() == Some(*s));
    let section = section.ok_or_else(|| failed("it starts and ends in different sections"))?;
    let section = file.section_by_index(section).map_err(|e| failed(&e.to_string()))?;
    let bytes = cut(file, &section, begin.address() as usize, end.address() as usize)
        .map_err(|e| failed(e.cause().unwrap_or(e.what())))?;
    Ok(Region { name: region.name.clone(), bytes })
}

/// What IACA's bytes mark in the code sections of an object file or a program.
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

/// All code, if it lies in one section.
fn whole(file: &object::File<'_>) -> Result<Vec<Region>> {
    let failed = |cause: &str| {
        Error::failed("the file marks no region").because(cause).hint(
            "put `# LLVM-MCA-BEGIN` and `# LLVM-MCA-END` on lines of their own around the block",
        )
    };
    let text = |s: &object::Section<'_, '_>| s.kind() == SectionKind::Text && s.size() > 0;
    let mut sections = file.sections().filter(text);
    match (sections.next(), sections.next()) {
        (Some(one), None) => {
            let bytes = cut(file, &one, 0, one.size() as usize)
                .map_err(|e| failed(&format!("and as one block: {e}")))?;
            Ok(vec![Region { name: None, bytes }])
        }
        (None, _) => Err(failed("and has no code")),
        (Some(_), Some(_)) => Err(failed("and has code in several sections")),
    }
}

/// A hint where the text looks like the other syntax.
fn hinted(error: Error, text: &str, syntax: Syntax) -> Error {
    match (syntax, listing_syntax(text).0) {
        (Syntax::Intel, Syntax::Att) => error.hint("this looks like AT&T syntax: add --att"),
        (Syntax::Att, Syntax::Intel) => error
            .hint("this looks like Intel syntax: leave out --att, or write .intel_syntax noprefix"),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As GNU as reads them (its manual, "AT&T Syntax versus Intel Syntax"); the strings are those
    /// of a program that prints.
    #[test]
    fn a_files_syntax_is_what_compilers_say_in_it() {
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
}
