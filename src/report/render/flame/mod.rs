//! A flame graph as a picture that zooms and searches: SVG, alone or in a page of HTML. Style and script are in
//! it; nothing is loaded.
//!
//! | file | concern |
//! |---|---|
//! | `change` | what a frame gained or lost, in words |
//! | `colours` | the colour of a frame, and the legend |
//! | `page` | the graph as part of a larger page |
//! | `picture` | the SVG |
//! | `flame.js`, `flame.css` | its script and style |

mod change;
mod colours;
mod page;
mod picture;

pub(super) use colours::of_node;
pub(super) use page::{STYLE as FIGURE_STYLE, figure};
pub use picture::{html, svg};
