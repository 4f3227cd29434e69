//! Latencies from each operand of a form to each result, measured with dependency chains.
//!
//! A chain is unrolled code in which each instance of the form depends on the one before, through
//! connectors of known latency where a result cannot be an operand directly. Integer ALU connectors have
//! a latency of one cycle, which the clock assumes too.
//!
//! | file | concern |
//! |---|---|
//! | `endpoints` | inputs and outputs of a form |
//! | `chain` | building the chains |
//! | `connectors` | connectors and their latencies; other instructions of chains |

mod chain;
mod connectors;
mod endpoints;

pub use connectors::Connectors;

use super::catalog::{Catalog, unavailable};
use super::form::Form;
use super::generator::values;
use super::measure::Bench;
use super::{Latencies, LatencyResult, SCHEMA};
use crate::{Measurement, Status, Values};
use chain::{Chain, chain};
use connectors::Connector;
use endpoints::{Endpoint, Endpoints};
use isa::names::small;
use tma::{Error, Result};

/// Instructions of the unrolled chain.
const LENGTH: usize = 48;

/// All latencies of `form` on this processor; measures `connectors` as chains need them.
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
    let endpoints = Endpoints::of(form)?;
    let mut all = Vec::new();
    for input in &endpoints.inputs {
        for output in &endpoints.outputs {
            if let Some(built) = chain(form, input, output)? {
                all.push(pair(bench, connectors, form, input, output, &built)?);
            }
        }
    }
    let code = form.encoding_name();
    Ok(Latencies { schema: SCHEMA, what: "latency", form: name, code, latencies: all })
}

/// One latency, over all sets of operand values.
fn pair(
    bench: &mut Bench,
    connectors: &mut Connectors,
    form: Form,
    input: &Endpoint,
    output: &Endpoint,
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
        least: None,
        chained: None,
        link: None,
        round_trip: None,
        share: None,
        chain: chain.text.clone(),
        status: Status::Failed,
        reason: None,
    };
    let Some((least, best, most)) = connectors.cost(bench, &chain.connectors)? else {
        result.status = Status::Unstable;
        result.reason =
            Some("the latency of a connector in its chain did not reproduce".to_owned());
        return Ok(result);
    };
    let copies = LENGTH.div_ceil(chain.instructions).max(2);
    let code = chain.bytes.repeat(copies);
    let sets = sets(form);
    for set in &sets {
        let measured = measure_stable(bench, &code, set)?;
        let Some((cycles, low, high)) = number(&measured) else {
            result.reason = result.reason.or(measured.reason);
            continue;
        };
        let each = |total: f64, off: f64| (total / copies as f64 - off) / chain.instances as f64;
        let (low, high) = (each(low, most), each(high, least));
        let cycles = each(cycles, best);
        // A bound needs the longest latency over all values; `least` has the shortest.
        result.cycles = Some(result.cycles.map_or(cycles, |known: f64| known.max(cycles)));
        result.least = Some(result.least.map_or(cycles, |known: f64| known.min(cycles)));
        result.low = Some(result.low.map_or(low, |known: f64| known.min(low)));
        result.high = Some(result.high.map_or(high, |known: f64| known.max(high)));
        let worse = result.status == Status::Failed || measured.status != Status::Ok;
        if worse {
            result.status = measured.status;
            result.reason = measured.reason;
        }
    }
    result.least = result.least.filter(|_| sets.len() > 1);
    let transfers = chain.connectors.iter().any(Connector::is_transfer);
    result.link = result.cycles.filter(|_| !transfers);
    if let Some(cycles) = result.cycles.filter(|_| best > 0.0 && !transfers) {
        let whole = cycles * chain.instances as f64 + best;
        result.chain += &format!(
            "; the chain takes {whole:.2}, of which {best:.2} are its other instructions'"
        );
    }
    if result.cycles.is_some_and(|c| c < RENAMED || adds_floats(form)) {
        after_another(bench, form, input, output, &sets[0], &mut result)?;
    }
    // Latencies are not negative.
    for cycles in [&mut result.cycles, &mut result.low, &mut result.link] {
        *cycles = cycles.map(|c| c.max(0.0));
    }
    match transfers {
        true => leave_round_trip(&mut result, best),
        false if sets.len() == 1 => refuse_fractions(&mut result),
        false => {}
    }
    Ok(result)
}

/// Latencies are whole numbers of cycles. The clock and what disturbs it account for this many cycles,
/// and this share.
const WHOLE: (f64, f64) = (0.1, 0.03);

/// Withdraws a latency that is not a whole number of cycles: the bound of such a chain is something else, or its
/// links differ.
fn refuse_fractions(result: &mut LatencyResult) {
    let Some(cycles) = result.cycles.filter(|cycles| *cycles >= RENAMED) else { return };
    let off = (cycles - cycles.round()).abs();
    if result.status == Status::Ok && off > WHOLE.0 + WHOLE.1 * cycles {
        result.cycles = None;
        result.chained = None;
        result.status = Status::Unstable;
        result.reason = Some(format!(
            "{cycles:.2} cycles a link are no whole number, so this is no latency: the links of the \
             chain differ, or something else bounds it"
        ));
    }
}

