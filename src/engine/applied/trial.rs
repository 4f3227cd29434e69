//! Builds and runs of one place: distances around the advised one, the best of them confirmed by runs of its own.

use super::ask::{ApplyAsk, Stop, build};
use super::files::Changed;
use super::insertion::{Unwritten, inserted};
use super::outputs::Outputs;
use super::places::Place;
use crate::compared::{InterleavedAsk, Runs, Turn, run};
use report::documents::applied::TriedRow;
use std::path::Path;
use tma::text::several;
use tma::{Error, Result};

/// Most distances of a place.
const MOST: usize = 6;
/// Largest output of a run that is compared, in bytes.
const MOST_OUTPUT: u64 = 16 << 20;

type Step<T> = std::result::Result<T, Stop>;

/// A place that is being tried.
pub(super) struct Trial<'a> {
    pub ask: &'a ApplyAsk<'a>,
    pub source: &'a mut Changed,
    /// The program, or the library of it that the load is in.
    pub module: &'a mut Changed,
    pub progress: &'a mut dyn FnMut(&str),
}

/// A source with a prefetch, and the program of it.
struct Built {
    text: String,
    statement: String,
    program: Vec<u8>,
}

impl Trial<'_> {
    /// Tries distances and accepts the best if it gains; whether the statement is new.
    pub fn place(&mut self, place: &mut Place, is_new: impl FnOnce(&str) -> bool) -> Step<bool> {
        let text = String::from_utf8(self.source.accepted.clone())
            .map_err(|_| Stop::Failed(Error::failed("its source is not in UTF-8")))?;
        let write = |distance: u64| {
            let unwritten = |why: Unwritten| Error::not_possible(why.to_string());
            inserted(&text, &place.wanted, distance).map_err(unwritten)
        };
        let (_, statement) = write(1)?;
        if !is_new(&statement) {
            return Ok(false);
        }
        let first = self.next(place.distance, &[]).unwrap_or(1);
        place.row.statement = Some(write(first)?.1);
        let mut all: Vec<(Built, TriedRow)> = Vec::new();
        while let Some(distance) = self.next(place.distance, &all) {
            let (text, statement) = write(distance)?;
            let built = self.built(text, statement)?;
            let tried = self.compared(&built, &named(place, distance), distance)?;
            place.row.tried.push(tried.clone());
            all.push((built, tried));
        }
        let Some((built, best)) = best(&all) else {
            place.row.reason = Some(nothing(&place.row.tried));
            return Ok(true);
        };
        let name = format!("{}, confirmation", named(place, best.distance));
        let confirmed = self.compared(built, &name, best.distance)?;
        place.row.statement = Some(built.statement.clone());
        place.row.kept = confirmed.gain().is_some();
        if place.row.kept {
            self.source.accepted = built.text.clone().into_bytes();
            self.module.accepted.clone_from(&built.program);
        } else {
            let why = "further runs do not confirm the gain of the best distance";
            place.row.reason = Some(confirmed.failed.clone().unwrap_or_else(|| why.to_owned()));
        }
        place.row.confirmed = Some(confirmed);
        Ok(true)
    }

    /// The next distance: the advised one, half and twice that, and beyond as long as the outermost is the best.
    fn next(&self, advised: u64, all: &[(Built, TriedRow)]) -> Option<u64> {
        let is_new = |distance: &u64| all.iter().all(|(_, tried)| tried.distance != *distance);
        if !self.ask.distances.is_empty() {
            return self.ask.distances.iter().copied().find(is_new);
        }
        let advised = advised.max(1);
        let around = [advised, (advised / 2).max(1), advised.saturating_mul(2)];
        if let Some(distance) = around.into_iter().find(is_new) {
            return Some(distance);
        }
        let (_, best) = best(all).filter(|_| all.len() < MOST)?;
        let distances = || all.iter().map(|(_, tried)| tried.distance);
        let further = match best.distance {
            own if Some(own) == distances().max() => own.checked_mul(2),
            own if Some(own) == distances().min() => Some(own / 2),
            _ => None,
        };
        further.filter(|distance| *distance > 0 && is_new(distance))
    }

    fn built(&mut self, text: String, statement: String) -> Step<Built> {
        (self.progress)("building");
        self.module.write(&self.module.accepted.clone())?;
        self.source.write(text.as_bytes())?;
        self.module.expose();
        let ended = build(self.ask);
        if let Some(signal) = ended? {
            return Err(Stop::Signal(signal));
        }
        let program = self.module.taken()?;
        if program == self.module.accepted {
            let name = self.module.path.display();
            return Err(Error::failed(format!("the build left {name} as it was"))
                .because("it does not compile this source, or drops the prefetch")
                .into());
        }
        Ok(Built { text, statement, program })
    }

    /// Runs without and with it in turn.
    fn compared(&mut self, built: &Built, name: &str, distance: u64) -> Step<TriedRow> {
        let ask = InterleavedAsk {
            commands: [self.ask.run.clone(), self.ask.run.clone()],
            warm_up: 1,
            runs: self.ask.rounds,
            may_fail: true,
        };
        let mut outputs = [Outputs::default(), Outputs::default()];
        let mut before: Option<usize> = None;
        let (machine, library) = (self.ask.machine, self.ask.library);
        let runs = run(machine, library, &ask, &mut |turn: Turn| {
            if let Some(side) = before.replace(turn.side) {
                outputs[side].add(&taken(self.ask.output)?);
            }
            let Turn { number, of, .. } = turn;
            (self.progress)(&format!("{name}: run {number} of {of}"));
            let own = self.module.accepted.clone();
            self.module.write(if turn.side == 0 { &own } else { &built.program })
        })?;
        if let Some(signal) = runs.interrupted {
            return Err(Stop::Signal(signal));
        }
        if let Some(side) = before {
            outputs[side].add(&taken(self.ask.output)?);
        }
        let mut row = TriedRow { distance, runs: self.ask.rounds, ..TriedRow::default() };
        let compared = outputs[0].compared(&outputs[1]);
        row.failed = exits(&runs).or_else(|| compared.as_ref().err().map(ToString::to_string));
        row.words_not_compared = compared.unwrap_or_default();
        row.time = runs.paired("task_clock_ms");
        Ok(row)
    }
}

