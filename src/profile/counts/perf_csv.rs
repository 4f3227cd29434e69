//! Lines of `perf stat -x SEP`, with every prefix that perf writes.
//!
//! perf-stat(1), "CSV FORMAT": optional time stamp, optional CPU, core or socket and optional
//! number of CPUs, count, unit, event, optional control group, optional variance (`-r`), running
//! time, running share in percent, optional metric value and its unit. Before Linux 3.14 there
//! is no unit, and the oldest versions end with the event. Commas inside `pmu/…,…/` are not quoted:
//! the event is joined again by counting slashes.

use super::builder::{self, BlockKey, Builder, ParsedCount};
use super::decimal_commas;
use super::recording::{Count, Scope, Unparsed, is_whole, scope_of};
use tma::error::Result;

/// Characters that cannot be a separator because values and names contain them.
const NOT_SEPARATORS: &str = "._-/<>=()[]{}+%\"'*";

/// Parser of one file.
pub struct PerfCsv {
    separator: String,
    /// Whether this file's lines have running time and share; others are cut off.
    with_share: Option<bool>,
}

impl PerfCsv {
    /// The separator.
    pub fn separator(&self) -> &str {
        &self.separator
    }

    /// Recognises a complete line with a count, and with it the separator; the line as it was read.
    pub fn recognise(text: &str) -> Option<(Self, Line)> {
        if text.trim_start().starts_with('#') {
            return None;
        }
        candidates(text).into_iter().find_map(|separator| {
            let line = parse_any(text, &separator).ok()?;
            line.1.share.is_some().then_some((Self { separator, with_share: None }, line))
        })
    }

    /// Parses one line.
    pub fn line(&mut self, number: u32, text: &str, builder: &mut Builder) -> Result<()> {
        if let Some(comment) = text.trim_start().strip_prefix('#') {
            if comment.trim_start().starts_with("started on") {
                builder.start_run();
            }
            return Ok(());
        }
        match parse_any(text, &self.separator) {
            Ok(line) => self.add(number, text, &line, builder),
            Err(why) => {
                builder.skip(number, why, text);
                Ok(())
            }
        }
    }

    /// Adds the line `text` as it was read.
    pub fn add(
        &mut self,
        number: u32,
        text: &str,
        (key, parsed): &Line,
        builder: &mut Builder,
    ) -> Result<()> {
        for (name, value) in &parsed.metrics {
            builder.metric(number, key, name, *value);
        }
        if parsed.event.is_empty() {
            return Ok(());
        }
        let with_share = parsed.share.is_some();
        if *self.with_share.get_or_insert(with_share) != with_share {
            builder.skip(number, Unparsed::CutOff, text);
            return Ok(());
        }
        let found = ParsedCount {
            name: &parsed.event,
            count: parsed.count,
            running: parsed.share.filter(|_| matches!(parsed.count, Count::Value(_))),
            run_time: parsed.run_time.filter(|t| *t > 0),
            unit: &parsed.unit,
            ..ParsedCount::default()
        };
        builder.row(number, key, &found)
    }
}

/// Strings that may separate the fields of `text`: common ones first, then any run of punctuation in
/// it (perf accepts any string).
fn candidates(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for usual in [",", ";", "\t", "|"] {
        if text.contains(usual) {
            found.push(usual.to_owned());
        }
    }
    let mut run = String::new();
    for c in text.chars().take(4096).chain(['x']) {
        let separates = !c.is_alphanumeric() && !NOT_SEPARATORS.contains(c) && c != ' ';
        if separates && run.chars().count() < 4 {
            run.push(c);
            continue;
        }
        if !run.is_empty() && found.len() < 16 {
            let chars: Vec<char> = run.chars().collect();
            // A doubled separator encloses an empty unit.
            let half: String = chars[..chars.len().div_ceil(2)].iter().collect();
            for candidate in [chars[0].to_string(), half, run.clone()] {
                if !found.contains(&candidate) {
                    found.push(candidate);
                }
            }
        }
        run.clear();
    }
    found
}

