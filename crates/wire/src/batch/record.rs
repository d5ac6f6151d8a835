use std::iter::FusedIterator;

use super::BatchError;
use super::varint::Cursor;

/// One record, borrowed from the decompressed bytes of its batch (Kafka: `DefaultRecord.java`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record<'a> {
    /// Relative to the batch's base offset.
    pub offset_delta: i32,
    /// Milliseconds relative to the batch's base timestamp; a varlong, as timestamps of a batch may be far apart.
    pub timestamp_delta: i64,
    pub key: Option<&'a [u8]>,
    pub value: Option<&'a [u8]>,
    pub headers: Headers<'a>,
}

/// The headers of a record in the order of the producer, duplicates included (KIP-82).
///
/// Already walked, so that iterating cannot fail. Keys are UTF-8 by convention only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Headers<'a> {
    count: usize,
    bytes: &'a [u8],
}

impl<'a> Headers<'a> {
    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub fn iter(&self) -> HeaderIter<'a> {
        HeaderIter { remaining: self.count, cursor: Cursor::new(self.bytes) }
    }
}

impl<'a> IntoIterator for Headers<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);
    type IntoIter = HeaderIter<'a>;

    fn into_iter(self) -> HeaderIter<'a> {
        self.iter()
    }
}

/// Yields (key, value) of each header; a value may be null.
#[derive(Debug, Clone)]
pub struct HeaderIter<'a> {
    remaining: usize,
    cursor: Cursor<'a>,
}

impl<'a> Iterator for HeaderIter<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.remaining = self.remaining.checked_sub(1)?;
        let header = read_header(&mut self.cursor);
        debug_assert!(header.is_some(), "headers are walked before they are handed out");
        header
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.remaining, Some(self.remaining))
    }
}

impl ExactSizeIterator for HeaderIter<'_> {}
impl FusedIterator for HeaderIter<'_> {}

#[inline]
fn read_header<'a>(cursor: &mut Cursor<'a>) -> Option<(&'a [u8], Option<&'a [u8]>)> {
    // Unlike a value, a header key cannot be null.
    let key = cursor.nullable_bytes()??;
    let value = cursor.nullable_bytes()?;
    Some((key, value))
}

/// Iterates over the records in decompressed bytes until these end; stops after the first error.
///
/// How many there should be is in the batch header and not checked here.
#[derive(Debug, Clone)]
pub struct Records<'a> {
    cursor: Cursor<'a>,
    index: i32,
}

impl<'a> Records<'a> {
    pub fn new(decompressed: &'a [u8]) -> Self {
        Records { cursor: Cursor::new(decompressed), index: 0 }
    }

    /// Bytes not read yet.
    pub fn remaining(&self) -> usize {
        self.cursor.rest().len()
    }

    #[inline]
    fn read(&mut self) -> Result<Record<'a>, &'static str> {
        let length = self.cursor.varint().ok_or("no length")?;
        let length = usize::try_from(length).map_err(|_| "negative length")?;
        let mut body = Cursor::new(self.cursor.take(length).ok_or("longer than the batch")?);

        // No record attribute is defined; Kafka ignores them too.
        body.u8().ok_or("no attributes")?;
        let timestamp_delta = body.varlong().ok_or("no timestamp")?;
        let offset_delta = body.varint().ok_or("no offset")?;
        let key = body.nullable_bytes().ok_or("key longer than the record")?;
        let value = body.nullable_bytes().ok_or("value longer than the record")?;
        let count = body.varint().ok_or("no header count")?;
        let count = usize::try_from(count).map_err(|_| "negative header count")?;
        let headers = Headers { count, bytes: body.rest() };
        for _ in 0..count {
            // A huge count ends here with the bytes: each header takes two at least.
            read_header(&mut body).ok_or("malformed header")?;
        }
        if !body.is_empty() {
            return Err("longer than its fields");
        }
        Ok(Record { offset_delta, timestamp_delta, key, value, headers })
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Result<Record<'a>, BatchError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.cursor.is_empty() {
            return None;
        }
        let index = self.index;
        self.index = self.index.saturating_add(1);
        match self.read() {
            Ok(record) => Some(Ok(record)),
            Err(reason) => {
                self.cursor = Cursor::new(&[]);
                Some(Err(BatchError::MalformedRecord { index, reason }))
            }
        }
    }
}

impl FusedIterator for Records<'_> {}
