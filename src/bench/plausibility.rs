//! Rules out implausible throughputs: the pipeline's width, and comparing a result with its bounds.

use crate::harness::skeleton::fuses;
use crate::measurement::bound_names::WIDTH;
use crate::measurement::{Assumed, Assumption, Bound, Found, Outcome, Throughput};
use crate::timing::form_timing::FormTiming;
use iced_x86::{Mnemonic, OpKind};
use isa::code::{Block, Inst};
use tma::Core;
use tma::text::several;

/// Start-up and drain cycles that do not cancel between the long and the short run.
const ENDS: f64 = 4.0;

/// Tolerated shortfall of a throughput below a measured bound, and below a computed one, where only the clock has
/// an error; shares.
const ERRS: f64 = 0.03;
const CLOCK_ERRS: f64 = 0.01;

/// The bound of the pipeline's width, without nops, which some processors fuse.
pub(super) fn width(block: &Block, core: &Core) -> Option<Bound> {
    let wide = core.width()?;
    let nops = block.instructions.iter().filter(|i| i.decoded.mnemonic() == Mnemonic::Nop).count();
    let pair = usize::from(fuses(block));
    let moves = if core.fuses_moves() { fused_moves(block) } else { 0 };
    let slots = (block.instructions.len() - nops - pair).saturating_sub(moves);
    if slots == 0 {
        return None;
    }
    let cycles = slots as f64 / f64::from(wide);
    let mut how = format!("computed: {slots} × one slot of {wide} per cycle");
    match core.uarch() {
        Some(table) if core.stated_width() == Some(wide) => how += &format!(" (table {table})"),
        _ => how += " (the self-test)",
    }
    how += "; instructions of several operations take more";
    if pair > 0 {
        how += "; the macro-fusible pair at the end counts as one";
    }
    if nops > 0 {
        how += &format!("; {} not counted", several(nops, "nop"));
    }
    if moves > 0 {
        how += &format!("; {moves} moves count as one with the instruction after them");
    }
    let found = Found::Computed;
    Some(Bound { name: WIDTH, cycles, low: cycles, high: cycles, how, found, ..Bound::default() })
}

/// Moves to registers, also from memory, each directly before an instruction that reads and writes the register moved
/// to; also the last one before the next copy's first. They may share a slot, so that the bound is lower: on a Redwood
/// Cove a load does with the `add` or `xor` after it.
fn fused_moves(block: &Block) -> usize {
    let all = &block.instructions;
    let may_fuse = |(i, inst): (usize, &Inst)| {
        let (to, next) = (inst.decoded.op0_register(), &all[(i + 1) % all.len()].decoded);
        inst.decoded.mnemonic() == Mnemonic::Mov
            && to.is_gpr()
            && (inst.decoded.op1_register().is_gpr() || inst.decoded.op1_kind() == OpKind::Memory)
            && next.mnemonic() != Mnemonic::Mov
            && next.op0_register().full_register() == to.full_register()
    };
    all.iter().enumerate().filter(|pair| may_fuse(*pair)).count()
}

fn too_few(cycles: f64, bound: &Bound) -> String {
    format!("{cycles:.3} cycles are fewer than the dispatch width allows, {:.3}", bound.cycles)
}

/// Why the time of a form with `copies` from end to end is implausible, if it exceeds the pipeline's
/// width as measured: a table that states less is wrong where a result repeats.
pub(super) fn implausible(
    block: &Block,
    core: &Core,
    timed: &FormTiming,
    copies: usize,
) -> Option<String> {
    let bound = width(block, core).filter(|_| core.is_width_confirmed())?;
    let (cycles, (_, high)) = (timed.cycles()?, timed.range()?);
    is_above(&bound, high, copies).then(|| format!("unstable: {}", too_few(cycles, &bound)))
}

/// Whether a throughput is below a bound by more than the errors, including start-up and drain cycles.
pub(super) fn is_above(bound: &Bound, high: f64, copies: usize) -> bool {
    let errs = if bound.name == WIDTH { CLOCK_ERRS } else { ERRS };
    bound.low > high * (1.0 + errs) + ENDS / (copies - copies / 2).max(1) as f64
}

/// Marks the `bounds` that a throughput is below, and says so; and why it is impossible, if it is.
pub(super) fn check(
    bounds: &mut [Bound],
    throughput: &Throughput,
    copies: usize,
    core: &Core,
) -> (Assumption, Option<String>) {
    let checked = plausible(bounds, throughput, copies);
    // A table alone may be wrong, and a width that was only measured is a lower limit.
    let impossible = ruled_out(bounds, throughput, copies).filter(|_| core.is_width_confirmed());
    let why = impossible.map(|bound| too_few(throughput.cycles, bound));
    for bound in bounds {
        bound.refuted = is_above(bound, throughput.high, copies);
    }
    (checked, why)
}

/// The computed bound that a throughput violates.
fn ruled_out<'a>(bounds: &'a [Bound], throughput: &Throughput, copies: usize) -> Option<&'a Bound> {
    bounds.iter().find(|b| b.name == WIDTH && is_above(b, throughput.high, copies))
}

