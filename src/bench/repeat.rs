//! Repeats a measurement from its document: the same block, initial values and pages.

use super::Options;
use crate::measurement::SCHEMA;
use crate::values::Values;
use isa::code::parse_hex;
use serde::Deserialize;
use tma::{Error, Result};

/// A block's run as its document records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repeat {
    /// The block's name, where its input gave one.
    pub name: Option<String>,
    /// The block.
    pub bytes: Vec<u8>,
    /// Its initial values.
    pub values: Values,
    /// Its pages.
    pub pages: Vec<u64>,
}

#[derive(Deserialize)]
struct Document {
    schema: String,
    block: Block,
    values: Option<Values>,
    #[serde(default)]
    pages: Vec<String>,
}

#[derive(Deserialize)]
struct Block {
    name: Option<String>,
    hex: String,
}

impl Repeat {
    /// Reads a document of one block, or an array of them.
    ///
    /// # Errors
    /// It is not such a document, or its block did not run.
    pub fn read(text: &str) -> Result<Vec<Self>> {
        let documents: Vec<Document> = if text.trim_start().starts_with('[') {
            serde_json::from_str(text).map_err(bad)?
        } else {
            vec![serde_json::from_str(text).map_err(bad)?]
        };
        if documents.is_empty() {
            return Err(bad("it contains no block"));
        }
        documents.into_iter().map(Self::of).collect()
    }

    fn of(document: Document) -> Result<Self> {
        if document.schema != SCHEMA {
            return Err(bad(format!("its schema is `{}`, not `{SCHEMA}`", document.schema)));
        }
        let hex = &document.block.hex;
        let Some(values) = document.values else {
            return Err(Error::failed(format!("nothing to repeat: block {hex} did not run"))
                .because("the document has no initial values"));
        };
        let page = |text: &String| {
            let number = u64::from_str_radix(text.strip_prefix("0x").unwrap_or_default(), 16).ok();
            number
                .filter(|n| n % 4096 == 0)
                .ok_or_else(|| bad(format!("`{text}` is not a page address")))
        };
        Ok(Self {
            name: document.block.name.clone(),
            bytes: parse_hex(hex)?,
            values,
            pages: document.pages.iter().map(page).collect::<Result<_>>()?,
        })
    }

    /// The options with the document's values and pages in place of any search.
    #[must_use]
    pub fn over(&self, options: Options) -> Options {
        Options { values: Some(self.values.clone()), pages: Some(self.pages.clone()), ..options }
    }
}

fn bad(cause: impl std::fmt::Display) -> Error {
    Error::failed("cannot read the document to repeat")
        .because(cause)
        .hint("use the output of `tdtool block --format json`")
}

/// Why a run is not a repetition: it touched other pages than `options` list; `unasked` may be missing on either side, as
/// no fault asks for them and earlier documents lack them.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub fn other_pages(options: &Options, touched: &[u64], unasked: &[u64]) -> Option<String> {
    let wanted = options.pages.as_ref()?;
    let list = |these: &[u64], but: &[u64]| -> Vec<String> {
        let missing = these.iter().filter(|p| !but.contains(p) && !unasked.contains(p));
        missing.map(|p| format!("{p:#x}")).collect()
    };
    let (more, less) = (list(touched, wanted), list(wanted, touched));
    let mut parts = Vec::new();
    if !more.is_empty() {
        parts.push(format!("{} too", more.join(", ")));
    }
    if !less.is_empty() {
        parts.push(format!("not {}", less.join(", ")));
    }
    (!parts.is_empty())
        .then(|| format!("it touches other pages than the document lists: {}", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCUMENT: &str = r#"{"schema":"tdtool.block/2","block":{"hex":"488b00","instructions":[]},
        "values":{"registers":[18446744073709551615,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15],
        "memory":64,"vector":0},"pages":["0x12345000","0x7fffffffe000"],"more":{}}"#;

    #[test]
    fn a_document_gives_its_block_values_and_pages() {
        let all = Repeat::read(&format!("[{DOCUMENT},{DOCUMENT}]")).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0], Repeat::read(DOCUMENT).unwrap()[0]);
        let options = all[0].over(Options::default());
        assert_eq!(options.candidates()[0].registers[0], u64::MAX);
        assert_eq!(options.pages, Some(vec![0x1234_5000, 0x7fff_ffff_e000]));
    }

    #[test]
    fn what_is_no_document_or_did_not_run_is_an_error() {
        for (old, new) in [
            ("tdtool.block/2", "tdtool.report/1"),
            ("488b00", "48zz"),
            ("\"values\"", "\"other\""),
            ("0x12345000", "0x12345001"),
            ("0x12345000", "12345000"),
            (",15]", "]"),
            ("64", "-1"),
        ] {
            assert!(DOCUMENT.contains(old));
            assert!(Repeat::read(&DOCUMENT.replacen(old, new, 1)).is_err(), "{old} -> {new}");
        }
        assert!(Repeat::read("[]").is_err());
        assert!(Repeat::read("").is_err());
    }

    #[test]
    fn other_pages_are_named() {
        let options = Options { pages: Some(vec![0x1000, 0x2000]), ..Options::default() };
        assert_eq!(other_pages(&options, &[0x2000, 0x1000], &[]), None);
        assert_eq!(other_pages(&options, &[0x1000, 0x2000, 0x3000], &[0x3000]), None);
        let text = other_pages(&options, &[0x1000, 0x3000], &[]).unwrap();
        assert!(text.contains("0x3000 too") && text.contains("not 0x2000"), "{text}");
        assert_eq!(other_pages(&Options::default(), &[0x1000], &[]), None);
    }
}
