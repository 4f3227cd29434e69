//! A program that was built without the feature `parquet`: errors that name the remedy.

use super::Exported;
use crate::tables::{Batch, Table};
use crate::window::Window;
use std::convert::Infallible;
use std::path::Path;
use tma::{Error, Result};

/// An export; there is none.
#[derive(Debug)]
pub struct Export(Infallible);

impl Export {
    /// # Errors
    /// Always: the feature is absent.
    pub fn new(_folder: &Path) -> Result<Self> {
        Err(absent("written"))
    }

    /// Never called, as there is no export.
    ///
    /// # Errors
    /// None.
    pub fn add(&mut self, _window: &Window) -> Result<()> {
        match self.0 {}
    }

    /// Never called, as there is no export.
    ///
    /// # Errors
    /// None.
    pub fn finish(self) -> Result<Exported> {
        match self.0 {}
    }
}

/// # Errors
/// Always: the feature is absent.
pub fn read(
    _folder: &Path,
    _table: Table,
    _each: &mut dyn FnMut(Batch) -> Result<()>,
) -> Result<()> {
    Err(absent("read"))
}

fn absent(what: &str) -> Error {
    Error::not_possible(format!("Parquet files cannot be {what}"))
        .because("this tdtool was built without the feature `parquet`")
        .hint("cargo build --release --features parquet")
}
