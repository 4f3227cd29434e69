//! Listings pasted as assembly: the columns that tdtool prints around instructions are removed, and jumps
//! to addresses get labels.

/// The label of the block's start.
const START: &str = "tdtool_start";

/// A statement, with the address that a listing gives it.
struct Statement<'t> {
    address: Option<u64>,
    code: &'t str,
}

/// Statements for the assembler: addresses that jumps lead to are places of the block, from 0 at its start, or
/// as the listing's column of addresses has them.
pub(super) fn statements(lines: &[&str], intel: bool) -> Vec<String> {
    let all: Vec<Statement> = lines.iter().map(|line| statement(line)).collect();
    let base = all.iter().find_map(|one| one.address).unwrap_or(0);
    let known: Vec<u64> = all.iter().filter_map(|one| one.address).collect();
    let place = |target: u64| match known.contains(&target) {
        true => label(target),
        false => format!("{START}{:+}", target.wrapping_sub(base).cast_signed()),
    };
    let mut written = Vec::new();
    let mut is_first = true;
    for one in &all {
        let mut text = String::new();
        if is_first && !one.code.is_empty() {
            text = format!("{START}: ");
            is_first = false;
        }
        if let Some(address) = one.address {
            text += &format!("{}: ", label(address));
        }
        match jump(one.code) {
            Some(jump) => {
                // A listing shows which jumps are short; the assembler would shorten all that it can.
                let long = intel && one.address.is_some() && !jump.is_short && jump.name != "call";
                text += if long { "{disp32} " } else { "" };
                text += &format!("{} {}", jump.name, place(jump.target));
            }
            None => text += one.code,
        }
        written.push(text);
    }
    written
}

fn label(address: u64) -> String {
    format!("tdtool_at_{address:x}")
}

/// A line without the columns of a listing: number, share, address, bytes and arrows before the instruction,
/// dependencies after it.
fn statement(line: &str) -> Statement<'_> {
    let mut rest = line.trim();
    let number = rest.trim_start_matches('>').trim_start();
    let is_numbered = first(number).is_some_and(|word| word.parse::<u32>().is_ok());
    if is_numbered {
        rest = after_first(number);
    } else if let Some((share, code)) = rest.split_once('%')
        && share.trim().parse::<f64>().is_ok()
    {
        rest = code.trim_start();
    }
    let address = first(rest).and_then(|word| {
        let hex = word.strip_prefix("0x")?;
        u64::from_str_radix(hex.strip_suffix(':').unwrap_or(hex), 16).ok()
    });
    if address.is_none() {
        return Statement { address, code: rest };
    }
    rest = after_first(rest);
    let is_bytes =
        |word: &str| word.bytes().all(|b| b.is_ascii_hexdigit()) && word.len().is_multiple_of(2);
    if is_numbered && first(rest).is_some_and(is_bytes) {
        rest = after_first(rest);
    }
    while first(rest).is_some_and(is_drawn) {
        rest = after_first(rest);
    }
    if let Some((code, _)) = rest.rsplit_once("  ").filter(|(_, last)| is_dependencies(last)) {
        rest = code.trim_end();
    }
    Statement { address, code: rest }
}

fn first(text: &str) -> Option<&str> {
    text.split_whitespace().next()
}

/// The text after the first word.
fn after_first(text: &str) -> &str {
    let text = text.trim_start();
    text.find(char::is_whitespace).map_or("", |end| text[end..].trim_start())
}

/// Arrows of dependencies.
fn is_drawn(word: &str) -> bool {
    word.chars().all(|c| !c.is_ascii() || "o|+-<>".contains(c))
}

/// `d1(-1) d2`: names of dependencies.
fn is_dependencies(text: &str) -> bool {
    let is_one = |word: &str| {
        let digits = word.strip_prefix('d').map(|d| d.split('(').next().unwrap_or_default());
        digits.is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
    };
    !text.trim().is_empty() && text.split_whitespace().all(is_one)
}

/// A jump or call to a number.
struct Jump<'t> {
    name: &'t str,
    target: u64,
    is_short: bool,
}

fn jump(code: &str) -> Option<Jump<'_>> {
    let name = first(code)?;
    let lower = name.to_ascii_lowercase();
    let jumps = lower.starts_with('j') || lower.starts_with("call") || lower.starts_with("loop");
    let mut operand = after_first(code);
    let is_short = operand.starts_with("short ");
    for word in ["short ", "near ptr ", "near "] {
        operand = operand.strip_prefix(word).unwrap_or(operand).trim_start();
    }
    let (is_before, digits) =
        operand.strip_prefix('-').map_or((false, operand), |digits| (true, digits));
    let target: Option<u64> = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => digits.parse().ok(),
    };
    let target = target.map(|target| if is_before { target.wrapping_neg() } else { target });
    target.filter(|_| jumps).map(|target| Jump { name, target, is_short })
}

#[cfg(test)]
mod tests {
    use crate::code::{Syntax, assemble};

    fn bytes(text: &str) -> Vec<u8> {
        assemble(text, Syntax::Intel).unwrap()
    }

    #[test]
    fn jumps_to_addresses_are_jumps_in_the_block() {
        // 83 c0 01 add eax,1; 75 fb jne -5 (Intel SDM, ADD and Jcc).
        assert_eq!(bytes("add eax,1; jne short 0"), [0x83, 0xc0, 0x01, 0x75, 0xfb]);
        assert_eq!(bytes("add eax,1\njne 0x0"), [0x83, 0xc0, 0x01, 0x75, 0xfb]);
        let att = assemble("addl $1,%eax; jne 0", Syntax::Att).unwrap();
        assert_eq!(att, [0x83, 0xc0, 0x01, 0x75, 0xfb]);
        assert!(assemble("jne elsewhere", Syntax::Intel).is_err());
    }

    #[test]
    fn listings_are_their_instructions() {
        let dependencies = "0x1151 ┌─┬─► imul esi,0x19660d   d1(-1) d3\n\
                            0x1157 └─┴─► add esi,0x3c6ef35f  d2\n\
                            0x115d       sub eax,1\n\
                            0x1160       jne short 0x1151\n";
        // The loop as `as` assembles it with a label.
        let plain = bytes("l: imul esi,0x19660d; add esi,0x3c6ef35f; sub eax,1; jne l");
        assert_eq!(bytes(dependencies), plain);
        let ascii = "0x0 o-> add eax,[rsp]  d1(-1)\n0x3     dec ecx\n0x5     jne short 0\n";
        assert_eq!(bytes(ascii), bytes("l: add eax,[rsp]; dec ecx; jne l"));
        let measured = "   0    0x0  030424  add eax,[rsp]\n>  1    0x3  ffc9    dec ecx\n   2    0x5  75f9    jne short 0\n";
        assert_eq!(bytes(measured), bytes(ascii));
        // 75 f5: to seven bytes before the block, as objdump shows it, too.
        let measured = "   0    0x0  ffc9    dec ecx\n   1    0x2  75f5    jne short -7\n";
        assert_eq!(bytes(measured), [0xff, 0xc9, 0x75, 0xf5]);
        let dumped = measured.replace("-7", "0xfffffffffffffff9");
        assert_eq!(bytes(&dumped), [0xff, 0xc9, 0x75, 0xf5]);
        let source = "  100.0 %  0x1157  add esi,0x3c6ef35f\n           0x115d  jmp 0x1157";
        // e9: the near form, which the listing shows by the absence of `short`.
        assert_eq!(bytes(source)[6..], [0xe9, 0xf5, 0xff, 0xff, 0xff]);
    }
}
