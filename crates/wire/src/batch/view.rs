use std::borrow::Cow;

use super::compression::decompress;
use super::header::{LOG_OVERHEAD, MAGIC_AT, checksum};
use super::{BatchError, BatchHeader, HEADER_LEN, MAGIC};

/// One record batch, borrowed; nothing is copied and the records are not looked at yet.
#[derive(Debug, Clone)]
pub struct BatchView<'a> {
    header: BatchHeader,
    bytes: &'a [u8],
}

impl<'a> BatchView<'a> {
    /// The first batch of `bytes` and what follows it.
    ///
    /// Neither the CRC nor the records are checked here.
    ///
    /// # Errors
    /// [`BatchError`] `Empty`, `Truncated`, `InvalidLength`, `OldMagic` or `UnknownMagic`.
    pub fn parse(bytes: &'a [u8]) -> Result<(Self, &'a [u8]), BatchError> {
        if bytes.is_empty() {
            return Err(BatchError::Empty);
        }
        let truncated = |needed| BatchError::Truncated { needed, available: bytes.len() };
        let Some(&magic) = bytes.get(MAGIC_AT) else {
            return Err(truncated(HEADER_LEN));
        };
        match magic as i8 {
            MAGIC => {}
            old @ 0..MAGIC => return Err(BatchError::OldMagic(old)),
            unknown => return Err(BatchError::UnknownMagic(unknown)),
        }
        let Some(head) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(truncated(HEADER_LEN));
        };
        let header = BatchHeader::read(head);
        let size = match usize::try_from(header.batch_length) {
            Ok(length) if length >= HEADER_LEN - LOG_OVERHEAD => length + LOG_OVERHEAD,
            _ => return Err(BatchError::InvalidLength(header.batch_length)),
        };
        let Some((bytes, rest)) = bytes.split_at_checked(size) else {
            return Err(truncated(size));
        };
        Ok((BatchView { header, bytes }, rest))
    }

    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// All bytes of the batch, header included.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The records as they were sent, possibly compressed.
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[HEADER_LEN..]
    }

    pub fn crc_is_valid(&self) -> bool {
        self.computed_crc() == self.header.crc
    }

    pub(super) fn computed_crc(&self) -> u32 {
        checksum(self.bytes)
    }

    /// The records, decompressed when they are compressed; read them with [`super::Records`].
    ///
    /// Never allocates much more than `limit` bytes, whatever the payload claims.
    ///
    /// # Errors
    /// `UnknownCompression`, `Decompression`, or `DecompressedTooLarge` beyond `limit` bytes (which
    /// holds for uncompressed records too).
    pub fn decompress(&self, limit: usize) -> Result<Cow<'a, [u8]>, BatchError> {
        decompress(self.header.compression()?, self.payload(), limit)
    }
}
