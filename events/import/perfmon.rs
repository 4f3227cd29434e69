//! Reads intel/perfmon's files: events, metrics, the map of models.

use anyhow::{Context, Result};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use tma::tables::schema::MatchRule;

/// Header of a perfmon file.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Header {
    pub date_published: String,
    pub version: String,
    #[serde(default)]
    pub tma_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct MetricsFile {
    pub header: Header,
    pub metrics: Vec<Metric>,
}

/// A metric; only what the tables use.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Metric {
    pub metric_name: String,
    pub level: u32,
    pub parent_category: Option<String>,
    pub category: String,
    pub unit_of_measure: String,
    pub count_domain: String,
    /// Over other metrics and lower-cased events.
    pub base_formula: String,
    /// Fully expanded, over aliases, times 100 for percent.
    pub formula: String,
    pub events: Vec<Alias>,
    pub constants: Vec<Alias>,
    pub threshold: Option<Threshold>,
    pub metric_group: String,
    pub locate_with: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Alias {
    pub name: String,
    pub alias: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Threshold {
    pub formula: String,
    /// With metrics' names; absent in the files for E cores, where `formula` has them.
    pub base_formula: Option<String>,
    #[serde(default)]
    pub threshold_issues: String,
}

/// An event as perfmon writes it: everything is text.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct EventRecord {
    pub event_name: String,
    pub event_code: String,
    #[serde(rename = "UMask")]
    pub umask: String,
    #[serde(rename = "UMaskExt")]
    pub umask_ext: String,
    pub counter: String,
    #[serde(rename = "CounterHTOff")]
    pub counter_ht_off: String,
    pub sample_after_value: String,
    #[serde(rename = "MSRIndex")]
    pub msr_index: String,
    #[serde(rename = "MSRValue")]
    pub msr_value: String,
    pub counter_mask: String,
    pub invert: String,
    pub any_thread: String,
    pub edge_detect: String,
    pub equal: String,
    #[serde(rename = "PEBS")]
    pub pebs: String,
    pub precise: String,
    pub errata: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct EventsFile {
    header: Header,
    events: Vec<EventRecord>,
}

/// A core's events, by upper-cased name.
pub struct Events {
    pub header: Header,
    pub by_name: BTreeMap<String, EventRecord>,
}

fn json<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

/// Reads `perfmon/FOLDER/metrics/FILE`, top-down metrics only.
pub fn metrics(perfmon: &Path, folder: &str, file: &str) -> Result<MetricsFile> {
    let mut read: MetricsFile = json(&perfmon.join(folder).join("metrics").join(file))?;
    read.metrics.retain(|m| m.category == "TMA");
    Ok(read)
}

/// Reads `perfmon/FOLDER/events/FILE`.
pub fn events(perfmon: &Path, folder: &str, file: &str) -> Result<Events> {
    let read: EventsFile = json(&perfmon.join(folder).join("events").join(file))?;
    let by_name = read.events.into_iter().map(|e| (e.event_name.to_uppercase(), e)).collect();
    Ok(Events { header: read.header, by_name })
}

/// Mean latencies at retirement, in cycles, by event; empty where the vendor gives none.
pub fn retire_latencies(perfmon: &Path, folder: &str) -> Result<BTreeMap<String, f64>> {
    #[derive(Deserialize)]
    struct Mean {
        #[serde(rename = "MEAN")]
        mean: f64,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "PascalCase")]
    struct File {
        data: BTreeMap<String, Mean>,
    }
    let metrics = perfmon.join(folder).join("metrics");
    if !metrics.exists() {
        return Ok(BTreeMap::new());
    }
    for entry in fs::read_dir(metrics)? {
        let path = entry?.path();
        if path.to_string_lossy().ends_with("_retire_latency.json") {
            let file: File = json(&path)?;
            return Ok(file.data.into_iter().map(|(k, v)| (k, v.mean)).collect());
        }
    }
    Ok(BTreeMap::new())
}

/// The processors that `mapfile.csv` gives events file `/FOLDER/events/FILE`.
pub fn processors(perfmon: &Path, folder: &str, file: &str) -> Result<Vec<MatchRule>> {
    let path = perfmon.join("mapfile.csv");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let wanted = format!("/{folder}/events/{file}");
    let mut rules: Vec<MatchRule> = Vec::new();
    for line in text.lines().filter(|l| l.split(',').nth(2) == Some(&wanted)) {
        let id = line.split(',').next().unwrap_or_default();
        let mut parts = id.splitn(4, '-').skip(1);
        let mut hex = || parts.next().map(|p| u32::from_str_radix(p, 16)).transpose();
        let (family, model) = (hex()?.context("no family")?, hex()?.context("no model")?);
        let steppings: Vec<u32> =
            parts.next().unwrap_or_default().chars().filter_map(|c| c.to_digit(16)).collect();
        match rules.iter_mut().find(|r| r.family == family && r.steppings == steppings) {
            Some(rule) => rule.models.push(model),
            None => rules.push(MatchRule { family, models: vec![model], steppings }),
        }
    }
    for rule in &mut rules {
        rule.models.sort_unstable();
        rule.models.dedup();
    }
    Ok(rules)
}
