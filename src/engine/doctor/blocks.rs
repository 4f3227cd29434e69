//! Findings of `tdtool doctor` on measuring blocks: whether one can be measured, and the layers of the sandbox.

use bench::{BlockMeasurer, Layer, Layers, Options, Pmu, Status};
use isa::code::Block;
use pmu::machine::{Finding, Level, Machine};
use std::sync::Arc;
use tma::Core;

/// `add rax, rbx`: one cycle, and cannot fault.
const SIMPLEST: [u8; 3] = [0x48, 0x01, 0xd8];

/// Measures the simplest block there is, and asks for the layers of the sandbox.
pub fn blocks(machine: &Machine, core: &Arc<Core>) -> Vec<Finding> {
    let not = |why: String| {
        let what = "blocks cannot be measured in isolation";
        let remedy = Some("the whole error: `tdtool block 4801d8`".to_owned());
        vec![Finding { cause: Some(why), remedy, ..Finding::new("block", Level::Blocked, what) }]
    };
    let pmu = match machine.core_pmus().next() {
        // Whether it counts is found by measuring; this is only the clock's name.
        Some(pmu) => format!("core PMU {}, or the time-stamp counter", pmu.name),
        None => "the time-stamp counter, against loops of known latency".to_owned(),
    };
    let options = Options {
        core: core.clone(),
        pmu: Pmu::Absent(String::new()),
        counts: false,
        ..Options::quick()
    };
    let block = match Block::decode(&SIMPLEST) {
        Ok(block) => block,
        Err(error) => return not(error.to_string()),
    };
    let mut measurer = BlockMeasurer::new(options);
    let measured = measurer.measure(&block).and_then(|m| Ok((m, measurer.layers()?)));
    let (measurement, layers) = match measured {
        Ok(measured) => measured,
        Err(error) => {
            let own = error.remedy().map(str::to_owned);
            let with_own =
                |found: Finding| Finding { remedy: own.clone().or(found.remedy), ..found };
            return not(error.to_string()).into_iter().map(with_own).collect();
        }
    };
    match measurement.status {
        Status::Ok | Status::Unstable => {}
        _ => return not(measurement.reason.unwrap_or_else(|| "the trial failed".to_owned())),
    }
    let what = format!("block measurement: clock {pmu}");
    vec![Finding::new("block", Level::Ok, what), sandbox(&layers)]
}

/// The layers that protect the host from blocks, each as it reads back.
fn sandbox(layers: &Layers) -> Finding {
    let (mut held, mut limits) = (Vec::new(), Vec::new());
    for layer in &layers.held {
        match layer {
            Layer::Limit(resource) => limits.push(*resource),
            Layer::Other(name) => held.push((*name).to_owned()),
        }
    }
    if !limits.is_empty() {
        held.push(format!("limits on {}", limits.join(", ")));
    }
    let (number, missing) = (layers.held.len(), layers.missing.len());
    if missing == 0 {
        let what = format!("block sandbox: all {number} layers are in force");
        return Finding { evidence: held, ..Finding::new("sandbox", Level::Ok, what) };
    }
    let what = format!("block sandbox: {number} of {} layers are in force", number + missing);
    let cause = format!("not in force: {}", layers.missing.join("; "));
    let remedy = "the layers that hold are enough for blocks of your own; run blocks of unknown origin \
                  where all of them hold (user namespaces: sysctl user.max_user_namespaces)";
    let (cause, remedy) = (Some(cause), Some(remedy.to_owned()));
    Finding { cause, remedy, evidence: held, ..Finding::new("sandbox", Level::Limited, what) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_of_the_sandbox_that_do_not_hold_are_named_with_the_reason() {
        let held = ["files", "memory"].map(Layer::Limit).to_vec();
        let held = [vec![Layer::Other("system-call filter")], held].concat();
        let found = sandbox(&Layers { held: held.clone(), missing: Vec::new() });
        assert_eq!(found.level, Level::Ok);
        assert_eq!(found.what, "block sandbox: all 3 layers are in force");
        assert_eq!(found.evidence, ["system-call filter", "limits on files, memory"]);
        let missing = vec!["namespaces of its own: Operation not permitted".to_owned()];
        let found = sandbox(&Layers { held, missing });
        assert_eq!(found.level, Level::Limited);
        assert!(found.cause.unwrap().contains("of its own: Operation not permitted"));
        assert!(found.remedy.is_some());
    }
}
