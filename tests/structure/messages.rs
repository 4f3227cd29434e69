//! Control flow never depends on the text of a message: the cause is a type, and the text is made of it where it is
//! shown. So no code asks what a text says that this program writes.

use super::{files, texts};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// Files that ask what a text says, the text, and why: others write it, or it is read there where it is written.
const ALLOWED: [(&str, &str, &str); 13] = [
    ("src/branches/stacks/counted.rs", "event not recorded", "the one place that reads events"),
    ("src/report/documents/diff/timed.rs", "rel ", "an operand in a listing"),
    ("src/report/documents/estimate.rs", "the program's values", "it is written there, too"),
    ("src/report/render/width.rs", "tdtool ", "a command line, which is not broken"),
    ("src/report/render/flame/colours.rs", "not known", "the label of a node in the document"),
    ("src/isa/code/pasted.rs", "short ", "an operand in a listing"),
    ("src/profile/counts/decimal_commas.rs", "<not ", "perf stat writes it"),
    ("src/profile/counts/mistaken.rs", "Performance counter stats for", "perf stat writes it"),
    ("src/profile/counts/perf_csv.rs", "<not ", "perf stat writes it"),
    ("src/profile/counts/perf_csv.rs", "started on", "perf stat writes it"),
    ("src/profile/counts/perf_json.rs", "started on", "perf stat writes it"),
    ("src/profile/counts/plain.rs", "<not ", "perf stat writes it"),
    ("src/profile/symbols/demangle.rs", "{virtual offset(", "the demangler writes it"),
];

#[test]
fn no_code_asks_what_a_message_says() {
    let asked = questions(&texts());
    let is_allowed = |(file, text): &&(String, String)| {
        ALLOWED.iter().any(|(of, known, _)| of == file && known == text)
    };
    let new: Vec<_> = asked.iter().filter(|one| !is_allowed(one)).collect();
    assert!(new.is_empty(), "the cause should be a type: {new:#?}");
    let is_gone = |(file, text, _): &&(&str, &str, &str)| {
        !asked.contains(&((*file).to_owned(), (*text).to_owned()))
    };
    let gone: Vec<_> = ALLOWED.iter().filter(is_gone).collect();
    assert!(gone.is_empty(), "no longer asked: {gone:#?}");
}

#[test]
fn questions_are_found_in_calls_comparisons_and_macros() {
    let file = r#"
        use super::other::{IMPORTED, NAME};
        const NO_PMU: &str = "no core PMU";
        impl Note {
            const STOPPED: &str = "the recording was stopped";
            fn f(&self) -> bool { self.text == Self::STOPPED }
        }
        fn f(why: &str) -> bool {
            let of = |note: &String| note.starts_with("sampled on ");
            assert!(matches!(why, why if why.ends_with(NO_PMU)));
            why.contains(&NO_PMU) || why.starts_with(IMPORTED) || Some("too short") != why
        }
        fn g(name: &str, all: &[u8]) -> bool {
            name.contains("clock") || name == NAME || all.contains(&b' ') || name.starts_with(" - ")
        }
        #[cfg(test)]
        mod tests { fn f(why: &str) { assert!(why.contains("not in tests")); } }
    "#;
    let other = r#"
        pub const IMPORTED: &str = "it writes ";
        pub const NAME: &str = "cpu-clock";
    "#;
    let third = r#"const NAME: &str = "of another file";"#;
    let files = [("a.rs", file), ("other/mod.rs", other), ("third.rs", third)];
    let files = files.map(|(path, text)| (path.to_owned(), text.to_owned())).into();
    let found: Vec<String> = questions(&files).into_iter().map(|(_, text)| text).collect();
    let said = ["it writes ", "no core PMU", "sampled on ", "the recording was stopped"];
    assert_eq!(found, [&said[..], &["too short"]].concat());
}

/// What the code of these files, by path, asks: the file, and the text.
pub(super) fn questions(files: &BTreeMap<String, String>) -> BTreeSet<(String, String)> {
    let read = |(path, text): (&String, &String)| {
        let syntax = syn::parse_file(text).unwrap_or_else(|e| panic!("{path}: {e}"));
        let mut code = Code::default();
        code.visit_file(&syntax);
        (path.clone(), code)
    };
    let all: BTreeMap<String, Code> = files.iter().map(read).collect();
    let mut asked = BTreeSet::new();
    for (path, code) in &all {
        for question in &code.questions {
            let texts = match question {
                Question::Text(text) => vec![text.clone()],
                Question::Constant(names) => constant(names, path, &all),
            };
            let said = texts.into_iter().filter(|text| is_said(text));
            asked.extend(said.map(|text| (path.clone(), text)));
        }
    }
    asked
}

/// The texts that a path may name in the file at `path`: of a constant there, of a type, of a module that the path or a
/// `use` names; else of any with that name.
fn constant(names: &[String], path: &str, all: &BTreeMap<String, Code>) -> Vec<String> {
    let (name, around) = names.split_last().unwrap();
    if let (Some(texts), []) = (all[path].constants.get(name), around) {
        return texts.clone();
    }
    let found = |name: &str, is_there: &dyn Fn(&str) -> bool| -> Vec<String> {
        let there = all.iter().filter(|(path, _)| is_there(path));
        there.filter_map(|(_, code)| code.constants.get(name)).flatten().cloned().collect()
    };
    if let Some(of) = around.last().filter(|of| of.starts_with(char::is_uppercase)) {
        return found(&format!("{of}::{name}"), &|_| true);
    }
    let module = around.last().or_else(|| all[path].uses.get(name));
    let is_of = |path: &str| {
        let mut parts = path.trim_end_matches(".rs").split('/');
        module.is_some_and(|module| parts.any(|part| part == module))
    };
    let own = found(name, &is_of);
    if own.is_empty() { found(name, &|_| true) } else { own }
}

