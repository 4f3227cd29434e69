//! Omitting the call, return or indirect jump that ends a block, so that the rest can be run.

use super::decode::Block;
use super::inst::Inst;
use iced_x86::FlowControl;

impl Block {
    /// The block without a final instruction that leaves it, and that instruction if there is one.
    ///
    /// # Errors
    /// The block has no other instruction; the text says so.
    pub fn without_exit(&self) -> Result<(Self, Option<&Inst>), String> {
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
        let rest =
            Self::decode(rest).map_err(|_| format!("its only instruction is `{}`", last.text))?;
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
        assert!(of("c3").without_exit().unwrap_err().contains("only instruction"));
    }
}
