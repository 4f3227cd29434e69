//! A flame graph as a picture that zooms and searches: SVG, alone or in a page of HTML. Style and script are in
//! it; nothing is loaded.
//!
//! | file | concern |
//! |---|---|
//! | `colours` | the colour of a frame, and the legend |
//! | `picture` | the SVG |
//! | `flame.js`, `flame.css` | its script and style |

mod colours;
mod picture;

pub use picture::{html, svg};
