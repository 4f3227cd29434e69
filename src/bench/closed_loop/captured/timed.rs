//! Executions as code to run once or to time.

use super::Captured;
use crate::harness::forms;
use crate::harness::program::{Program, Shape};
use crate::runner::BLOCK_CODE;
use crate::timing::measure::{EIGHTHS, Form, lengths, whole};

impl Captured {
    pub fn shape(&self) -> Shape<'_> {
        Shape {
            block: &self.region.block,
            required_state: &self.required_state,
            copies: 1,
            lines: !self.lines.is_empty(),
            reseeded: &[],
            taken: &[],
            start: BLOCK_CODE,
            rip_area: self.rip_area,
        }
    }

    pub fn untimed(&self, trips: u64) -> Program {
        let rip = |target| self.rip(target);
        let start = self.bounded.as_ref().map(|bounded| bounded.registers(trips));
        let start = start.as_ref().map(|registers| (registers, trips));
        forms::region(&self.shape(), &self.region, &rip, true, false, start)
    }

    /// An execution against the same code not entered, or longer against shorter executions if they end earlier
    /// than in the program, so that start and end cancel; each `repeat` times.
    pub fn form(&self, placements: usize, repeat: u32) -> Form {
        let shape = self.shape();
        let rip = |target| self.rip(target);
        if let (Some(bounded), Some(eighth)) = (&self.bounded, self.eighth()) {
            let starts: [_; EIGHTHS] =
                std::array::from_fn(|n| (bounded.registers(bounded.length(n)), bounded.length(n)));
            let build = |shape: &Shape<'_>, n: usize| -> Program {
                let (registers, trips) = &starts[n];
                let start = Some((registers, *trips));
                forms::region(shape, &self.region, &rip, true, true, start)
            };
            return lengths(&shape, &build, placements, eighth as f64, repeat);
        }
        let build = |shape: &Shape<'_>, enter: bool| -> Program {
            let start = self.bounded.as_ref().map(|bounded| bounded.registers(self.trips));
            let start = start.as_ref().map(|registers| (registers, self.trips));
            forms::region(shape, &self.region, &rip, enter, true, start)
        };
        whole(&shape, &build, placements, self.trips as f64, repeat)
    }
}
