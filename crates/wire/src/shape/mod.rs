//! Walks over a request before the message crate decodes it.
//!
//! The message crate allocates what an array claims to hold (`Vec::with_capacity` of up to 2^32 elements)
//! before it reads the first element, so four bytes of a stranger could end the process. Here each request
//! is a small table of fields ([`table`]), and [`RequestShape::check`] follows it through the bytes without
//! allocating. It makes sure that
//! - every length and count fits into the bytes that are there,
//! - the elements and unknown tagged fields, as large as they are in memory, stay below [`DECODED_LIMIT`].
//!
//! Bytes after the message are let pass, as Apache Kafka lets them: librdkafka (2.16 still) sends three with
//! each Metadata request of version 9 and later that names no topics, because it leaves four bytes for a
//! compact count of one.
//!
//! Null is not checked: the message crate refuses it where it is not allowed.

mod reader;
mod table;

pub use reader::Malformed;
pub(crate) use reader::Reader;

/// Most bytes that the arrays of one decoded request may take, beside the frame itself that all strings and
/// records are slices of. Room for 150,000 partitions in one Fetch.
const DECODED_LIMIT: usize = 16 * 1024 * 1024;

/// What an unknown tagged field costs: it goes into a tree whose smallest node is this large.
const TAGGED_FIELD_MEMORY: usize = 512;

/// All fields of one request in the order of the wire, for all versions the message crate knows.
#[derive(Debug)]
pub(crate) struct RequestShape {
    key: i16,
    min_version: i16,
    max_version: i16,
    /// First version with compact lengths and tagged fields (KIP-482).
    flexible_from: i16,
    fields: &'static [Field],
}

#[derive(Debug, Clone, Copy)]
struct Field {
    name: &'static str,
    kind: Kind,
    min_version: i16,
    max_version: i16,
    tag: Option<u32>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A number of this many bytes, a boolean or a UUID.
    Fixed(usize),
    String,
    Bytes,
    Struct(&'static [Field]),
    Array {
        element: &'static Kind,
        /// Size of the decoded element in memory.
        memory: usize,
    },
}

/// The shape of an API's requests, if this crate decodes them.
pub(crate) fn of(api_key: i16) -> Option<&'static RequestShape> {
    table::REQUESTS.iter().find(|shape| shape.key == api_key)
}

impl RequestShape {
    pub(crate) fn has_version(&self, version: i16) -> bool {
        (self.min_version..=self.max_version).contains(&version)
    }

    /// The version is known and has compact lengths and tagged fields, in the header too.
    pub(crate) fn is_flexible(&self, version: i16) -> bool {
        self.has_version(version) && version >= self.flexible_from
    }

    /// Follows the shape through `body` and returns the length of the message. The version must be a known one.
    pub(crate) fn check(&self, version: i16, body: &[u8]) -> Result<usize, Malformed> {
        let mut walk = Walk {
            reader: Reader::new(body),
            version,
            flexible: self.is_flexible(version),
            memory_left: DECODED_LIMIT,
        };
        walk.fields(self.fields)?;
        Ok(body.len() - walk.reader.remaining())
    }
}

impl Field {
    fn is_in(&self, version: i16) -> bool {
        (self.min_version..=self.max_version).contains(&version)
    }
}

struct Walk<'a> {
    reader: Reader<'a>,
    version: i16,
    flexible: bool,
    memory_left: usize,
}

impl Walk<'_> {
    /// The fields of the request or of one nested structure, with the tagged fields that end it.
    fn fields(&mut self, fields: &[Field]) -> Result<(), Malformed> {
        for field in fields {
            if field.tag.is_none() && field.is_in(self.version) {
                self.value(field.name, &field.kind)?;
            }
        }
        if self.flexible { self.tagged_fields(fields) } else { Ok(()) }
    }

    fn value(&mut self, name: &'static str, kind: &Kind) -> Result<(), Malformed> {
        match *kind {
            Kind::Fixed(size) => self.reader.skip(name, size),
            Kind::String if self.flexible => self.reader.skip_compact(name),
            Kind::String => self.reader.nullable_string(name).map(drop),
            Kind::Bytes if self.flexible => self.reader.skip_compact(name),
            Kind::Bytes => match self.reader.int32_length(name)? {
                Some(length) => self.reader.skip(name, length),
                None => Ok(()),
            },
            Kind::Struct(fields) => self.fields(fields),
            Kind::Array { element, memory } => self.array(name, element, memory),
        }
    }

    fn array(&mut self, name: &'static str, element: &Kind, memory: usize) -> Result<(), Malformed> {
        let count = if self.flexible { self.reader.compact_length(name)? } else { self.reader.int32_length(name)? };
        // Null is an empty array here.
        let count = count.unwrap_or(0);
        // Every element takes one byte at least.
        if count > self.reader.remaining() {
            return Err(Malformed::TooShort(name));
        }
        self.take_memory(name, count, memory)?;
        for _ in 0..count {
            self.value(name, element)?;
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
            self.value(field.name, &field.kind)?;
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

#[cfg(test)]
mod tests;
