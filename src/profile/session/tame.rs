//! Texts of a session, safe to show: names in it are those of the programs that were recorded.

use serde::de::DeserializeOwned;
use serde_json::Value;
use tma::text::name;

/// Decodes JSON, with control characters in texts shown as escapes.
pub fn from_slice<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    // Where a control character can be: escaped, or beyond ASCII. Counts of an interval have neither.
    if !json.iter().any(|byte| *byte == b'\\' || *byte >= 0x80) {
        return serde_json::from_slice(json);
    }
    let mut value: Value = serde_json::from_slice(json)?;
    tame(&mut value);
    serde_json::from_value(value)
}

fn tame(value: &mut Value) {
    match value {
        Value::String(text) => *text = name(text).into_owned(),
        Value::Array(all) => all.iter_mut().for_each(tame),
        Value::Object(all) => {
            let old = std::mem::take(all);
            all.extend(old.into_iter().map(|(key, mut value)| {
                tame(&mut value);
                (name(&key).into_owned(), value)
            }));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_keys_are_tame() {
        let found: Value =
            from_slice(b"{\"a\\u001b\": [\"\\n\", 1, {\"b\": \"\\\"\\u202e\"}]}").unwrap();
        assert_eq!(found.to_string(), r#"{"a\\u001b":["\\u000a",1,{"b":"\"\\u202e"}]}"#);
        assert_eq!(from_slice::<Value>(b"{\"a\": 0.1}").unwrap()["a"], 0.1);
    }
}