/// What the last run wrote to the file; nothing of it is left.
fn taken(path: &Path) -> Result<Vec<u8>> {
    let failed = |e: std::io::Error| {
        let hint = "`-- sh -c 'COMMAND >/dev/null'` compares none";
        Error::failed("cannot compare the output").because(e).hint(hint)
    };
    let output = tma::files::read(path, MOST_OUTPUT).map_err(failed)?;
    let file = std::fs::File::options().write(true).open(path).map_err(failed)?;
    file.set_len(0).map_err(failed)?;
    Ok(output)
}

fn named(place: &Place, distance: u64) -> String {
    let line = place.row.line.unwrap_or_default();
    format!("line {line}, {distance} ahead")
}

/// Why the exits of runs with a prefetch are not those without one.
fn exits(runs: &Runs) -> Option<String> {
    let all = |side: usize| runs.reports[side].iter().map(|report| report.exit);
    let usual = all(0).next().flatten();
    let is_other = all(1).any(|exit| exit != usual) || all(0).any(|exit| exit != usual);
    is_other.then(|| "it ends with another exit status".to_owned())
}

/// The distance with the largest share of the time gained.
fn best(all: &[(Built, TriedRow)]) -> Option<(&Built, &TriedRow)> {
    let all = all.iter().filter_map(|(built, tried)| Some((tried.gain()?, built, tried)));
    all.max_by(|(a, ..), (b, ..)| a.total_cmp(b)).map(|(_, built, tried)| (built, tried))
}

/// Why no distance is the best.
fn nothing(tried: &[TriedRow]) -> String {
    let failed = tried.iter().find_map(|row| row.failed.clone());
    failed.unwrap_or_else(|| {
        format!("none of {} gains more than the error", several(tried.len() as u64, "distance"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_that_is_too_long_has_a_remedy() {
        let path = std::env::temp_dir().join(format!("tdtool-output-{}", std::process::id()));
        std::fs::write(&path, "7\n").unwrap();
        assert_eq!(taken(&path).unwrap(), b"7\n");
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 0);
        std::fs::write(&path, vec![b'a'; MOST_OUTPUT as usize + 1]).unwrap();
        assert!(taken(&path).unwrap_err().remedy().is_some());
        std::fs::remove_file(path).unwrap();
    }
}
