//! How long a value takes from an operand of a form to a result, measured by chains.
//!
//! A chain is straight code in which each instance of the form waits for the one before: its result
//! is the next one's operand, through connectors of known latency where a result cannot be an
//! operand directly. Integer ALU connectors take one cycle: that is the clock's own assumption.
//!
//! | file | concern |
//! |---|---|
//! | `ends` | where values enter and leave a form |
//! | `chain` | the instructions of a chain |
//! | `connect` | connectors and what they cost |

mod chain;
mod connect;
mod ends;

use super::catalog::{Catalog, unavailable};
use super::document::{Latencies, LatencyResult, SCHEMA};
use super::form::Form;
use super::generate::values;
use super::measure::Bench;
use crate::block::{Report, Status, Values};
use crate::{Error, Result};
use chain::{Chain, chain};
pub use connect::Connectors;
use ends::{End, Ends};

/// Instructions of a chain's straight code.
const LENGTH: usize = 48;

/// All latencies of `form` on this processor; `connectors` are measured where a chain needs them.
///
/// # Errors
/// The form cannot be measured here, or the sandbox cannot be started.
pub fn latencies(bench: &mut Bench, connectors: &mut Connectors, form: Form) -> Result<Latencies> {
    let name = Catalog::all().name(form);
    if let Some(reason) = unavailable(form) {
        return Err(
            Error::not_possible(format!("`{name}` cannot be measured here")).because(reason)
        );
    }
    let ends = Ends::of(form)?;
    let mut all = Vec::new();
    for input in &ends.inputs {
        for output in &ends.outputs {
            if let Some(made) = chain(form, input, output)? {
                all.push(pair(bench, connectors, form, (input, output), &made)?);
            }
        }
    }
    let code = form.exact();
    Ok(Latencies { schema: SCHEMA, what: "latency", form: name, code, latencies: all })
}

/// One pair, with every set of values.
fn pair(
    bench: &mut Bench,
    connectors: &mut Connectors,
    form: Form,
    (input, output): (&End, &End),
    chain: &Chain,
) -> Result<LatencyResult> {
    let mut result = LatencyResult {
        input: input.kind(),
        from: input.name(),
        output: output.kind(),
        to: output.name(),
        cycles: None,
        low: None,
        high: None,
        chain: chain.text.clone(),
        status: Status::Failed,
        reason: None,
    };
    let (least, usual, most) = connectors.cost(bench, &chain.connectors)?;
    let copies = LENGTH.div_ceil(chain.instructions).max(2);
    let code = chain.bytes.repeat(copies);
    for set in sets(form) {
        let measured = bench.block(&code, &set)?;
        let Some((cycles, low, high)) = number(&measured) else {
            result.reason = result.reason.or(measured.reason);
            continue;
        };
        let each = |total: f64, off: f64| (total / copies as f64 - off) / chain.instances as f64;
        let (low, high) = (each(low, most), each(high, least));
        let cycles = each(cycles, usual);
        // The longest of several values is what a bound must reckon with; the range says the rest.
        result.cycles = Some(result.cycles.map_or(cycles, |known: f64| known.max(cycles)));
        result.low = Some(result.low.map_or(low, |known: f64| known.min(low)));
        result.high = Some(result.high.map_or(high, |known: f64| known.max(high)));
        let worse = result.status == Status::Failed || measured.status != Status::Ok;
        if worse {
            result.status = measured.status;
            result.reason = measured.reason;
        }
    }
    // No value arrives before it is sent.
    result.low = result.low.map(|low| low.max(0.0));
    Ok(result)
}

fn number(report: &Report) -> Option<(f64, f64, f64)> {
    let t = report.throughput.as_ref()?;
    Some((t.cycles, t.low, t.high))
}

/// Initial values: ones, and for division others that take longer and never raise an exception
/// (the remainder is always less than the divisor, so the next quotient fits).
fn sets(form: Form) -> Vec<Values> {
    use iced_x86::Mnemonic;
    let mut usual = values(&[form]);
    usual.registers[chain::ZERO.number()] = 0;
    let mut all = vec![usual.clone()];
    let mut with = |dividend: u64, upper: u64, divisor: u64| {
        let mut more = usual.clone();
        (more.registers[0], more.registers[2]) = (dividend, upper);
        for number in [8, 9, 10, 11, 12] {
            more.registers[number] = divisor;
        }
        more.memory = divisor;
        all.push(more);
    };
    match form.code.mnemonic() {
        Mnemonic::Div => {
            with(0x7f7f_7f7f_7f7f_7f7f, 0, 1);
            with(0x4141_4141_4141_4141, 0x4141_4141_4141_4141, 0xc1c1_c1c1_c1c1_c1c1);
        }
        Mnemonic::Idiv => with(0x7f7f_7f7f_7f7f_7f7f, 0, 1),
        _ => {}
    }
    all
}
