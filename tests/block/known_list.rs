//! The list of blocks of known throughput, as tests/block/known.csv and errata.csv have it.

use crate::support::csv::fields;

pub struct Known {
    pub name: String,
    pub form: String,
    pub asm: String,
    pub hex: String,
    /// Cycles per iteration on zen3, zen4 and golden_cove.
    pub cycles: [Option<f64>; 3],
    pub why: String,
}

impl Known {
    pub fn touches_memory(&self) -> bool {
        self.asm.split(';').any(|i| i.contains('[') && !i.trim().starts_with("nop"))
    }
}

/// `7`, `20/3`, or nothing.
fn fraction(text: &str) -> Option<f64> {
    let (above, below) = text.split_once('/').unwrap_or((text, "1"));
    (!text.is_empty()).then(|| above.parse::<f64>().unwrap() / below.parse::<f64>().unwrap())
}

pub fn list() -> Vec<Known> {
    let text = include_str!("known.csv");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("name,class,form,asm,hex,zen3,zen4,golden_cove,why"));
    lines
        .map(|line| {
            let f = fields(line);
            assert_eq!(f.len(), 9, "{line}");
            Known {
                name: f[0].clone(),
                form: f[2].clone(),
                asm: f[3].clone(),
                hex: f[4].clone(),
                cycles: [fraction(&f[5]), fraction(&f[6]), fraction(&f[7])],
                why: f[8].clone(),
            }
        })
        .collect()
}

/// The columns of cycles.
const CORES: [&str; 3] = ["zen3", "zen4", "golden_cove"];

/// The list without what tests/block/errata.csv withdraws, and with the forms it sets.
pub fn corrected(column: usize) -> Vec<Known> {
    let mut list = list();
    for line in include_str!("errata.csv").lines().skip(1) {
        let f = fields(line);
        assert_eq!(f.len(), 4, "{line}");
        let index = list.iter().position(|k| k.name == f[0]).expect("errata name known blocks");
        match f[2].as_str() {
            _ if f[1] != CORES[column] => {}
            "withdrawn" => list[index].cycles[column] = None,
            "loop" => list[index].form = "loop".into(),
            other => panic!("{other} is no change"),
        }
    }
    list.retain(|k| k.cycles[column].is_some());
    list
}
