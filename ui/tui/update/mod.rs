//! Changes of the state: nothing but `update` makes them. Pure: no clock, no files, no terminal; what has to be done
//! outside comes back as effects.
//!
//! | file | concern |
//! |---|---|
//! | `dispatch` | an action → the state, and effects |
//! | `results` | what arrives from the background |
//! | `estimate` | the estimate: asked for, shown, and its screens opened |
//! | `comparison`, `calls` | the screens of a comparison; callers and callees |
//! | `intervals` | the intervals: zoom, and the functions of a phase |
//! | `drill` | one level down or up; `measure`: the block's measurement |
//! | `moves`, `toggles` | the cursor and folds; what is shown and in which order |
//! | `prompt`, `samples`, `save` | search and filter; which samples; copy and save |

mod calls;
mod comparison;
mod dispatch;
mod drill;
mod estimate;
mod intervals;
mod measure;
mod moves;
mod prompt;
mod results;
mod samples;
mod save;
mod toggles;

pub use dispatch::update;
pub use measure::show as show_block;
