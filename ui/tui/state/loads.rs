//! Recorded samples of loads, beside the samples of code.

use profile::hot::HotFunction;
use report::documents::loads::{self, EventRow, LoadRow, Shares};
use std::collections::{BTreeMap, HashMap};

/// The samples of a load, or of several.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadSamples {
    /// Share of all loads, 0 to 1.
    pub share: f64,
    pub samples: u64,
    /// Σ latency in cycles, and samples with one.
    cycles: f64,
    timed: f64,
    /// Samples by what served them.
    levels: [u64; LEVELS.len()],
    /// Operand of a single load in the source and the variables that it reads, as far as known.
    data: Vec<String>,
    /// How its addresses are made.
    class: Option<String>,
}

/// Names of levels, as in the tables of `tdtool loads`.
const LEVELS: [&str; 8] = ["LFB", "L1", "L2", "L3", "DRAM", "remote DRAM", "remote cache", "other"];

/// The loads of a recording, by file name and address.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Loads {
    modules: HashMap<String, BTreeMap<u64, LoadSamples>>,
    /// Source, for a line of the screen.
    pub source: String,
}

fn name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

impl Loads {
    /// Loads of a recording's events, each with its number.
    pub fn of_events(document: &loads::Loads) -> Vec<(usize, Self)> {
        let with_loads = document.events.iter().filter(|event| event.loads > 0);
        with_loads.map(|event| (event.event, Self::recorded(document, event))).collect()
    }

    fn recorded(document: &loads::Loads, event: &EventRow) -> Self {
        let of = if event.shares == Shares::Latency { "latency × period" } else { "periods" };
        let limit = event.least_latency.map_or(String::new(), |n| format!(", from {n} cycles on"));
        let source =
            format!("loads: {} samples of {}{limit}, shares of Σ {of}", event.loads, event.name);
        let mut all = Self { modules: HashMap::new(), source };
        for row in document.loads.iter().filter(|row| row.event == event.event) {
            let module = all.modules.entry(name(&row.module)).or_default();
            module.insert(row.address.0, LoadSamples::of(row));
        }
        all
    }

    /// The load at an address of a function.
    pub fn at(&self, function: &HotFunction, address: u64) -> Option<&LoadSamples> {
        self.modules.get(&name(&function.path))?.get(&address)
    }

    /// The loads between two addresses of a function's module.
    pub fn between(&self, function: &HotFunction, start: u64, end: u64) -> Option<LoadSamples> {
        let module = self.modules.get(&name(&function.path)).filter(|_| start < end)?;
        let mut own = module.range(start..end).map(|(_, load)| load).peekable();
        own.peek()?;
        Some(own.fold(LoadSamples::default(), LoadSamples::plus))
    }
}

impl LoadSamples {
    fn of(row: &LoadRow) -> Self {
        let own = &row.levels;
        let timed = if row.latency_mean.is_some() { row.samples as f64 } else { 0.0 };
        Self {
            share: row.share,
            samples: row.samples,
            cycles: row.latency_mean.unwrap_or(0.0) * timed,
            timed,
            levels: [
                own.lfb,
                own.l1,
                own.l2,
                own.l3,
                own.ram,
                own.remote_ram,
                own.remote_cache,
                own.other,
            ],
            data: row
                .operand()
                .filter(|_| row.field.is_some())
                .into_iter()
                .chain(row.data())
                .collect(),
            class: row.pattern.clone().or(row.class.map(|class| class.to_string())),
        }
    }

    fn plus(mut self, other: &Self) -> Self {
        self.share += other.share;
        self.samples += other.samples;
        self.cycles += other.cycles;
        self.timed += other.timed;
        for (own, more) in self.levels.iter_mut().zip(other.levels) {
            *own += more;
        }
        self
    }

    /// `62.2 % of loads, 50 cycles, L3 83 %, DRAM 17 %`; of a single load also what it reads, before the levels, which
    /// are cut first where the row ends.
    pub fn text(&self) -> String {
        let mut parts = vec![format!("{:.1} % of loads", 100.0 * self.share)];
        parts.extend(self.mean().map(|mean| format!("{mean:.0} cycles")));
        parts.extend(self.data.iter().cloned());
        let all: u64 = self.levels.iter().sum();
        let share = |n: u64| 100.0 * n as f64 / all.max(1) as f64;
        let served = LEVELS.iter().zip(self.levels).filter(|(_, n)| share(*n) >= 0.5);
        parts.extend(served.map(|(level, n)| format!("{level} {:.0} %", share(n))));
        parts.extend(self.class.iter().cloned());
        parts.join(", ")
    }

    /// Mean latency in cycles.
    pub fn mean(&self) -> Option<f64> {
        (self.timed > 0.0).then(|| self.cycles / self.timed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use report::documents::count::Kind;
    use report::documents::loads::{LevelsRow, VariableOf};

    /// By hand: (10 × 400 + 30 × 40) / 40 cycles; 10 of 40 samples from memory.
    #[test]
    fn a_block_has_the_sums_of_its_loads() {
        let row = |address: u64, samples, mean, levels| LoadRow {
            module: "/usr/bin/matmul".into(),
            address: address.into(),
            share: samples as f64 / 50.0,
            samples,
            latency_mean: Some(mean),
            levels,
            class: Some(Kind::Stride),
            ..LoadRow::default()
        };
        let document = loads::Loads {
            events: vec![EventRow { loads: 50, shares: Shares::Latency, ..EventRow::default() }],
            loads: vec![
                row(0x10, 10, 400.0, LevelsRow { ram: 10, ..LevelsRow::default() }),
                row(0x14, 30, 40.0, LevelsRow { l2: 30, ..LevelsRow::default() }),
                row(0x20, 10, 40.0, LevelsRow { l2: 10, ..LevelsRow::default() }),
            ],
            ..loads::Loads::default()
        };
        let [(_, all)] = &Loads::of_events(&document)[..] else { panic!("one event with loads") };
        let function = HotFunction { path: "matmul".into(), ..HotFunction::default() };
        let block = all.between(&function, 0x10, 0x20).unwrap();
        assert_eq!(block.text(), "80.0 % of loads, 130 cycles, L2 75 %, DRAM 25 %");
        let one = all.at(&function, 0x10).unwrap().text();
        assert_eq!(one, "20.0 % of loads, 400 cycles, DRAM 100 %, stride");
        // As in the text of `tdtool loads`: the operand has its structure, the other variables their samples.
        let known = LoadRow {
            field: Some("e->next".into()),
            of: Some("struct entry".into()),
            variables: vec![
                VariableOf { name: "heap".into(), samples: 6 },
                VariableOf { name: "table".into(), samples: 4 },
            ],
            ..document.loads[0].clone()
        };
        let text = "20.0 % of loads, 400 cycles, operand e->next (struct entry), heap (6), table (4), DRAM 100 %, stride";
        assert_eq!(LoadSamples::of(&known).text(), text);
        assert_eq!(all.between(&function, 0x30, 0x40), None);
    }
}