/// Checks the throughput against the bounds; if it is below one, one of the two is wrong.
fn plausible(bounds: &[Bound], throughput: &Throughput, copies: usize) -> Assumption {
    let broken: Vec<_> = bounds
        .iter()
        .filter(|bound| is_above(bound, throughput.high, copies))
        .map(|b| b.needs_more(throughput.cycles))
        .collect();
    let (outcome, how) = match (broken.is_empty(), bounds.is_empty()) {
        (_, true) => (Outcome::Unchecked, "no bound is known".to_owned()),
        (true, _) => {
            let names: Vec<_> = bounds.iter().map(|bound| bound.name).collect();
            (Outcome::Held, format!("none exceeds the measured cycles: {}", names.join(", ")))
        }
        _ => (Outcome::Violated, broken.join("; ")),
    };
    Assumption { name: Assumed::Bounds, outcome, how }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::bound_names::FRONT_END;

    fn block(hex: &str) -> Block {
        Block::decode(&isa::code::parse_hex(hex).unwrap()).unwrap()
    }

    /// Skylake issues four slots a cycle, Zen 4 six.
    fn core(name: &str) -> Core {
        Core::modelled(&events::library(), name).unwrap()
    }

    #[test]
    fn the_width_counts_a_fused_pair_once_and_no_nops() {
        let bound = |hex| width(&block(hex), &core("skl")).unwrap().cycles;
        assert_eq!(bound("4801d8 4801d9 4801da 4801dd"), 1.0);
        assert_eq!(bound("4801d8 4801d9 4839cf 72f8"), 0.75);
        assert_eq!(bound("90 90 4801d8"), 0.25);
    }

    /// `mov ebx,r13d; and ebx,6` took 0.165 cycles natively on a Zen 5, of 8 slots; a move of another
    /// register takes a slot.
    #[test]
    fn a_move_counts_with_the_instruction_that_changes_its_target_where_that_was_measured() {
        let zen_5 = core("zen5");
        let cycles = |hex| width(&block(hex), &zen_5).unwrap().cycles;
        assert_eq!(cycles("4489eb 83e306"), 0.25);
        let answers = tma::self_test::Answers { moves_fused: Some(true), ..Default::default() };
        zen_5.self_test.answers_or(|| answers);
        assert_eq!((cycles("4489eb 83e306"), cycles("83e306 4489eb")), (0.125, 0.125));
        assert_eq!(cycles("4489eb 83e006"), 0.25);
    }

    /// On a Redwood Cove a load shares a slot with the `add` after it, not with an instruction on another register.
    #[test]
    fn a_load_may_share_a_slot_where_moves_do() {
        let core = core("gnr");
        let answers = tma::self_test::Answers { moves_fused: Some(true), ..Default::default() };
        core.self_test.answers_or(|| answers);
        let cycles = |hex| width(&block(hex), &core).unwrap().cycles;
        // mov rax,[rdi]; add rax,rbx; then with add rcx,rbx
        assert_eq!(cycles("488b07 4801d8"), 1.0 / 6.0);
        assert_eq!(cycles("488b07 4801d9"), 2.0 / 6.0);
    }

    /// A Rocket Lake's table says 5 a cycle of a core that does 6; what only the table states rules nothing out.
    #[test]
    fn a_measured_width_replaces_a_narrower_one_of_the_table() {
        let of = |width| {
            let core = core("rkl");
            let answers = tma::self_test::Answers { width, ..Default::default() };
            core.self_test.answers_or(|| answers);
            (core.width(), core.is_width_confirmed())
        };
        assert_eq!((of(Some(5.97)), of(Some(5.1))), ((Some(6), true), (Some(5), true)));
        assert_eq!((of(Some(3.9)), of(None)), ((Some(5), true), (Some(5), false)));
    }

    fn throughput(cycles: f64) -> Throughput {
        Throughput { cycles, low: cycles, high: cycles, modes: Vec::new(), clock: "tsc" }
    }

    #[test]
    fn a_throughput_below_a_bound_is_a_sign_of_trouble() {
        let bound = |cycles| {
            let how = String::new();
            vec![Bound {
                name: "front-end",
                cycles,
                low: cycles,
                high: cycles,
                how,

                ..Bound::default()
            }]
        };
        let judged = |bound_at, cycles| plausible(&bound(bound_at), &throughput(cycles), 192);
        assert_eq!(judged(1.0, 1.01).outcome, Outcome::Held);
        assert_eq!(judged(1.02, 1.0).outcome, Outcome::Held);
        let broken = judged(1.5, 1.0);
        assert_eq!(broken.outcome, Outcome::Violated);
        assert!(broken.how.contains("front-end needs 1.500"), "{}", broken.how);
    }

    /// 4 slots of 6 a cycle take 0.667 cycles; 5 instructions at 0.646 would be 7.74 a cycle.
    #[test]
    fn no_more_is_issued_than_the_width_allows() {
        let bounds: Vec<Bound> =
            width(&block("4801d8 4801d9 4801da 4839cf 72f8"), &core("zen4")).into_iter().collect();
        let broken = |cycles| ruled_out(&bounds, &throughput(cycles), 30 * 64).is_some();
        assert!(broken(0.646) && broken(0.655));
        assert!(!broken(0.662) && !broken(0.667));
    }

    #[test]
    fn only_arithmetic_rules_a_number_out() {
        let bound = |name, cycles| {
            let how = String::new();
            Bound { name, cycles, low: cycles, high: cycles, how, ..Bound::default() }
        };
        // The skeleton may have been contended; the width is computed.
        let both = [bound(FRONT_END, 4.9), bound(WIDTH, 4.5)];
        let found = ruled_out(&both, &throughput(3.7), 33).map(|b| b.name);
        assert_eq!(found, Some(WIDTH));
        assert!(ruled_out(&both, &throughput(4.6), 33).is_none());
        assert!(ruled_out(&both[..1], &throughput(3.7), 33).is_none());
    }
}
