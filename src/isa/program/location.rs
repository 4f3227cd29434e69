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
        let (file, place) = split(text)?;
        let is_name = place.contains(['(', '<']);
        if let Some((start, end)) = place.split_once("..").filter(|_| !is_name) {
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
            Some((name, address)) if !name.is_empty() && address.starts_with("0x") => (place, 0),
            Some((name, number)) if !name.ends_with("operator") && !name.ends_with("operator+") => {
                (name, number.parse().ok()?)
            }
            _ => (place, 0),
        };
        (!name.is_empty()).then(|| (file, Self::Function(name.to_owned(), number)))
    }

    /// The function that it names.
    pub fn function(&self) -> Option<&str> {
        match self {
            Self::Function(name, _) | Self::Loop(LoopName::Number(name, _)) => Some(name),
            _ => None,
        }
    }

    /// The same offset or block in the function `name`.
    #[must_use]
    pub fn of_function(&self, name: &str) -> Self {
        match self {
            Self::Function(_, number) => Self::Function(name.to_owned(), *number),
            Self::Loop(LoopName::Number(_, number)) => {
                Self::Loop(LoopName::Number(name.to_owned(), *number))
            }
            other => other.clone(),
        }
    }
}

/// The file and the place of `FILE:PLACE`: names of C++ and Rust have colons of their own, two each.
pub fn split(text: &str) -> Option<(&str, &str)> {
    let bytes = text.as_bytes();
    let is_alone = |at: &usize| {
        let same = |other: Option<usize>| other.and_then(|n| bytes.get(n)) == Some(&b':');
        bytes[*at] == b':' && !same(at.checked_sub(1)) && !same(Some(at + 1))
    };
    // The first of three colons of a global name (`::name`).
    let colon = (0..bytes.len()).rev().find(is_alone).or_else(|| text.find(":::"))?;
    Some((&text[..colon], &text[colon + 1..]))
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
        for (name, number) in [
            ("ns::Class::method(int)", "+3"),
            ("core::fmt::Formatter<'_>::pad", "+3"),
            ("<a::B as c::D>::call(std::span<int>, ...)", "+3"),
            ("ns::operator+", ""),
            ("ns::operator++(int)", "+3"),
        ] {
            let of = Location::Function(name.into(), if number.is_empty() { 0 } else { 3 });
            assert_eq!(Location::parse(&format!("./a:{name}{number}")), Some(("./a", of)));
        }
        let one = Location::Loop(LoopName::Number("a::b".into(), 1));
        assert_eq!(Location::parse("x::y:a::b@1"), Some(("x::y", one)));
        assert_eq!(split("a.out:::f"), Some(("a.out", "::f")));
        let nameless = Location::Function("sort+0x4327".into(), 3);
        assert_eq!(Location::parse("/bin/sort:sort+0x4327+3"), Some(("/bin/sort", nameless)));
        let nameless = Location::Function("sort+0x4327".into(), 0);
        assert_eq!(Location::parse("sort:sort+0x4327"), Some(("sort", nameless)));
        let odd = Location::Function("puts@plt".into(), 0);
        assert_eq!(Location::parse("a.out:puts@plt"), Some(("a.out", odd)));
    }
}
