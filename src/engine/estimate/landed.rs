//! Mispredicted indirect calls of a run: where what they cost is sampled, and the evidence of a piece without the others.

use super::evidence::{Branches, Context};
use super::landing::{Calls, Landing};
use super::pieces::{Function, PieceOf};
use estimate::{Evidence, Interval, Mispredicted, Reason};
use iced_x86::FlowControl;
use std::collections::HashMap;

/// The reason of a share of mispredicted calls.
const LANDED: &str = "indirect calls to it are mispredicted, and the core recovers partly here, partly where it is called";

/// The least share of a piece's time that mispredicted calls are attributed.
const LEAST: f64 = 0.01;

/// Sums the indirect calls of these functions.
pub(super) fn landing(context: &Context, functions: &[Function]) -> Landing {
    let mut found = Landing::default();
    for at in functions.iter().flat_map(Function::pieces) {
        let own = context.indirect_calls(at);
        found.moved += own.cost.value - kept(&own, context, at);
        found.all.cost = found.all.cost.plus_alike(own.cost);
        found.all.unknown += own.unknown;
        found.all.number += own.number;
        found.all.executed += own.executed;
    }
    let direct = direct(functions);
    for function in functions {
        let Some(start) = function.start() else { continue };
        let directly = direct.get(&(function.module.as_str(), start)).copied().unwrap_or(0.0);
        let entered = function.entries.first().and_then(|count| count.as_ref().ok());
        let called = entered.map_or(f64::INFINITY, |count| *count as f64 - directly);
        if called > 0.0 {
            found.called.insert((function.module.clone(), start), called);
        }
    }
    found
}

/// How often each address is called, or jumped to, by its address.
fn direct(functions: &[Function]) -> HashMap<(&str, u64), f64> {
    let mut all: HashMap<(&str, u64), f64> = HashMap::new();
    for function in functions {
        for block in 0..function.flow.blocks.len() {
            let Some((_, last)) = function.instructions(block).last() else { continue };
            let kind = last.decoded.flow_control();
            if matches!(kind, FlowControl::Call | FlowControl::UnconditionalBranch) {
                let to = (function.module.as_str(), last.decoded.near_branch_target());
                *all.entry(to).or_default() += function.executed(block);
            }
        }
    }
    all
}

/// How much of what a piece's calls cost there is room for beside what retires in it.
fn kept(own: &Calls, context: &Context, at: PieceOf) -> f64 {
    let retired = context.retiring(at).map_or(0.0, |one| one.value);
    let sampled =
        context.shared.cycles * at.piece.samples as f64 / context.shared.samples.max(1) as f64;
    own.cost.value.min((sampled - retired).max(0.0))
}

/// The evidence of a piece alone: what its calls cost as far as it is sampled there, and what calls of it cost here.
/// `None` where there is neither. Either may have all of it.
pub(super) fn split(context: &Context, at: PieceOf, whole: &Evidence) -> Option<Evidence> {
    let PieceOf { function, piece } = at;
    let own = context.indirect_calls(at);
    let start = function.start()?;
    let has_start = piece.blocks.iter().any(|block| function.range(*block).start == start);
    let called = context.landing.called.get(&(function.module.clone(), start));
    let called = called.filter(|_| has_start).copied().unwrap_or(0.0);
    let landed = context.landing.landed(called);
    if own.cost.high.max(own.unknown).max(landed.high) <= LEAST * whole.cycles.value {
        return None;
    }
    let others = context.mispredicted(at, Branches::Others).cycles;
    let kept = Interval::new(kept(&own, context, at), 0.0, own.cost.high);
    let here = Interval::new(landed.value, 0.0, landed.value);
    let cycles = others.plus_alike(kept).plus_alike(here);
    let mut unknown = whole.mispredicted.unknown.clone();
    if landed.above() > 0.0 {
        unknown.get_or_insert_with(|| (0.0, Reason::given(LANDED))).0 += landed.above();
    }
    Some(Evidence { mispredicted: Mispredicted { cycles, unknown }, ..whole.clone() })
}
