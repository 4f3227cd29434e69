//! Ways through loops, made by hand.

use super::*;

struct NoCalls;

impl Calls for NoCalls {
    fn returns_to(&mut self, _: ModuleAddress) -> Option<u64> {
        None
    }
}

fn step(from: u64, to: u64, cycles: u16) -> Step {
    let at = |address| Some(ModuleAddress { module: 0, address });
    let cycles = Some(cycles);
    Step { edge: 0, from: at(from), to: at(to), mispredicted: None, cycles }
}

/// Head at 4; the branch back from 7 goes to 2.
fn shape() -> LoopShape {
    let body = std::iter::once(2..9).collect();
    LoopShape { module: 0, head: 4, back: 7, target: 2, body }
}

/// By hand: jmp 4; 2: body; 4: head, 7: jl 2; 9: ret. Entered at the jump, the head runs four times.
#[test]
fn a_loop_with_its_test_at_the_head_has_trips_and_iterations() {
    let shape = shape();
    let mut sum = LoopSum::default();
    let state = State::Unknown;
    let mut walk = Walk { shape: &shape, sum: &mut sum, state, at: None };
    for one in [step(0, 4, 50), step(7, 2, 3), step(7, 2, 5), step(7, 2, 9), step(9, 100, 1)] {
        walk.step(&one, &mut NoCalls);
    }
    assert_eq!(sum.trips.counts().collect::<Vec<_>>(), [(4, 1)]);
    assert_eq!(sum.iterations.counts().collect::<Vec<_>>(), [(5, 1), (9, 1)]);
    assert_eq!((sum.entered, sum.left), (1, 1));
}

/// As above, but another branch back to the head, 6 → 4, comes between two of this one.
#[test]
fn a_time_over_several_iterations_is_none_of_one() {
    let shape = shape();
    let mut sum = LoopSum::default();
    let mut walk = Walk { shape: &shape, sum: &mut sum, state: State::Unknown, at: None };
    for one in [step(7, 2, 3), step(6, 4, 4), step(7, 2, 5), step(7, 2, 9)] {
        walk.step(&one, &mut NoCalls);
    }
    assert_eq!(sum.iterations.counts().collect::<Vec<_>>(), [(9, 1)]);
}
