//! A register set so that a captured loop leaves after fewer iterations than in the program.

use crate::Snapshot;
use crate::harness::entry_counter::Counter;
use crate::timing::measure::EIGHTHS;

/// Iterations to run where enough memory is known: enough to amortise an execution's start-up.
const ENOUGH: u64 = 1024;

/// A way to leave the loop earlier than in the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bounded {
    /// The register to set, by encoding number; `None` if a counter in memory ends the loop.
    pub register: Option<u8>,
    /// The counter of its iterations, where no register of the program ends it.
    pub counter: Option<Counter>,
    /// The register's or counter's value for no iteration, and its change with each.
    pub value: (u64, i64),
    /// Registers at the start in the program.
    pub start: [u64; 16],
    /// Registers that change by a fixed amount, and this amount.
    pub steps: Vec<(u8, i64)>,
    /// Iterations until it leaves.
    pub trips: u64,
    /// Iterations after which the program was observed, and all registers then, but the one that was set.
    pub like: Option<(u64, [u64; 16])>,
}

impl Bounded {
    /// The loop left by `counter` after the iterations that were followed; `None` if it was not.
    pub fn counted(snapshot: &Snapshot, counter: Counter) -> Option<Self> {
        let (trips, after) = snapshot.followed_to.filter(|(trips, _)| *trips > 0)?;
        let register = match counter {
            Counter::Register(register) => Some(register),
            Counter::Memory => None,
        };
        let (value, steps, like) = ((0, 1), Vec::new(), Some((trips, after)));
        let start = snapshot.registers;
        Some(Self { register, counter: Some(counter), value, start, steps, trips, like })
    }

    /// Registers with which it leaves after `trips`.
    pub fn registers(&self, trips: u64) -> [u64; 16] {
        let mut registers = self.start;
        if let Some(register) = self.register {
            registers[usize::from(register)] = moved(self.value.0, self.value.1, trips);
        }
        registers
    }

    /// Registers that are known then.
    pub fn ends(&self, trips: u64) -> impl Iterator<Item = (u8, u64)> {
        let registers = self.registers(trips);
        self.steps
            .iter()
            .map(move |(r, step)| (*r, moved(registers[usize::from(*r)], *step, trips)))
    }

    /// Trips of a run of length number `n`, from the longest.
    pub fn length(&self, n: usize) -> u64 {
        self.trips - n as u64 * self.eighth()
    }

    /// Extended to [`ENOUGH`] iterations, if the program has more than `self`.
    pub fn longer(&self, snapshot: &Snapshot) -> Option<Self> {
        let trips = snapshot.at_least.min(ENOUGH);
        (trips > self.trips).then(|| Self { trips, ..self.clone() })
    }

    /// Difference in trips between lengths; 0 if there are too few trips for several lengths.
    pub fn eighth(&self) -> u64 {
        let enough = if self.counter.is_some() { 8 } else { 4 * EIGHTHS as u64 };
        if self.trips < enough { 0 } else { self.trips / 8 }
    }
}

fn moved(value: u64, step: i64, trips: u64) -> u64 {
    value.wrapping_add(step.wrapping_mul(trips as i64) as u64)
}
