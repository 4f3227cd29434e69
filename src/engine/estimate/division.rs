//! How much of what bounds code in isolation are its divisions and roots.

use super::isolated::{Found, Unmeasured};
use super::pieces::{Kind, PieceOf};
use bench::Class;
use estimate::Divisions;
use isa::code::Inst;
use isa::deps::memory::Settings;
use isa::deps::{Analyser, Code, Window};
use isa::latency::Latencies;
use isa::ports::{Ports, spread};
use tma::Core;

/// Runs of the dependency analysis.
const RUNS: u32 = 2;
/// Share of the busiest port's cycles from which on divisions are what occupies it.
const MOST: f64 = 0.5;
/// Share of the busiest port's cycles from which on another is as busy.
const AS_BUSY: f64 = 0.99;

/// What the divisions of a piece take of its time in isolation.
pub(super) fn divisions(
    at: PieceOf,
    found: &Result<Found, Unmeasured>,
    tables: &Tables,
) -> Divisions {
    let PieceOf { function, piece } = at;
    let known = found.as_ref().ok();
    let known = known.and_then(|found| Some((found.bound?, found.evidence.cycles.value)));
    match known {
        _ if !at.divides() => Divisions::Absent,
        Some((bound, alone)) if piece.kind != Kind::Rest => {
            let path = piece.paths.first().map_or(&piece.blocks, |path| &path.blocks);
            let code = path.iter().flat_map(|block| function.instructions(*block));
            let code: Vec<&Inst> = code.map(|(_, inst)| inst).collect();
            tables.of(&code, bound, alone)
        }
        _ => Divisions::Unknown,
    }
}

/// What is known of a core's instructions.
pub(super) struct Tables<'a> {
    pub core: &'a Core,
    pub ports: Option<&'a Ports>,
    pub latencies: &'a Latencies,
}

impl Tables<'_> {
    /// The share that divisions have of what code is bound by: of the latency of its longest loop-carried dependency,
    /// or of the busiest port. Where that is not decided, the cycles that they occupy a port of all `alone`: operands may
    /// take longer than the table's.
    fn of(&self, inside: &[&Inst], bound: Class, alone: f64) -> Divisions {
        let bytes: Vec<u8> = inside.iter().flat_map(|inst| inst.bytes.iter().copied()).collect();
        let Ok(code) = Code::of_bytes(&bytes, self.core.facts()) else {
            return Divisions::Unknown;
        };
        let divides = |number: usize| inside.get(number).is_some_and(|inst| inst.divides());
        let port = || of_port(&code, self.ports?, &divides);
        let known = match bound {
            Class::Dependency => self.of_chain(&code, &divides).map(Divisions::Take),
            Class::Ports => port().map(|(share, _)| Divisions::Take(share)),
            Class::Undecided => {
                let busy = port().filter(|(share, _)| *share > MOST);
                busy.map(|(share, cycles)| Divisions::AtLeast((share * cycles / alone).min(1.0)))
            }
            _ => None,
        };
        known.unwrap_or(Divisions::Unknown)
    }

    fn of_chain(&self, code: &Code, divides: &dyn Fn(usize) -> bool) -> Option<f64> {
        let window = Window::of(self.core).entries;
        let settings = Settings { window, runs: RUNS, initial_values: Vec::new() };
        let found = Analyser::new(self.latencies.clone()).analyse(code, &settings);
        let path = &found.recurrences.first()?.path;
        let all: f64 = path.iter().map(|step| step.latency.middle()).sum();
        let own = path.iter().filter(|step| divides(step.reader));
        let own: f64 = own.map(|step| step.latency.middle()).sum();
        (all > 0.0).then(|| own / all)
    }
}

/// The share of divisions of the busiest port, and its cycles.
fn of_port(code: &Code, ports: &Ports, divides: &dyn Fn(usize) -> bool) -> Option<(f64, f64)> {
    let uops = ports.uops(&code.instructions, &code.effects);
    let found = spread(&uops, ports.names().len());
    let own = |port: usize| -> f64 {
        let rows = found.rows.iter().enumerate().filter(|(number, _)| divides(*number));
        rows.map(|(_, row)| row[port]).sum()
    };
    let busiest = found.total.iter().enumerate();
    let busiest = busiest.filter(|(_, all)| **all > 0.0 && **all >= AS_BUSY * found.bound);
    let shares = busiest.map(|(port, all)| (own(port) / all, *all));
    shares.max_by(|a, b| a.0.total_cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::code::{Block, parse_hex};

    fn found(hex: &str, bound: Class) -> Divisions {
        let core = Core::modelled(&crate::library(), "zen3").unwrap();
        let ports = Ports::of(&core).unwrap();
        let latencies = Latencies::new(&core).unwrap();
        let block = Block::decode(&parse_hex(hex).unwrap()).unwrap();
        let inside: Vec<&Inst> = block.instructions.iter().collect();
        let tables = Tables { core: &core, ports: ports.as_ref(), latencies: &latencies };
        tables.of(&inside, bound, 34.0)
    }

    /// By hand, Zen 3: a division of 64 bits occupies its unit for 17 cycles, a multiplication for one.
    #[test]
    fn divisions_bound_what_they_take_the_time_of() {
        // xor edx,edx; div rcx: the quotient is divided again
        let chain = "31 d2, 48 f7 f1";
        // xor edx,edx; mov eax,7; div rcx: independent
        let alone = "31 d2, b8 07 00 00 00, 48 f7 f1";
        // and imul rsi,rdi, four times: a chain of 12 cycles beside it
        let beside =
            "31 d2, b8 07 00 00 00, 48 f7 f1, 48 0f af f7, 48 0f af f7, 48 0f af f7, 48 0f af f7";
        // xor edx,edx; div rcx; add rax,rsi: one of some cycles of the chain
        let both = "31 d2, 48 f7 f1, 48 01 f0";
        assert_eq!(found(chain, Class::Dependency), Divisions::Take(1.0));
        assert_eq!(found(alone, Class::Ports), Divisions::Take(1.0));
        assert_eq!(found(beside, Class::Dependency), Divisions::Take(0.0), "multiplications");
        let Divisions::Take(share) = found(both, Class::Dependency) else { panic!("not known") };
        assert!((0.8..1.0).contains(&share), "{share}");
        assert_eq!(found("48 0f af f7", Class::Ports), Divisions::Take(0.0));
        // 17 of 34 cycles.
        assert_eq!(found(alone, Class::Undecided), Divisions::AtLeast(0.5));
        assert_eq!(found("48 0f af f7", Class::Undecided), Divisions::Unknown);
    }
}
