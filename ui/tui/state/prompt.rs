//! The prompt at the bottom of the screen.

/// Purpose of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    Search,
    Filter,
    /// The thread whose samples are shown.
    Thread,
    /// The file that the screen is saved in.
    Export,
    /// The file that the evidence of the estimate is saved in.
    Evidence,
}

/// An open prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub ask: Ask,
    pub text: String,
    /// The cursor and the text before it was opened, restored when it is aborted.
    pub row: usize,
    pub before: String,
}
