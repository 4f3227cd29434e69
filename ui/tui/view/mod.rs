//! From the state to the screen. Pure: reads the state, draws into the frame's buffer.
//!
//! | file | concern |
//! |---|---|
//! | `draw` | the whole screen |
//! | `layout` | where its parts are; `scroll`: how far they scroll |
//! | `breadcrumb`, `footer`, `output` | what is around every screen |
//! | `tree`, `tree_head`, `details`, `flag` | the tree, and the details of a node |
//! | `functions`, `columns`, `blocks`, `gutter` | functions; blocks and their loops |
//! | `block`, `block_report` | a measured block |
//! | `estimate`, `estimate_row` | an estimated tree; functions, loops and blocks with the parts of their time |
//! | `estimate_answer` | the answer above its screens |
//! | `estimate_source` | its source lines |
//! | `estimate_block` | what is known of an estimated loop or block |
//! | `comparison`, `comparison_answer` | two measurements compared, and the answer above |
//! | `calls`, `calls_answer` | callers and callees of a function, likewise |
//! | `head`, `headline` | the texts above rows; the sentence above tree, functions and blocks |
//! | `intervals` | the intervals over time |
//! | `info`, `names` | the lines above functions and blocks |
//! | `help` | the `?` screen |
//! | `export` | the screen as text |
//! | `put`, `paragraphs` | lines into the buffer, and with headings and labels |

mod block;
mod block_report;
mod blocks;
mod breadcrumb;
mod calls;
mod calls_answer;
mod columns;
mod comparison;
mod comparison_answer;
mod details;
mod draw;
mod estimate;
mod estimate_answer;
mod estimate_block;
mod estimate_row;
mod estimate_source;
mod export;
mod flag;
mod footer;
mod functions;
mod gutter;
mod head;
mod headline;
mod help;
mod info;
mod intervals;
mod layout;
mod names;
mod output;
mod paragraphs;
mod put;
mod scroll;
mod tree;
mod tree_head;

pub use block_report::lines as block_lines;
pub use draw::view;
pub use estimate_block::{SEVERAL_PATHS, lines as estimate_lines};
pub use export::text;
pub use layout::layout;
pub use scroll::clamp_scrolls;
