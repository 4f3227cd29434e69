//! Latencies measured on one machine, and their file.
//!
//! `tdtool microbench --calibrate` writes the file [`Calibration::path`]: `tdtool/latency-<uarch>.toml`
//! in the user's cache directory (`$XDG_CACHE_HOME`, else `~/.cache`; the caller determines it).
//!
//! ```toml
//! schema = 2
//! tool = "tdtool 0.1.0"
//! date = "2026-11-22T05:20:00Z"        # of the measurement, UTC
//!
//! [machine]                            # the file is ignored on other machines
//! uarch = "emr"                        # name of its event table
//! vendor = "GenuineIntel"
//! family = 6
//! model = 207
//! stepping = 2
//!
//! [[latency]]                          # one for each form, input and output
//! form = "Imul_r64_rm64_reg"           # in the notation of `Form`
//! from = "register"                    # address, register, kept, flags, memory
//! to = "register"                      # register, flags, memory
//! cycles = 3.001                       # core cycles
//! spread = 0.004                       # half the range of the repetitions, in cycles
//! least = 2.9                          # minimum over the values tried, if it depends on values
//! chained = 1.0                        # after a producer that also has this key, if less
//!
//! [[forwarding]]
//! class = "stack"                      # stack, slot, update, few, many, short, xmm, ymm, blocked, locked
//! cycles = 0.6
//! spread = 0.1
//! ```
//!
//! [`super`] defines between which points the cycles count. An entry with an unknown form is an error.

use super::form::{Address, Form};
use super::table_file::Invalid;
use super::{Forward, Input, Output, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{fmt, fs};
use tma::{Core, Cpu, Error, Result};

const SCHEMA: u32 = 2;
/// Size limit in bytes, far above that of any calibration.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// The measured processor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Name of its event table, such as `emr`.
    pub uarch: String,
    /// CPUID vendor.
    pub vendor: String,
    /// Display family.
    pub family: u32,
    /// Display model.
    pub model: u32,
    /// Stepping.
    pub stepping: u32,
    /// Hash of features and caches, which differ between cores with one model number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

impl Identity {
    /// The identity of `core`.
    pub fn of(core: &Core) -> Self {
        let Cpu { vendor, family, model, stepping, .. } = core.cpu.clone();
        let fingerprint = core.fingerprint.as_ref().map(|print| print.hash.clone());
        Self { uarch: core.name().to_owned(), vendor, family, model, stepping, fingerprint }
    }
}

/// Latencies measured on one machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calibration {
    /// The processor.
    pub machine: Identity,
    /// Time of the measurement, UTC, RFC 3339.
    pub date: String,
    /// Latency of each form from an input to an output.
    pub values: BTreeMap<(Form, Input, Output), Value>,
    /// Minimum over the operand values tried, in cycles, for latencies that depend on values.
    pub least: BTreeMap<(Form, Input, Output), f64>,
    /// Register-to-register cycles directly after a producer that is also in this map, if that is
    /// less than after other instructions.
    pub back_to_back: BTreeMap<Form, f64>,
    /// Store-to-load forwarding latencies.
    pub forwarding: BTreeMap<Forward, Value>,
}

impl Calibration {
    /// The path of the calibration of `uarch` in the cache directory `cache`.
    pub fn path(cache: &Path, uarch: &str) -> PathBuf {
        cache.join("tdtool").join(format!("latency-{uarch}.toml"))
    }

    /// The latency from `input` to `output` of `form`. The components of the address are ignored
    /// unless the value passes through the address.
    pub fn value(&self, form: Form, input: Input, output: Output) -> Option<Value> {
        self.values.get(&self.key(form, input, output)?).copied()
    }

    /// The minimum and maximum latency.
    pub fn range(&self, form: Form, input: Input, output: Output) -> Option<(f64, f64)> {
        let key = self.key(form, input, output)?;
        let most = self.values.get(&key)?.cycles;
        Some((self.least.get(&key).map_or(most, |least| least.min(most)), most))
    }

    fn key(&self, form: Form, input: Input, output: Output) -> Option<(Form, Input, Output)> {
        let own = (form, input, output);
        if self.values.contains_key(&own) {
            return Some(own);
        }
        let through_address =
            input == Input::Address || form.code.mnemonic() == iced_x86::Mnemonic::Lea;
        let based = (Form { address: Address::Based, ..form }, input, output);
        (!through_address && self.values.contains_key(&based)).then_some(based)
    }

