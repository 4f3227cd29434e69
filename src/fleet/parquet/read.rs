//! Files of a table → rows, a row group at a time. A file that is damaged, or of another schema, is an error.

use crate::tables::{Batch, Column, Data, Kind, SCHEMA, Table, VERSION, columns};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result as Read};
use parquet::file::reader::{FileReader as _, RowGroupReader, SerializedFileReader};
use std::fs::File;
use std::path::{Path, PathBuf};
use tma::{Error, Result};

/// Calls `each` with the rows of `table` in the folder of an export: file by file, by name.
///
/// # Errors
/// There is no such table; a file cannot be read; `each` fails.
pub fn read(folder: &Path, table: Table, each: &mut dyn FnMut(Batch) -> Result<()>) -> Result<()> {
    let top = folder.join(table.name());
    let mut files = Vec::new();
    for day in listed(&top)? {
        for host in listed(&day)? {
            files.extend(listed(&host)?.into_iter().filter(|file| is_part(file)));
        }
    }
    if files.is_empty() {
        return Err(Error::failed(format!("{} has no Parquet files", top.display()))
            .hint("`tdtool export --parquet FOLDER FILE` writes them"));
    }
    files.iter().try_for_each(|file| batches(file, table, each))
}

/// The rows of one file.
pub(super) fn batches(
    path: &Path,
    table: Table,
    each: &mut dyn FnMut(Batch) -> Result<()>,
) -> Result<()> {
    let damaged = |e: ParquetError| damaged(path, &e);
    let file = File::open(path).map_err(|e| tma::error::unreadable(path, &e))?;
    let reader = SerializedFileReader::new(file).map_err(damaged)?;
    check(path, table, &reader)?;
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index).map_err(damaged)?;
        each(batch(table, &*group).map_err(damaged)?)?;
    }
    Ok(())
}

/// The files and folders in a folder, by name.
fn listed(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable = |e| tma::error::unreadable(folder, &e);
    let all = std::fs::read_dir(folder).map_err(unreadable)?;
    let all = all.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>();
    let mut all = all.map_err(unreadable)?;
    all.sort();
    Ok(all)
}

/// Whether it is one that queries read: temporary files are not.
fn is_part(file: &Path) -> bool {
    file.extension().is_some_and(|of| of == "parquet")
}

/// Refuses a newer version, and other columns; the last ones may be missing if they may be empty.
fn check(path: &Path, table: Table, reader: &SerializedFileReader<File>) -> Result<()> {
    let meta = reader.metadata().file_metadata();
    let pairs = meta.key_value_metadata().into_iter().flatten();
    let version = pairs.clone().find(|of| of.key == SCHEMA).and_then(|of| of.value.as_deref());
    if version != Some(VERSION.to_string().as_str()) {
        let found = version.map_or("no schema of tdtool".to_owned(), |of| format!("{SCHEMA}/{of}"));
        return Err(Error::failed(format!("cannot read {}", path.display()))
            .because(format!("it has {found}, not {SCHEMA}/{VERSION}"))
            .hint("read it with the tdtool that wrote it, or update this one"));
    }
    let found = meta.schema_descr().columns().iter().map(|column| column.name());
    let known = columns(table);
    let are_ours = found.clone().zip(&known).all(|(name, column)| name == column.name);
    if !are_ours || known.iter().skip(found.len()).any(|column| column.required) {
        return Err(damaged(path, &format!("its columns are not those of {}", table.name())));
    }
    if found.len() > known.len() {
        return Err(Error::failed(format!("cannot read {}", path.display()))
            .because("it has columns that this version does not know")
            .hint("export with the tdtool that wrote it, or update this one"));
    }
    Ok(())
}

fn batch(table: Table, group: &dyn RowGroupReader) -> Read<Batch> {
    let rows = usize::try_from(group.metadata().num_rows())?;
    let mut all = Vec::new();
    for (index, column) in columns(table).into_iter().enumerate() {
        all.push(match column.kind {
            // Of an earlier version, which had no such column.
            kind if index >= group.num_columns() => Data::missing(kind, rows),
            Kind::Text => {
                let texts = values::<ByteArrayType>(group, index, column, rows)?.into_iter();
                let texts = texts.map(|of| of.map(|of| Ok(of.as_utf8()?.to_owned())).transpose());
                Data::Text(texts.collect::<Read<_>>()?)
            }
            Kind::Int | Kind::Time => Data::Int(values::<Int64Type>(group, index, column, rows)?),
            Kind::Float => Data::Float(values::<DoubleType>(group, index, column, rows)?),
        });
    }
    Ok(Batch::of(table, all, rows))
}

/// The values of a column, which are as many as the row group has rows.
fn values<T: DataType>(
    group: &dyn RowGroupReader,
    index: usize,
    column: Column,
    rows: usize,
) -> Read<Vec<Option<T::T>>> {
    let physical = group.metadata().column(index).column_type();
    if physical != T::get_physical_type() {
        return Err(ParquetError::General(format!("`{}` has the type {physical}", column.name)));
    }
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(index)?);
    let (mut levels, mut found) = (Vec::new(), Vec::new());
    let (mut read, mut last) = (0, 1);
    while read < rows && last > 0 {
        let wanted = (!column.required).then_some(&mut levels);
        (last, _, _) = reader.read_records(rows - read, wanted, None, &mut found)?;
        read += last;
    }
    let short = || ParquetError::General(format!("`{}` ends after {read} rows", column.name));
    if column.required {
        return if found.len() == rows {
            Ok(found.into_iter().map(Some).collect())
        } else {
            Err(short())
        };
    }
    let mut found = found.into_iter();
    let all: Vec<_> =
        levels.iter().map(|level| if *level > 0 { found.next() } else { None }).collect();
    if all.len() == rows { Ok(all) } else { Err(short()) }
}

fn damaged(path: &Path, cause: &dyn std::fmt::Display) -> Error {
    Error::failed(format!("{} is damaged", path.display()))
        .because(cause)
        .hint("remove it, and export its windows again")
}