/// Names and values of metrics printed with a count.
type Metrics = Vec<(String, f64)>;

/// A line as it was read.
pub type Line = (BlockKey, Parsed);

/// A parsed line, from the count on.
#[derive(Default)]
pub struct Parsed {
    count: Count,
    unit: String,
    /// Empty on lines with further metrics only.
    event: String,
    cgroup: Option<String>,
    run_time: Option<u64>,
    share: Option<f64>,
    metrics: Metrics,
}

/// As [`parse`], also with decimal commas (perf follows the locale).
fn parse_any(text: &str, separator: &str) -> std::result::Result<Line, Unparsed> {
    parse(text, separator).or_else(|why| match separator {
        "," => decimal_commas::with_points(text)
            .ok_or(why)
            .and_then(|text| parse(&text, separator).map_err(|_| why)),
        _ => parse(&with_decimal_points(text), separator).map_err(|_| why),
    })
}

/// Replaces commas between two digits.
fn with_decimal_points(text: &str) -> String {
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    let mut out = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        let inside = before.is_ascii_digit() && chars.peek().is_some_and(char::is_ascii_digit);
        out.push(if c == ',' && inside { '.' } else { c });
        before = c;
    }
    out
}

fn parse(text: &str, separator: &str) -> std::result::Result<Line, Unparsed> {
    let fields: Vec<&str> = text.split(separator).map(str::trim).collect();
    let mut key = BlockKey::default();
    let mut at = 0;
    if let Some(time) = time_stamp(fields[0], text.starts_with(' ')) {
        key.time = Some(time);
        at = 1;
    } else if fields[0] == "summary" {
        key.summary = true;
        at = 1;
    }
    let fields = &fields[at..];
    let mut why = Unparsed::Foreign;
    // The count is the first field after which the rest parses; the fields before it are the scope.
    for v in 0..fields.len().min(6) {
        let count = builder::count(fields[v]);
        if !could_be_count(fields[v], &count) {
            continue;
        }
        match after_count(fields, v, separator) {
            Ok(mut parsed) => {
                let Some(scope) = scope(&fields[..v], separator) else { continue };
                key.scope = scope;
                parsed.count = count?;
                if let Some(cgroup) = &parsed.cgroup {
                    key.scope.get_or_insert_default().cgroup = Some(cgroup.clone());
                }
                return Ok((key, parsed));
            }
            Err(wrong) => why = wrong,
        }
    }
    match metric_only(fields, separator) {
        Some((scope, metrics)) => {
            key.scope = scope;
            Ok((key, Parsed { metrics, ..Parsed::default() }))
        }
        None => Err(why),
    }
}

/// A time stamp: seconds with nine decimals, or indented, as nothing else on a line of perf.
fn time_stamp(field: &str, indented: bool) -> Option<u64> {
    let (_, fraction) = field.split_once('.')?;
    if fraction.len() != 9 && !indented {
        return None;
    }
    builder::seconds(field)
}

fn could_be_count(field: &str, count: &std::result::Result<Count, Unparsed>) -> bool {
    let is_number = !matches!(count, Err(Unparsed::NoNumber));
    field.starts_with("<not ") || is_number && !field.starts_with('+')
}

fn is_number(field: &str) -> bool {
    field.parse::<f64>().is_ok()
}

