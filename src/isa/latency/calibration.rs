//! What was measured on a machine, as a file.
//!
//! `tdtool kernel --calibrate` writes it to [`Calibration::place`]: `tdtool/latency-<uarch>.toml`
//! below the user's cache directory (`$XDG_CACHE_HOME`, else `~/.cache`; the program finds that
//! directory, not the engine).
//!
//! ```toml
//! schema = 2
//! tool = "tdtool 0.1.0"
//! date = "2026-11-22T05:20:00Z"        # of the measurement, UTC
//!
//! [machine]                            # of another machine: not used
//! uarch = "emr"                        # name of its event table
//! vendor = "GenuineIntel"
//! family = 6
//! model = 207
//! stepping = 2
//!
//! [[latency]]                          # one for each form, input and output
//! form = "Imul_r64_rm64_reg"           # as `Form` writes it
//! from = "register"                    # address, register, kept, flags, memory
//! to = "register"                      # register, flags, memory
//! cycles = 3.001                       # core cycles
//! spread = 0.004                       # half the range of the repetitions, in cycles
//! least = 2.9                          # where it depends on values: of those tried the least
//! chained = 1.0                        # behind another that takes less behind its own kind
//!
//! [[forwarding]]
//! class = "stack"                      # stack, slot, update, few, many, short, xmm, ymm, blocked, locked
//! cycles = 0.6
//! spread = 0.1
//! ```
//!
//! What cycles count between is said in [`super`]. An entry whose form this version does not know
//! is an error, not silence.

use super::form::{Address, Form};
use super::model::{Forward, Input, Output, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use tma::{Cpu, Error, Result};

const SCHEMA: u32 = 2;
/// More than any machine's would be; larger files are no calibrations.
const LARGEST: u64 = 16 << 20;

/// Which processor was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Name of its event table.
    pub uarch: String,
    /// CPUID vendor.
    pub vendor: String,
    /// Display family.
    pub family: u32,
    /// Display model.
    pub model: u32,
    /// Stepping.
    pub stepping: u32,
}

impl Identity {
    /// That of `cpu`, whose event table is `uarch`.
    pub fn of(uarch: &str, cpu: &Cpu) -> Self {
        Self {
            uarch: uarch.to_owned(),
            vendor: cpu.vendor.clone(),
            family: cpu.family,
            model: cpu.model,
            stepping: cpu.stepping,
        }
    }
}

/// What was measured on a machine.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Calibration {
    /// Which processor.
    pub machine: Identity,
    /// When, UTC, RFC 3339.
    pub date: String,
    /// Latencies.
    pub values: BTreeMap<(Form, Input, Output), Value>,
    /// Of those that depend on values the least cycles; the others have none.
    pub least: BTreeMap<(Form, Input, Output), f64>,
    /// Cycles from register to register right behind another instruction that is here, too, where
    /// that is less than behind other instructions.
    pub chained: BTreeMap<Form, f64>,
    /// How long stored values take to their loads.
    pub forwarding: BTreeMap<Forward, Value>,
}

impl Calibration {
    /// Where it belongs below the cache directory `cache`.
    pub fn place(cache: &Path, uarch: &str) -> PathBuf {
        cache.join("tdtool").join(format!("latency-{uarch}.toml"))
    }

    /// What was measured from `input` to `output` of `form`. What the address is made of is no
    /// matter where the value does not come through it.
    pub fn value(&self, form: Form, input: Input, output: Output) -> Option<Value> {
        self.values.get(&self.key(form, input, output)?).copied()
    }

    /// The least and the most that it takes.
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
        let through = input == Input::Address || form.code.mnemonic() == iced_x86::Mnemonic::Lea;
        let based = (Form { address: Address::Based, ..form }, input, output);
        (!through && self.values.contains_key(&based)).then_some(based)
    }

    /// Reads it.
    pub fn load(path: &Path) -> Result<Self> {
        let failed = |cause: String| {
            Error::failed(format!("cannot read the calibration {}", path.display()))
                .because(cause)
                .hint("`tdtool kernel --calibrate` writes a new one")
        };
        let size = fs::metadata(path).map_err(|e| failed(e.to_string()))?.len();
        if size > LARGEST {
            return Err(failed(format!("it has {size} bytes; calibrations are far smaller")));
        }
        let text = fs::read_to_string(path).map_err(|e| failed(e.to_string()))?;
        let file: File = toml::from_str(&text).map_err(|e| failed(e.to_string()))?;
        file.understood().map_err(failed)
    }

    /// Writes it whole or not at all: into a file beside `path`, which then takes its place.
    /// The directory is made if there is none.
    pub fn save(&self, path: &Path) -> Result<()> {
        let failed = |cause: String| {
            Error::failed(format!("cannot write the calibration {}", path.display()))
                .because(cause)
                .hint("make sure that the directory can be written to")
        };
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        if let Some(folder) = folder {
            fs::create_dir_all(folder).map_err(|e| failed(e.to_string()))?;
        }
        let text = toml::to_string(&File::of(self)).map_err(|e| failed(e.to_string()))?;
        let beside = path.with_extension(format!("toml.{}", std::process::id()));
        let written = fs::File::create(&beside)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&beside, path));
        written.map_err(|e| {
            let _ = fs::remove_file(&beside);
            failed(e.to_string())
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chained: Option<f64>,
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
            chained: calibration
                .chained
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

    fn understood(self) -> std::result::Result<Calibration, String> {
        if self.schema != SCHEMA {
            return Err(format!(
                "schema {} is not {SCHEMA}, which this version reads",
                self.schema
            ));
        }
        let mut calibration =
            Calibration { machine: self.machine, date: self.date, ..Calibration::default() };
        for row in self.latency {
            let form = Form::parse(&row.form).ok_or(format!("no form {}", row.form))?;
            let from = Input::ALL.into_iter().find(|i| i.name() == row.from);
            let to = Output::ALL.into_iter().find(|o| o.name() == row.to);
            let from = from.ok_or(format!("no input {}", row.from))?;
            let to = to.ok_or(format!("no output {}", row.to))?;
            let value = value(row.cycles, row.spread)?;
            calibration.values.insert((form, from, to), value);
            let sound = |cycles: f64| self::value(cycles, 0.0).map(|value| value.cycles);
            if let Some(least) = row.least {
                calibration.least.insert((form, from, to), sound(least)?);
            }
            if let Some(chained) = row.chained {
                calibration.chained.insert(form, sound(chained)?);
            }
        }
        for row in self.forwarding {
            let class = Forward::ALL.into_iter().find(|f| f.name() == row.class);
            let class = class.ok_or(format!("no class {}", row.class))?;
            calibration.forwarding.insert(class, value(row.cycles, row.spread)?);
        }
        Ok(calibration)
    }
}

/// A latency is a number of cycles: finite, not negative, below a million.
fn value(cycles: f64, spread: f64) -> std::result::Result<Value, String> {
    let sound = |v: f64| (0.0..1e6).contains(&v);
    if sound(cycles) && sound(spread) {
        Ok(Value { cycles, spread })
    } else {
        Err(format!("{cycles} ± {spread} is no latency"))
    }
}
