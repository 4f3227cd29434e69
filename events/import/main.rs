//! Writes `events/intel` and `events/amd` from vendor JSON. Run by hand when vendors publish.
fn main() {}
