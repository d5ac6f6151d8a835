//! Rows in the format of `COPY … (FORMAT binary)`.

use bytes::{BufMut, BytesMut};

use super::columns::Row;

const SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0";

/// Writes the rows of one COPY of [`ROW_COLUMNS`](super::ROW_COLUMNS).
pub(crate) struct CopyEncoder {
    out: BytesMut,
}

impl CopyEncoder {
    pub(crate) fn new() -> Self {
        let mut out = BytesMut::with_capacity(256 * 1024);
        out.put_slice(SIGNATURE);
        out.put_i32(0); // flags
        out.put_i32(0); // length of the header extension
        Self { out }
    }

    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// The bytes so far, to be sent.
    pub(crate) fn take(&mut self) -> BytesMut {
        self.out.split()
    }

    pub(crate) fn finish(mut self) -> BytesMut {
        self.out.put_i16(-1);
        self.out
    }

    pub(crate) fn push(&mut self, row: &Row<'_>) {
        row.copy_to(&mut self.out);
    }
}
