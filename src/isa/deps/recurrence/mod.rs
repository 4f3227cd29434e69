//! The latency bound of loop-carried dependencies: the cycles per iteration of a dependency cycle are
//! the sum of its latencies divided by the iterations that it spans (the RecMII of modulo scheduling).
//!
//! | file | concern |
//! |---|---|
//! | `forward` | the store-to-load forwarding class of each memory dependency |
//! | `graph` | the dependency graph |
//! | `ratio` | the maximum cycle ratio of a graph |

mod forward;
mod graph;
mod ratio;

use super::code::Code;
use super::memory::MemoryDependency;
use super::register_deps::RegisterDependency;
use crate::latency::Latencies;
use graph::Graph;
use ratio::{Cycle, WeightedEdge};

pub use graph::Edge;

/// Units per cycle of the integer weights.
const UNITS_PER_CYCLE: f64 = 1000.0;
/// Limit on latencies, in cycles.
const MAX_CYCLES: f64 = 1e6;

/// A loop-carried dependency cycle. `low`, `middle` and `high` are each of the slowest cycle of one component by these
/// latencies, which may be different cycles; `path` is that of `middle`.
#[derive(Debug, Clone, PartialEq)]
pub struct Recurrence {
    /// Lower bound on the cycles per iteration, from the minima of its latency ranges.
    pub low: f64,
    /// Cycles per iteration from the midpoints: likely, but no bound.
    pub middle: f64,
    /// Cycles per iteration from the maxima.
    pub high: f64,
    /// Iterations that the cycle spans.
    pub iterations: u64,
    /// Its edges in order, beginning at the earliest instruction: the slowest cycle by the midpoints.
    pub path: Vec<Edge>,
}

impl Recurrence {
    /// The share of its latency that loads take, 0 to 1, with their data in the first cache.
    pub fn loads(&self) -> f64 {
        let all: f64 = self.path.iter().map(|edge| edge.latency.middle()).sum();
        let loads: f64 = self.path.iter().map(|edge| edge.load).sum();
        if all > 0.0 { loads / all } else { 0.0 }
    }
}

/// The slowest cycle of each strongly connected component, the one with the greatest lower bound first.
///
/// Also returns the edges of the graph, in no particular order.
pub fn recurrences(
    code: &Code,
    register_deps: &[RegisterDependency],
    memory_deps: &[MemoryDependency],
    latencies: &Latencies,
) -> (Vec<Recurrence>, Vec<Edge>) {
    let graph = Graph::of(code, register_deps, memory_deps, latencies);
    let mut targets = vec![Vec::new(); graph.nodes.len()];
    for edge in &graph.edges {
        targets[edge.from].push(edge.to);
    }
    let component = ratio::components(&targets);
    let mut groups: Vec<(usize, usize)> = (graph.edges.iter().enumerate())
        .filter(|(_, edge)| component[edge.from] == component[edge.to])
        .map(|(number, edge)| (component[edge.from], number))
        .collect();
    groups.sort_unstable();
    let mut found: Vec<Recurrence> = groups
        .chunk_by(|a, b| a.0 == b.0)
        .filter_map(|group| {
            let edges: Vec<Edge> = group.iter().map(|(_, number)| graph.edges[*number]).collect();
            slowest(&edges)
        })
        .collect();
    found.sort_by(|a, b| b.low.total_cmp(&a.low).then(b.middle.total_cmp(&a.middle)));
    (found, graph.edges)
}

