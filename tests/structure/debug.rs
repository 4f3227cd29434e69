//! No text of the program is made by `Debug`, outside of assertions and panics: that output is for developers, and
//! changes with the names in the code. Documents and messages have names that a type gives on purpose.

use super::{files, texts};
use proc_macro2::{Literal, TokenStream, TokenTree};
use std::collections::BTreeMap;
use syn::visit::{self, Visit};

/// The file that makes texts by `Debug`, since other crates give names in no other way.
const ALLOWED: &str = "src/isa/names.rs";

/// Macros whose texts developers alone read.
const FOR_DEVELOPERS: [&str; 10] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "panic",
    "unreachable",
    "todo",
    "unimplemented",
];

#[test]
fn no_text_is_made_by_debug() {
    let mut made = debugged(&texts());
    let allowed = made.remove(ALLOWED).unwrap_or_default();
    assert_eq!(allowed.len(), 1, "{ALLOWED} is no longer needed, or does more: {allowed:?}");
    assert!(
        made.is_empty(),
        "give it a name by `Display` or serde, or quote it with `…`: {made:#?}"
    );
}

#[test]
fn texts_by_debug_are_found_in_macros_and_calls() {
    let file = r#"
        fn f(kind: Kind, name: &str) -> String {
            assert!(kind.is_one(), "{kind:?}");
            let all = vec![format!("{kind:?}"), format!("{{:?}} {}", name)];
            let other = name.parse().unwrap_or_else(|_| panic!("{name:?}"));
            json!({ "kind": format!("{:>8x?}", kind.0) });
            write!(f, "{0:#?}", kind)?;
            println!("{}", { assert_eq!(kind, other, "{:?}", name); 1 });
            fmt::Debug::fmt(&kind, f)
        }
        impl fmt::Debug for Kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{:?}", self.0) }
        }
        impl fmt::Display for Kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{:?}?", self.0) }
            #[cfg(test)]
            fn shown(&self) -> String { format!("{self:?}") }
        }
        #[cfg(test)]
        mod tests { fn f(kind: Kind) { println!("{kind:?}"); } }
    "#;
    let files = BTreeMap::from([("a.rs".to_owned(), file.to_owned())]);
    let found = debugged(&files).remove("a.rs").unwrap_or_default();
    assert_eq!(found, ["{kind:?}", "{:>8x?}", "{0:#?}", "Debug::fmt", "{:?}"]);
}

/// What the code of these files, by path, makes by `Debug`.
fn debugged(files: &BTreeMap<String, String>) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for (path, text) in files {
        let syntax = syn::parse_file(text).unwrap_or_else(|e| panic!("{path}: {e}"));
        let mut code = Code::default();
        code.visit_file(&syntax);
        if !code.found.is_empty() {
            all.insert(path.clone(), code.found);
        }
    }
    all
}

/// What code makes by `Debug`.
#[derive(Default)]
struct Code {
    found: Vec<String>,
}

impl<'a> Visit<'a> for Code {
    fn visit_item(&mut self, item: &'a syn::Item) {
        if !files::is_test(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        if !function.attrs.iter().any(files::is_for_tests) {
            visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        let of = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if of.is_none_or(|of| of.ident != "Debug") {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let mut names = path.segments.iter().rev().map(|segment| segment.ident.to_string());
        if names.next().as_deref() == Some("fmt") && names.next().as_deref() == Some("Debug") {
            self.found.push("Debug::fmt".to_owned());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'a syn::Macro) {
        let name = called.path.segments.last().map(|last| last.ident.to_string());
        if !is_for_developers(&name.unwrap_or_default()) {
            self.look_through(called.tokens.clone());
        }
    }
}

fn is_for_developers(name: &str) -> bool {
    FOR_DEVELOPERS.contains(&name)
}

impl Code {
    /// The texts in a macro's arguments, also in those of macros there.
    fn look_through(&mut self, tokens: TokenStream) {
        let (mut name, mut is_called) = (String::new(), false);
        for token in tokens {
            match token {
                TokenTree::Ident(ident) => (name, is_called) = (ident.to_string(), false),
                TokenTree::Punct(punct) => is_called = punct.as_char() == '!',
                TokenTree::Group(group) => {
                    if !(is_called && is_for_developers(&name)) {
                        self.look_through(group.stream());
                    }
                    is_called = false;
                }
                TokenTree::Literal(literal) => self.found.extend(placeholders(&literal)),
            }
        }
    }
}

/// The placeholders of a text that print by `Debug`.
fn placeholders(literal: &Literal) -> Vec<String> {
    let syn::Lit::Str(text) = syn::Lit::new(literal.clone()) else { return Vec::new() };
    // Two braces are one that is printed.
    let text = text.value().replace("{{", "");
    let all = text.split('{').skip(1).filter_map(|rest| rest.split_once('}'));
    all.filter(|(inside, _)| inside.ends_with('?'))
        .map(|(inside, _)| format!("{{{inside}}}"))
        .collect()
}
