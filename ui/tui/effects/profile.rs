//! A file: its report, its functions, and their code as it is asked for; in a thread of its own.

use super::explain::explain;
use super::{Queue, caught, told};
use crate::tui::action::Action;
use crate::tui::state::{Hot, Texts};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;
use tdtool::Result;
use tdtool::analysis::{ImportAsk, imported};
use tdtool::machine::Machine;
use tdtool::profile::hot::{Annotated, Filter, Profile};
use tdtool::profile::perfdata;
use tdtool::profile::recording::Recording;
use tdtool::profile::symbols::Search;
use tdtool::report::{Report, Source};
use tdtool::tables::Library;

/// Longest line of source that is shown, and most lines that a file is searched for it.
const LONGEST_LINE: u64 = 4096;
const MOST_LINES: u32 = 1_000_000;

/// Reads the file, then answers requests for the code of functions.
pub fn serve(
    path: PathBuf,
    tables: (Library, Option<String>),
    wanted: Receiver<usize>,
    queue: Queue,
) {
    std::thread::spawn(move || {
        let profile = caught(|| read(&path, tables, &queue));
        let mut profile = match profile {
            Ok(Ok(Some(profile))) => profile,
            Ok(Ok(None)) => return,
            Ok(Err(error)) => return queue.send(Action::NoFunctions(told(&error))),
            Err(why) => return queue.send(Action::NoFunctions(why)),
        };
        while let Ok(mut index) = wanted.recv() {
            // Who leafs through functions waits for the last one only.
            while let Ok(later) = wanted.try_recv() {
                index = later;
            }
            let annotated = caught(|| {
                let annotated = profile.annotate(index);
                let texts = texts(&annotated);
                (annotated, texts)
            });
            queue.send(match annotated {
                Ok((annotated, texts)) => Action::Annotated(index, Box::new(annotated), texts),
                Err(why) => Action::NotAnnotated(index, why),
            });
        }
    });
}

/// The report goes out first; then samples, if there are any.
fn read(path: &Path, tables: (Library, Option<String>), queue: &Queue) -> Result<Option<Profile>> {
    let perf = is_perf_data(path);
    if perf {
        let mut report = Report::new(Source::Imported);
        report.subject = vec![path.display().to_string()];
        report.notes.push("a perf.data file holds samples, and no counts to make a tree of".into());
        queue.send(Action::Report(Box::new(report)));
    } else if let Err(error) = counts(path, tables, queue) {
        queue.send(Action::NoReport(told(&error)));
        queue.send(Action::NoFunctions(told(&error)));
        return Ok(None);
    }
    let Some(recording) = samples(path, perf)? else {
        let why = "This recording holds counts and no samples. `tdtool record` takes samples, and \
                   so does `perf record`.";
        queue.send(Action::NoFunctions(why.into()));
        return Ok(None);
    };
    let profile = Profile::new(&recording, &Filter::default(), Search::default());
    queue.send(Action::Functions(Box::new(Hot {
        functions: profile.functions.clone(),
        event: profile.event.clone(),
        skid: profile.skid,
        samples: profile.samples,
        lost: profile.lost,
        notes: profile.notes.clone(),
    })));
    Ok(Some(profile))
}

/// The samples of a file, if it has any. The one place that knows which files have.
fn samples(path: &Path, perf: bool) -> Result<Option<Recording>> {
    if perf {
        return perfdata::read(path).map(Some);
    }
    // Sessions do not hold samples yet.
    Ok(None)
}

/// By its first bytes, in file and in pipe mode; linux/tools/perf/util/header.c, `__perf_magic2`.
fn is_perf_data(path: &Path) -> bool {
    let mut magic = [0; 8];
    let read = File::open(path).and_then(|mut f| f.read_exact(&mut magic));
    read.is_ok() && (magic == *b"PERFILE2" || magic == *b"2ELIFREP" || magic == *b"PERFFILE")
}

/// Recorded counts: first what is known of intervals, then the whole.
fn counts(path: &Path, (library, uarch): (Library, Option<String>), queue: &Queue) -> Result<()> {
    let machine = Machine::detect();
    let ask = |intervals| ImportAsk {
        files: vec![path.to_owned()],
        uarch: uarch.clone(),
        machine: Some(&machine),
        intervals,
        ..ImportAsk::default()
    };
    let whole = imported(&library, &ask(false))?;
    if let Some(report) = whole.first() {
        queue.send(Action::Explained(explain(&library, report)));
    }
    // History is a help; without it the report stands as well.
    for report in imported(&library, &ask(true)).unwrap_or_default() {
        if report.interval.is_some() {
            queue.send(Action::Interval(Box::new(report)));
        }
    }
    for report in whole {
        queue.send(Action::Report(Box::new(report)));
    }
    Ok(())
}

/// The lines of source of a function, where their files are there.
fn texts(annotated: &Annotated) -> Texts {
    let mut wanted: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for (file, line) in annotated.blocks.iter().flat_map(|b| &b.lines).flat_map(|l| &l.source) {
        wanted.entry(file).or_default().insert(*line);
    }
    let mut texts = Texts::new();
    for (name, lines) in wanted {
        let regular = std::fs::metadata(name).is_ok_and(|m| m.is_file());
        if let Some(file) = File::open(name).ok().filter(|_| regular) {
            read_lines(BufReader::new(file), name, &lines, &mut texts);
        }
    }
    texts
}

fn read_lines(mut file: impl BufRead, name: &str, lines: &BTreeSet<u32>, texts: &mut Texts) {
    let last = lines.last().copied().unwrap_or(0).min(MOST_LINES);
    let mut line = Vec::new();
    for number in 1..=last {
        line.clear();
        match (&mut file).take(LONGEST_LINE).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) if lines.contains(&number) => {
                let text = String::from_utf8_lossy(&line).trim_end().replace('\t', "    ");
                texts.insert((name.to_owned(), number), text);
            }
            Ok(_) => {}
        }
        if !line.ends_with(b"\n") && line.len() as u64 == LONGEST_LINE {
            // No source is written like this; the numbers of further lines would be wrong.
            return;
        }
    }
}
