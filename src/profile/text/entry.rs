//! An entry of a branch stack as `perf script` writes it: `FROM/TO/M|P|-/X|-/A|-/CYCLES[/TYPE[/SPEC]]`,
//! each address possibly followed by its file in parentheses.
//!
//! perf's `print_brstack` (tools/perf/builtin-script.c): cycles end the entry up to Linux 5.18, then the
//! type follows (empty if unknown), from 6.1 on the speculation, and from 6.16 on `N` beside `P` or `M` is
//! a branch that was not taken.

use super::lines::hex;
use crate::sample::Branch;

/// Whether a word looks like an entry.
pub fn is_entry(word: &str) -> bool {
    word.starts_with("0x") && word.contains('/')
}

/// The branch; `None` if it cannot be read. The second is false for a branch that was not taken.
pub fn read(word: &str) -> Option<(Branch, bool)> {
    let (from, rest) = address(word)?;
    let (to, rest) = address(rest)?;
    let mut fields = rest.split('/');
    let event = fields.next()?;
    let mispredicted = match event {
        "-" | "" => None,
        _ if event.contains('M') => Some(true),
        _ if event.contains('P') => Some(false),
        _ => return None,
    };
    let (transaction, abort) = (fields.next()?, fields.next()?);
    if !matches!((transaction, abort), ("X" | "-", "A" | "-")) {
        return None;
    }
    let cycles: u64 = fields.next()?.parse().ok()?;
    fields.next(); // the type
    let branch = Branch {
        from,
        to,
        mispredicted,
        transaction: (transaction == "X", abort == "A"),
        cycles: Some(u16::try_from(cycles).unwrap_or(u16::MAX)),
        kind: 0,
        wrong_path: fields.next().is_some_and(|spec| spec.ends_with("WRONG_PATH")),
    };
    Some((branch, !event.contains('N')))
}

/// The address at the start of a word, and what follows its slash.
fn address(word: &str) -> Option<(u64, &str)> {
    let digits = word.strip_prefix("0x")?;
    let end = digits.find(|c: char| !c.is_ascii_hexdigit())?;
    let (number, rest) = digits.split_at(end);
    let rest = match rest.strip_prefix('(') {
        Some(file) => &file[file.find(")/")? + 1..],
        None => rest,
    };
    Some((hex(number)?, rest.strip_prefix('/')?))
}

/// The branches without cycles, if none of them has any.
pub fn without_absent_cycles(mut branches: Vec<Branch>) -> Vec<Branch> {
    if branches.iter().all(|branch| branch.cycles == Some(0)) {
        branches.iter_mut().for_each(|branch| branch.cycles = None);
    }
    branches
}
