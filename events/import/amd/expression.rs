//! perf's metric expressions → the formula language of the tables.

use anyhow::{Context, Result, bail};
use tma::formula::parse;

/// `d_ratio(a, b)` → `a / b`; `cpu@name\,cmask\=0x6@` → `name:c6`; `instructions` →
/// `ex_ret_instr`, which is what the kernel counts for it on AMD.
pub fn convert(text: &str) -> Result<String> {
    let text = ratios(&modifiers(text)?)?;
    let expr = parse(&text).with_context(|| text.clone())?;
    let mut words = String::new();
    for word in expr.to_string().split_inclusive([' ', '(', ')', ',']) {
        let (name, rest) = word.split_at(word.trim_end_matches([' ', '(', ')', ',']).len());
        words += if name == "instructions" { "ex_ret_instr" } else { name };
        words += rest;
    }
    Ok(words)
}

/// An event's name without its modifiers.
pub fn base(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

fn modifiers(text: &str) -> Result<String> {
    let mut parts = text.split('@');
    let mut out = parts.next().unwrap_or_default().to_owned();
    while let Some(event) = parts.next() {
        let (before, Some((name, modifier))) =
            (out.strip_suffix("cpu"), event.split_once("\\,cmask\\=0x"))
        else {
            bail!("event modifier in `{text}` is new");
        };
        let cmask = u32::from_str_radix(modifier, 16)?;
        out = format!("{}{name}:c{cmask}", before.unwrap_or(&out));
        out += parts.next().unwrap_or_default();
    }
    Ok(out)
}

fn ratios(text: &str) -> Result<String> {
    const CALL: &str = "d_ratio(";
    let Some(at) = text.find(CALL) else { return Ok(text.to_owned()) };
    let inside = &text[at + CALL.len()..];
    let (mut depth, mut comma, mut end) = (0, None, None);
    for (i, c) in inside.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => {
                end = Some(i);
                break;
            }
            ')' => depth -= 1,
            ',' if depth == 0 => comma = Some(i),
            _ => {}
        }
    }
    let (Some(comma), Some(end)) = (comma, end) else { bail!("unbalanced `{text}`") };
    let ratio = format!("(({}) / ({}))", &inside[..comma], &inside[comma + 1..end]);
    ratios(&format!("{}{ratio}{}", &text[..at], &inside[end + 1..]))
}
