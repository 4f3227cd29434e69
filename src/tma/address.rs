//! Addresses as documents and texts have them: `0x401000`.

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// An address of code or data; written `0x…`.
///
/// ```
/// let address: tma::Address = "0x401000".parse().unwrap();
/// assert_eq!((address.0, address.to_string().as_str()), (0x401000, "0x401000"));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl From<u64> for Address {
    fn from(number: u64) -> Self {
        Self(number)
    }
}

/// Width and alignment are those of a text.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (f.width(), f.precision()) {
            (None, None) => write!(f, "{:#x}", self.0),
            _ => f.pad(&format!("{:#x}", self.0)),
        }
    }
}

/// Why a text is no address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoAddress {
    /// It does not begin with `0x`.
    Prefix(String),
    /// No digit follows that.
    Empty,
    /// It has this character.
    Digit(String, char),
    /// It has more than 64 bits.
    Long(String),
}

impl fmt::Display for NoAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(text) => write!(f, "the address `{text}` does not begin with 0x"),
            Self::Empty => f.write_str("the address `0x` has no digits"),
            Self::Digit(text, digit) => {
                write!(f, "the address `{text}` has `{digit}`, which is no hexadecimal digit")
            }
            Self::Long(text) => write!(f, "the address `{text}` has more than 64 bits"),
        }
    }
}

impl std::error::Error for NoAddress {}

impl FromStr for Address {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let digits = text.strip_prefix("0x").ok_or_else(|| NoAddress::Prefix(text.to_owned()))?;
        match digits.chars().find(|c| !c.is_ascii_hexdigit()) {
            Some(other) => Err(NoAddress::Digit(text.to_owned(), other)),
            None if digits.is_empty() => Err(NoAddress::Empty),
            None => u64::from_str_radix(digits, 16)
                .map(Self)
                .map_err(|_| NoAddress::Long(text.to_owned())),
        }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_str, to_string};

    #[test]
    fn what_is_written_is_read() {
        for number in [0, 0x10, u64::MAX] {
            let json = to_string(&Address(number)).unwrap();
            assert_eq!(json, format!("\"{number:#x}\""));
            assert_eq!(from_str::<Address>(&json).unwrap(), Address(number));
        }
        assert_eq!(format!("{:>6}|{:<6}|", Address(0x10), Address(0x10)), "  0x10|0x10  |");
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (text, why) in [
            ("", "the address `` does not begin with 0x"),
            ("401000", "the address `401000` does not begin with 0x"),
            ("0x", "the address `0x` has no digits"),
            ("0x+1", "the address `0x+1` has `+`, which is no hexadecimal digit"),
            ("0x0x1", "the address `0x0x1` has `x`, which is no hexadecimal digit"),
            ("0x10000000000000000", "the address `0x10000000000000000` has more than 64 bits"),
        ] {
            assert_eq!(text.parse::<Address>().unwrap_err().to_string(), why);
            let error = from_str::<Address>(&format!("\"{text}\"")).unwrap_err();
            assert!(error.to_string().starts_with(why), "{error}");
        }
    }
}
