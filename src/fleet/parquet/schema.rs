//! The columns of a table as the format has them, and how they are written.

use crate::tables::{Column, Kind, SCHEMA, Table, VERSION, columns};
use parquet::basic::{Compression, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::errors::Result;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::Type;
use std::sync::Arc;

/// The schema of a table.
pub(super) fn of(table: Table) -> Result<Arc<Type>> {
    let fields = columns(table).into_iter().map(field).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(Type::group_type_builder(table.name()).with_fields(fields).build()?))
}

fn field(column: Column) -> Result<Arc<Type>> {
    let (physical, logical) = match column.kind {
        Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Kind::Int => (Physical::INT64, None),
        Kind::Time => (Physical::INT64, Some(LogicalType::timestamp(true, TimeUnit::MILLIS))),
        Kind::Float => (Physical::DOUBLE, None),
    };
    let repetition = if column.required { Repetition::REQUIRED } else { Repetition::OPTIONAL };
    let built = Type::primitive_type_builder(column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(built))
}

/// How a file is written: dictionaries, statistics of each column chunk, compressed.
pub(super) fn properties() -> Arc<WriterProperties> {
    let version = KeyValue::new(SCHEMA.to_owned(), VERSION.to_string());
    let built = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_dictionary_enabled(true)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_created_by(concat!("tdtool ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![version]));
    Arc::new(built.build())
}
