//! Markers around the code to analyse: comments of LLVM-MCA and OSACA, byte sequences of IACA.

use std::ops::Range;
use tma::{Error, Result};

/// IACA's markers: `mov ebx,111` or `mov ebx,222`, followed by `fs addr32 nop`.
const START: [u8; 8] = [0xbb, 0x6f, 0, 0, 0, 0x64, 0x67, 0x90];
const END: [u8; 8] = [0xbb, 0xde, 0, 0, 0, 0x64, 0x67, 0x90];

/// The ranges between IACA markers.
///
/// # Errors
/// A marker has no counterpart.
pub fn iaca(code: &[u8]) -> Result<Vec<Range<usize>>> {
    let mut found = Vec::new();
    let mut open = None;
    let mut at = 0;
    while let Some(bytes) = code.get(at..at + START.len()) {
        let is_start = bytes == START;
        if !is_start && bytes != END {
            at += 1;
            continue;
        }
        match (is_start, open) {
            (true, None) => open = Some(at + START.len()),
            (false, Some(start)) => {
                found.push(start..at);
                open = None;
            }
            (true, Some(_)) => return Err(unpaired("a second start marker at", at)),
            (false, None) => return Err(unpaired("an end marker without a start at", at)),
        }
        at += START.len();
    }
    match open {
        Some(start) => Err(unpaired("no end marker after", start - START.len())),
        None => Ok(found),
    }
}

fn unpaired(what: &str, at: usize) -> Error {
    Error::failed("the IACA markers do not pair")
        .because(format!("{what} offset {at:#x}"))
        .hint("enclose a region in mov ebx,111; .byte 0x64,0x67,0x90 and mov ebx,222; .byte 0x64,0x67,0x90")
}

/// A marker in a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Marker {
    /// A region starts after it.
    Begin(Option<String>),
    /// A region ends before it.
    End(Option<String>),
}

/// The code before a marker comment, and the marker.
pub fn comment(line: &str) -> Option<(&str, Marker)> {
    let (at, word) = ["LLVM-MCA-", "OSACA-"]
        .iter()
        .filter_map(|word| line.find(word).map(|at| (at, *word)))
        .min()?;
    let before = line[..at].trim_end();
    let code = ["#", "//", "/*"].iter().find_map(|c| before.strip_suffix(c))?;
    // Some compilers start comments with `##`.
    let code = code.trim_end_matches('#');
    let rest = line[at + word.len()..].trim_end().trim_end_matches("*/");
    let (verb, name) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let name = Some(name.trim().to_owned()).filter(|n| !n.is_empty());
    match verb.trim() {
        "BEGIN" => Some((code, Marker::Begin(name))),
        "END" => Some((code, Marker::End(name))),
        _ => None,
    }
}

/// A marked region of a text: its name and the line numbers (from 0) of its markers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marked {
    /// Its name.
    pub name: Option<String>,
    /// Line of the marker at its start.
    pub begin: usize,
    /// Line of the marker at its end.
    pub end: usize,
}

/// The regions that comments of `text` mark, in order of their starts. They may overlap.
///
/// # Errors
/// A marker has no counterpart.
pub fn marked(text: &str) -> Result<Vec<Marked>> {
    let unpaired = |line: usize, cause: &str| {
        Error::failed(format!("line {}: the region markers do not pair", line + 1))
            .because(cause)
            .hint("use `# LLVM-MCA-BEGIN [name]` … `# LLVM-MCA-END [name]` or OSACA-BEGIN … OSACA-END")
    };
    let mut open: Vec<(Option<String>, usize)> = Vec::new();
    let mut found: Vec<Marked> = Vec::new();
    for (line, content) in text.lines().enumerate() {
        match comment(content) {
            Some((_, Marker::Begin(name))) => {
                if open.iter().any(|o| o.0 == name) {
                    return Err(unpaired(line, "a region of that name is already open"));
                }
                open.push((name, line));
            }
            Some((_, Marker::End(name))) => {
                let index = match &name {
                    Some(_) => open.iter().position(|o| o.0 == name),
                    None => open.len().checked_sub(1),
                };
                let index = index.ok_or_else(|| unpaired(line, "no such region is open"))?;
                let (name, begin) = open.remove(index);
                found.push(Marked { name, begin, end: line });
            }
            None => {}
        }
    }
    if let Some((_, line)) = open.first() {
        return Err(unpaired(*line, "this region has no end"));
    }
    found.sort_by_key(|m| m.begin);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of iacaMarks.h, Intel Architecture Code Analyzer 3.0.
    #[test]
    fn iaca_regions_lie_between_their_markers() {
        let mut code = vec![0x90];
        code.extend(START);
        code.extend([0x48, 0x01, 0xd8]);
        code.extend(END);
        assert_eq!(&code[iaca(&code).unwrap().remove(0)], [0x48, 0x01, 0xd8]);
        let twice = [code.clone(), code.clone()].concat();
        assert_eq!(iaca(&twice).unwrap(), [9..12, 29..32]);
        assert!(iaca(&[0x90; 40]).unwrap().is_empty());
        for broken in [&code[..12], &code[9..], &[&code[..9], &code[..]].concat()[..]] {
            assert!(iaca(broken).unwrap_err().to_string().contains("pair"));
        }
    }

    #[test]
    fn comments_mark_regions_as_llvm_mca_and_osaca_read_them() {
        let text = "a\n# LLVM-MCA-BEGIN outer\nb # LLVM-MCA-BEGIN\nc\n\t//LLVM-MCA-END\n# LLVM-MCA-END outer\n\
                    # OSACA-BEGIN\nd\n## OSACA-END\nmov eax, 1 # see LLVM-MCA-BEGIN\n.string \"LLVM-MCA-END\"\n";
        let found: Vec<_> =
            marked(text).unwrap().into_iter().map(|m| (m.name, m.begin, m.end)).collect();
        assert_eq!(found, [(Some("outer".to_owned()), 1, 5), (None, 2, 4), (None, 6, 8)]);
        assert_eq!(
            comment("b # LLVM-MCA-BEGIN x y").unwrap(),
            ("b ", Marker::Begin(Some("x y".into())))
        );
        assert_eq!(comment("/* LLVM-MCA-END */").unwrap(), ("", Marker::End(None)));
    }

    #[test]
    fn an_unpaired_marker_is_reported_with_its_line() {
        for text in ["\n# LLVM-MCA-BEGIN", "\n# OSACA-END", "# LLVM-MCA-BEGIN a\n# LLVM-MCA-END b"]
        {
            let error = marked(text).unwrap_err();
            assert!(error.what().starts_with("line 2"), "{error}");
        }
        let twice = "# LLVM-MCA-BEGIN a\n# LLVM-MCA-BEGIN a\n# LLVM-MCA-END a\n# LLVM-MCA-END a";
        assert!(marked(twice).is_err());
    }
}
