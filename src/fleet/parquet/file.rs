//! One file of a table, written under a name that no query reads, until it is whole.

use super::schema;
use crate::tables::{Batch, Data, Table};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::Result as Written;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use std::fs::File;
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// Rows of a row group, about: what is held in memory of a table.
const GROUP: usize = 64 << 10;

/// A file that is being written; removed unless it is finished and kept.
#[derive(Debug)]
pub(super) struct Temporary(pub PathBuf);

/// A file of a table.
pub(super) struct Writer {
    temporary: Temporary,
    file: SerializedFileWriter<File>,
    batch: Batch,
    rows: u64,
}

/// A finished one.
#[derive(Debug)]
pub(super) struct Finished {
    pub temporary: Temporary,
    pub rows: u64,
    pub bytes: u64,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After it was renamed there is none.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Writer {
    /// Begins a file of `table`.
    pub fn new(table: Table, path: PathBuf) -> Result<Self> {
        // No link that somebody has put there is followed.
        let file = File::create_new(&path).map_err(|e| unwritable(&path, &e))?;
        let temporary = Temporary(path);
        let failed = |e| unwritable(&temporary.0, &e);
        let file = SerializedFileWriter::new(
            file,
            schema::of(table).map_err(failed)?,
            schema::properties(),
        );
        let file = file.map_err(failed)?;
        Ok(Self { temporary, file, batch: Batch::new(table), rows: 0 })
    }

    /// Adds rows by `add`.
    pub fn add(&mut self, add: impl FnOnce(&mut Batch)) -> Result<()> {
        add(&mut self.batch);
        if self.batch.rows() >= GROUP { self.flush() } else { Ok(()) }
    }

    /// Adds rows that are a row group of their own.
    pub fn group(&mut self, batch: &Batch) -> Result<()> {
        self.flush()?;
        self.rows += batch.rows() as u64;
        write(&mut self.file, batch).map_err(|e| unwritable(&self.temporary.0, &e))
    }

    fn flush(&mut self) -> Result<()> {
        self.rows += self.batch.rows() as u64;
        write(&mut self.file, &self.batch).map_err(|e| unwritable(&self.temporary.0, &e))?;
        self.batch.clear();
        Ok(())
    }

    /// Writes the rest; what was written is on the disk.
    pub fn finish(mut self) -> Result<Finished> {
        self.flush()?;
        let Self { temporary, file, rows, .. } = self;
        let failed = |e: &dyn std::fmt::Display| unwritable(&temporary.0, e);
        let file = file.into_inner().map_err(|e| failed(&e))?;
        file.sync_all().map_err(|e| failed(&e))?;
        let bytes = file.metadata().map_err(|e| failed(&e))?.len();
        Ok(Finished { temporary, rows, bytes })
    }
}

/// Writes a row group.
fn write(file: &mut SerializedFileWriter<File>, batch: &Batch) -> Written<()> {
    if batch.rows() == 0 {
        return Ok(());
    }
    let mut group = file.next_row_group()?;
    for (column, data) in batch.columns() {
        let Some(mut writer) = group.next_column()? else { break };
        let into = &mut writer;
        match data {
            Data::Text(all) => {
                let all: Vec<_> = all.iter().map(|of| of.as_deref().map(ByteArray::from)).collect();
                write_column::<ByteArrayType>(into, all, column.required)?;
            }
            Data::Int(all) => write_column::<Int64Type>(into, all.clone(), column.required)?,
            Data::Float(all) => write_column::<DoubleType>(into, all.clone(), column.required)?,
        }
        writer.close()?;
    }
    group.close().map(drop)
}

fn write_column<T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    all: Vec<Option<T::T>>,
    required: bool,
) -> Written<()> {
    let levels: Vec<i16> = all.iter().map(|of| of.is_some().into()).collect();
    let values: Vec<T::T> = all.into_iter().flatten().collect();
    let levels = (!required).then_some(levels.as_slice());
    writer.typed::<T>().write_batch(&values, levels, None).map(drop)
}

/// The error of a file that cannot be written.
pub(super) fn unwritable(path: &Path, cause: &dyn std::fmt::Display) -> Error {
    Error::failed(format!("cannot write {}", path.display()))
        .because(cause)
        .hint("check the space on the disk and the folder's permissions")
}
