use super::reader::{Malformed, Reader};
use super::schema::{Field, Kind, RequestShape};

/// Most bytes that the arrays of one decoded request may take, beside the frame itself that all strings and
/// records are slices of. Room for 150,000 partitions in one Fetch.
const DECODED_LIMIT: usize = 16 * 1024 * 1024;

/// What an unknown tagged field costs: it goes into a tree whose smallest node is this large.
const TAGGED_FIELD_MEMORY: usize = 512;

impl RequestShape {
    /// Follows the shape through `body` and returns the length of the message. The version must be a known one.
    pub(crate) fn check(&self, version: i16, body: &[u8]) -> Result<usize, Malformed> {
        let mut walk = Walk::new(body, version, self.is_flexible(version));
        walk.fields(self.fields)?;
        Ok(body.len() - walk.remaining())
    }
}

/// The way of a reader through one message, or a part of it.
pub(super) struct Walk<'a> {
    reader: Reader<'a>,
    version: i16,
    flexible: bool,
    memory_left: usize,
}

impl<'a> Walk<'a> {
    pub(super) fn new(body: &'a [u8], version: i16, flexible: bool) -> Walk<'a> {
        Walk { reader: Reader::new(body), version, flexible, memory_left: DECODED_LIMIT }
    }

    pub(super) fn remaining(&self) -> usize {
        self.reader.remaining()
    }

    /// The fields of the request or of one nested structure, with the tagged fields that end it.
    pub(super) fn fields(&mut self, fields: &[Field]) -> Result<(), Malformed> {
        for field in fields {
            if field.tag.is_none() && field.is_in(self.version) {
                self.field(field)?;
            }
        }
        if self.flexible { self.tagged_fields(fields) } else { Ok(()) }
    }

    fn field(&mut self, field: &Field) -> Result<(), Malformed> {
        match field.element_memory {
            Some(memory) => self.array(field, memory),
            None => self.value(field),
        }
    }

    fn value(&mut self, field: &Field) -> Result<(), Malformed> {
        let name = field.name;
        match field.kind {
            Kind::Fixed(size) => self.reader.skip(name, usize::from(size)),
            Kind::String if self.flexible => self.reader.skip_compact(name),
            Kind::String => self.reader.nullable_string(name).map(drop),
            Kind::Bytes if self.flexible => self.reader.skip_compact(name),
            Kind::Bytes => match self.reader.int32_length(name)? {
                Some(length) => self.reader.skip(name, length),
                None => Ok(()),
            },
            Kind::Structure => self.fields(field.fields),
            Kind::NullableStructure => match self.reader.int8(name)? {
                -1 => Ok(()),
                1 => self.fields(field.fields),
                _ => Err(Malformed::Invalid(name)),
            },
        }
    }

    fn array(&mut self, field: &Field, memory: usize) -> Result<(), Malformed> {
        let name = field.name;
        let count = if self.flexible { self.reader.compact_length(name)? } else { self.reader.int32_length(name)? };
        // Null is an empty array here.
        let count = count.unwrap_or(0);
        // Every element takes one byte at least.
        if count > self.reader.remaining() {
            return Err(Malformed::TooShort(name));
        }
        self.take_memory(name, count, memory)?;
        for _ in 0..count {
            self.value(field)?;
        }
        Ok(())
    }

    fn tagged_fields(&mut self, fields: &[Field]) -> Result<(), Malformed> {
        let count = self.reader.unsigned_varint("tagged fields")?;
        for _ in 0..count {
            let tag = self.reader.unsigned_varint("tag")?;
            let size = self.reader.unsigned_varint("tagged field size")? as usize;
            let Some(field) = fields.iter().find(|field| field.tag == Some(tag)) else {
                self.take_memory("tagged fields", 1, TAGGED_FIELD_MEMORY)?;
                self.reader.skip("tagged field", size)?;
                continue;
            };
            if !field.is_in(self.version) {
                return Err(Malformed::Invalid(field.name));
            }
            // The message crate believes the field, not the size: they must agree.
            let before = self.reader.remaining();
            self.field(field)?;
            if before - self.reader.remaining() != size {
                return Err(Malformed::Invalid(field.name));
            }
        }
        Ok(())
    }

    fn take_memory(&mut self, name: &'static str, count: usize, each: usize) -> Result<(), Malformed> {
        let left = count.checked_mul(each).and_then(|bytes| self.memory_left.checked_sub(bytes));
        self.memory_left = left.ok_or(Malformed::TooLarge(name))?;
        Ok(())
    }
}
