//! Column builders over plain vectors, one Rust type per column type of the schemas.

use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Int32Type, Int64Type};
use arrow_array::types::{Float64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, ListArray, PrimitiveArray, StringArray};
use arrow_buffer::{Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field};
use tracequet_trace::guid::Guid;
use tracequet_trace::map::Map;
use tracequet_trace::utf16;

/// A column while its rows are collected.
pub trait Builder: Default {
    /// The value that is pushed.
    type Value<'a>;
    /// Adds a row.
    fn push(&mut self, value: Self::Value<'_>);
    /// Adds rows.
    #[inline]
    fn extend<'a>(&mut self, values: impl Iterator<Item = Self::Value<'a>>) {
        values.for_each(|value| self.push(value));
    }
    /// Bytes of text that the rows so far take.
    #[inline]
    fn text_bytes(&self) -> usize {
        0
    }
    /// The rows so far as an array; the builder is empty afterwards.
    fn finish(&mut self) -> ArrayRef;
}

/// Numbers that are always there.
#[derive(Debug)]
pub struct Fixed<T: ArrowPrimitiveType>(Vec<T::Native>);

/// Numbers that may be missing.
#[derive(Debug)]
pub struct Optional<T: ArrowPrimitiveType> {
    values: Vec<T::Native>,
    nulls: NullBufferBuilder,
}

/// Takes the rows out of a vector, with no more memory than they need: a batch may wait long for its row group. The
/// next batch will be about as large, and has room for that from the beginning.
pub(super) fn emptied<T>(values: &mut Vec<T>) -> Vec<T> {
    let room = values.len() + values.len() / 8;
    let mut all = std::mem::replace(values, Vec::with_capacity(room));
    all.shrink_to_fit();
    all
}

impl<T: ArrowPrimitiveType> Default for Fixed<T> {
    fn default() -> Self {
        Fixed(Vec::new())
    }
}

impl<T: ArrowPrimitiveType> Default for Optional<T> {
    fn default() -> Self {
        Optional { values: Vec::new(), nulls: NullBufferBuilder::new(0) }
    }
}

impl<T: ArrowPrimitiveType> Optional<T> {
    /// Adds a row.
    #[inline]
    pub fn append(&mut self, value: Option<T::Native>) {
        self.values.push(value.unwrap_or_default());
        // A batch without nulls costs a counter only.
        self.nulls.append(value.is_some());
    }

    /// Adds rows; a run of values without a null is noted at once.
    #[inline]
    fn append_all(&mut self, values: impl Iterator<Item = Option<T::Native>>) {
        self.values.reserve(values.size_hint().0);
        let mut run = 0;
        for value in values {
            self.values.push(value.unwrap_or_default());
            if value.is_some() {
                run += 1;
            } else {
                self.nulls.append_n_non_nulls(std::mem::take(&mut run));
                self.nulls.append_null();
            }
        }
        self.nulls.append_n_non_nulls(run);
    }

    /// The rows so far.
    pub fn take(&mut self) -> PrimitiveArray<T> {
        PrimitiveArray::new(ScalarBuffer::from(emptied(&mut self.values)), self.nulls.finish())
    }
}

macro_rules! numbers {
    ($($name:ident, $optional:ident, $arrow:ty, $native:ty, $word:literal;)*) => {$(
        #[doc = concat!("Column of type `", $word, "`.")]
        pub type $name = Fixed<$arrow>;
        #[doc = concat!("Nullable column of type `", $word, "`.")]
        pub type $optional = Optional<$arrow>;

        impl Builder for Fixed<$arrow> {
                    type Value<'a> = $native;
            #[inline]
            fn push(&mut self, value: $native) {
                self.0.push(value);
            }
            #[inline]
            fn extend<'a>(&mut self, values: impl Iterator<Item = Self::Value<'a>>) {
                self.0.extend(values);
            }
            fn finish(&mut self) -> ArrayRef {
                Arc::new(PrimitiveArray::<$arrow>::new(ScalarBuffer::from(emptied(&mut self.0)), None))
            }
        }

        impl Builder for Optional<$arrow> {
                    type Value<'a> = Option<$native>;
            #[inline]
            fn push(&mut self, value: Option<$native>) {
                self.append(value);
            }
            #[inline]
            fn extend<'a>(&mut self, values: impl Iterator<Item = Self::Value<'a>>) {
                self.append_all(values);
            }
            fn finish(&mut self) -> ArrayRef {
                Arc::new(self.take())
            }
        }
    )*};
}

numbers! {
    U8, OptU8, UInt8Type, u8, "uint8";
    U16, OptU16, UInt16Type, u16, "uint16";
    U32, OptU32, UInt32Type, u32, "uint32";
    U64, OptU64, UInt64Type, u64, "uint64";
    I64, OptI64, Int64Type, i64, "int64";
    F64, OptF64, Float64Type, f64, "float64";
}

