//! The nodes of level 1, which the trees of all vendors have.

/// A node of level 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level1 {
    /// Slots that the front end left empty.
    FrontendBound,
    /// Slots of work on a wrong path, and of recovery from it.
    BadSpeculation,
    /// Slots that waited for the back end.
    BackendBound,
    /// Slots of work that was retired.
    Retiring,
}

impl Level1 {
    /// All of them, in the order of the paper.
    pub const ALL: [Self; 4] =
        [Self::FrontendBound, Self::BadSpeculation, Self::BackendBound, Self::Retiring];

    /// As the paper and Intel's tables spell it.
    pub fn id(self) -> &'static str {
        match self {
            Self::FrontendBound => "Frontend_Bound",
            Self::BadSpeculation => "Bad_Speculation",
            Self::BackendBound => "Backend_Bound",
            Self::Retiring => "Retiring",
        }
    }

    /// The one with this id: vendors differ in case only.
    pub fn of(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|node| node.id().eq_ignore_ascii_case(id))
    }

    /// The label shown to users.
    pub fn label(self) -> String {
        self.id().replace('_', " ")
    }
}
