//! Functions that long work calls meanwhile.

use std::fmt;
use std::sync::Arc;

/// A function that is called with each `T` as it comes, from any thread.
#[derive(Clone)]
pub struct Callback<T>(Arc<dyn Fn(T) + Send + Sync>);

impl<T> Callback<T> {
    /// Calls `of`.
    pub fn new(of: impl Fn(T) + Send + Sync + 'static) -> Self {
        Self(Arc::new(of))
    }

    /// Calls it.
    pub(crate) fn call(&self, with: T) {
        (self.0)(with);
    }
}

impl<T> fmt::Debug for Callback<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}
