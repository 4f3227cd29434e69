//! Everything the screens show and remember. Plain data: no terminal, no threads, no files.

mod block;
mod blocks;
mod functions;
mod list;
mod tree;

pub use block::{BlockScreen, Job};
pub use blocks::{BlockRow, Blocks, Texts};
pub use functions::{Functions, Order, WITH_LINES, Which};
pub use list::List;
pub use tree::{Explanation, Explanations, Progress, Tree, TreeRow, part_name};

use super::keymap::Keymap;
use super::theme::Theme;

/// A level of the drill-down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Screen {
    /// The top-down tree.
    Tree,
    /// Functions with samples.
    Functions,
    /// The blocks of one function.
    Blocks,
    /// One block, measured by itself.
    Block,
}

/// Something that comes later, or never.
#[derive(Debug, Clone, Default)]
pub enum Load<T> {
    /// It is on its way.
    #[default]
    Loading,
    /// Here it is.
    Ready(T),
    /// There is none, for this reason.
    Missing(String),
}

impl<T> Load<T> {
    /// What is there.
    pub fn ready(&self) -> Option<&T> {
        match self {
            Load::Ready(value) => Some(value),
            _ => None,
        }
    }
}

/// How to draw.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Look {
    pub theme: Theme,
    /// ASCII characters only.
    pub ascii: bool,
}

/// What a prompt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    Search,
    Filter,
    /// Samples of one thread.
    Thread,
    /// Where the screen is saved.
    Export,
}

/// An open prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub ask: Ask,
    pub text: String,
    /// What comes back if it is left: the row, and the text as it was.
    pub row: usize,
    pub before: String,
}

/// The whole program.
#[derive(Debug)]
pub struct State {
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    pub look: Look,
    pub keys: Keymap,
    /// The config file that was read.
    pub config: Option<String>,
    /// The screens from the first to the one that is shown; never empty.
    pub path: Vec<Screen>,
    pub tree: Tree,
    pub functions: Functions,
    pub blocks: Blocks,
    pub block: BlockScreen,
    pub prompt: Option<Prompt>,
    /// The first line of the `?` screen that is shown, while it is open.
    pub help: Option<usize>,
    /// Shown until the next key.
    pub message: Option<String>,
    /// What was searched for last.
    pub search: String,
    /// Numbers stand still although there are newer ones.
    pub frozen: bool,
}

impl State {
    /// Nothing is known yet; `first` is the screen to begin with.
    pub fn new(first: Screen, look: Look) -> Self {
        Self {
            size: (80, 24),
            look,
            keys: Keymap::default(),
            config: None,
            path: vec![first],
            tree: Tree::default(),
            functions: Functions::default(),
            blocks: Blocks::default(),
            block: BlockScreen::default(),
            prompt: None,
            help: None,
            message: None,
            search: String::new(),
            frozen: false,
        }
    }

    /// The screen that is shown.
    pub fn screen(&self) -> Screen {
        self.path.last().copied().unwrap_or(Screen::Tree)
    }

    /// The cursor of the screen that is shown.
    pub fn list(&self) -> &List {
        match self.screen() {
            Screen::Tree => &self.tree.list,
            Screen::Functions => &self.functions.list,
            Screen::Blocks => &self.blocks.list,
            Screen::Block => &self.block.list,
        }
    }

    /// See [`State::list`].
    pub fn list_mut(&mut self) -> &mut List {
        match self.screen() {
            Screen::Tree => &mut self.tree.list,
            Screen::Functions => &mut self.functions.list,
            Screen::Blocks => &mut self.blocks.list,
            Screen::Block => &mut self.block.list,
        }
    }

    /// The text of a row, for search.
    pub fn row_text(&self, row: usize) -> String {
        match self.screen() {
            Screen::Tree => self.tree.row_text(row),
            Screen::Functions => self.functions.row_text(row),
            Screen::Blocks => self.blocks.row_text(row),
            Screen::Block => self.block.row_text(row),
        }
    }

    /// The filter of the screen that is shown.
    pub fn filter(&self) -> &str {
        match self.screen() {
            Screen::Tree => &self.tree.filter,
            Screen::Functions => &self.functions.filter,
            Screen::Blocks => &self.blocks.filter,
            Screen::Block => "",
        }
    }

    /// Filters the screen that is shown.
    pub fn set_filter(&mut self, text: &str) {
        match self.screen() {
            Screen::Tree => {
                self.tree.filter = text.to_owned();
                self.tree.rebuild();
            }
            Screen::Functions => {
                self.functions.filter = text.to_owned();
                self.functions.rebuild();
            }
            Screen::Blocks => {
                self.blocks.filter = text.to_owned();
                self.blocks.rebuild();
            }
            Screen::Block => {}
        }
    }

    /// Whether something runs whose progress is shown.
    pub fn is_busy(&self) -> bool {
        self.screen() == Screen::Block && self.block.is_running()
    }
}

/// Whether `text` holds `wanted`; a `wanted` in small letters also finds capitals.
pub fn matches(text: &str, wanted: &str) -> bool {
    if wanted.chars().any(char::is_uppercase) {
        text.contains(wanted)
    } else {
        text.to_lowercase().contains(wanted)
    }
}