/// Whether it is of several words, or the beginning or end of a text that is.
fn is_said(text: &str) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphabetic);
    text.match_indices(' ').any(|(at, _)| {
        let before = text[..at].trim_end_matches([',', ';', ':']).chars().next_back();
        let after = text[at + 1..].chars().next();
        match (is_word(before), is_word(after)) {
            (true, true) => true,
            (true, false) => after.is_none(),
            (false, true) => before.is_none(),
            (false, false) => false,
        }
    })
}

/// With what a text is compared.
enum Question {
    Text(String),
    /// By the names of its path.
    Constant(Vec<String>),
}

/// A text, or the path of a constant.
fn question(of: &syn::Expr) -> Option<Question> {
    match of {
        syn::Expr::Lit(literal) => match &literal.lit {
            syn::Lit::Str(text) => Some(Question::Text(text.value())),
            _ => None,
        },
        syn::Expr::Path(path) => {
            let names = path.path.segments.iter().map(|segment| segment.ident.to_string());
            let names: Vec<String> = names.collect();
            let is_upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            let is_constant = names.last()?.chars().all(is_upper);
            is_constant.then_some(Question::Constant(names))
        }
        syn::Expr::Reference(reference) => question(&reference.expr),
        syn::Expr::Paren(inner) => question(&inner.expr),
        syn::Expr::Call(call) if call.args.len() == 1 => question(&call.args[0]),
        _ => None,
    }
}

/// The constants and questions of a file.
#[derive(Default)]
struct Code {
    /// By name, those of a type after its name.
    constants: BTreeMap<String, Vec<String>>,
    /// The modules of what `use` brings in.
    uses: BTreeMap<String, String>,
    questions: Vec<Question>,
    /// The type whose items are visited.
    of: Option<String>,
}

/// Methods that ask what a text says.
const METHODS: [&str; 3] = ["contains", "starts_with", "ends_with"];

impl<'a> Visit<'a> for Code {
    fn visit_item(&mut self, item: &'a syn::Item) {
        if !files::is_test(item) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.bring_in(&item.tree, "");
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        let of = match &*item.self_ty {
            syn::Type::Path(of) => of.path.segments.last().map(|last| last.ident.to_string()),
            _ => None,
        };
        let around = std::mem::replace(&mut self.of, of);
        visit::visit_item_impl(self, item);
        self.of = around;
    }

    fn visit_item_const(&mut self, item: &'a syn::ItemConst) {
        self.constant(item.ident.to_string(), &item.expr);
        visit::visit_item_const(self, item);
    }

    fn visit_item_static(&mut self, item: &'a syn::ItemStatic) {
        self.constant(item.ident.to_string(), &item.expr);
        visit::visit_item_static(self, item);
    }

    fn visit_impl_item_const(&mut self, item: &'a syn::ImplItemConst) {
        let of = self.of.clone().unwrap_or_default();
        self.constant(format!("{of}::{}", item.ident), &item.expr);
        visit::visit_impl_item_const(self, item);
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        if METHODS.iter().any(|method| call.method == method) {
            self.ask(call.args.first().and_then(question));
        }
        visit::visit_expr_method_call(self, call);
    }

    fn visit_expr_binary(&mut self, compared: &'a syn::ExprBinary) {
        if matches!(compared.op, syn::BinOp::Eq(_) | syn::BinOp::Ne(_)) {
            self.ask(question(&compared.left));
            self.ask(question(&compared.right));
        }
        visit::visit_expr_binary(self, compared);
    }

    fn visit_macro(&mut self, called: &'a syn::Macro) {
        self.ask_tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }
}

impl Code {
    fn constant(&mut self, name: String, value: &syn::Expr) {
        if let Some(Question::Text(text)) = question(value) {
            self.constants.entry(name).or_default().push(text);
        }
    }

    fn bring_in(&mut self, tree: &syn::UseTree, module: &str) {
        match tree {
            syn::UseTree::Path(path) => self.bring_in(&path.tree, &path.ident.to_string()),
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.bring_in(tree, module));
            }
            syn::UseTree::Name(name) => {
                self.uses.insert(name.ident.to_string(), module.to_owned());
            }
            syn::UseTree::Rename(_) | syn::UseTree::Glob(_) => {}
        }
    }

    fn ask(&mut self, question: Option<Question>) {
        let of = self.of.as_deref().unwrap_or("Self");
        let named = |name: String| if name == "Self" { of.to_owned() } else { name };
        self.questions.extend(question.map(|question| match question {
            Question::Constant(names) => Question::Constant(names.into_iter().map(named).collect()),
            text => text,
        }));
    }

    /// The calls in a macro's arguments, which `syn` leaves unread.
    fn ask_tokens(&mut self, tokens: TokenStream) {
        let mut is_method = false;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => is_method = METHODS.iter().any(|method| name == method),
                TokenTree::Group(group) => {
                    if is_method && group.delimiter() == Delimiter::Parenthesis {
                        let argument = syn::parse2::<syn::Expr>(group.stream());
                        self.ask(argument.ok().as_ref().and_then(question));
                    }
                    is_method = false;
                    self.ask_tokens(group.stream());
                }
                _ => is_method = false,
            }
        }
    }
}
