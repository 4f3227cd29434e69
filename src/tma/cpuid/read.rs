//! Reads dumps of CPUID as text: the output of `cpuid -r`, or rows of values.

use super::{Cpuid, Leaf};
use crate::{Error, Result};

/// The registers of one processor of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dump {
    /// `CPU 0`, or the first column of the rows; empty where the dump does not say.
    pub name: String,
    /// Its registers.
    pub cpuid: Cpuid,
}

/// More processors than any machine has (the kernel's limit is 8192).
const MOST_PROCESSORS: usize = 1 << 14;
/// More subleaves than any leaf has.
const MOST_SUBLEAVES: u32 = 256;
/// More rows than any dump of all of these has.
const MOST_ROWS: usize = 1 << 21;

/// Reads a dump: what `cpuid -r` prints (`0x00000007 0x00: eax=0x… ebx=0x… ecx=0x… edx=0x…`, below
/// headings `CPU n:`), or rows `leaf,subleaf,eax,ebx,ecx,edx` of hexadecimal numbers, which a column
/// with the processor's name may precede. Empty lines, headings of columns and lines that begin with
/// `#` are passed over. A leaf that comes again, after others, begins the next processor; one that
/// comes again at once is its next subleaf, as in dumps that do not number them.
///
/// ```
/// use tma::cpuid::read;
///
/// let text = "CPU 0:\n   0x00000001 0x00: eax=0x000a0671 ebx=0x00100800 ecx=0xfffa3203 edx=0x1f8bfbff\n";
/// let found = read(text)?;
/// assert_eq!((found[0].name.as_str(), found[0].cpuid.cpu().model), ("CPU 0", 167));
///
/// let rows = read("leaf,subleaf,eax,ebx,ecx,edx\n1,0,000a0671,00100800,fffa3203,1f8bfbff\n")?;
/// assert_eq!(rows[0].cpuid, found[0].cpuid);
///
/// let error = read("1,0,a0671\n").unwrap_err();
/// assert!(error.to_string().contains("line 1"), "{error}");
/// # Ok::<(), tma::Error>(())
/// ```
///
/// # Errors
/// A line of neither form, with its number; no registers at all.
pub fn read(text: &str) -> Result<Vec<Dump>> {
    let mut dumps: Vec<Dump> = Vec::new();
    let (mut rows, mut last) = (0_usize, None);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        let wrong = |why: &str| wrong(index + 1, why);
        if line.is_empty() || line.starts_with('#') || is_heading(line) {
            continue;
        }
        if let Some(name) = processor(line) {
            if dumps.len() >= MOST_PROCESSORS {
                return Err(wrong("too many processors"));
            }
            dumps.push(Dump { name: name.to_owned(), cpuid: Cpuid::default() });
            last = None;
            continue;
        }
        rows += 1;
        if rows > MOST_ROWS {
            return Err(wrong("too many rows"));
        }
        let row = registers(line).or_else(|| values(line)).ok_or_else(|| {
            wrong("neither `0x… 0x…: eax=0x… ebx=0x… ecx=0x… edx=0x…` nor `leaf,subleaf,eax,ebx,ecx,edx`")
        })?;
        let (leaf, mut subleaf) = row.at;
        let begins = |before: &Dump| {
            row.name.is_some_and(|name| before.name != name)
                || before.cpuid.get(leaf, subleaf).is_some() && last != Some(leaf)
        };
        if dumps.last().is_none_or(begins) {
            let before = dumps.last().map(|dump| dump.name.clone());
            let name = row.name.map(str::to_owned).or(before).unwrap_or_default();
            dumps.push(Dump { name, cpuid: Cpuid::default() });
            if dumps.len() > MOST_PROCESSORS {
                return Err(wrong("too many processors"));
            }
        }
        let Some(Dump { cpuid, .. }) = dumps.last_mut() else { continue };
        // Older dumps give every subleaf the number 0.
        while cpuid.get(leaf, subleaf).is_some() && subleaf < MOST_SUBLEAVES {
            subleaf += 1;
        }
        cpuid.insert(leaf, subleaf, row.registers);
        last = Some(leaf);
    }
    dumps.retain(|dump| !dump.cpuid.is_empty());
    if dumps.is_empty() {
        return Err(Error::failed("no registers of CPUID in the dump").hint(FORMS));
    }
    Ok(dumps)
}

