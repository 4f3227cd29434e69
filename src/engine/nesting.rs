//! Recorded entries of functions → calls and returns: what was called with a stack pointer that is not above
//! the one of a later entry has returned before.

use branches::predictor::{Branch, Kind};
use iced_x86::Mnemonic;
use probe::facts::Function;
use probe::plan::{Request, What};

/// The address of all calls for the model, which has no row for them.
const CALLS: u64 = 0;

/// The calls of one thread that have not returned, as far as known.
#[derive(Debug, Default)]
pub struct Nesting {
    frames: Vec<Frame>,
}

#[derive(Debug, Clone, Copy)]
struct Frame {
    stack: u64,
    back: u64,
    address: u64,
}

impl Nesting {
    /// Adds the returns before an entry of the function that the model has at `address`, and its call.
    pub fn enter(&mut self, address: u64, value: u64, branches: &mut Vec<Branch>) {
        let (stack, back) = ((value & !0xffff).swap_bytes(), value & 0xffff);
        while let Some(frame) = self.frames.pop_if(|frame| frame.stack <= stack) {
            let kind = Kind::Return { target: frame.back };
            branches.push(Branch { address: frame.address, kind });
        }
        self.frames.push(Frame { stack, back, address });
        branches.push(Branch { address: CALLS, kind: Kind::Call { back } });
    }
}

/// The request to record entries of a function.
pub fn entered(function: &Function) -> Option<Request> {
    let first = function.blocks.first().filter(|block| block.start == function.range.start)?;
    let mut all = first.instructions.iter();
    let at = all.find(|i| i.mnemonic() != Mnemonic::Endbr64)?.ip();
    Some(Request { at, what: What::Entered })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: f calls g twice at depth 1, then f is called anew.
    #[test]
    fn entries_tell_what_has_returned() {
        let (mut nesting, mut all) = (Nesting::default(), Vec::new());
        let value = |stack: u64, back: u64| stack.swap_bytes() | back;
        for (address, stack, back) in [
            (1, 0x7ff0_0000_1000, 0x10),
            (2, 0x7ff0_0000_0f00, 0x20),
            (2, 0x7ff0_0000_0f00, 0x24),
            (1, 0x7ff0_0000_1000, 0x14),
        ] {
            nesting.enter(address, value(stack, back), &mut all);
        }
        let call = |back| Branch { address: CALLS, kind: Kind::Call { back } };
        let back = |address, target| Branch { address, kind: Kind::Return { target } };
        let expected = [
            call(0x10),
            call(0x20),
            back(2, 0x20),
            call(0x24),
            back(2, 0x24),
            back(1, 0x10),
            call(0x14),
        ];
        assert_eq!(all, expected);
    }
}
