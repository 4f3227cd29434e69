//! Reasons for a piece's time beside its parts: its bound in isolation, its loads and stores.

use super::evidence::Context;
use super::isolated::Found;
use super::own_values::divides;
use super::pieces::{Kind, PieceOf};
use super::reasons::Unmeasured;
use crate::core_model::CoreModel;
use bench::Class;
use isa::code::Inst;
use isa::deps::memory::Settings;
use isa::deps::{Analyser, Code, Window};
use isa::ports::{Ports, spread};

/// Runs of the dependency analysis.
const RUNS: u32 = 2;
/// Share of the busiest port's cycles from which on another is as busy.
const AS_BUSY: f64 = 0.99;
/// Share of a port's cycles from which on divisions are what occupies it.
const MOST: f64 = 0.5;

/// Why a piece takes its time.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Grounds {
    /// Its bound in isolation, as in `tdtool.block/2`.
    pub bound: Option<Class>,
    /// Whether its divisions do.
    pub is_division: bool,
    /// Its loads and stores that can cost most, in words.
    pub memory: Option<String>,
    /// Nanoseconds of its costliest load, and of memory, where the former are far more.
    pub walks: Option<(f64, f64)>,
}

impl Grounds {
    /// From a piece and its measurement in isolation.
    pub fn of(
        at: PieceOf,
        found: &Result<Found, Unmeasured>,
        context: &Context,
        model: &CoreModel,
    ) -> Self {
        let PieceOf { function, piece } = at;
        if piece.kind == Kind::Rest {
            return Self::default();
        }
        let bound = found.as_ref().ok().and_then(|found| found.bound);
        let is_division = divides(at)
            && bound.is_some_and(|bound| {
                let path = piece.paths.first().map_or(&piece.blocks, |path| &path.blocks);
                let code = path.iter().flat_map(|block| function.instructions(*block));
                let code: Vec<&Inst> = code.map(|(_, inst)| inst).collect();
                is_division(&code, bound, context.shared.ports.as_ref(), model)
            });
        let (memory, walks) = context.named(at);
        Self { bound, is_division, memory, walks }
    }
}

/// Whether divisions are what bounds code that is bound by this: they are on its longest loop-carried dependency, or
/// take most of the busiest port.
fn is_division(inside: &[&Inst], bound: Class, ports: Option<&Ports>, model: &CoreModel) -> bool {
    let bytes: Vec<u8> = inside.iter().flat_map(|inst| inst.bytes.iter().copied()).collect();
    let Ok(code) = Code::of_bytes(&bytes, model.core.facts()) else { return false };
    let divides = |number: usize| inside.get(number).is_some_and(|inst| inst.divides());
    match (bound, ports) {
        (Class::Dependency, _) => {
            let window = Window::of(&model.core).entries;
            let settings = Settings { window, runs: RUNS, initial_values: Vec::new() };
            let found = Analyser::new(model.latencies.clone()).analyse(&code, &settings);
            let longest = found.recurrences.first();
            longest.is_some_and(|of| of.path.iter().any(|step| divides(step.reader)))
        }
        (Class::Ports, Some(ports)) => {
            let uops = ports.uops(&code.instructions, &code.effects);
            let found = spread(&uops, ports.names().len());
            let own = |port: usize| -> f64 {
                let rows = found.rows.iter().enumerate().filter(|(number, _)| divides(*number));
                rows.map(|(_, row)| row[port]).sum()
            };
            let mut busiest = found.total.iter().enumerate();
            busiest.any(|(port, all)| *all >= AS_BUSY * found.bound && own(port) > MOST * all)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::code::{Block, parse_hex};
    use std::sync::Arc;
    use tma::Core;

    fn found(hex: &str, bound: Class) -> bool {
        let core = Core::modelled(&crate::library(), "zen3").unwrap();
        let ports = Ports::of(&core).unwrap();
        let model = CoreModel::new(Arc::new(core), None).unwrap();
        let block = Block::decode(&parse_hex(hex).unwrap()).unwrap();
        let inside: Vec<&Inst> = block.instructions.iter().collect();
        is_division(&inside, bound, ports.as_ref(), &model)
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
        assert!(found(chain, Class::Dependency) && found(alone, Class::Ports));
        assert!(!found(beside, Class::Dependency), "the multiplications are on the chain");
        assert!(!found("48 0f af f7", Class::Ports) && !found(alone, Class::Undecided));
    }
}
