//! Demangles Rust (legacy and v0) and C++ names.
//!
//! Only complete mangled names are changed; C names stay. Legacy Rust names are well-formed C++ names
//! too, so they are recognised first, by their hash.

use cpp_demangle::{BorrowedSymbol, DemangleOptions};
use std::fmt::{self, Write as _};

/// Longest demangled name: demangling can grow a name exponentially; longer ones stay mangled.
const LONGEST: usize = 1 << 14;

/// The demangled form of `linkage`, with parameters; `linkage` itself if it is not mangled.
///
/// ```
/// use profile::symbols::demangle::demangle;
///
/// // As c++filt and RFC 2603 (Rust's v0 mangling) have them.
/// assert_eq!(demangle("_ZN5space3fooEibc"), "space::foo(int, bool, char)");
/// assert_eq!(demangle("_RNvC6_123foo3bar"), "123foo::bar");
/// assert_eq!(demangle("main"), "main");
/// ```
pub fn demangle(linkage: &str) -> String {
    demangle_with(linkage, DemangleOptions::new())
}

/// As [`demangle`], without parameters and return type, as `perf report` prints it.
pub fn demangle_short(linkage: &str) -> String {
    demangle_with(linkage, DemangleOptions::new().no_params().no_return_type())
}

fn demangle_with(linkage: &str, options: DemangleOptions) -> String {
    let (name, stub) = match linkage.strip_suffix("@plt") {
        Some(name) => (name, "@plt"),
        None => (linkage, ""),
    };
    let mut out = Bounded(String::new());
    let done = rust(name, &mut out) || {
        out.0.clear();
        cpp(name, options, &mut out)
    };
    if done && !out.0.is_empty() { out.0 + stub } else { linkage.to_owned() }
}

/// Casts of integer template arguments, and the suffixes that binutils and perf print instead.
const LITERALS: [(&str, &str); 4] =
    [("(unsigned int)", "u"), ("(unsigned long)", "ul"), ("(long)", "l"), ("(int)", "")];

/// `name` with template arguments as binutils and perf print them, so that names compare: integers
/// with a suffix instead of a cast, empty packs without a comma.
fn as_binutils(name: &str) -> String {
    let mut name = name.replace(", >", ">");
    for (cast, suffix) in LITERALS {
        let mut from = 0;
        while let Some(at) = name[from..].find(cast).map(|at| from + at) {
            let number = at + cast.len();
            let digits = name[number..].bytes().take_while(u8::is_ascii_digit).count();
            from = number;
            if digits > 0 {
                name.insert_str(number + digits, suffix);
                name.replace_range(at..number, "");
                from = at;
            }
        }
    }
    name
}

fn rust(name: &str, out: &mut Bounded) -> bool {
    if !has_rust_hash(name) && !is_rust_v0(name) {
        return false;
    }
    let Ok(demangled) = rustc_demangle::try_demangle(name) else { return false };
    // The alternate form omits the hash.
    write!(out, "{demangled:#}").is_ok()
}

/// Whether it is a legacy Rust name: `_ZN…17h` + 16 hexadecimal digits + `E`, possibly with a suffix
/// of LLVM.
fn has_rust_hash(name: &str) -> bool {
    let Some(inner) = name.strip_prefix("_ZN") else { return false };
    inner.match_indices("17h").any(|(at, _)| {
        let hash = inner.as_bytes().get(at + 3..at + 20);
        hash.is_some_and(|h| h[16] == b'E' && h[..16].iter().all(u8::is_ascii_hexdigit))
            && matches!(inner.as_bytes().get(at + 20), None | Some(b'.'))
    })
}

/// Whether it is a v0 Rust name (RFC 2603): `_R`, then a path, whose tags are capital letters.
fn is_rust_v0(name: &str) -> bool {
    let path = name.strip_prefix("_R").and_then(|rest| rest.bytes().next());
    path.is_some_and(|tag| b"CMXYNI".contains(&tag))
}

fn cpp(name: &str, options: DemangleOptions, out: &mut Bounded) -> bool {
    if !name.starts_with("_Z") {
        return false;
    }
    let Ok(symbol) = BorrowedSymbol::new(name.as_bytes()) else { return false };
    let options = if loses_a_parameter(name) { options.no_params() } else { options };
    let done = symbol.structured_demangle(out, &options).is_ok();
    if done {
        out.0 = as_binutils(&special(name, &out.0).unwrap_or_else(|| std::mem::take(&mut out.0)));
    }
    done
}

