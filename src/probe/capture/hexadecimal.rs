//! Numbers and bytes as hexadecimal text in documents.

use serde::Deserializer;
use serde::de::Error as _;

/// `0x…`.
pub fn parse(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Two digits for each byte.
pub fn digits(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Parses `digits`.
pub fn from_digits(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

fn read<'de, D: Deserializer<'de>>(text: &str) -> Result<u64, D::Error> {
    parse(text).ok_or_else(|| D::Error::custom(format!("`{text}` is not 0x and digits")))
}

/// A number.
pub mod number {
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// Writes it.
    ///
    /// # Errors
    /// That of the serializer.
    pub fn serialize<S: Serializer>(value: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{value:#x}"))
    }

    /// Reads it.
    ///
    /// # Errors
    /// It is not `0x` and hexadecimal digits.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        super::read::<D>(&String::deserialize(deserializer)?)
    }
}

/// Several numbers.
pub mod numbers {
    use super::read;
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// Writes them.
    ///
    /// # Errors
    /// That of the serializer.
    pub fn serialize<S: Serializer>(values: &[u64], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(values.iter().map(|value| format!("{value:#x}")))
    }

    /// Reads them.
    ///
    /// # Errors
    /// One is not `0x` and hexadecimal digits.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u64>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| read::<D>(text)).collect()
    }
}

/// Arrays of bytes, each a text.
pub mod arrays {
    use super::{digits, from_digits};
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    /// Writes them, two digits for each byte.
    ///
    /// # Errors
    /// That of the serializer.
    pub fn serialize<S: Serializer, const N: usize>(
        all: &[[u8; N]],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(all.iter().map(|bytes| digits(bytes)))
    }

    /// Reads them.
    ///
    /// # Errors
    /// One does not have two digits for each of `N` bytes.
    pub fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<Vec<[u8; N]>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        let array = |text: &String| from_digits(text)?.try_into().ok();
        texts
            .iter()
            .map(|text| array(text).ok_or_else(|| D::Error::custom(format!("not {N} bytes"))))
            .collect()
    }
}
