//! Omitting the call, return or indirect jump that ends a block, so that the rest can be run.

use super::decode::Block;
use super::inst::Inst;
use iced_x86::FlowControl;
use std::fmt;

/// Why nothing is left of a block without the instruction that leaves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NothingLeft {
    /// The block is empty.
    Empty,
    /// It has only this instruction.
    Only(String),
}

impl fmt::Display for NothingLeft {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("it is empty"),
            Self::Only(text) => write!(f, "its only instruction is `{text}`"),
        }
    }
}

impl Block {
    /// The block without a final instruction that leaves it, and that instruction if there is one.
    ///
    /// # Errors
    /// The block has no other instruction.
    pub fn without_exit(&self) -> Result<(Self, Option<&Inst>), NothingLeft> {
        let last = self.instructions.last().ok_or(NothingLeft::Empty)?;
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
        let rest = Self::decode(rest).map_err(|_| NothingLeft::Only(last.text.clone()))?;
        Ok((rest, Some(last)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn final_calls_and_returns_are_omitted() {
        let of = |hex: &str| Block::decode(&crate::code::parse_hex(hex).unwrap()).unwrap();
        for (hex, rest, without) in [
            ("4801d8 c3", "4801d8", Some("ret")),
            ("4801d8 ffd0", "4801d8", Some("call rax")),
            ("4801d8 75fb", "4801d875fb", None),
        ] {
            let block = of(hex);
            let (kept, omitted) = block.without_exit().unwrap();
            let omitted = omitted.map(|inst| inst.text.as_str());
            assert_eq!((kept.hex().as_str(), omitted), (rest, without));
        }
        assert_eq!(of("c3").without_exit().unwrap_err(), NothingLeft::Only("ret".to_owned()));
    }
}