/// Thunks and tables of virtual functions as binutils and perf print them; `None` for other names. cpp_demangle has them
/// in braces, thunks with their offsets: `{virtual override thunk({offset(-8)}, B::f())}`.
fn special(linkage: &str, name: &str) -> Option<String> {
    let (kind, mut inner) = if let Some(rest) = name.strip_prefix("{vtable(") {
        ("vtable for ", rest)
    } else if let Some(rest) = name.strip_prefix("{vtt(") {
        ("VTT for ", rest)
    } else {
        let kind = match linkage.as_bytes().get(3)? {
            b'h' => "non-virtual thunk to ",
            b'v' => "virtual thunk to ",
            _ => "covariant return thunk to ",
        };
        (kind, name.strip_prefix("{virtual override thunk(")?)
    };
    while let Some((_, rest)) = inner
        .split_once("}, ")
        .filter(|_| inner.starts_with("{offset(") || inner.starts_with("{virtual offset("))
    {
        inner = rest;
    }
    // A clone's suffix follows.
    let end = inner.rfind(")}")?;
    Some(format!("{kind}{}{}", &inner[..end], &inner[end + 2..]))
}

/// Whether cpp_demangle 0.5 would print wrong parameters: templates of constructors and conversions
/// have no return type in their mangled name, and it takes their first parameter for one. The
/// letters may be part of another name, which then loses its parameters.
fn loses_a_parameter(name: &str) -> bool {
    let constructs = |three: &[u8]| {
        matches!(*three, [b'C', b'1'..=b'5', b'I'] | [b'C', b'I', b'1' | b'2'] | [b'c', b'v', _])
    };
    // The `c` of a covariant return thunk is none of these.
    name.strip_prefix("_ZTc").unwrap_or(name).as_bytes().windows(3).any(constructs)
}

/// A string of bounded length.
struct Bounded(String);

impl fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn mangled_names_become_what_was_written() {
        // Expected: c++filt 2.40, rustfilt's documentation and RFC 2603.
        for (linkage, name) in [
            ("_ZN5space3fooEibc", "space::foo(int, bool, char)"),
            (
                "_ZNSt6vectorIiSaIiEE9push_backEOi",
                "std::vector<int, std::allocator<int> >::push_back(int&&)",
            ),
            ("_Z3addii.constprop.0", "add(int, int) [clone .constprop.0]"),
            ("_ZN1AC2IiEEPKcRKi", "A::A<int>"),
            ("_ZN1AC2Ei", "A::A(int)"),
            ("_Z1fILj8ELm2ELl3ELi4EJEEvj", "void f<8u, 2ul, 3l, 4>(unsigned int)"),
            ("_ZN1A3runERNS_1BIiJEEE", "A::run(A::B<int>&)"),
            ("_ZThn8_N1B1fEv", "non-virtual thunk to B::f()"),
            ("_ZTv0_n24_N1B1fEv", "virtual thunk to B::f()"),
            ("_ZTcv0_n24_v0_n32_N1C1gEv", "covariant return thunk to C::g()"),
            ("_ZThn16_N1B1fEi.cold", "non-virtual thunk to B::f(int) [clone .cold]"),
            ("_ZTV1A", "vtable for A"),
            ("_ZTT1A", "VTT for A"),
            ("_Z3addii@plt", "add(int, int)@plt"),
            ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
            (
                "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.1234",
                "core::fmt::Formatter::pad",
            ),
            ("_RNvC6_123foo3bar", "123foo::bar"),
        ] {
            assert_eq!(demangle(linkage), name);
        }
        assert_eq!(demangle_short("_ZN5space3fooEibc"), "space::foo");
        assert_eq!(demangle_short("_ZThn8_N1B1fEv"), "non-virtual thunk to B::f");
    }

    #[test]
    fn plain_names_stay() {
        for name in [
            "main",
            "R",
            "RNvC3foo3bar",
            "ZN3fooE",
            "_Z",
            "_R",
            "_Reg_save",
            "_Zfoo",
            "i",
            "f",
            "_RC",
            "__Z3foov",
            "foo.cold",
            "memcpy@plt",
            "_Zero",
            "_init",
            "v",
            "_ZN",
            "",
        ] {
            assert_eq!(demangle(name), name);
        }
    }

    proptest! {
        #[test]
        fn no_name_breaks_it(name in "(_Z|_ZN|_R|_ZN3foo17h)?[0-9A-Za-z_.$@]{0,80}") {
            let _ = (demangle(&name), demangle_short(&name));
        }
    }
}
