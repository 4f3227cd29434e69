//! Whether an optimised copy does what its program does: standard output and how it ends, of two runs each.

use crate::compared::Runs;
use crate::count::words;
use pmu::{Command, Stdout};
use report::documents::Exit;
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read as _, Seek as _, SeekFrom};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use tma::{Error, Result};

/// Runs of each: two of the program show whether its output is the same each time.
const RUNS: u32 = 2;

/// What both did.
pub(super) struct Same {
    /// Bytes on standard output.
    pub bytes: u64,
    pub exit: Option<Exit>,
    /// Mean wall time of the program.
    pub seconds: f64,
}

/// Compares runs of the program and its copy; `run` makes so many of each in turns.
///
/// # Errors
/// They differ, or two runs of the program do; a signal killed it.
pub(super) fn same<E: From<Error>>(
    both: &[Command; 2],
    folder: &Path,
    run: impl FnOnce([Command; 2], u32) -> std::result::Result<Runs, E>,
) -> std::result::Result<Same, E> {
    let open = |name: &str| {
        let path = folder.join(name);
        let opened = OpenOptions::new().create(true).append(true).read(true).open(&path);
        opened.map_err(|e| Error::failed(format!("cannot write {}", path.display())).because(e))
    };
    let files = [open("output.a")?, open("output.b")?];
    let mut into = both.clone();
    for (command, file) in into.iter_mut().zip(&files) {
        command.stdout = Stdout::Into(file.as_raw_fd());
    }
    let runs = run(into, RUNS)?;
    let [a, b] = runs.reports.each_ref().map(|all| all.iter().map(|report| report.exit).collect());
    let exit = ended(a, b)?;
    let unread =
        |e: std::io::Error| Error::failed("the output of the runs cannot be compared").because(e);
    let [a, b] = [length(&files[0]).map_err(unread)?, length(&files[1]).map_err(unread)?];
    let one = a / u64::from(RUNS);
    let again = differs((&files[0], 0), (&files[0], one), one).map_err(unread)?;
    if a % u64::from(RUNS) != 0 || again.is_some() {
        return Err(unsteady().into());
    }
    let differs = differs((&files[0], 0), (&files[1], 0), a.min(b)).map_err(unread)?;
    match differs.or((a != b).then_some(a.min(b))) {
        Some(at) => {
            Err(other(&format!("standard output differs from byte {} on", at % one.max(1))).into())
        }
        None => Ok(Same {
            bytes: one,
            exit,
            seconds: runs.seconds[0].iter().sum::<f64>() / f64::from(RUNS),
        }),
    }
}

/// How all runs ended.
fn ended(a: Vec<Option<Exit>>, b: Vec<Option<Exit>>) -> Result<Option<Exit>> {
    let first = a.first().copied().flatten();
    if a.iter().any(|exit| *exit != first) {
        return Err(unsteady());
    }
    if let Some(other_end) = b.into_iter().find(|exit| *exit != first) {
        let shown = |exit: Option<Exit>| exit.map_or_else(|| "ended".to_owned(), words);
        return Err(other(&format!("the program {}, the copy {}", shown(first), shown(other_end))));
    }
    match first {
        Some(exit @ Exit::Signal(_)) => Err(Error::failed("there is nothing to compare")
            .because(format!("the program {}", words(exit)))),
        _ => Ok(first),
    }
}

fn length(file: &File) -> std::io::Result<u64> {
    Ok(file.metadata()?.len())
}

/// Where so many bytes of two files first differ.
fn differs(
    (a, from_a): (&File, u64),
    (b, from_b): (&File, u64),
    length: u64,
) -> std::io::Result<Option<u64>> {
    // Each has a position of its own, also where both are one file.
    let read = |file: &File, from: u64| {
        let mut own = File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
        own.seek(SeekFrom::Start(from))?;
        std::io::Result::Ok(BufReader::new(own).take(length).bytes())
    };
    for (number, (one, other)) in (0..).zip(read(a, from_a)?.zip(read(b, from_b)?)) {
        if one? != other? {
            return Ok(Some(number));
        }
    }
    Ok(None)
}

fn unsteady() -> Error {
    Error::not_possible("two runs of the command differ in standard output or exit status")
        .because("it then cannot be seen whether the optimised copy does the same")
        .hint("a fixed seed, no times or addresses in the output")
}

fn other(why: &str) -> Error {
    Error::failed("the optimised copy does not do what the program does")
        .because(why)
        .hint("do not use it; another version of llvm-bolt may do better. A program that reads /proc/self/exe, or finds libraries by $ORIGIN, finds the copy's folder")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn the_first_different_byte_is_found_in_one_file_and_two() {
        let file = |text: &str| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            file
        };
        let (a, b) = (file("abcabc"), file("abcabd"));
        assert_eq!(differs((&a, 0), (&a, 3), 3).unwrap(), None);
        assert_eq!(differs((&a, 0), (&b, 0), 6).unwrap(), Some(5));
        assert_eq!(differs((&b, 0), (&b, 3), 3).unwrap(), Some(2));
    }

    #[test]
    fn a_copy_must_end_as_the_program_does() {
        let status = |status: i32| Some(Exit::Status(status));
        assert_eq!(ended(vec![status(3); 2], vec![status(3); 2]).unwrap(), status(3));
        let error = ended(vec![status(0); 2], vec![status(0), status(1)]).unwrap_err();
        assert!(error.cause().unwrap().contains("status 1"), "{error:?}");
        assert!(ended(vec![status(0), status(1)], vec![status(0); 2]).is_err());
        assert!(ended(vec![Some(Exit::Signal(11)); 2], vec![Some(Exit::Signal(11)); 2]).is_err());
    }
}
