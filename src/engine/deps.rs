//! From a block's instructions to its dependencies, singly or in batch.

use crate::core_model::CoreModel;
use bench::batch::rows::Row;
use isa::code::parse_hex;
use isa::deps::memory::{InitialValues, Settings};
use isa::deps::{Analyser, Code, Window};
use isa::program::Located;
use report::documents::deps::{Census, Document, Subject, document};
use report::render::deps::{rejected, row};
use tma::{Error, Result};

/// Settings of the analysis.
#[derive(Debug, Clone, Default)]
pub struct DepsAsk {
    /// Runs with different random values that must agree.
    pub seeds: u32,
    /// Initial values, one set per sample; each gets a run of its own.
    pub initial_values: Vec<InitialValues>,
    /// Where those come from.
    pub seeded: Option<String>,
    /// Include false dependencies.
    pub all: bool,
}

/// Analyses blocks one after the other on one core.
///
/// ```
/// use engine::core_model::CoreModel;
/// use engine::deps::{DepsAnalyser, DepsAsk};
/// use isa::code::parse_hex;
/// use isa::program::Located;
/// use std::sync::Arc;
/// use tma::Core;
///
/// let core = Arc::new(Core::modelled(&engine::library(), "zen3")?);
/// let mut analyser = DepsAnalyser::new(CoreModel::new(core, None)?, None);
/// // imul rax, rbx; add rax, rcx
/// let bytes = parse_hex("48 0f af c3, 48 01 c8")?;
/// let piece = Located { bytes, ..Located::default() };
/// let document = analyser.document(&[piece], DepsAsk { seeds: 3, ..DepsAsk::default() })?;
/// // 3 cycles of imul and 1 of add in every iteration (uops.info, Zen 3).
/// assert_eq!(document.recurrences[0].cycles, 4.0);
/// # Ok::<(), tma::Error>(())
/// ```
pub struct DepsAnalyser {
    model: CoreModel,
    window: Window,
    analyser: Analyser,
}

impl DepsAnalyser {
    /// An analyser for the core of `model`, whose reorder buffer has `rob` entries if that is given.
    pub fn new(model: CoreModel, rob: Option<u32>) -> Self {
        let window = match rob {
            Some(entries) => Window { entries, source: "--rob".to_owned() },
            None => Window::of(&model.core),
        };
        let analyser = Analyser::new(model.latencies.clone());
        Self { model, window, analyser }
    }

    /// Notes of every document of this core.
    pub fn notes(&self) -> &[String] {
        &self.model.notes
    }

    /// The dependencies of blocks that run in sequence as a loop.
    ///
    /// # Errors
    /// Bytes that are not code.
    pub fn document(&mut self, pieces: &[Located], ask: DepsAsk) -> Result<Document> {
        let code = Code::of(pieces, self.model.core.facts())?;
        let settings = self.settings(ask.seeds, ask.initial_values);
        let analysis = self.analyser.analyse(&code, &settings);
        let names: Vec<&str> = pieces.iter().filter_map(|p| p.name.as_deref()).collect();
        let notes = pieces.iter().flat_map(|p| &p.notes);
        let subject = Subject {
            name: (!names.is_empty()).then(|| names.join("; ")),
            uarch: self.model.core.uarch().map(str::to_owned),
            window: settings.window,
            window_source: self.window.source.clone(),
            seeded: ask.seeded,
            notes: self.model.notes.iter().chain(notes).cloned().collect(),
        };
        Ok(document(&code, &analysis, &settings, subject, ask.all))
    }

    /// The CSV row of one block of a batch; its unmodelled instructions are added to `census`.
    pub fn row(&mut self, block: &Row, seeds: u32, census: &mut Census) -> String {
        let facts = self.model.core.facts();
        let code = match block.fault {
            Some(fault) => Err(Error::failed(fault)),
            None => parse_hex(&block.text).and_then(|bytes| Code::of_bytes(&bytes, facts)),
        };
        match code {
            Ok(code) => {
                let settings = self.settings(seeds, Vec::new());
                let analysis = self.analyser.analyse(&code, &settings);
                census.add(&code, &analysis);
                row(&block.text, &code, &analysis)
            }
            Err(error) => rejected(&block.text, &error.to_string()),
        }
    }

    fn settings(&self, seeds: u32, initial_values: Vec<InitialValues>) -> Settings {
        let runs = seeds.max(u32::try_from(initial_values.len()).unwrap_or(u32::MAX));
        Settings { window: self.window.entries, runs, initial_values }
    }
}