const FORMS: &str =
    "`cpuid -r` writes such a file; so do rows `leaf,subleaf,eax,ebx,ecx,edx`, hexadecimal";

fn wrong(line: usize, why: &str) -> Error {
    Error::failed(format!("line {line} of the dump of CPUID cannot be read"))
        .because(why)
        .hint(FORMS)
}

struct Row<'a> {
    name: Option<&'a str>,
    at: (u32, u32),
    registers: Leaf,
}

/// `CPU 3:` or, of one processor, `CPU:`.
fn processor(line: &str) -> Option<&str> {
    let name = line.strip_suffix(':')?;
    let number = name.strip_prefix("CPU")?.trim();
    number.chars().all(|c| c.is_ascii_digit()).then_some(name)
}

/// The names of the columns.
fn is_heading(line: &str) -> bool {
    let mut columns = line.rsplit(',').map(str::trim);
    ["edx", "ecx", "ebx", "eax"].iter().all(|name| columns.next().is_some_and(|c| c == *name))
}

/// `0x00000007 0x00: eax=0x… ebx=0x… ecx=0x… edx=0x…`
fn registers(line: &str) -> Option<Row<'static>> {
    let (place, values) = line.split_once(':')?;
    let mut place = place.split_whitespace().map(hex);
    let at = (place.next()??, place.next()??);
    let mut words = values.split_whitespace();
    let mut of = |name: &str| hex(words.next()?.strip_prefix(name)?.strip_prefix('=')?);
    let registers = [of("eax")?, of("ebx")?, of("ecx")?, of("edx")?];
    (place.next().is_none() && words.next().is_none()).then_some(Row { name: None, at, registers })
}

/// `[processor,]leaf,subleaf,eax,ebx,ecx,edx`
fn values(line: &str) -> Option<Row<'_>> {
    let columns: Vec<&str> = line.split(',').map(str::trim).collect();
    let (name, columns) = match columns.len() {
        6 => (None, &columns[..]),
        7 => (Some(columns[0]), &columns[1..]),
        _ => return None,
    };
    let mut numbers = columns.iter().map(|text| hex(text));
    let mut next = || numbers.next().flatten();
    let at = (next()?, next()?);
    Some(Row { name, at, registers: [next()?, next()?, next()?, next()?] })
}

fn hex(text: &str) -> Option<u32> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let is_plain = digits.chars().all(|c| c.is_ascii_hexdigit());
    is_plain.then(|| u32::from_str_radix(digits, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_of_a_dump_is_read() {
        let two = "CPU 0:\n 0x0000001a 0x00: eax=0x40000001 ebx=0x0 ecx=0x0 edx=0x0\n\
                   CPU 1:\n 0x0000001a 0x00: eax=0x20000001 ebx=0x0 ecx=0x0 edx=0x0\n";
        let kinds: Vec<_> =
            read(two).unwrap().iter().map(|d| d.cpuid.core_type().unwrap().kind).collect();
        assert_eq!(kinds, [0x40, 0x20]);
        let rows = "processor,leaf,subleaf,eax,ebx,ecx,edx\na,1a,0,40000001,0,0,0\nb,0,0,1,0,0,0\n";
        let names: Vec<_> = read(rows).unwrap().into_iter().map(|d| d.name).collect();
        assert_eq!(names, ["a", "b"]);
        // InstLatx64's older dumps: subleaves without numbers, one processor after another.
        let old = read("0,0,d,0,0,0\n4,0,21,0,0,0\n4,0,22,0,0,0\n0,0,d,0,0,0\n4,0,21,0,0,0\n");
        let old = old.unwrap();
        assert_eq!((old.len(), old[0].cpuid.get(4, 1)), (2, Some([0x22, 0, 0, 0])));
    }

    #[test]
    fn what_is_no_dump_is_an_error_with_its_line() {
        for (text, line) in [
            ("1,0,0,0,0,0\nhello\n", "line 2"),
            ("1,0,0,0,0,123456789\n", "line 1"),
            ("0x1 0x0: eax=0x1 ebx=0x2 ecx=0x3\n", "line 1"),
            ("1,0,+1,0,0,0\n", "line 1"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(line), "{text}: {error}");
        }
        assert!(read("").is_err() && read("CPU 0:\n").is_err());
    }
}
