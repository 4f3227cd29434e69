//! A cost model's predictions against measured blocks, as Chen et al. evaluate models ("BHive: A
//! Benchmark Suite and Measurement Framework for Validating x86-64 Basic Block Performance Models",
//! IISWC 2019): average relative error and Kendall's τ, by class of block.

use isa::code::parse_hex;
use isa::deps::Code;
use report::documents::block::{Accuracy, ClassAccuracy, ERRORS_SCHEMA, Judged, ModelErrors};
use std::collections::HashMap;
use tma::{Core, Error, Result};

/// Blocks with the largest errors that are listed.
const WORST: usize = 10;

/// Classes in the order of the tables. BHive groups blocks by the units that they use, with clusters
/// that were named by hand; these rules follow its names.
const CLASSES: [&str; 6] =
    ["scalar", "vector", "scalar and vector", "loads", "stores", "loads and stores"];

/// Judges `predictions` (CSV: hex, cycles) by `results` (the output of `tdtool block --batch`).
///
/// # Errors
/// Either is no such file, or they have no block in common.
///
/// ```
/// use engine::judge::judge;
///
/// let results = "hex,status,reason,cycles\n4801d8,ok,,1.0\n480fafc3,ok,,3.0\n90,unstable,,0.3\n";
/// let found = judge(results, "hex,cycles\n4801d8,1.1\n48 0f af c3,2.4\n")?;
/// // Errors of 10 % and 20 %, in the right order.
/// assert_eq!((found.overall.blocks, found.not_ok), (2, 1));
/// assert!((found.overall.mean_error.unwrap() - 0.15).abs() < 1e-12);
/// assert_eq!(found.overall.kendall_tau, Some(1.0));
/// # Ok::<(), tma::Error>(())
/// ```
pub fn judge(results: &str, predictions: &str) -> Result<ModelErrors> {
    let predicted: HashMap<String, f64> = columns(predictions, "cycles", 1)?
        .into_iter()
        .filter_map(|(hex, row)| Some((hex, positive(row.first()?)?)))
        .collect();
    if predicted.is_empty() {
        return Err(Error::failed("the predictions have no row of a block and its cycles")
            .hint("--against takes a CSV file with the columns hex,cycles"));
    }
    let (mut judged, mut not_ok, mut not_predicted) = (Vec::new(), 0, 0);
    for (hex, row) in columns(results, "status", 3)? {
        let measured = row.get(2).and_then(|cell| positive(cell));
        let Some(measured) = measured.filter(|_| row[0] == "ok") else {
            not_ok += 1;
            continue;
        };
        let Some(predicted) = predicted.get(&hex).copied() else {
            not_predicted += 1;
            continue;
        };
        let error = (predicted - measured).abs() / measured;
        judged.push(Judged { class: class(&hex), hex, measured, predicted, error });
    }
    if judged.is_empty() {
        return Err(Error::failed("no measured block has a prediction")
            .because(format!("{not_ok} blocks are not ok, {not_predicted} have no prediction"))
            .hint("the predictions need the same bytes in the column hex"));
    }
    let of = |class| -> Vec<&Judged> { judged.iter().filter(|j| j.class == class).collect() };
    let classes = CLASSES.into_iter().map(|class| (class, of(class)));
    let classes = classes.filter(|(_, blocks)| !blocks.is_empty());
    let classes =
        classes.map(|(class, b)| ClassAccuracy { class, accuracy: accuracy(&b) }).collect();
    let overall = accuracy(&judged.iter().collect::<Vec<_>>());
    let measured = judged.len() + not_predicted;
    judged.sort_by(|a, b| b.error.total_cmp(&a.error));
    judged.truncate(WORST);
    Ok(ModelErrors {
        schema: ERRORS_SCHEMA,
        measured,
        not_ok,
        not_predicted,
        overall,
        classes,
        worst: judged,
    })
}

/// Bytes in one spelling, and `count` cells from column `name`, or from column 1 without a header.
fn columns(text: &str, name: &str, count: usize) -> Result<Vec<(String, Vec<String>)>> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
    let (mut rows, mut first) = (Vec::new(), 1);
    for record in reader.records() {
        let record = record.map_err(|e| Error::failed("cannot read the rows").because(e))?;
        if let Some(at) = record.iter().position(|cell| cell.trim() == name) {
            first = at.max(1);
            continue;
        }
        let hex = record.get(0).and_then(|hex| parse_hex(hex).ok()).map(|bytes| written(&bytes));
        let cells = record.iter().skip(first).take(count).map(|c| c.trim().to_owned()).collect();
        rows.extend(hex.map(|hex| (hex, cells)));
    }
    rows.retain(|(_, cells): &(String, Vec<String>)| !cells.is_empty());
    Ok(rows)
}

