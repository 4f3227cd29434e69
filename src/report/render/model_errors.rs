//! A cost model judged by measured blocks, as text.

use crate::documents::block::{Accuracy, ModelErrors};
use std::fmt::Write as _;

/// Most bytes of a block that are shown.
const SHOWN: usize = 24;

/// The accuracy by class, and the worst blocks.
pub fn text(found: &ModelErrors) -> String {
    let mut out = format!(
        "{} blocks with a measurement and a prediction; {} not ok, {} without a prediction\n\n",
        found.overall.blocks, found.not_ok, found.not_predicted
    );
    out +=
        "class              blocks  mean error  median   <=5 %  <=10 %  <=25 %  <=50 %     tau\n";
    for class in &found.classes {
        line(&mut out, class.class, &class.accuracy);
    }
    line(&mut out, "all", &found.overall);
    out += "\nworst             measured  predicted   error  class\n";
    for block in &found.worst {
        let hex: String = block.hex.chars().take(2 * SHOWN).collect();
        let more = if hex.len() < block.hex.len() { "..." } else { "" };
        let _ = writeln!(
            out,
            "                  {:>8.3}  {:>9.3}  {:>4.0} %  {}: {hex}{more}",
            block.measured,
            block.predicted,
            100.0 * block.error,
            block.class
        );
    }
    out
}

fn line(out: &mut String, name: &str, a: &Accuracy) {
    let percent = |value: Option<f64>| {
        value.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
    };
    let tau = a.kendall_tau.map_or("-".to_owned(), |tau| format!("{tau:.3}"));
    let _ = writeln!(
        out,
        "{name:<18} {:>6}  {:>10}  {:>6}  {:>6}  {:>6}  {:>6}  {:>6}  {tau:>6}",
        a.blocks,
        percent(a.mean_error),
        percent(a.median_error),
        percent(a.within_5),
        percent(a.within_10),
        percent(a.within_25),
        percent(a.within_50),
    );
}