/// UTF-8 text; may be missing.
#[derive(Debug)]
pub struct TextBuffer {
    data: Vec<u8>,
    offsets: Vec<i32>,
    nulls: NullBufferBuilder,
}

impl Default for TextBuffer {
    fn default() -> Self {
        TextBuffer { data: Vec::new(), offsets: vec![0], nulls: NullBufferBuilder::new(0) }
    }
}

impl TextBuffer {
    /// Adds a row whose bytes `write` appends; they have to be UTF-8.
    #[inline]
    pub fn push_with<R>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let result = write(&mut self.data);
        self.offsets.push(i32::try_from(self.data.len()).unwrap_or(i32::MAX));
        self.nulls.append_non_null();
        result
    }

    /// Adds a row of the UTF-16 up to the first zero unit. Returns where that is, and whether something was replaced;
    /// adds nothing when there is none.
    #[inline]
    pub fn push_utf16z(&mut self, bytes: &[u8]) -> Option<(usize, bool)> {
        let found = utf16::push_up_to_zero(bytes, &mut self.data)?;
        self.push_with(|_| ());
        Some(found)
    }

    /// Adds a missing row.
    pub fn push_null(&mut self) {
        self.offsets.push(self.offsets.last().copied().unwrap_or_default());
        self.nulls.append_null();
    }

    /// Adds missing rows up to this number.
    pub fn fill(&mut self, rows: usize) {
        let missing = rows.saturating_sub(self.nulls.len());
        self.offsets.extend(std::iter::repeat_n(self.offsets.last().copied().unwrap_or_default(), missing));
        self.nulls.append_n_nulls(missing);
    }

    /// Bytes of text so far.
    pub fn bytes(&self) -> usize {
        self.data.len()
    }

    /// The rows so far as text.
    pub fn take(&mut self) -> ArrayRef {
        let (data, offsets, nulls) = self.parts();
        match StringArray::try_new(offsets.clone(), data.clone(), nulls.clone()) {
            Ok(array) => Arc::new(array),
            // Unreachable while every writer appends UTF-8; the bytes are kept even then.
            Err(_) => Arc::new(lossy(&offsets, &data, nulls.as_ref())),
        }
    }

    /// The rows so far as bytes.
    pub fn take_binary(&mut self) -> ArrayRef {
        let (data, offsets, nulls) = self.parts();
        Arc::new(arrow_array::BinaryArray::new(offsets, data, nulls))
    }

    fn parts(&mut self) -> (Buffer, OffsetBuffer<i32>, Option<arrow_buffer::NullBuffer>) {
        let offsets = emptied(&mut self.offsets);
        self.offsets.push(0);
        (emptied(&mut self.data).into(), OffsetBuffer::new(offsets.into()), self.nulls.finish())
    }
}

#[cold]
fn lossy(offsets: &OffsetBuffer<i32>, data: &[u8], nulls: Option<&arrow_buffer::NullBuffer>) -> StringArray {
    let rows = offsets.windows(2).enumerate();
    let text = |(index, pair): (usize, &[i32])| {
        let (from, to) = (pair.first().copied()? as usize, pair.last().copied()? as usize);
        let valid = nulls.is_none_or(|n| n.is_valid(index));
        valid.then(|| String::from_utf8_lossy(data.get(from..to).unwrap_or_default()).into_owned())
    };
    rows.map(text).collect()
}

/// Text that is always there.
#[derive(Debug, Default)]
pub struct Text(TextBuffer);

/// Text that may be missing.
#[derive(Debug, Default)]
pub struct OptText(TextBuffer);

impl Builder for Text {
    type Value<'a> = &'a str;

    fn push(&mut self, value: &str) {
        self.0.push_with(|out| out.extend_from_slice(value.as_bytes()));
    }

    #[inline]
    fn text_bytes(&self) -> usize {
        self.0.bytes()
    }

    fn finish(&mut self) -> ArrayRef {
        self.0.take()
    }
}

impl Builder for OptText {
    type Value<'a> = Option<&'a str>;

    fn push(&mut self, value: Option<&str>) {
        match value {
            Some(value) => self.0.push_with(|out| out.extend_from_slice(value.as_bytes())),
            None => self.0.push_null(),
        }
    }

    #[inline]
    fn text_bytes(&self) -> usize {
        self.0.bytes()
    }

    fn finish(&mut self) -> ArrayRef {
        self.0.take()
    }
}

/// Words from a small set, each stored once per batch.
#[derive(Debug, Default)]
pub struct Words {
    keys: Optional<Int32Type>,
    words: Vec<String>,
    index: Map<String, i32>,
    last: Option<(usize, usize, i32)>,
    /// Of the words; each is kept twice.
    bytes: usize,
}

impl Words {
    /// Adds a row.
    #[inline]
    pub fn push(&mut self, word: Option<&str>) {
        let key = word.map(|word| self.key(word));
        self.keys.append(key);
    }