fn after_count(
    fields: &[&str],
    v: usize,
    separator: &str,
) -> std::result::Result<Parsed, Unparsed> {
    let next = fields.get(v + 1).copied().ok_or(Unparsed::NothingCounted)?;
    if is_number(next) {
        return Err(Unparsed::NoUnit);
    }
    let second = fields.get(v + 2).copied();
    // Without a unit column (before Linux 3.14) the event is followed by numbers or nothing.
    let no_unit = !next.is_empty()
        && (opens_pmu(next)
            || second.is_none_or(|s| is_number(s) || is_number(s.trim_end_matches('%'))));
    let (unit, event_at) = if no_unit { ("", v + 1) } else { (next, v + 2) };
    let (event, after) = join_event(fields, event_at, separator)?;
    let mut rest = &fields[after..];
    let mut cgroup = None;
    let is_variance = |f: &str| f.ends_with('%') && is_number(f.trim_end_matches('%'));
    if let [first, ..] = rest
        && !first.is_empty()
        && !is_number(first)
        && !is_variance(first)
    {
        cgroup = Some(*first);
        rest = &rest[1..];
    }
    if let [first, ..] = rest
        && is_variance(first)
    {
        rest = &rest[1..];
    }
    let mut tail = Parsed {
        unit: unit.to_owned(),
        event,
        cgroup: cgroup.map(str::to_owned),
        ..Parsed::default()
    };
    let [run_time, share, metric @ ..] = rest else {
        return match rest {
            [] if cgroup.is_none() => Ok(tail),
            _ => Err(Unparsed::CutOff),
        };
    };
    let nanos = |text: &str| text.parse::<f64>().ok().filter(|t| (0.0..1e19).contains(t));
    let whole = run_time.parse::<u64>().ok();
    let run_time = whole.or_else(|| nanos(run_time).map(|t| t as u64));
    tail.run_time = Some(run_time.ok_or(Unparsed::RunTime)?);
    // perf writes two decimals: `10` at the end of a line is a share that is cut off, and `24,93` one
    // with a decimal comma.
    let halved = !share.contains('.')
        && metric.first().is_none_or(|f| separator == "," && f.len() == 2 && is_whole(f));
    tail.share = Some(builder::percent(share).filter(|_| !halved).ok_or(Unparsed::Percentage)?);
    if let [value, name, ..] = metric
        && let Ok(value) = value.parse::<f64>()
        && value.is_finite()
    {
        tail.metrics.push((name.to_string(), value));
    }
    Ok(tail)
}

/// `cpu/event=0x9c`: a PMU's event whose closing slash is in a later field.
fn opens_pmu(field: &str) -> bool {
    field.matches('/').count() % 2 == 1
}

/// The event that starts at field `at`, joined again, and the index of the field after it.
fn join_event(
    fields: &[&str],
    at: usize,
    separator: &str,
) -> std::result::Result<(String, usize), Unparsed> {
    let first = fields.get(at).filter(|f| !f.is_empty() && !is_number(f));
    let mut event = (*first.ok_or(Unparsed::NothingCounted)?).to_owned();
    let mut after = at + 1;
    let mut open = opens_pmu(&event);
    while open {
        let next = fields.get(after).ok_or(Unparsed::OpenEvent)?;
        event.push_str(separator);
        event.push_str(next);
        open ^= opens_pmu(next);
        after += 1;
    }
    Ok((event, after))
}

/// The scope given by the fields before the count; `None` if they are no scope.
fn scope(fields: &[&str], separator: &str) -> Option<Option<Scope>> {
    let (name, cpus) = match fields {
        [] => return Some(None),
        [name] => ((*name).to_owned(), false),
        [name, n] if is_whole(n) => ((*name).to_owned(), true),
        // A thread's name may contain the separator.
        _ => (fields.join(separator), false),
    };
    scope_of(&name, cpus).map(Some)
}

/// A line with further metrics only: all fields of the count are empty.
fn metric_only(fields: &[&str], separator: &str) -> Option<(Option<Scope>, Metrics)> {
    let first_empty = fields.iter().position(|f| f.is_empty())?;
    let scope = scope(&fields[..first_empty], separator)?;
    let rest = &fields[first_empty..];
    let last = rest.iter().position(|f| !f.is_empty())?;
    if last < 3 {
        return None;
    }
    match &rest[last..] {
        // The name of a metric group is a headline on a line of its own.
        [headline] if !is_number(headline) => Some((scope, Vec::new())),
        [value, name, ..] if !name.is_empty() && !is_number(name) => {
            let value: f64 = value.parse().ok().filter(|v: &f64| v.is_finite())?;
            Some((scope, vec![(name.to_string(), value)]))
        }
        _ => None,
    }
}
