//! The files of a crate: their modules, what they define, re-export and mention.

use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::visit::{self, Visit};

/// Names from the crate's root downwards: `["deps", "memory"]`.
pub type ModulePath = Vec<String>;

/// One file of a crate, without its tests.
#[derive(Debug, Default)]
pub struct File {
    /// Its path inside the crate.
    pub path: String,
    /// The modules it declares that are files.
    pub children: BTreeSet<String>,
    /// The items it defines.
    pub defined: BTreeSet<String>,
    /// What its `use` declarations bring in, by the name they give it.
    pub uses: BTreeMap<String, Use>,
    /// The modules it brings in with `*`.
    pub globs: Vec<Vec<String>>,
    /// Every path in its code.
    pub mentions: BTreeSet<Vec<String>>,
}

/// One name of a `use` declaration.
#[derive(Debug)]
pub struct Use {
    /// What it names.
    pub path: Vec<String>,
    /// Whether it is a re-export.
    pub public: bool,
}

/// The files of the crate with this root, by their modules.
pub fn read(root: &Path) -> BTreeMap<ModulePath, File> {
    let mut files = BTreeMap::new();
    let folder = root.parent().unwrap();
    read_module(root, folder, Vec::new(), &mut files);
    for file in files.values_mut() {
        file.path = file.path.strip_prefix(folder.to_str().unwrap()).unwrap()[1..].to_owned();
    }
    files
}

fn read_module(
    path: &Path,
    folder: &Path,
    module: ModulePath,
    files: &mut BTreeMap<ModulePath, File>,
) {
    let text = std::fs::read_to_string(path).unwrap();
    let syntax = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut file = File { path: path.to_str().unwrap().to_owned(), ..File::default() };
    file.visit_file(&syntax);
    for child in &file.children {
        let below = folder.join(child);
        let candidates = [below.with_extension("rs"), below.join("mod.rs")];
        let path = candidates.iter().find(|p| p.exists());
        let path = path.unwrap_or_else(|| panic!("{}: no file of mod {child}", file.path));
        let mut module = module.clone();
        module.push(child.clone());
        read_module(path, &below, module, files);
    }
    files.insert(module, file);
}

impl<'a> Visit<'a> for File {
    fn visit_item(&mut self, item: &'a syn::Item) {
        if is_test(item) {
            return;
        }
        self.defined.extend(described(item).1);
        visit::visit_item(self, item);
    }

    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if module.content.is_none() {
            self.children.insert(module.ident.to_string());
        }
        visit::visit_item_mod(self, module);
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        let public = !matches!(item.vis, syn::Visibility::Inherited);
        self.bring_in(&item.tree, Vec::new(), public);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.mentions.insert(path.segments.iter().map(|s| s.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'a syn::Macro) {
        self.mention_tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }
}

impl File {
    fn bring_in(&mut self, tree: &syn::UseTree, mut path: Vec<String>, public: bool) {
        let name = match tree {
            syn::UseTree::Path(p) => {
                path.push(p.ident.to_string());
                return self.bring_in(&p.tree, path, public);
            }
            syn::UseTree::Group(group) => {
                for tree in &group.items {
                    self.bring_in(tree, path.clone(), public);
                }
                return;
            }
            syn::UseTree::Glob(_) => return self.globs.push(path),
            syn::UseTree::Name(name) => {
                if name.ident != "self" {
                    path.push(name.ident.to_string());
                }
                path.last().cloned().unwrap()
            }
            syn::UseTree::Rename(renamed) => {
                path.push(renamed.ident.to_string());
                renamed.rename.to_string()
            }
        };
        self.uses.insert(name, Use { path, public });
    }

    /// The paths in a macro's arguments, which `syn` leaves unread.
    fn mention_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.mentions.insert(std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(p) if p.as_char() == ':' => colons += 1,
                other => {
                    self.mentions.insert(std::mem::take(&mut path));
                    if let TokenTree::Group(group) = other {
                        self.mention_tokens(group.stream());
                    }
                }
            }
        }
        self.mentions.insert(path);
    }
}

/// Whether an item is for tests only.
pub fn is_test(item: &syn::Item) -> bool {
    described(item).0.iter().any(is_for_tests)
}

fn described(item: &syn::Item) -> (&[syn::Attribute], Option<String>) {
    use syn::Item;
    match item {
        Item::Const(i) => (&i.attrs, Some(i.ident.to_string())),
        Item::Enum(i) => (&i.attrs, Some(i.ident.to_string())),
        Item::Fn(i) => (&i.attrs, Some(i.sig.ident.to_string())),
        Item::Impl(i) => (&i.attrs, None),
        Item::Macro(i) => (&i.attrs, i.ident.as_ref().map(ToString::to_string)),
        Item::Mod(i) => (&i.attrs, None),
        Item::Static(i) => (&i.attrs, Some(i.ident.to_string())),
        Item::Struct(i) => (&i.attrs, Some(i.ident.to_string())),
        Item::Trait(i) => (&i.attrs, Some(i.ident.to_string())),
        Item::Type(i) => (&i.attrs, Some(i.ident.to_string())),
        Item::Union(i) => (&i.attrs, Some(i.ident.to_string())),
        Item::Use(i) => (&i.attrs, None),
        _ => (&[], None),
    }
}

/// Whether it is `cfg(test)` or `cfg(all(test, …))`.
pub fn is_for_tests(attribute: &syn::Attribute) -> bool {
    let condition = attribute.meta.require_list().map(|list| list.tokens.to_string());
    let condition = condition.unwrap_or_default().replace(' ', "");
    attribute.path().is_ident("cfg") && (condition == "test" || condition.starts_with("all(test,"))
}
