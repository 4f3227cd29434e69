//! AMD's tables, from the event codes and metric arithmetic that Linux carries for Zen
//! (`amdzen/amdzen1` … `amdzen5`, each a folder of JSON lists).
//!
//! Only codes and arithmetic are taken over. Zen 4 and later publish a two-level tree (`slots`);
//! Zen 1 to 3 have no slot events, their trees are estimates of our own (`estimates`). AMD
//! publishes no thresholds: those are chosen in these files and explained in
//! docs/method/topdown.md.

mod estimates;
mod expression;
mod generations;
mod slots;
mod vendor;

pub use generations::tables;
