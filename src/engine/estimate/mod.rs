//! Estimated top-down of a command, without a PMU: further runs and isolated measurements → evidence of each hot
//! loop and block → parts of its time (the model is the crate `estimate`).
//!
//! | file | concern |
//! |---|---|
//! | `ask` | the question |
//! | `run` | the runs, in order, and the document from all of them |
//! | `known` | the inputs of the document |
//! | `recording` | the runs after the first, in order, and the document from them |
//! | `shared` | facts that all pieces share |
//! | `further` | further runs of the command |
//! | `progress` | steps as they begin |
//! | `so_far` | the document before it is complete |
//! | `machine` | width and clock of this core |
//! | `interrupt` | ends runs after a signal |
//! | `schedule` | which pieces are measured in isolation |
//! | `functions` | the hot functions of the samples |
//! | `reasons` | reasons for unknown evidence of a piece |
//! | `pieces` | a function's code with its samples and entries → loops, blocks and the rest |
//! | `counted` | counts by module and address |
//! | `isolated` | loops and blocks measured in isolation |
//! | `own_values` | pieces measured with the program's own values |
//! | `paths` | the paths through a loop |
//! | `needs` | whether branches or loads can matter, before they are recorded |
//! | `load_places` | the code of which loads are recorded |
//! | `evidence` | everything known of a piece |
//! | `divided` | evidence of pieces → parts: loops, and other blocks together |
//! | `landing`, `landed` | mispredicted indirect calls, whose cost is sampled in the callee, too |
//! | `latency` | costs of its loads and stores |
//! | `waits` | costs of waiting for results |
//! | `footprint` | the size of the hot code, and costs of fetching it |
//! | `rows` | rows of the document |
//! | `regions` | parts of the time in marked regions |
//! | `evaluate` | all measurements → the document, live or replayed |
//! | `kept`, `redacted` | the evidence as a document; without names |
//! | `replay`, `sound` | a document from that; whether its parts belong together |
//! | `lines` | source lines of functions |
//! | `listing` | their instructions, with counts and loads of each |
//! | `causes` | parts → instructions |
//! | `grounds` | why a piece takes its time: its bound in isolation, its loads |
//! | `words` | the bottleneck in a sentence |
//! | `hints` | the next step |

mod ask;
mod causes;
mod counted;
mod divided;
mod evaluate;
mod evidence;
mod footprint;
mod functions;
mod further;
mod grounds;
mod hints;
mod interrupt;
mod isolated;
mod kept;
mod known;
mod landed;
mod landing;
mod latency;
mod lines;
mod listing;
mod load_places;
mod machine;
mod needs;
mod own_values;
mod paths;
mod pieces;
mod progress;
mod reasons;
mod recording;
mod redacted;
mod regions;
mod replay;
mod rows;
mod run;
mod schedule;
mod shared;
mod so_far;
mod sound;
mod waits;
mod words;

pub use crate::callback::Callback;
pub use crate::steps::Step;
pub use ask::EstimateAsk;
pub use redacted::redacted;
pub use replay::replay;
pub use run::estimate;
