//! Arrow arrays into the vectors of DuckDB.

use std::ffi::c_void;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrowPrimitiveType, ListArray, StringArray, StructArray, downcast_primitive_array};
use arrow_buffer::NullBuffer;

use super::slots::{Handle, ListEntry, Slots};

/// Writes all values of an array.
///
/// # Safety
///
/// `vector` is a flat vector of the type that `type_of` gives for the array, with room for its rows and none of them
/// written.
pub unsafe fn write(
    slots: &Slots,
    vector: Handle,
    array: &dyn Array,
    outer: Option<&NullBuffer>,
) -> Result<(), String> {
    // A field of a struct that is null is null, whatever it has.
    let nulls = NullBuffer::union(outer, array.nulls());
    let nulls = nulls.as_ref();
    // SAFETY: as above.
    unsafe { mark_nulls(slots, vector, nulls) };
    let is_valid = |row: usize| nulls.is_none_or(|nulls| nulls.is_valid(row));
    // SAFETY: the vector has room for the rows, and a text is copied.
    let assign = |row: usize, text: &[u8]| unsafe {
        (slots.vector_assign_string_element_len)(vector, row as u64, text.as_ptr().cast(), text.len() as u64);
    };
    // SAFETY (of the calls below): the array's type decides which of them it is, and that is the type of the vector.
    downcast_primitive_array!(
        array => unsafe { copy(slots, vector, array) },
        arrow_schema::DataType::Boolean => {
            let bytes: Vec<u8> = array.as_boolean().values().iter().map(u8::from).collect();
            unsafe { copy_items(slots, vector, &bytes) };
        }
        arrow_schema::DataType::Utf8 => {
            let texts = array.as_string::<i32>();
            (0..texts.len()).filter(|row| is_valid(*row)).for_each(|row| assign(row, texts.value(row).as_bytes()));
        }
        arrow_schema::DataType::Binary => {
            let bytes = array.as_binary::<i32>();
            (0..bytes.len()).filter(|row| is_valid(*row)).for_each(|row| assign(row, bytes.value(row)));
        }
        arrow_schema::DataType::Dictionary(..) => {
            let dictionary = array.as_dictionary_opt::<Int32Type>().ok_or("a dictionary with keys of another type")?;
            let words: &StringArray = dictionary.values().as_string_opt().ok_or("a dictionary of other values")?;
            for row in (0..dictionary.len()).filter(|row| is_valid(*row)) {
                let key = usize::try_from(dictionary.keys().value(row)).ok().filter(|key| *key < words.len());
                let key = key.ok_or("a key that the dictionary does not have")?;
                assign(row, words.value(key).as_bytes());
            }
        }
        arrow_schema::DataType::List(_) => unsafe { write_lists(slots, vector, array.as_list())? },
        arrow_schema::DataType::Struct(_) => unsafe { write_fields(slots, vector, array.as_struct(), nulls)? },
        other => return Err(format!("a column of the type {other}"))
    );
    Ok(())
}

/// Makes the first rows of a vector null.
///
/// # Safety
///
/// `vector` is flat and has room for the rows.
pub unsafe fn write_nulls(slots: &Slots, vector: Handle, rows: usize) {
    // SAFETY: as above.
    unsafe { mark_nulls(slots, vector, Some(&NullBuffer::new_null(rows))) };
}

unsafe fn mark_nulls(slots: &Slots, vector: Handle, nulls: Option<&NullBuffer>) {
    let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) else { return };
    // SAFETY: the caller's; after the first call the mask is there, with a bit for each row.
    unsafe {
        (slots.vector_ensure_validity_writable)(vector);
        let mask = (slots.vector_get_validity)(vector);
        for row in (0..nulls.len()).filter(|row| nulls.is_null(*row)) {
            (slots.validity_set_row_invalid)(mask, row as u64);
        }
    }
}

unsafe fn copy<P: ArrowPrimitiveType>(slots: &Slots, vector: Handle, array: &arrow_array::PrimitiveArray<P>) {
    // SAFETY: the caller's: values of Arrow and DuckDB of these types are the same bytes.
    unsafe { copy_items(slots, vector, array.values()) };
}

unsafe fn copy_items<T: Copy>(slots: &Slots, vector: Handle, items: &[T]) {
    // SAFETY: the caller's: the vector has room for the items, which are as wide as its own.
    unsafe {
        let data: *mut c_void = (slots.vector_get_data)(vector);
        if !data.is_null() {
            std::ptr::copy_nonoverlapping(items.as_ptr(), data.cast::<T>(), items.len());
        }
    }
}

unsafe fn write_lists(slots: &Slots, vector: Handle, lists: &ListArray) -> Result<(), String> {
    let offsets = lists.value_offsets();
    let first = offsets.first().copied().unwrap_or_default();
    let entries = offsets.windows(2).map(|pair| match pair {
        [begin, end] => ListEntry { offset: (begin - first) as u64, length: (end - begin) as u64 },
        _ => ListEntry { offset: 0, length: 0 },
    });
    let entries: Vec<ListEntry> = entries.collect();
    let count = entries.last().map_or(0, |last| last.offset + last.length);
    let items = lists.values().slice(first as usize, count as usize);
    // SAFETY: the caller's: it is a vector of lists. The child has room for the items when DuckDB says so.
    unsafe {
        copy_items(slots, vector, &entries);
        if (slots.list_vector_reserve)(vector, count) != 0 || (slots.list_vector_set_size)(vector, count) != 0 {
            return Err(format!("no room for {count} items of lists"));
        }
        write(slots, (slots.list_vector_get_child)(vector), items.as_ref(), None)
    }
}

unsafe fn write_fields(
    slots: &Slots,
    vector: Handle,
    fields: &StructArray,
    nulls: Option<&NullBuffer>,
) -> Result<(), String> {
    for (place, field) in (0u64..).zip(fields.columns()) {
        // SAFETY: the caller's: it is a vector of structs with these fields, each with as much room.
        unsafe { write(slots, (slots.struct_vector_get_child)(vector, place), field.as_ref(), nulls)? };
    }
    Ok(())
}
