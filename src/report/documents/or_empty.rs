//! One of a fixed set of words, or an address, in JSON, or an empty text for none: `#[serde(with = "or_empty")]`.

use serde::de::IntoDeserializer as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(super) fn serialize<T: Serialize, S: Serializer>(
    of: &Option<T>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match of {
        Some(of) => of.serialize(to),
        None => to.serialize_str(""),
    }
}

pub(super) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(from)?;
    (!text.is_empty()).then(|| T::deserialize(text.into_deserializer())).transpose()
}