    /// The key of a word; the word asked for last is recognised by its place in memory when it is a constant.
    #[inline]
    fn key(&mut self, word: &str) -> i32 {
        let place = (word.as_ptr() as usize, word.len());
        if let Some((pointer, len, key)) = self.last
            && (pointer, len) == place
            && self.words.get(key as usize).is_some_and(|w| w == word)
        {
            return key;
        }
        let key = match self.index.get(word) {
            Some(key) => *key,
            None => {
                let key = self.words.len() as i32;
                self.words.push(word.to_owned());
                self.index.insert(word.to_owned(), key);
                self.bytes += 2 * word.len();
                key
            }
        };
        self.last = Some((place.0, place.1, key));
        key
    }

    /// The rows so far.
    pub fn take(&mut self) -> ArrayRef {
        let keys: Int32Array = self.keys.take();
        let words = StringArray::from_iter_values(self.words.drain(..));
        self.index.clear();
        (self.last, self.bytes) = (None, 0);
        let rows = keys.len();
        match DictionaryArray::try_new(keys, Arc::new(words)) {
            Ok(array) => Arc::new(array),
            Err(_) => arrow_array::new_null_array(&super::schema::label(), rows),
        }
    }
}

/// A word that is always there.
#[derive(Debug, Default)]
pub struct Label(Words);

/// A word that may be missing.
#[derive(Debug, Default)]
pub struct OptLabel(Words);

impl Builder for Label {
    type Value<'a> = &'a str;

    #[inline]
    fn push(&mut self, value: &str) {
        self.0.push(Some(value));
    }

    /// Rows that share a constant are many in a row: it is looked up once.
    #[inline]
    fn extend<'a>(&mut self, values: impl Iterator<Item = &'a str>) {
        let mut last: Option<(&str, i32)> = None;
        for value in values {
            let key = match last {
                Some((word, key)) if std::ptr::eq(word, value) => key,
                _ => self.0.key(value),
            };
            last = Some((value, key));
            self.0.keys.append(Some(key));
        }
    }

    #[inline]
    fn text_bytes(&self) -> usize {
        self.0.bytes
    }

    fn finish(&mut self) -> ArrayRef {
        self.0.take()
    }
}

impl Builder for OptLabel {
    type Value<'a> = Option<&'a str>;

    #[inline]
    fn push(&mut self, value: Option<&str>) {
        self.0.push(value);
    }

    #[inline]
    fn text_bytes(&self) -> usize {
        self.0.bytes
    }

    fn finish(&mut self) -> ArrayRef {
        self.0.take()
    }
}

/// Short lists of numbers.
#[derive(Debug)]
pub struct U64List {
    values: Vec<u64>,
    offsets: Vec<i32>,
}

impl Default for U64List {
    fn default() -> Self {
        U64List { values: Vec::new(), offsets: vec![0] }
    }
}

impl Builder for U64List {
    type Value<'a> = &'a [u64];

    fn push(&mut self, value: &[u64]) {
        self.values.extend_from_slice(value);
        self.offsets.push(i32::try_from(self.values.len()).unwrap_or(i32::MAX));
    }

    fn finish(&mut self) -> ArrayRef {
        let item = Arc::new(Field::new("item", DataType::UInt64, false));
        let values = PrimitiveArray::<UInt64Type>::new(ScalarBuffer::from(std::mem::take(&mut self.values)), None);
        let offsets = OffsetBuffer::new(std::mem::replace(&mut self.offsets, vec![0]).into());
        Arc::new(ListArray::new(item, offsets, Arc::new(values), None))
    }
}

/// GUIDs as lower-case text, each stored once per batch. All zero means missing.
#[derive(Debug, Default)]
pub struct OptGuid {
    keys: Optional<Int32Type>,
    text: TextBuffer,
    index: Map<Guid, i32>,
    last: Option<(Guid, i32)>,
}

impl OptGuid {
    /// Adds a missing row.
    pub fn push_null(&mut self) {
        self.keys.append(None);
    }

    /// Adds a row, also when it is all zero.
    #[inline]
    pub fn push_value(&mut self, value: Guid) {
        let key = match self.last {
            Some((guid, key)) if guid == value => key,
            _ => {
                let next = self.index.len() as i32;
                let text = &mut self.text;
                *self.index.entry(value).or_insert_with(|| {
                    text.push_with(|out| out.extend_from_slice(&value.text()));
                    next
                })
            }
        };
        self.last = Some((value, key));
        self.keys.append(Some(key));
    }
}

impl Builder for OptGuid {
    type Value<'a> = Guid;

    #[inline]
    fn push(&mut self, value: Guid) {
        if value.is_none() { self.push_null() } else { self.push_value(value) }
    }

    fn finish(&mut self) -> ArrayRef {
        let keys: Int32Array = self.keys.take();
        let words = self.text.take();
        self.index.clear();
        self.last = None;
        let rows = keys.len();
        match DictionaryArray::try_new(keys, words) {
            Ok(array) => Arc::new(array),
            Err(_) => arrow_array::new_null_array(&super::schema::label(), rows),
        }
    }
}