    /// Reads a calibration.
    pub fn load(path: &Path) -> Result<Self> {
        let failed = |cause: &dyn fmt::Display| {
            Error::failed(format!("cannot read the calibration {}", path.display()))
                .because(cause)
                .hint("write a new one with `tdtool microbench --calibrate`")
        };
        let text = tma::files::read_text(path, MAX_FILE_BYTES).map_err(|e| failed(&e))?;
        let file: File = toml::from_str(&text).map_err(|e| failed(&e))?;
        file.into_calibration().map_err(|e| failed(&e))
    }

    /// Writes the calibration atomically: to a temporary file that then replaces `path`. Creates the
    /// directory if necessary.
    pub fn save(&self, path: &Path) -> Result<()> {
        let failed = |cause: &dyn fmt::Display| {
            Error::failed(format!("cannot write the calibration {}", path.display()))
                .because(cause)
                .hint("make the directory writable")
        };
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        if let Some(folder) = folder {
            fs::create_dir_all(folder).map_err(|e| failed(&e))?;
        }
        let text = toml::to_string(&File::of(self)).map_err(|e| failed(&e))?;
        let temporary = path.with_extension(format!("toml.{}", std::process::id()));
        let written = fs::File::create(&temporary)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&temporary, path));
        written.map_err(|e| {
            let _ = fs::remove_file(&temporary);
            failed(&e)
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    schema: u32,
    tool: String,
    date: String,
    machine: Identity,
    #[serde(default)]
    latency: Vec<Row>,
    #[serde(default)]
    forwarding: Vec<ForwardRow>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    form: String,
    from: String,
    to: String,
    cycles: f64,
    spread: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    least: Option<f64>,
    #[serde(rename = "chained", default, skip_serializing_if = "Option::is_none")]
    back_to_back: Option<f64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForwardRow {
    class: String,
    cycles: f64,
    spread: f64,
}

impl File {
    fn of(calibration: &Calibration) -> Self {
        let latency = calibration.values.iter().map(|((form, from, to), value)| Row {
            form: form.to_string(),
            from: from.name().to_owned(),
            to: to.name().to_owned(),
            cycles: value.cycles,
            spread: value.spread,
            least: calibration.least.get(&(*form, *from, *to)).copied(),
            back_to_back: calibration
                .back_to_back
                .get(form)
                .filter(|_| (*from, *to) == (Input::Register, Output::Register))
                .copied(),
        });
        let forwarding = calibration.forwarding.iter().map(|(class, value)| ForwardRow {
            class: class.name().to_owned(),
            cycles: value.cycles,
            spread: value.spread,
        });
        Self {
            schema: SCHEMA,
            tool: concat!("tdtool ", env!("CARGO_PKG_VERSION")).to_owned(),
            date: calibration.date.clone(),
            machine: calibration.machine.clone(),
            latency: latency.collect(),
            forwarding: forwarding.collect(),
        }
    }

    fn into_calibration(self) -> std::result::Result<Calibration, Invalid> {
        if self.schema != SCHEMA {
            return Err(Invalid::Schema(self.schema, SCHEMA));
        }
        let mut calibration =
            Calibration { machine: self.machine, date: self.date, ..Calibration::default() };
        for row in self.latency {
            let from = Input::ALL.into_iter().find(|i| i.name() == row.from);
            let to = Output::ALL.into_iter().find(|o| o.name() == row.to);
            let form = Form::parse(&row.form).ok_or(Invalid::Unknown("form", row.form))?;
            let from = from.ok_or(Invalid::Unknown("input", row.from))?;
            let to = to.ok_or(Invalid::Unknown("output", row.to))?;
            let value = value(row.cycles, row.spread)?;
            calibration.values.insert((form, from, to), value);
            let valid = |cycles: f64| self::value(cycles, 0.0).map(|value| value.cycles);
            if let Some(least) = row.least {
                calibration.least.insert((form, from, to), valid(least)?);
            }
            if let Some(back_to_back) = row.back_to_back {
                calibration.back_to_back.insert(form, valid(back_to_back)?);
            }
        }
        for row in self.forwarding {
            let class = Forward::ALL.into_iter().find(|f| f.name() == row.class);
            let class = class.ok_or(Invalid::Unknown("forwarding class", row.class))?;
            calibration.forwarding.insert(class, value(row.cycles, row.spread)?);
        }
        Ok(calibration)
    }
}

/// Checks that a latency and its spread are at least 0 and below a million cycles.
fn value(cycles: f64, spread: f64) -> std::result::Result<Value, Invalid> {
    let valid = |v: f64| (0.0..1e6).contains(&v);
    if valid(cycles) && valid(spread) {
        Ok(Value { cycles, spread })
    } else {
        Err(Invalid::Value(cycles, spread))
    }
}