fn written(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn positive(cell: &str) -> Option<f64> {
    cell.parse().ok().filter(|cycles: &f64| cycles.is_finite() && *cycles > 0.0)
}

/// Half of the instructions or more access memory: `loads` if less than a quarter of these store,
/// `stores` if less than a quarter load, else both. Otherwise `vector` if three quarters use vector
/// registers, `scalar` if none does, else both.
fn class(hex: &str) -> &'static str {
    let code = parse_hex(hex).and_then(|bytes| Code::of_bytes(&bytes, Core::default().facts()));
    let Ok(code) = code else { return CLASSES[0] };
    let all = code.instructions.len();
    let count = |is: &dyn Fn(usize) -> bool| (0..all).filter(|at| is(*at)).count();
    let loads = count(&|at| code.effects[at].memory.iter().any(|m| m.load));
    let stores = count(&|at| code.effects[at].memory.iter().any(|m| m.store));
    let either = count(&|at| code.effects[at].memory.iter().any(|m| m.load || m.store));
    let vectors = count(&|at| {
        let instruction = &code.instructions[at];
        (0..instruction.op_count()).any(|op| instruction.op_register(op).is_vector_register())
    });
    match () {
        () if 2 * either >= all && 4 * stores < either => "loads",
        () if 2 * either >= all && 4 * loads < either => "stores",
        () if 2 * either >= all => "loads and stores",
        () if vectors == 0 => "scalar",
        () if 4 * vectors >= 3 * all => "vector",
        () => "scalar and vector",
    }
}

fn accuracy(blocks: &[&Judged]) -> Accuracy {
    let mut errors: Vec<f64> = blocks.iter().map(|b| b.error).collect();
    errors.sort_by(f64::total_cmp);
    let count = errors.len();
    if count == 0 {
        return Accuracy::default();
    }
    let share = |limit: f64| {
        // 1.05 less 1 is a little more than 0.05.
        let inside = errors.iter().filter(|e| **e <= limit + 1e-9).count();
        Some(inside as f64 / count as f64)
    };
    let middle = count / 2;
    let median = match count % 2 {
        0 => f64::midpoint(errors[middle - 1], errors[middle]),
        _ => errors[middle],
    };
    let [measured, predicted]: [Vec<f64>; 2] =
        [|b: &&Judged| b.measured, |b: &&Judged| b.predicted]
            .map(|of| blocks.iter().map(of).collect());
    Accuracy {
        blocks: count,
        mean_error: Some(errors.iter().sum::<f64>() / count as f64),
        median_error: Some(median),
        within_5: share(0.05),
        within_10: share(0.10),
        within_25: share(0.25),
        within_50: share(0.50),
        kendall_tau: tau(&measured, &predicted),
    }
}

/// Kendall's τ-b in O(n log n).
fn tau(one: &[f64], other: &[f64]) -> Option<f64> {
    let found = kendalls::tau_b_with_comparator(one, other, f64::total_cmp).ok()?;
    Some(found.0).filter(|tau| tau.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SciPy 1.17.1, `scipy.stats.kendalltau(x, y).statistic`, with ties in both.
    #[test]
    fn kendalls_tau_is_that_of_scipy() {
        let x = [1.0, 2.0, 2.0, 3.5, 4.0, 4.0, 7.0, 1.5, 9.0, 0.5, 2.0, 6.0];
        let y = [1.1, 2.5, 1.9, 3.0, 4.4, 3.9, 3.0, 1.5, 8.0, 1.1, 2.5, 7.0];
        assert!((tau(&x, &y).unwrap() - 0.864_027_649_327_174_8).abs() < 1e-12);
        let found = tau(&[12.0, 2.0, 1.0, 12.0, 2.0], &[1.0, 4.0, 7.0, 1.0, 0.0]).unwrap();
        assert!((found + 0.471_404_520_791_031_6).abs() < 1e-12);
        assert_eq!(tau(&[1.0, 1.0], &[1.0, 2.0]), None, "all equal");
        assert_eq!(tau(&[1.0], &[1.0]), None);
    }

    /// Worked by hand: errors of 5 %, 20 %, 50 % and 100 %.
    #[test]
    fn errors_are_relative_to_the_measurement() {
        let results = "hex,status,reason,cycles,low\n\
             4801d8,ok,,2,2\n4801d9,ok,,5,5\n4801da,ok,,4,4\n4801db,ok,,1,1\n4801dc,ok,,1,1\n90,failed,x,,\n";
        let predictions = "4801d8,2.1\n4801d9,4\n4801da,6\n4801db,2\n90,1\n";
        let found = judge(results, predictions).unwrap();
        assert_eq!((found.measured, found.not_ok, found.not_predicted), (5, 1, 1));
        let all = &found.overall;
        assert!((all.mean_error.unwrap() - 0.4375).abs() < 1e-9);
        assert!((all.median_error.unwrap() - 0.35).abs() < 1e-9);
        assert_eq!((all.within_5, all.within_10), (Some(0.25), Some(0.25)));
        assert_eq!((all.within_25, all.within_50), (Some(0.5), Some(0.75)));
        assert_eq!(found.worst[0].hex, "4801db");
        assert!(judge(results, "hex,cycles\n4801ff,1\n").is_err());
        assert!(judge(results, "nothing").is_err());
    }

    #[test]
    fn classes_follow_accesses_then_registers() {
        for (hex, expected) in [
            ("4801d8 4801d8", "scalar"),     // add rax,rbx
            ("c5f558c2 c5f558c2", "vector"), // vaddpd ymm0,ymm1,ymm2
            ("4801d8 c5f558c2", "scalar and vector"),
            ("488b03 4801d8", "loads"),            // mov rax,[rbx]
            ("488903 4801d8", "stores"),           // mov [rbx],rax
            ("480103 4801d8", "loads and stores"), // add [rbx],rax
        ] {
            assert_eq!(class(hex), expected, "{hex}");
        }
    }
}
