use thiserror::Error;

/// Why bytes do not have the shape of their message; the text names the field in Kafka's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Malformed {
    #[error("the bytes end before {0} does")]
    TooShort(&'static str),
    #[error("{0} has an impossible length or value")]
    Invalid(&'static str),
    #[error("{0} has more elements than one request may hold")]
    TooLarge(&'static str),
}

/// Reads the primitive types of Kafka's protocol without allocating.
#[derive(Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    fn take(&mut self, name: &'static str, size: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(size).ok_or(Malformed::TooShort(name))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self, name: &'static str) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Malformed::TooShort(name))?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(crate) fn skip(&mut self, name: &'static str, size: usize) -> Result<(), Malformed> {
        self.take(name, size).map(drop)
    }

    pub(crate) fn int8(&mut self, name: &'static str) -> Result<i8, Malformed> {
        Ok(i8::from_be_bytes(self.array(name)?))
    }

    pub(crate) fn int32(&mut self, name: &'static str) -> Result<i32, Malformed> {
        Ok(i32::from_be_bytes(self.array(name)?))
    }

    /// A string of the classic encoding; null has the length −1.
    pub(crate) fn nullable_string(&mut self, name: &'static str) -> Result<Option<&'a [u8]>, Malformed> {
        match i16::from_be_bytes(self.array(name)?) {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length).map_err(|_| Malformed::Invalid(name))?;
                self.take(name, length).map(Some)
            }
        }
    }

    /// The length of classic bytes or arrays; null has the length −1.
    pub(crate) fn int32_length(&mut self, name: &'static str) -> Result<Option<usize>, Malformed> {
        match self.int32(name)? {
            -1 => Ok(None),
            length => usize::try_from(length).map(Some).map_err(|_| Malformed::Invalid(name)),
        }
    }

    /// The length of a compact string, bytes or array: one more than the true one, and 0 for null.
    pub(crate) fn compact_length(&mut self, name: &'static str) -> Result<Option<usize>, Malformed> {
        Ok((self.unsigned_varint(name)? as usize).checked_sub(1))
    }

    pub(crate) fn skip_compact(&mut self, name: &'static str) -> Result<(), Malformed> {
        match self.compact_length(name)? {
            Some(length) => self.skip(name, length),
            None => Ok(()),
        }
    }

    pub(crate) fn unsigned_varint(&mut self, name: &'static str) -> Result<u32, Malformed> {
        // Nearly all are small.
        if let Some((&byte @ 0..0x80, rest)) = self.rest.split_first() {
            self.rest = rest;
            return Ok(u32::from(byte));
        }
        let mut value = 0u64;
        for shift in [0, 7, 14, 21, 28] {
            let [byte] = self.array(name)?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return u32::try_from(value).map_err(|_| Malformed::Invalid(name));
            }
        }
        Err(Malformed::Invalid(name))
    }

    /// The tagged fields that end a flexible header, none of which is known.
    pub(crate) fn skip_tagged_fields(&mut self) -> Result<(), Malformed> {
        let count = self.unsigned_varint("tagged fields")?;
        for _ in 0..count {
            self.unsigned_varint("tag")?;
            let size = self.unsigned_varint("tagged field size")?;
            self.skip("tagged field", size as usize)?;
        }
        Ok(())
    }
}
