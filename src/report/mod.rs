//! One serde document; text, JSON and CSV renderers. Renderers compute nothing.