/// The slowest cycle of one component.
fn slowest(edges: &[Edge]) -> Option<Recurrence> {
    let mut nodes: Vec<usize> = edges.iter().map(|e| e.from).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let of = |node: usize| nodes.binary_search(&node).ok();
    let solve = |cycles: fn(&Edge) -> f64| {
        let weighted = |edge: &Edge| {
            Some(WeightedEdge {
                from: of(edge.from)?,
                to: of(edge.to)?,
                weight: (cycles(edge).clamp(0.0, MAX_CYCLES) * UNITS_PER_CYCLE).round() as u32,
                distance: edge.delta,
            })
        };
        let all: Option<Vec<WeightedEdge>> = edges.iter().map(weighted).collect();
        ratio::maximum(nodes.len(), &all?)
    };
    let ratio = |c: &Cycle| c.weight as f64 / c.distance as f64 / UNITS_PER_CYCLE;
    let cycle = solve(|edge| edge.latency.middle())?;
    let likely = ratio(&cycle);
    let ranges = edges.iter().any(|e| e.latency.low != e.latency.high);
    let (low, high) = match ranges {
        true => (
            solve(|e| e.latency.low).as_ref().map_or(0.0, ratio),
            solve(|e| e.latency.high).as_ref().map_or(likely, ratio),
        ),
        false => (likely, likely),
    };
    let mut path: Vec<Edge> = cycle.edges.iter().map(|number| edges[*number]).collect();
    let earliest = (0..path.len()).min_by_key(|i| path[*i].reader).unwrap_or(0);
    path.rotate_left(earliest);
    Some(Recurrence { low, middle: likely, high, iterations: cycle.distance, path })
}

#[cfg(test)]
mod tests {
    //! Latency bounds on Golden Cove against measurements (tests/figures/forwarding.py and
    //! tests/figures/native_chains.py, with results in docs/results/accuracy.md).

    use crate::code::{Syntax, assemble};
    use crate::deps::memory::Settings;
    use crate::deps::{Analyser, Code};
    use crate::latency::Latencies;

    /// Minimum and maximum cycles of the slowest recurrence.
    fn bound(text: &str) -> (f64, f64) {
        let bytes = assemble(text, Syntax::Intel).unwrap();
        let code = Code::of_bytes(&bytes, crate::test_core(Some("emr")).facts()).unwrap();
        let settings = Settings { window: 512, runs: 3, initial_values: Vec::new() };
        let found = Analyser::new(Latencies::new(&crate::test_core(Some("emr"))).unwrap())
            .analyse(&code, &settings)
            .recurrences;
        found.first().map_or((0.0, 0.0), |r| (r.low, r.high))
    }

    /// Asserts that the measurement is within the bound's range, with a tolerance of 0.2 cycles.
    fn agrees(text: &str, measured: f64) {
        let (low, high) = bound(text);
        assert!(
            low - 0.2 <= measured && measured <= high + 0.2,
            "{text}: {low} to {high}, {measured}"
        );
    }

    #[test]
    fn forwarding_is_slower_with_one_cycle_between_load_and_store_than_with_none_or_two() {
        let moving =
            |what: &str| format!("mov rdx,[r15+rcx*8]; add rcx,1; {what} mov [r15+rcx*8],rdx");
        agrees(&moving(""), 5.01);
        agrees(&moving("add rdx,rbx;"), 7.48);
        agrees(&moving("add rdx,rbx; add rdx,rbx;"), 7.56);
        agrees(&moving("add rdx,rbx; add rdx,rbx; add rdx,rbx;"), 8.53);
        agrees(&moving("imul rdx,rdx;"), 8.01);
        agrees("mov rax,[r15+rcx*8]; imul rax,rax; mov [r15+rcx*8],rax", 7.99);
        agrees("mov [r15+64],rax; mov eax,[r15+68]; add rax,rbx", 7.33);
        agrees("mov rdx,[r15]; add r15,6; add rdx,rbx; mov [r15],rdx", 6.22);
    }

    #[test]
    fn additions_done_at_renaming_delay_consumers_that_cannot_fold_them() {
        for (text, measured) in [
            ("add rax,1; and rax,rbx", 1.0),
            ("lea rdx,[rax-1]; and rax,rdx", 1.0),
            ("add rax,1; imul rax,rax", 3.0),
            ("add rax,1; shl rax,3", 3.0),
            ("add rax,1; bswap rax", 4.0),
            ("add eax,1; and eax,ebx", 2.0),
            ("inc eax", 1.0),
            ("sub eax,1", 1.0),
        ] {
            agrees(text, measured);
        }
    }

