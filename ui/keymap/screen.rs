//! The screens of the drill-down.

/// A level of the drill-down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Screen {
    /// The top-down tree.
    Tree,
    /// Functions with samples.
    Functions,
    /// The blocks of one function.
    Blocks,
    /// One block, measured in isolation.
    Block,
}

impl Screen {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Screen::Tree => "tree",
            Screen::Functions => "functions",
            Screen::Blocks => "blocks",
            Screen::Block => "block",
        }
    }
}
