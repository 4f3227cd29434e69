//! Whether a call that an address needs may be made ahead: only if what it runs is in the same text and changes nothing
//! but its own variables.

use super::syntax::Source;
use std::ops::Range;

/// Functions called by functions that are looked at.
const DEPTH: u32 = 4;
/// Of the C and C++ libraries: they change nothing.
const KNOWN: [&str; 18] = [
    "abs",
    "labs",
    "min",
    "max",
    "size",
    "data",
    "begin",
    "cbegin",
    "get",
    "at",
    "front",
    "back",
    "sizeof",
    "alignof",
    "decltype",
    "__builtin_expect",
    "__builtin_prefetch",
    "assert",
];
/// Types that are written as functions, and words before brackets.
const TYPES: [&str; 10] =
    ["int", "long", "short", "char", "unsigned", "signed", "float", "double", "bool", "return"];

/// Words before a name that is not declared there.
const KEYWORDS: [&str; 6] = ["return", "else", "do", "case", "goto", "throw"];

/// Whether a function, by its name, changes nothing as far as the text shows.
pub(super) fn is_harmless(source: &Source<'_>, name: &str) -> bool {
    is_harmless_at(source, name, DEPTH)
}

fn is_harmless_at(source: &Source<'_>, name: &str, depth: u32) -> bool {
    if KNOWN.contains(&name) || TYPES.contains(&name) || name.ends_with("_t") {
        return true;
    }
    let Some(depth) = depth.checked_sub(1) else { return false };
    if let Some(body) = macro_of(source.text, name) {
        let body = Source::new(body);
        let all = 0..body.tokens.len();
        return all.clone().all(|at| !is_change(body.word(at)) && is_kept(&body, at))
            && calls(&body, all).all(|name| is_harmless_at(source, name, depth));
    }
    let mut all = definitions(source, name).peekable();
    all.peek().is_some()
        && all.all(|(start, body)| {
            let is_own = |at: usize| {
                let own = source.word(at);
                // `int k`, or a parameter `int *k`; what `int &k` changes is of the caller.
                let is_declared = |of: usize| {
                    let is_typed = source.is_name(of - 1) && !KEYWORDS.contains(&source.before(of));
                    let is_pointer = of < body.start && source.before(of) == "*";
                    source.word(of) == own && (is_typed || is_pointer)
                };
                source.is_variable(at) && (start..at + 1).any(is_declared)
            };
            let changes = |at: usize| {
                is_change(source.word(at)) && {
                    // `*p = …` changes what is elsewhere, but for `T *p = …`.
                    let is_typed =
                        |at: usize| source.is_name(at) && !KEYWORDS.contains(&source.word(at));
                    let is_variable = |at: usize| {
                        is_own(at) && (!matches!(source.before(at), "*" | "&") || is_typed(at - 2))
                    };
                    let is_before = is_variable(at - 1);
                    let is_after = matches!(source.word(at), "++" | "--") && is_variable(at + 1);
                    !is_before && !is_after
                }
            };
            body.clone().all(|at| !changes(at) && is_kept(source, at))
                && calls(source, body).all(|name| is_harmless_at(source, name, depth))
        })
}

/// Marks that change a variable.
pub(super) fn is_change(mark: &str) -> bool {
    matches!(mark, "=" | "++" | "--")
        || mark.len() >= 2 && mark.ends_with('=') && !matches!(mark, "==" | "!=" | "<=" | ">=")
}

/// What a function keeps from call to call, and what is not C.
fn is_kept(source: &Source<'_>, at: usize) -> bool {
    !matches!(
        source.word(at),
        "static" | "volatile" | "asm" | "__asm__" | "throw" | "new" | "delete"
    )
}

/// The functions that tokens call; a call through a pointer has an empty name.
fn calls<'a>(source: &'a Source<'a>, range: Range<usize>) -> impl Iterator<Item = &'a str> {
    let keyword = |word: &str| matches!(word, "if" | "for" | "while" | "switch");
    range.filter(|at| source.word(*at) == "(").filter_map(move |at| {
        let before = source.before(at);
        match before {
            _ if keyword(before) => None,
            _ if at > 0 && source.is_name(at - 1) => Some(before),
            "]" => Some(""),
            _ => None,
        }
    })
}