    /// Measured with `tdtool block`.
    #[test]
    fn a_locked_instruction_waits_until_stores_are_in_the_cache() {
        agrees("lock add dword ptr [rdi],1", 18.1);
        agrees("lock add [rdi],rbx", 18.0);
        agrees("lock xadd [rdi],rax", 18.0);
    }

    #[test]
    fn other_processors_do_not_defer_additions() {
        let bytes = assemble("add rax,1; shl rax,3", Syntax::Intel).unwrap();
        let code = Code::of_bytes(&bytes, crate::test_core(Some("zen3")).facts()).unwrap();
        let settings = Settings { window: 256, runs: 3, initial_values: Vec::new() };
        let latencies = Latencies::new(&crate::test_core(Some("zen3"))).unwrap();
        // Both take a cycle on Zen 3 (uops.info).
        assert_eq!(Analyser::new(latencies).analyse(&code, &settings).recurrences[0].low, 2.0);
    }

    /// Lower bounds of every recurrence on `uarch`.
    fn lower_bounds(text: &str, uarch: &str) -> Vec<f64> {
        let bytes = assemble(text, Syntax::Intel).unwrap();
        let core = crate::test_core(Some(uarch));
        let code = Code::of_bytes(&bytes, core.facts()).unwrap();
        let settings = Settings { window: 256, runs: 3, initial_values: Vec::new() };
        let latencies = Latencies::new(&core).unwrap();
        Analyser::new(latencies)
            .analyse(&code, &settings)
            .recurrences
            .iter()
            .map(|r| r.low)
            .collect()
    }

    /// Native timings on a Zen 5 (tests/tools/native_latencies.py): `fadd` 5.98; two sums that `fxch` swaps 2.99 an
    /// iteration, as each is added to in every other one; a sum after a load and a pop 5.98; a square 7.97. A product
    /// and a sum in two registers are independent.
    #[test]
    fn x87_registers_are_told_apart() {
        assert_eq!(lower_bounds("fadd st, st(1)", "zen5"), [6.0]);
        assert_eq!(lower_bounds("fadd st, st(1); fxch st(2)", "zen5"), [3.0]);
        assert_eq!(lower_bounds("fld st(1); faddp st(1), st", "zen5"), [6.0]);
        assert_eq!(lower_bounds("fld st(0); fmulp st(1), st", "zen5"), [8.0]);
        let apart = lower_bounds("fadd st, st(3); fxch st(1); fmul st, st(3); fxch st(1)", "zen5");
        assert_eq!(apart, [6.0, 6.0]);
        // Each iteration pushes: what it reads another pushed, and the bound leaves it out.
        assert!(lower_bounds("fld1; fadd st, st(1)", "zen5").iter().all(|low| *low == 0.0));
    }

    /// Native timings on a Zen 5: `mul rbx; cmove rbx,rsi` 3.0, so `cmove` does not wait for the ZF that `mul`
    /// leaves undefined.
    #[test]
    fn undefined_flags_are_no_certain_dependency() {
        let most = lower_bounds("mul rbx; cmove rbx, rsi", "zen5").into_iter().fold(0.0, f64::max);
        assert!(most <= 3.0, "{most}");
        let defined = lower_bounds("imul rax, rcx; cmovb rcx, rsi", "zen5");
        assert_eq!(defined.into_iter().fold(0.0, f64::max), 4.0, "CF is defined");
    }

    /// Native timings on a Zen 5: `paddd mm0,mm1` 1.99 among others that wait (1 where none does),
    /// `pmullw mm0,mm1` 2.99, `pxor mm0,mm0; paddd mm0,mm1` no chain.
    #[test]
    fn mmx_registers_are_told_apart() {
        assert_eq!(lower_bounds("pmullw mm0, mm1", "zen5"), [3.0]);
        assert_eq!(lower_bounds("pmullw mm0, mm2; pmullw mm1, mm2", "zen5"), [3.0, 3.0]);
        assert_eq!(lower_bounds("movq mm0, [rdi]; pmullw mm0, mm1", "zen5"), []);
    }
}
