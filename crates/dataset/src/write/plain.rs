//! Dictionaries undone, for files that cannot hold them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, StructArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::take::take;

/// The schema with the values in place of dictionaries, at the top and inside lists and structs.
pub(super) fn schema(schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

/// A batch in the form of such a schema.
pub(super) fn batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().map(array).collect::<Result<_, _>>()?;
    RecordBatch::try_new(schema.clone(), columns)
}

fn field(field: &FieldRef) -> FieldRef {
    match data_type(field.data_type()) {
        Some(data_type) => Arc::new(Field::clone(field).with_data_type(data_type)),
        None => field.clone(),
    }
}

/// None when there is nothing to undo.
fn data_type(from: &DataType) -> Option<DataType> {
    match from {
        DataType::Dictionary(_, values) => Some(DataType::clone(values)),
        DataType::List(item) => data_type(item.data_type()).map(|_| DataType::List(field(item))),
        DataType::Struct(fields) => {
            let any = fields.iter().any(|field| data_type(field.data_type()).is_some());
            any.then(|| DataType::Struct(fields.iter().map(field).collect()))
        }
        _ => None,
    }
}

fn array(from: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if data_type(from.data_type()).is_none() {
        return Ok(from.clone());
    }
    if let Some(dictionary) = from.as_any_dictionary_opt() {
        return take(dictionary.values(), dictionary.keys(), None);
    }
    if let (Some(list), DataType::List(item)) = (from.as_list_opt::<i32>(), from.data_type()) {
        let values = array(list.values())?;
        let list = ListArray::try_new(field(item), list.offsets().clone(), values, list.nulls().cloned())?;
        return Ok(Arc::new(list));
    }
    if let (Some(parts), DataType::Struct(fields)) = (from.as_struct_opt(), from.data_type()) {
        let columns = parts.columns().iter().map(array).collect::<Result<_, _>>()?;
        let fields = fields.iter().map(field).collect();
        return Ok(Arc::new(StructArray::try_new(fields, columns, parts.nulls().cloned())?));
    }
    Ok(from.clone())
}
