//! Places in a program as a user writes them.

/// A location in an ELF file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// Start and end (exclusive) addresses.
    Range(u64, u64),
    /// The basic block that contains the address.
    At(u64),
    /// The N-th basic block of a function.
    Function(String, usize),
    /// The first block of a loop.
    Loop(LoopName),
}

/// A loop of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopName {
    /// The N-th loop of a function, outer ones first.
    Number(String, usize),
    /// The innermost loop that contains the address.
    At(u64),
}

impl Location {
    /// Splits `FILE:LOCATION`; `None` if the text has another form.
    pub fn parse(text: &str) -> Option<(&str, Self)> {
        let (file, place) = text.rsplit_once(':')?;
        if let Some((start, end)) = place.split_once("..") {
            return Some((file, Self::Range(address(start)?, address(end)?)));
        }
        if file.is_empty() || place.is_empty() {
            return None;
        }
        if let Some(at) = place.strip_prefix("0x") {
            return Some((file, Self::At(address(at)?)));
        }
        if let Some(one) = loop_name(place) {
            return Some((file, Self::Loop(one)));
        }
        let (name, number) = match place.rsplit_once('+') {
            Some((name, number)) => (name, number.parse().ok()?),
            None => (place, 0),
        };
        (!name.is_empty()).then(|| (file, Self::Function(name.to_owned(), number)))
    }
}

/// `FUNCTION@N`, `FUNCTION@0xADDRESS`, `@0xADDRESS`; other names may contain an `@`, too.
fn loop_name(place: &str) -> Option<LoopName> {
    let (name, which) = place.rsplit_once('@')?;
    match which.strip_prefix("0x") {
        Some(at) => address(at).map(LoopName::At),
        None if name.is_empty() => None,
        None => which.parse().ok().map(|number| LoopName::Number(name.to_owned(), number)),
    }
}

/// A hexadecimal address, with or without `0x`.
fn address(text: &str) -> Option<u64> {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_parse_as_documented() {
        let range = Location::Range(0x401000, 0x401010);
        assert_eq!(Location::parse("a.out:0x401000..0x401010"), Some(("a.out", range.clone())));
        assert_eq!(Location::parse("a.out:401000..401010"), Some(("a.out", range)));
        let named = Location::Function("main".into(), 3);
        assert_eq!(Location::parse("./a.out:main+3"), Some(("./a.out", named)));
        assert_eq!(Location::parse("4801d8"), None);
        assert_eq!(Location::parse("a.out:0x401004"), Some(("a.out", Location::At(0x40_1004))));
        let number = Location::Loop(LoopName::Number("main".into(), 2));
        assert_eq!(Location::parse("a.out:main@2"), Some(("a.out", number)));
        let at = Location::Loop(LoopName::At(0x40_1004));
        assert_eq!(Location::parse("a.out:main@0x401004"), Some(("a.out", at.clone())));
        assert_eq!(Location::parse("a.out:@0x401004"), Some(("a.out", at)));
        let odd = Location::Function("puts@plt".into(), 0);
        assert_eq!(Location::parse("a.out:puts@plt"), Some(("a.out", odd)));
    }
}
