//! Series → text, by the encoder of the Prometheus project.

use super::families::Family;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, MetricEncoder, NoLabelSet, prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use smol_str::SmolStr;
use std::fmt;

/// Names and values.
pub type Labels = Vec<(&'static str, SmolStr)>;

/// A value of a series.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Its family.
    pub family: Family,
    /// Its labels.
    pub labels: Labels,
    /// Its value, which is finite.
    pub value: f64,
}

/// The form of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' own text format, 0.0.4, for clients that ask for it.
    Prometheus,
}

/// Encodes families of samples, each in one piece.
///
/// # Errors
/// None: a text takes everything.
pub fn encode(families: Vec<Vec<Sample>>, form: Form) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Families(families)));
    let mut whole = String::new();
    match form {
        Form::OpenMetrics => text::encode(&mut whole, &registry)?,
        Form::Prometheus => prometheus_text::encode(&mut whole, &registry)?,
    }
    Ok(whole)
}

/// Samples by family.
#[derive(Debug)]
struct Families(Vec<Vec<Sample>>);

impl Collector for Families {
    fn encode(&self, mut encoder: DescriptorEncoder) -> fmt::Result {
        for samples in &self.0 {
            let Some(family) = samples.first().map(|sample| sample.family) else { continue };
            let ((name, help), unit) = (family.name_and_help(), family.unit());
            let kind = family.kind();
            let mut encoder = encoder.encode_descriptor(name, help, unit.as_ref(), kind)?;
            samples.iter().try_for_each(|sample| one(sample, kind, &mut encoder))?;
        }
        Ok(())
    }
}

fn one(sample: &Sample, kind: MetricType, encoder: &mut MetricEncoder) -> fmt::Result {
    let labels: Vec<(&str, &str)> =
        sample.labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
    if let MetricType::Info = kind {
        return encoder.encode_info(&labels);
    }
    match labels.is_empty() {
        true => plain(sample.value, kind, encoder),
        false => plain(sample.value, kind, &mut encoder.encode_family(&labels)?),
    }
}

fn plain(value: f64, kind: MetricType, encoder: &mut MetricEncoder) -> fmt::Result {
    match kind {
        MetricType::Counter => encoder.encode_counter::<NoLabelSet, f64, f64>(&value, None),
        _ => encoder.encode_gauge(&value),
    }
}
