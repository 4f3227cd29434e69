//! A cause is a type from where it is found to where it is shown: functions do not fail with a text.

use super::{files, roots};
use crate::support::files::root;
use std::path::Path;
use syn::visit::{self, Visit};

/// Crates of which no function fails with a text. All are to be here.
const TYPED: [&str; 17] = [
    "events",
    "events/import",
    "src/bench",
    "src/branches",
    "src/engine",
    "src/estimate",
    "src/fleet",
    "src/isa",
    "src/loads",
    "src/markers",
    "src/pmu",
    "src/probe",
    "src/profile",
    "src/report",
    "src/tma",
    "src/workload",
    "ui",
];

#[test]
fn functions_fail_with_types_and_not_with_texts() {
    let mut typed = Vec::new();
    for crate_root in roots() {
        let folder = crate_root.parent().unwrap();
        let name = folder.strip_prefix(root()).unwrap().display().to_string();
        let texts = texts(&crate_root, folder);
        match texts.is_empty() {
            true => typed.push(name),
            false => {
                assert!(!TYPED.contains(&name.as_str()), "the cause should be a type: {texts:#?}")
            }
        }
    }
    typed.sort();
    assert_eq!(typed, TYPED, "crates without such a function stay so");
}

#[test]
fn results_with_texts_are_found_wherever_a_type_stands() {
    let file = r#"
        pub fn f() -> std::result::Result<Vec<u8>, String> { Err("no file".to_owned()) }
        struct S { of: Vec<Option<Result<u64, String>>> }
        impl S { fn g(&self, with: &dyn Fn(u8) -> Result<(), String>) {} }
        type Read = Result<u8, std::string::String>;
        fn word() -> Result<u8, &'static str> { Err("no file") }
        fn h() { let all: Result<u64, String> = Ok(1); }
        fn typed(of: Result<String>) -> Result<String, Why> { of.map_err(|e| Why(e)) }
        #[cfg(test)]
        mod tests { fn f() -> Result<(), String> { Ok(()) } }
    "#;
    assert_eq!(results(file), 6);
}

/// The files of a crate whose production code has such a type, and how often.
fn texts(crate_root: &Path, folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for file in files::read(crate_root).into_values() {
        let text = std::fs::read_to_string(folder.join(&file.path)).unwrap();
        let number = results(&text);
        found.extend((number > 0).then(|| format!("{}: {number}", file.path)));
    }
    found
}

/// How many results have a text as error.
fn results(text: &str) -> usize {
    let mut found = Results::default();
    found.visit_file(&syn::parse_file(text).unwrap());
    found.0
}

#[derive(Default)]
struct Results(usize);

impl<'a> Visit<'a> for Results {
    fn visit_item(&mut self, item: &'a syn::Item) {
        if !files::is_test(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_path_segment(&mut self, segment: &'a syn::PathSegment) {
        if let (true, syn::PathArguments::AngleBracketed(given)) =
            (segment.ident == "Result", &segment.arguments)
            && let Some(syn::GenericArgument::Type(error)) = given.args.iter().nth(1)
            && is_text(error)
        {
            self.0 += 1;
        }
        visit::visit_path_segment(self, segment);
    }
}

fn is_text(of: &syn::Type) -> bool {
    match of {
        syn::Type::Reference(of) => is_text(&of.elem),
        syn::Type::Path(of) => {
            let last = of.path.segments.last();
            last.is_some_and(|last| last.ident == "String" || last.ident == "str")
        }
        _ => false,
    }
}
