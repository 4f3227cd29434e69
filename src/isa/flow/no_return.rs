//! Functions known by name that never return. Compilers emit no code after a call of one, so the bytes
//! that follow do not belong to the caller's path.

/// Functions of the C and C++ standard libraries, compiler runtimes, and err(3).
const NAMES: [&str; 30] = [
    "_Exit",
    "_Unwind_Resume",
    "_ZSt9terminatev",
    "__assert_fail",
    "__chk_fail",
    "__cxa_bad_cast",
    "__cxa_bad_typeid",
    "__cxa_call_unexpected",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_new_length",
    "__fortify_fail",
    "__libc_fatal",
    "__longjmp_chk",
    "__stack_chk_fail",
    "_exit",
    "_longjmp",
    "abort",
    "err",
    "errx",
    "exit",
    "longjmp",
    "pthread_exit",
    "quick_exit",
    "rust_begin_unwind",
    "siglongjmp",
    "thrd_exit",
    "verr",
    "verrx",
];

/// Whether the function `name`, mangled as in the symbol table, never returns.
pub(super) fn never_returns(name: &[u8]) -> bool {
    let Ok(name) = std::str::from_utf8(name) else { return false };
    let name = name.split('@').next().unwrap_or(name);
    NAMES.binary_search_by(|known| known.as_bytes().cmp(name.as_bytes())).is_ok()
        || (name.starts_with("_ZSt") && name.contains("__throw_"))
        || (name.starts_with("_ZN4core") && name.contains("9panicking"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_found() {
        assert!(NAMES.is_sorted_by_key(|n| n.as_bytes()));
        for name in ["abort", "_ZSt20__throw_length_errorPKc", "exit@GLIBC_2.2.5"] {
            assert!(never_returns(name.as_bytes()), "{name}");
        }
        assert!(!never_returns(b"exits") && !never_returns(b"_ZSt4sortv"));
    }
}
