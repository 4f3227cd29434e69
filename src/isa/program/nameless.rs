//! Names of functions without a symbol: the file and the address, `sort+0x4327`.

/// The name of the function at `start` (p_vaddr) of a file, given by path or name.
pub fn nameless(file: &str, start: u64) -> String {
    let file = file.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("code");
    format!("{file}+{start:#x}")
}

/// The address in such a name.
pub fn nameless_start(name: &str) -> Option<u64> {
    let (file, digits) = name.rsplit_once("+0x")?;
    if file.is_empty() { None } else { u64::from_str_radix(digits, 16).ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_gives_its_address_back() {
        assert_eq!(nameless("/usr/bin/sort", 0x4327), "sort+0x4327");
        assert_eq!(nameless_start("sort+0x4327"), Some(0x4327));
        // A library whose name has a plus.
        assert_eq!(nameless_start(&nameless("/lib/libstdc++.so.6", 0x10)), Some(0x10));
        for other in ["main", "main+3", "+0x10", "main+0x", "0x4327"] {
            assert_eq!(nameless_start(other), None, "{other}");
        }
    }
}
