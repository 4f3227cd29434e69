//! Data that arrives later, or never.

/// Data, on its way until it arrives or turns out to be missing.
#[derive(Debug, Clone, Default)]
pub enum Load<T> {
    /// Not here yet.
    #[default]
    Loading,
    /// Here.
    Ready(T),
    /// None, for this reason.
    Missing(String),
}

impl<T> Load<T> {
    /// The data, once it is here.
    pub fn ready(&self) -> Option<&T> {
        match self {
            Load::Ready(value) => Some(value),
            _ => None,
        }
    }
}
