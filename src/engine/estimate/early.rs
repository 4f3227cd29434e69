//! Who is shown the document before it is complete.

use report::documents::estimate::Estimate;
use std::fmt;
use std::sync::Arc;

/// What is called with the document so far.
#[derive(Clone)]
pub struct SoFar(Arc<dyn Fn(Estimate) + Send + Sync>);

impl SoFar {
    /// Calls `show`.
    pub fn new(show: impl Fn(Estimate) + Send + Sync + 'static) -> Self {
        Self(Arc::new(show))
    }

    /// Shows a document.
    pub(super) fn show(&self, document: Estimate) {
        (self.0)(document);
    }
}

impl fmt::Debug for SoFar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SoFar")
    }
}
