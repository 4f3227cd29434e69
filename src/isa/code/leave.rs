//! What of a block stays in it: without the call, return or indirect jump at its end.

use super::decode::{Block, Inst};
use iced_x86::FlowControl;

impl Block {
    /// What can run by itself, and the instruction at its end that leaves the block and is left out.
    ///
    /// # Errors
    /// There is nothing else, in words.
    pub fn staying(&self) -> Result<(Self, Option<&Inst>), String> {
        let Some(last) = self.instructions.last() else { return Err("it is empty".to_owned()) };
        let leaves = matches!(
            last.decoded.flow_control(),
            FlowControl::Call
                | FlowControl::IndirectCall
                | FlowControl::Return
                | FlowControl::IndirectBranch
        );
        if !leaves {
            return Ok((self.clone(), None));
        }
        let rest = &self.bytes[..last.offset];
        let rest = Self::decode(rest).map_err(|_| format!("it is nothing but `{}`", last.text))?;
        Ok((rest, Some(last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_returns_are_left_out_of_what_is_measured() {
        let of = |hex: &str| Block::decode(&crate::code::parse_hex(hex).unwrap()).unwrap();
        for (hex, rest, without) in [
            ("4801d8 c3", "4801d8", Some("ret")),
            ("4801d8 ffd0", "4801d8", Some("call rax")),
            ("4801d8 75fb", "4801d875fb", None),
        ] {
            let block = of(hex);
            let (staying, left) = block.staying().unwrap();
            let left = left.map(|inst| inst.text.as_str());
            assert_eq!((staying.hex().as_str(), left), (rest, without));
        }
        assert!(of("c3").staying().unwrap_err().contains("nothing but"));
    }
}