/// From the parameters on, and the body, of functions of a name.
fn definitions<'a>(
    source: &'a Source<'a>,
    name: &'a str,
) -> impl Iterator<Item = (usize, Range<usize>)> {
    let all = 0..source.tokens.len();
    all.filter_map(move |at| {
        let is_definition = source.word(at) == name
            && at > 0
            && (source.is_name(at - 1) || matches!(source.before(at), "*" | "&"));
        let mut start =
            source.closed(at + 1).filter(|_| is_definition && source.word(at + 1) == "(")?;
        while matches!(source.word(start), "const" | "noexcept") {
            start += 1;
        }
        let end = source.closed(start).filter(|_| source.word(start) == "{")?;
        Some((at + 2, start..end))
    })
}

/// What a macro with parameters stands for, if it is defined once.
fn macro_of<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut all = text.match_indices("define").filter_map(|(at, word)| {
        let is_directive = text[..at].trim_end_matches([' ', '\t']).ends_with('#');
        let rest = text[at + word.len()..].trim_start_matches([' ', '\t']);
        let rest = rest.strip_prefix(name)?.strip_prefix('(').filter(|_| is_directive)?;
        let body = &rest[rest.find(')')? + 1..];
        let ends = body.match_indices('\n').map(|(end, _)| end);
        let end = ends.into_iter().find(|end| !body[..*end].trim_end_matches('\r').ends_with('\\'));
        Some(&body[..end.unwrap_or(body.len())])
    });
    let only = all.next()?;
    all.next().is_none().then_some(only)
}

/// Whether a statement stores to an array or what a pointer leads to, by the name at its beginning, or hands it to a
/// function that may.
pub(super) fn is_stored(source: &Source<'_>, body: &Range<usize>, name: &str) -> bool {
    body.clone().filter(|at| source.word(*at) == name && !source.is_member(*at)).any(|at| {
        let access = source.access(at);
        let end = access.as_ref().map_or(at + 1, |access| access.tokens.end);
        let start = access.map_or(at, |access| access.tokens.start);
        let is_assigned = end > at + 1 && is_change(source.word(end))
            || start < at && is_change(source.word(end))
            || matches!(source.before(start), "++" | "--");
        let is_given = (body.start..at).any(|call| {
            let is_call = source.is_name(call) && source.word(call + 1) == "(";
            is_call
                && source.closed(call + 1).is_some_and(|end| at < end)
                && !matches!(source.word(call), "if" | "for" | "while" | "switch")
                && !is_harmless(source, source.word(call))
        });
        is_assigned || is_given
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_harmless_if_it_changes_only_its_own() {
        let text = "#define H(x) (((x) * 7) >> 3)\n#define N(x) \\\n  (n += (x))\n\
            static inline uint32_t hash(uint32_t k) { uint32_t h = k; h ^= h >> 16; return H(h) * uint64_t(3); }\n\
            int next() { return seed = seed * 5; }\nint count(int *p) { (*p)++; return *p; }\n\
            int twice(int k) { return hash(k) + hash(k); }\nint far(int k) { return other(k); }\n\
            int kept(int k) { static int s; s = k; return s; }\nint put(int k) { t[k] = k; return 0; }\n\
            int walk(const char *s) { int n = 0; for (; *s; s++) n++; return n; }\nint past(int k) { p->n++; return k; }\n\
            int by(int &k) { k = 1; return 2; }\nint other_way(int k) { if (k) return 1; else total = k; return 0; }\n\
            int times(int k) { int n = k * total; total = n; return n; }\nint at_once(int *p) { return *p = 3; }\nint own(int n) { return own(n - 1); }\nint called(int k) { return f[k](k); }\n";
        let source = Source::new(text);
        for name in ["H", "hash", "twice", "walk", "uint64_t", "sizeof"] {
            assert!(is_harmless(&source, name), "{name}");
        }
        for name in [
            "N",
            "next",
            "count",
            "far",
            "kept",
            "put",
            "past",
            "own",
            "called",
            "unknown",
            "by",
            "other_way",
            "times",
        ] {
            assert!(!is_harmless(&source, name), "{name}");
        }
    }

    #[test]
    fn what_a_loop_stores_to_is_seen() {
        let text = "{ a[i] = 1; b->c += 2; (*d)++; ++e[0]; f(g, i); s += h[i]; j = k[i] == 3; *l = 4; abs(m[i]); \
                    __builtin_prefetch(&o[i]); }";
        let source = Source::new(text);
        let all = 0..source.tokens.len();
        for name in ["a", "b", "e", "g", "l"] {
            assert!(is_stored(&source, &all, name), "{name}");
        }
        for name in ["h", "j", "k", "m", "o"] {
            assert!(!is_stored(&source, &all, name), "{name}");
        }
    }
}
