//! Recognises files that are given as counts by mistake, and names the command that was meant.

use super::formats::formats;
use super::{perf_json, plain, toplev};
use std::path::Path;
use tma::error::{Error, Result};
use tma::files::name;
use tma::shell;

/// Suffixes of source files in compiled languages, and of scripts with their interpreters.
const SOURCES: [&str; 10] = ["c", "cc", "cpp", "cxx", "h", "hpp", "rs", "go", "f90", "s"];
const SCRIPTS: [(&str, &str); 4] =
    [("py", "python3"), ("sh", "sh"), ("pl", "perl"), ("rb", "ruby")];

/// Metrics that an error lists.
const LISTED: usize = 8;

/// Refuses binary files by their first bytes.
pub fn binary(start: &[u8], path: &Path) -> Result<()> {
    // As a shell finds it.
    let folder = if path.parent().is_some_and(|p| p.as_os_str().is_empty()) { "./" } else { "" };
    let name = name(path);
    let file = shell::file(path);
    let to_run = match file {
        Some(_) => shell::quoted(&[Path::new(folder).join(path)]),
        None => "./PROGRAM".to_owned(),
    };
    let to_run = format!("to measure it: `tdtool report -- {to_run}`");
    let unpack = |with: &str| match &file {
        Some(file) => format!("unpack it first: `{with} {file}`"),
        None => "unpack it first".to_owned(),
    };
    let utf8 = match &file {
        Some(file) => format!("`iconv -f UTF-16 -t UTF-8 {file} > {file}.utf8` converts it"),
        None => "`iconv -f UTF-16 -t UTF-8` converts it".to_owned(),
    };
    let known: [(&[u8], &str, &str); 7] = [
        (b"", "the file is empty", &formats()),
        (b"\x7fELF", "this is a program, not a recording", &to_run),
        (b"BZh", "this is compressed (bzip2)", &unpack("bunzip2 -k")),
        (b"\x04\x22\x4d\x18", "this is compressed (lz4)", &unpack("unlz4 -k")),
        (b"PK\x03\x04", "this is a zip archive", &unpack("unzip")),
        (b"\xff\xfe", "this is UTF-16 text", &utf8),
        (b"\xfe\xff", "this is UTF-16 text", &utf8),
    ];
    for (magic, what, hint) in known {
        let hit = if magic.is_empty() { start.is_empty() } else { start.starts_with(magic) };
        if hit {
            return Err(Error::failed(format!("{name}: {what}")).hint(hint));
        }
    }
    Ok(())
}

/// Refuses outputs of perf and toplev that a line shows to have no counts.
pub fn text(text: &str, path: &Path, number: u32) -> Result<()> {
    let place = format!("{}:{number}", name(path));
    if text.contains("Performance counter stats for") {
        return Err(Error::failed(format!("{place}: this is perf's human-readable output"))
            .because("its numbers are rounded and do not show the groups")
            .hint("record again with `perf stat -x, -o FILE …` or `perf stat -j -o FILE …`"));
    }
    if toplev::is_results_header(text) {
        return Err(Error::failed(format!("{place}: these are toplev's results, not its counts"))
            .hint("record again with `toplev.py --valcsv FILE …`"));
    }
    Ok(())
}

/// Why a text has no counts, by the lines of it that were read.
pub fn no_counts(path: &Path, lines: &[(u32, String)]) -> Error {
    let name = name(path);
    if let Some(error) = metrics(path, lines) {
        return error;
    }
    if let Some((number, _)) = lines.iter().find(|(_, text)| crate::text::is_sample(text)) {
        return Error::failed(format!("{name}:{number}: this is text of `perf script`"))
            .because("it holds samples, no counts, and says nothing of where code was mapped")
            .hint(
                "`tdtool report perf.data` reads the recording that it was written from; of branch \
                 stacks, `tdtool branches FILE` takes the text",
            );
    }
    let error = Error::failed(format!("{name}: no recorded counts found"));
    let ending = path.extension().and_then(|e| e.to_str()).unwrap_or_default().to_lowercase();
    if SOURCES.contains(&ending.as_str()) {
        return error
            .because("it is source text, not a recording")
            .hint("compile it, then measure the program: `tdtool report -- ./PROGRAM`");
    }
    let runner = SCRIPTS.iter().find(|(end, _)| *end == ending);
    if let Some(((_, runner), file)) = runner.zip(shell::file(path)) {
        return error
            .because("it is a script, not a recording")
            .hint(format!("to measure it: `tdtool report -- {runner} {file}`"));
    }
    let error = match lines.first() {
        Some((number, text)) => {
            let text: String = text.chars().take(80).filter(|c| !c.is_control()).collect();
            error.because(format!("line {number} is `{text}`"))
        }
        None => error.because("the file has no rows, at most a heading"),
    };
    error.hint(formats())
}

/// The error for the output of `perf stat --metric-only`, with the first of its values.
fn metrics(path: &Path, lines: &[(u32, String)]) -> Option<Error> {
    let of_csv = |pair: &[(u32, String)]| metric_only(&pair[0].1, &pair[1].1);
    let of_json = || lines.iter().find_map(|(_, text)| perf_json::metric_only(text));
    let found = lines.windows(2).find_map(of_csv).or_else(of_json)?;
    let mut values: Vec<String> = found.iter().take(LISTED).cloned().collect();
    if found.len() > LISTED {
        values.push(format!("{} more", found.len() - LISTED));
    }
    Some(
        Error::failed(format!("{}: these are metrics, without their counts", name(path)))
            .because(format!("`perf stat --metric-only` wrote {}", values.join(", ")))
            .hint("record again without --metric-only: `perf stat -x, -M TopdownL1 -o FILE …`"),
    )
}

/// Values by name, of a line of names and one of as many numbers.
fn metric_only(names: &str, values: &str) -> Option<Vec<String>> {
    [',', ';', '\t', '|'].into_iter().find_map(|separator| {
        let of = |text| -> Vec<String> {
            let fields = plain::fields(text, separator);
            fields
                .iter()
                .map(|field| field.split_whitespace().collect::<Vec<_>>().join(" "))
                .collect()
        };
        let (names, values) = (of(names), of(values));
        let is_number = |text: &String| text.parse::<f64>().is_ok();
        let mut pairs = names.iter().zip(&values);
        let fits = pairs.all(|(name, value)| {
            name.is_empty() == value.is_empty()
                && !is_number(name)
                && (value.is_empty() || is_number(value))
        });
        let filled = values.iter().filter(|value| !value.is_empty()).count();
        let found = names.iter().zip(&values).filter(|(name, _)| !name.is_empty());
        (fits && names.len() == values.len() && filled > 1)
            .then(|| found.map(|(name, value)| format!("{name} {value}")).collect())
    })
}
