//! How far texts scroll.

use super::layout::layout;
use super::{details, help};
use crate::tui::state::State;

/// Scrolls texts back so that their last line is at the bottom.
pub fn clamp_scrolls(state: &mut State) {
    let layout = layout(state);
    if let Some(top) = state.help {
        let height = usize::from(state.size.1 - layout.footer.height);
        let lines = help::lines(state, usize::from(state.size.0)).len();
        state.help = Some(top.min(lines.saturating_sub(height)));
    }
    if state.tree.details_top > 0 {
        let lines = details::lines(state, usize::from(layout.details.width)).len();
        let most = lines.saturating_sub(usize::from(layout.details.height));
        state.tree.details_top = state.tree.details_top.min(most);
    }
}
