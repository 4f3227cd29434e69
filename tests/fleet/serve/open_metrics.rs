//! A strict reader of OpenMetrics text, as far as the exporter uses it: every rule that it breaks is a panic.

use std::collections::{BTreeMap, BTreeSet};

/// Type of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Info,
}

/// All series.
pub struct Metrics {
    series: BTreeMap<String, (Kind, f64)>,
}

impl Metrics {
    /// Number of series.
    pub fn len(&self) -> usize {
        self.series.len()
    }

    /// Series of a type.
    pub fn all(&self, kind: Kind) -> impl Iterator<Item = (&str, f64)> {
        let of = move |(name, of): &(&String, &(Kind, f64))| !name.is_empty() && of.0 == kind;
        self.series.iter().filter(of).map(|(name, (_, value))| (name.as_str(), *value))
    }

    /// The value of a series, by its whole name.
    pub fn get(&self, series: &str) -> Option<f64> {
        self.series.get(series).map(|(_, value)| *value)
    }

    /// Values of a name with these labels among others.
    fn values(&self, name: &str, labels: &[(&str, &str)]) -> Vec<f64> {
        let has = |series: &str| {
            let (of, rest) = series.split_once('{').unwrap_or((series, ""));
            let label = |(key, value): &(&str, &str)| {
                let label = format!("{key}=\"{value}\"");
                rest.trim_end_matches('}').split(',').any(|one| one == label)
            };
            of == name && labels.iter().all(label)
        };
        self.series.iter().filter(|(series, _)| has(series)).map(|(_, of)| of.1).collect()
    }

    /// Whether there is such a series.
    pub fn has(&self, name: &str, labels: &[(&str, &str)]) -> bool {
        !self.values(name, labels).is_empty()
    }

    /// The value of the only such series.
    pub fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let values = self.values(name, labels);
        assert!(values.len() < 2, "{name} {labels:?}: {values:?}");
        values.first().copied()
    }

    /// The sum of all such series.
    pub fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        self.values(name, labels).iter().sum()
    }
}

/// The family whose lines are being read.
#[derive(Default)]
struct Family {
    name: String,
    kind: Option<Kind>,
    has_help: bool,
    has_unit: bool,
    samples: usize,
}

/// Reads a whole text.
pub fn parse(text: &str) -> Metrics {
    let lines = text.strip_suffix("# EOF\n").expect("it ends with # EOF");
    assert!(!lines.contains("# EOF"), "two ends");
    let (mut series, mut done) = (BTreeMap::new(), BTreeSet::new());
    let mut family = Family::default();
    for line in lines.lines() {
        match line.strip_prefix("# ") {
            Some(of) => describe(of, &mut family, &mut done),
            None => {
                let (name, value) = sample(line, &family);
                family.samples += 1;
                let kind = family.kind.expect("a type");
                assert!(series.insert(name, (kind, value)).is_none(), "twice: {line}");
            }
        }
    }
    Metrics { series }
}

/// A line of HELP, TYPE or UNIT; the first of another family ends this one.
fn describe(line: &str, family: &mut Family, done: &mut BTreeSet<String>) {
    let mut words = line.splitn(3, ' ');
    let mut word = || words.next().unwrap_or_else(|| panic!("short: {line}"));
    let (what, name, text) = (word(), word(), word());
    if family.name != name {
        assert!(is_name(name), "{line}");
        assert!(done.insert(name.to_owned()), "{name} is in two pieces");
        *family = Family { name: name.to_owned(), ..Family::default() };
    }
    assert_eq!(family.samples, 0, "after its samples: {line}");
    let is_first = match what {
        "HELP" => !std::mem::replace(&mut family.has_help, true),
        "UNIT" => {
            assert!(name.ends_with(&format!("_{text}")), "{line}");
            !std::mem::replace(&mut family.has_unit, true)
        }
        "TYPE" => {
            let kind = match text {
                "counter" => Kind::Counter,
                "gauge" => Kind::Gauge,
                "info" => Kind::Info,
                other => panic!("type {other}"),
            };
            family.kind.replace(kind).is_none()
        }
        other => panic!("{other}: {line}"),
    };
    assert!(is_first, "twice: {line}");
}

/// Name with labels, and value.
fn sample(line: &str, family: &Family) -> (String, f64) {
    let end = line.rfind(' ').unwrap_or_else(|| panic!("no value: {line}"));
    let (series, value) = (&line[..end], &line[end + 1..]);
    let (name, labels) = match series.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}').expect("a closing brace")),
        None => (series, ""),
    };
    let suffix = match family.kind {
        Some(Kind::Counter) => "_total",
        Some(Kind::Info) => "_info",
        _ => "",
    };
    assert_eq!(name, format!("{}{suffix}", family.name), "{line}");
    check_labels(labels);
    let value: f64 = value.parse().unwrap_or_else(|e| panic!("{e}: {line}"));
    assert!(value.is_finite(), "{line}");
    assert!(family.kind == Some(Kind::Gauge) || value >= 0.0, "{line}");
    assert!(family.kind != Some(Kind::Info) || value == 1.0, "{line}");
    (series.to_owned(), value)
}

fn check_labels(labels: &str) {
    let (mut rest, mut seen) = (labels, BTreeSet::new());
    while !rest.is_empty() {
        let (name, after) = rest.split_once("=\"").unwrap_or_else(|| panic!("{labels}"));
        assert!(is_name(name) && seen.insert(name), "label {name}: {labels}");
        let mut escaped = false;
        let end = after.find(|c| match (escaped, c) {
            (false, '"') => true,
            (false, '\\') => {
                escaped = true;
                false
            }
            (true, c) => {
                assert!(matches!(c, '\\' | '"' | 'n'), "{labels}");
                escaped = false;
                false
            }
            _ => false,
        });
        let end = end.unwrap_or_else(|| panic!("no end: {labels}"));
        let value = &after[..end];
        assert!(!value.is_empty() && !value.contains("0x"), "no value, or an address: {labels}");
        rest = &after[end + 1..];
        rest = match rest.strip_prefix(',') {
            Some(more) => more,
            None if rest.is_empty() => rest,
            None => panic!("{labels}"),
        };
    }
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

#[test]
fn faults_are_found() {
    let good = "# HELP a_seconds x\n# TYPE a_seconds counter\n# UNIT a_seconds seconds\n\
                a_seconds_total{b=\"c\\\"\"} 1\n# EOF\n";
    assert_eq!(parse(good).len(), 1);
    for (from, to) in [
        ("# EOF\n", ""),
        ("_total", ""),
        ("\"} 1", "\"} NaN"),
        ("seconds\na", "bytes\na"),
        ("b=", "0="),
    ] {
        let bad = good.replacen(from, to, 1);
        assert!(std::panic::catch_unwind(|| parse(&bad)).is_err(), "{bad}");
    }
}