/// Withdraws a latency that is known only together with the way back; `connectors` are the cycles
/// subtracted.
fn leave_round_trip(result: &mut LatencyResult, connectors: f64) {
    let Some(cycles) = result.cycles.take() else { return };
    let all = cycles + connectors;
    result.share = Some(cycles);
    result.round_trip = Some(all);
    result.reason.get_or_insert(format!(
        "only the round trip is known: {all:.2} cycles with the moves back"
    ));
}

/// Below this, in cycles, the form is eliminated at renaming, and the chain is bound by issue slots.
const RENAMED: f64 = 0.9;
/// Least difference, in cycles, at which a latency after the same form is reported separately.
const DIFFERS: f64 = 0.1;

/// Golden Cove has a shorter latency between floating-point additions than after other instructions.
fn adds_floats(form: Form) -> bool {
    let name = small(form.code.mnemonic());
    let plain = name.strip_prefix('v').unwrap_or(&name);
    let kind =
        ["ps", "pd", "ss", "sd", "ph", "sh"].iter().any(|endpoint| plain.ends_with(endpoint));
    kind && plain.len() == 5 && (plain.starts_with("add") || plain.starts_with("sub"))
}

/// Measures the latency after another instruction; that after the same form, the result so far, is reported
/// separately where it is shorter.
fn after_another(
    bench: &mut Bench,
    form: Form,
    input: &Endpoint,
    output: &Endpoint,
    values: &Values,
    result: &mut LatencyResult,
) -> Result<()> {
    let Some(alone) = result.cycles else { return Ok(()) };
    let Some((whole, other)) = chain::after(form, input, output)? else { return Ok(()) };
    let mut measured = |chain: &Chain| -> Result<Option<(f64, f64, f64)>> {
        let copies = LENGTH.div_ceil(chain.instructions).max(2);
        let measurement = measure_stable(bench, &chain.bytes.repeat(copies), values)?;
        let each = |cycles: f64| cycles / copies as f64;
        let ok = measurement.status == Status::Ok;
        Ok(number(&measurement).filter(|_| ok).map(|(c, l, h)| (each(c), each(l), each(h))))
    };
    let (Some(whole_cycles), Some(other)) = (measured(&whole)?, measured(&other)?) else {
        result.status = Status::Unstable;
        result.reason = Some("the latency after another instruction did not reproduce".to_owned());
        return Ok(());
    };
    let cycles = whole_cycles.0 - other.0;
    result.chained = (alone < cycles - DIFFERS).then_some(alone);
    result.cycles = Some(cycles);
    result.low = Some(whole_cycles.1 - other.2);
    result.high = Some(whole_cycles.2 - other.1);
    result.chain = format!("{}; after itself {alone:.2}: {}", whole.text, result.chain);
    Ok(())
}

/// Measures up to three times until it is not unstable.
fn measure_stable(bench: &mut Bench, code: &[u8], values: &Values) -> Result<Measurement> {
    const TRIES: usize = 3;
    let mut measurement = bench.block(code, values)?;
    for _ in 1..TRIES {
        if measurement.status != Status::Unstable {
            break;
        }
        measurement = bench.block(code, values)?;
    }
    Ok(measurement)
}

fn number(measurement: &Measurement) -> Option<(f64, f64, f64)> {
    let t = measurement.throughput.as_ref()?;
    Some((t.cycles, t.low, t.high))
}

/// Sets of initial values: ones, and for divisions others with longer latencies that never fault (the
/// remainder is always less than the divisor, so the next quotient fits).
fn sets(form: Form) -> Vec<Values> {
    use iced_x86::Mnemonic;
    let mut ones = values(&[form]);
    ones.registers[chain::ZERO.number()] = 0;
    ones.registers[chain::INDEX.number()] = 0;
    let mut all = vec![ones.clone()];
    let mut with = |dividend: u64, upper: u64, divisor: u64| {
        let mut more = ones.clone();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(cycles: f64) -> LatencyResult {
        LatencyResult {
            input: "register",
            from: "operand 1".to_owned(),
            output: "flags",
            to: "CF".to_owned(),
            cycles: Some(cycles),
            low: Some(cycles - 0.02),
            high: Some(cycles + 0.02),
            least: None,
            chained: None,
            link: None,
            round_trip: None,
            share: None,
            chain: String::new(),
            status: Status::Ok,
            reason: None,
        }
    }

    /// 1.31 to 1.35 cycles from the operands of `shld` to flags were measured on a Zen 4.
    #[test]
    fn a_fraction_of_a_cycle_is_no_latency() {
        for (cycles, whole) in [(1.0, true), (3.08, true), (20.5, true), (1.33, false)] {
            let mut result = measured(cycles);
            refuse_fractions(&mut result);
            assert_eq!(result.cycles.is_some(), whole, "{cycles}");
            assert_eq!(result.status == Status::Ok, whole, "{cycles}");
        }
        // Below a cycle renaming did it.
        let mut renamed = measured(0.2);
        refuse_fractions(&mut renamed);
        assert_eq!(renamed.cycles, Some(0.2));
    }

    /// `movq` and back took 8 cycles on a Zen 4, which left 2 to 6 for each way.
    #[test]
    fn a_way_of_a_round_trip_is_not_known() {
        let mut result = measured(4.0);
        leave_round_trip(&mut result, 4.0);
        assert_eq!((result.cycles, result.round_trip, result.share), (None, Some(8.0), Some(4.0)));
        assert!(result.reason.unwrap().contains("8.00"));
    }
}
