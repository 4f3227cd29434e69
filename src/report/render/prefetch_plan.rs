//! Plans of prefetches as input of other tools.

use super::csv;
use crate::documents::prefetch::{Plan, PlanRow};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Which caches a prefetch fills: all of them.
const TYPE: &str = "t0";

/// Prefetches by a constant number of bytes as `PC,delta,type`, one a line: a load, the bytes from its address to
/// the prefetched one, and the kind of prefetch.
pub fn hints(plan: &Plan) -> String {
    let mut out = String::from("PC,delta,type\n");
    for one in &plan.prefetches {
        if let Some(delta) = one.delta {
            out += &csv::line([one.load.to_string(), delta.to_string(), TYPE.to_owned()]);
        }
    }
    out
}

/// Prefetches by a constant number of bytes as the profile that llc reads with `-prefetch-hints-file`: a sample
/// profile in which the calls of `__prefetch_t0_N` at a load's source line count the bytes (LLVM's
/// X86InsertPrefetch.cpp). The program is to be compiled with `-x86-discriminate-memops`, both times.
pub fn llvm(plan: &Plan) -> String {
    let mut functions: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for one in &plan.prefetches {
        if let Some((function, line)) = line(one) {
            functions.entry(function).or_default().push(line);
        }
    }
    let mut out = String::new();
    for (function, mut lines) in functions {
        lines.sort();
        lines.dedup();
        let _ = writeln!(out, "{function}:{}:0", lines.len());
        out.extend(lines);
    }
    out
}

fn line(one: &PlanRow) -> Option<(&str, String)> {
    let (source, delta) = (one.source.as_ref()?, one.delta?);
    let discriminator = match source.discriminator {
        0 => String::new(),
        number => format!(".{number}"),
    };
    // Counts have no sign: a negative one is the same number of 64 bits.
    let count = delta.cast_unsigned();
    let line = format!(" {}{discriminator}: 1 __prefetch_{TYPE}_0:{count}\n", source.offset);
    Some((&source.function, line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::prefetch::SourceRow;

    /// The form of llvm/test/CodeGen/X86/insert-prefetch.afdo: `FUNCTION:TOTAL:HEAD`, then
    /// `OFFSET.DISCRIMINATOR: SAMPLES CALLEE:COUNT`.
    #[test]
    fn plans_are_hints_of_constant_strides() {
        let at = |load: u64, discriminator, delta| PlanRow {
            load: load.into(),
            delta,
            source: Some(SourceRow { function: "sum".to_owned(), offset: 3, discriminator }),
            ..PlanRow::default()
        };
        let prefetches = vec![at(0x10, 0, Some(512)), at(0x14, 2, Some(-64)), at(0x18, 0, None)];
        let plan = Plan { prefetches, ..Plan::default() };
        assert_eq!(hints(&plan), "PC,delta,type\n0x10,512,t0\n0x14,-64,t0\n");
        let lines = " 3.2: 1 __prefetch_t0_0:18446744073709551552\n 3: 1 __prefetch_t0_0:512\n";
        assert_eq!(llvm(&plan), format!("sum:2:0\n{lines}"));
    }
}
