//! Rows into blocks: one block per run, interval, scope and trial, in file order.

use super::recording::{
    Block, Count, Metric, NameId, Recording, Row, SKIPPED_KEPT, Scope, Skipped, SoftwareKind,
    Source, Unparsed,
};
use std::collections::HashMap;
use std::time::Duration;
use tma::error::{Error, Result};
use tma::tables::Const;

/// Largest number of rows of a recording; 100 MB of perf's lines are some 2 million.
const MOST_ROWS: usize = 40_000_000;

/// Interval, scope and trial of a line, as a parser found them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BlockKey {
    /// Time stamp of `perf stat -I` in nanoseconds: the end of the interval.
    pub time: Option<u64>,
    /// Whether it is one of perf's `summary` lines.
    pub summary: bool,
    /// CPU, core, thread, … it was counted on.
    pub scope: Option<Scope>,
    /// `trial` column.
    pub trial: Option<String>,
}

/// A count, as a parser found it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ParsedCount<'a> {
    /// The event, as written.
    pub name: &'a str,
    /// Its count.
    pub count: Count,
    /// Running share: running time over enabled time, 0..=1.
    pub running: Option<f64>,
    /// Running time in nanoseconds.
    pub run_time: Option<u64>,
    /// Number of its group.
    pub group: Option<u32>,
    /// Unit; empty for plain counts.
    pub unit: &'a str,
}

/// Collects a [`Recording`].
#[derive(Default)]
pub struct Builder {
    recording: Recording,
    ids: HashMap<String, NameId>,
    open: HashMap<(bool, Option<Scope>, Option<String>), usize>,
    last: Option<(BlockKey, usize)>,
    run: u32,
    rows_in_run: bool,
    time: u64,
    begin: u64,
    rows: usize,
}

impl Builder {
    /// Starts the next file.
    pub fn start_file(&mut self, source: Source) {
        self.recording.sources.push(source);
        self.run = 0;
        self.reset_run();
    }

    /// Starts the next run inside the file: perf's `# started on` line.
    pub fn start_run(&mut self) {
        if self.rows_in_run {
            self.run += 1;
            if let Some(source) = self.recording.sources.last_mut() {
                source.runs = self.run + 1;
            }
            self.reset_run();
        }
    }

    fn reset_run(&mut self) {
        self.rows_in_run = false;
        self.open.clear();
        self.last = None;
        self.time = 0;
        self.begin = 0;
    }

    /// The recording so far, to add notes and sessions to.
    pub fn recording(&mut self) -> &mut Recording {
        &mut self.recording
    }

    /// Whether the current file has a row yet.
    pub fn file_has_rows(&self) -> bool {
        self.rows_in_run || self.run > 0
    }

    /// The whole recording.
    pub fn finish(self) -> Recording {
        self.recording
    }

    fn source(&self) -> usize {
        self.recording.sources.len().saturating_sub(1)
    }

    fn id(&mut self, name: &str) -> NameId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = u32::try_from(self.recording.names.len()).unwrap_or(u32::MAX);
        self.recording.names.push(tma::text::name(name).into_owned());
        self.ids.insert(name.to_owned(), id);
        id
    }

    /// The block of a line, made if there is none yet.
    fn block(&mut self, key: &BlockKey) -> &mut Block {
        if let Some((last, at)) = &self.last
            && last == key
        {
            return &mut self.recording.blocks[*at];
        }
        if let Some(time) = key.time
            && time != self.time
        {
            if time < self.time {
                // Time goes back: another run was appended without its comment line.
                self.start_run();
            }
            self.open.clear();
            self.begin = self.time;
            self.time = time;
        }
        let place = (key.summary, key.scope.clone(), key.trial.clone());
        let at = match self.open.get(&place) {
            Some(at) => *at,
            None => {
                let at = self.recording.blocks.len();
                let block = Block {
                    source: self.source(),
                    run: self.run,
                    trial: key.trial.clone(),
                    interval: key
                        .time
                        .map(|t| (Duration::from_nanos(self.begin), Duration::from_nanos(t))),
                    summary: key.summary,
                    scope: key.scope.clone(),
                    ..Block::default()
                };
                self.recording.blocks.push(block);
                self.open.insert(place, at);
                at
            }
        };
        self.rows_in_run = true;
        self.last = Some((key.clone(), at));
        &mut self.recording.blocks[at]
    }

    /// Adds a count.
    ///
    /// # Errors
    /// The recording has more than 40 million rows.
    pub fn row(&mut self, line: u32, key: &BlockKey, count: &ParsedCount) -> Result<()> {
        self.rows += 1;
        if self.rows > MOST_ROWS {
            let place = self.recording.place(self.source(), line);
            return Err(Error::failed(format!("{place}: more than 40 million counts"))
                .hint("split the recording, or record with a longer interval"));
        }
        if let Some(constant) = count.name.strip_prefix('#') {
            match (Const::from_name(constant), count.count) {
                (Some(c), Count::Value(v)) => self.block(key).constants[c.index()] = Some(v),
                _ => self.skip(line, Unparsed::Constant, count.name),
            }
            return Ok(());
        }
        let row = Row {
            name: self.id(count.name),
            count: count.count,
            running: count.running,
            run_time: count.run_time,
            group: count.group,
            unit: (!count.unit.is_empty()).then(|| self.id(count.unit)),
            line,
        };
        let block = self.block(key);
        match SoftwareKind::from_name(count.name) {
            Some(kind) => block.software.push((kind, row)),
            None => block.rows.push(row),
        }
        Ok(())
    }

    /// Adds a metric that perf printed with a count.
    pub fn metric(&mut self, line: u32, key: &BlockKey, name: &str, value: f64) {
        let name = self.id(name);
        self.block(key).metrics.push(Metric { name, value, line });
    }

    /// Lists a line that could not be parsed.
    pub fn skip(&mut self, line: u32, why: Unparsed, text: &str) {
        let source = self.source();
        if self.recording.skipped.len() >= SKIPPED_KEPT {
            self.recording.skipped_more += 1;
            return;
        }
        let text: String =
            text.chars().take(160).map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.recording.skipped.push(Skipped { source, line, why, text });
    }
}

/// Parses a count as perf and toplev write it.
pub fn count(text: &str) -> std::result::Result<Count, Unparsed> {
    match text {
        "<not counted>" => return Ok(Count::NotCounted),
        "<not supported>" => return Ok(Count::NotSupported),
        _ => {}
    }
    let value: f64 = text.parse().map_err(|_| Unparsed::NoNumber)?;
    if !value.is_finite() {
        return Err(Unparsed::Infinite);
    }
    if value < 0.0 {
        return Err(Unparsed::Negative);
    }
    // 64-bit counters, scaled for multiplexing by some thousand at most.
    if value > 1e24 {
        return Err(Unparsed::Large);
    }
    Ok(Count::Value(value))
}

/// Parses a running share in percent.
pub fn percent(text: &str) -> Option<f64> {
    let value: f64 = text.trim_end_matches('%').trim().parse().ok()?;
    (0.0..=100.5).contains(&value).then(|| (value / 100.0).min(1.0))
}

/// Parses seconds with a fraction into nanoseconds, exactly.
pub fn seconds(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 18 || !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let nanos: u64 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(nanos)
}
