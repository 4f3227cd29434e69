//! Formula text → tokens with their places.

use super::error::FormulaError;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Num(f64),
    Name(String),
    Const(String),
    Op(&'static str),
}

/// The symbols, longest first. `&&` and `||` are what E-core sheets write for `and`, `or`.
const SYMBOLS: [&str; 17] =
    ["<=", ">=", "==", "&&", "||", "+", "-", "*", "/", "(", ")", ",", "<", ">", "&", "|", "?"];

/// All tokens of `text`, each with the byte offset where it begins.
pub(super) fn tokens(text: &str) -> Result<Vec<(usize, Token)>, FormulaError> {
    let mut found = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start();
        let at = text.len() - rest.len();
        let Some(first) = rest.chars().next() else { return Ok(found) };
        let (token, length) = if let Some(after) = rest.strip_prefix('#') {
            let length = word_length(after);
            if length == 0 {
                return Err(error(at, "`#` must be followed by the name of a constant"));
            }
            (Token::Const(after[..length].to_owned()), length + 1)
        } else if first.is_ascii_digit() || first == '.' {
            number_or_name(rest, at)?
        } else if first.is_alphabetic() || first == '_' {
            let length = name_length(rest);
            (word(&rest[..length]), length)
        } else if let Some(symbol) = SYMBOLS.iter().find(|s| rest.starts_with(**s)) {
            (Token::Op(symbol), symbol.len())
        } else {
            return Err(error(at, format!("unexpected character `{first}`")));
        };
        found.push((at, token));
        rest = &rest[length..];
    }
}

fn error(at: usize, message: impl Into<String>) -> FormulaError {
    FormulaError { at, message: message.into() }
}

fn word(text: &str) -> Token {
    match text {
        "if" => Token::Op("if"),
        "else" => Token::Op("else"),
        "and" => Token::Op("&"),
        "or" => Token::Op("|"),
        _ => Token::Name(text.to_owned()),
    }
}

/// `4K_Aliasing` is a name, `2.5` and `1e9` are numbers.
fn number_or_name(rest: &str, at: usize) -> Result<(Token, usize), FormulaError> {
    let length = name_length(rest);
    let mut text = &rest[..length];
    // 1e-9: the sign belongs to the exponent.
    if text.ends_with(['e', 'E'])
        && text[..text.len() - 1].parse::<f64>().is_ok()
        && rest[length..].starts_with(['+', '-'])
    {
        let digits = rest[length + 1..].bytes().take_while(u8::is_ascii_digit).count();
        text = &rest[..length + 1 + digits];
    }
    if let Ok(value) = text.parse::<f64>() {
        return Ok((Token::Num(value), text.len()));
    }
    if text.contains(|c: char| c.is_ascii_alphabetic()) && !text.starts_with('.') {
        return Ok((Token::Name(text.to_owned()), text.len()));
    }
    Err(error(at, format!("`{text}` is not a number")))
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len())
}

/// A name with its modifiers (`:c1:e1`, `:ocr_msr_val=0x10`) and paper-style bounds (`[≥MIW]`).
fn name_length(text: &str) -> usize {
    let mut end = 0;
    let mut chars = text.char_indices().peekable();
    while let Some((i, c)) = chars.next() {
        let part_of_it = match c {
            '[' => {
                let Some(close) = text[i..].find(']') else { return i };
                while chars.peek().is_some_and(|(j, _)| *j <= i + close) {
                    chars.next();
                }
                end = i + close + 1;
                continue;
            }
            '=' => text[..i].contains(':') && !text[i..].starts_with("=="),
            ':' => i > 0,
            _ => c.is_alphanumeric() || c == '_' || c == '.',
        };
        if !part_of_it {
            return i;
        }
        end = i + c.len_utf8();
    }
    end
}
