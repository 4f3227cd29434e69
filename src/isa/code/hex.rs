//! Bytes as hexadecimal text: `4801d8`, `48 01 d8`, `\x48\x01`, `0x48, 0x01`.

use tma::{Error, Result};

/// Largest accepted block, in bytes: far more than fits into the µop cache.
pub const MAX_BLOCK_BYTES: usize = 4096;

/// Parses hexadecimal bytes. White space, commas, quotes, `\x` and `0x` may separate them.
///
/// # Errors
/// The number of digits is odd, a character is not a digit, or there are no bytes or more than
/// 4096.
pub fn parse_hex(text: &str) -> Result<Vec<u8>> {
    let bad = |cause: String| {
        Error::failed("cannot read the block's bytes")
            .because(cause)
            .hint("write them as 4801d8, `48 01 d8`, \\x48\\x01\\xd8 or 0x48,0x01,0xd8")
    };
    let mut bytes = Vec::new();
    for word in words(text) {
        if !word.len().is_multiple_of(2) {
            return Err(bad(format!("`{word}` has an odd number of digits")));
        }
        for pair in word.as_bytes().chunks(2) {
            let digit = |c: u8| (c as char).to_digit(16);
            match (digit(pair[0]), digit(pair[1])) {
                (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
                _ => {
                    let pair = String::from_utf8_lossy(pair);
                    return Err(bad(format!("`{pair}` is not a hexadecimal byte")));
                }
            }
        }
    }
    match bytes.len() {
        0 => Err(bad("the input is empty".to_owned())),
        n if n > MAX_BLOCK_BYTES => {
            Err(bad(format!("it has {n} bytes; the limit is {MAX_BLOCK_BYTES}")))
        }
        _ => Ok(bytes),
    }
}

/// Runs of digits between separators and prefixes.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '"' | '\''))
        .flat_map(|word| word.split("\\x"))
        .map(|word| word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")).unwrap_or(word))
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::parse_hex;

    #[test]
    fn all_common_notations_give_the_same_bytes() {
        for text in
            ["4801d8", "48 01 D8", "\\x48\\x01\\xd8", "0x48, 0x01,0xd8", "0x4801d8", "\"4801d8\"\n"]
        {
            assert_eq!(parse_hex(text).unwrap(), [0x48, 0x01, 0xd8], "{text}");
        }
    }

    #[test]
    fn invalid_input_is_an_error_that_quotes_it() {
        for (text, named) in [("480", "480"), ("48zz", "zz"), ("", "empty"), ("äé", "not a hex")]
        {
            let error = parse_hex(text).unwrap_err().to_string();
            assert!(error.contains(named), "{text}: {error}");
        }
    }
}
