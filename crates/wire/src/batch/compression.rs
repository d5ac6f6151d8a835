//! The four codecs of Kafka's record batches, in the framings that clients write.
//!
//! Payloads come from untrusted producers: no codec may allocate much more than the given limit.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io::{self, Read, Write};

use super::{BatchError, Compression, lz4_frame};

/// Java's snappy stream framing (xerial), which the Java, Go and JavaScript clients write; librdkafka
/// writes bare blocks. Magic, then version and lowest compatible version of 4 bytes each.
const XERIAL_MAGIC: [u8; 8] = *b"\x82SNAPPY\0";
const XERIAL_HEADER_LEN: usize = XERIAL_MAGIC.len() + 8;
/// The block size of Java's `SnappyOutputStream`.
const XERIAL_BLOCK_LEN: usize = 32 * 1024;

/// Deflate cannot expand further than this (zlib's technical notes), so a larger claim is a lie.
const DEFLATE_MAX_RATIO: usize = 1032;

thread_local! {
    // A zstd context is 160 KiB and slow to set up, while a batch is often a few hundred bytes.
    static ZSTD: RefCell<zstd::bulk::Decompressor<'static>> = RefCell::default();
}

/// Decompresses the records of a batch; `None` borrows.
pub(super) fn decompress(codec: Compression, payload: &[u8], limit: usize) -> Result<Cow<'_, [u8]>, BatchError> {
    let failed = |reason: io::Error| BatchError::Decompression { codec, reason: reason.to_string() };
    let inflated = match codec {
        Compression::None if payload.len() <= limit => return Ok(Cow::Borrowed(payload)),
        Compression::None => return Err(BatchError::DecompressedTooLarge { limit }),
        Compression::Gzip => gunzip(payload, limit).map_err(failed)?,
        Compression::Snappy => unsnappy(payload, limit).map_err(failed)?,
        Compression::Lz4 => lz4_frame::decompress(payload, limit).map_err(|reason| failed(io::Error::other(reason)))?,
        Compression::Zstd => unzstd(payload, limit).map_err(failed)?,
    };
    match inflated {
        Some(mut records) => {
            // The records may be held until the database has taken them; the slack must not be.
            if records.capacity() > 2 * records.len() {
                records.shrink_to_fit();
            }
            Ok(Cow::Owned(records))
        }
        None => Err(BatchError::DecompressedTooLarge { limit }),
    }
}

/// All of `reader`, or `None` when it yields more than `limit` bytes.
fn read_up_to(reader: impl Read, expected: usize, limit: usize) -> io::Result<Option<Vec<u8>>> {
    let mut out = Vec::with_capacity(expected.min(limit));
    reader.take(limit as u64 + 1).read_to_end(&mut out)?;
    Ok((out.len() <= limit).then_some(out))
}

fn gunzip(payload: &[u8], limit: usize) -> io::Result<Option<Vec<u8>>> {
    // The last four bytes of a gzip member are its length (RFC 1952), here only a hint.
    let claimed = payload.last_chunk::<4>().map_or(0, |len| u32::from_le_bytes(*len) as usize);
    let expected = claimed.min(payload.len().saturating_mul(DEFLATE_MAX_RATIO));
    read_up_to(flate2::read::MultiGzDecoder::new(payload), expected, limit)
}

fn unzstd(payload: &[u8], limit: usize) -> io::Result<Option<Vec<u8>>> {
    // One shot into the whole output instead of a stream: a stream allocates the window that the frame
    // claims, up to 128 MiB. Java's frames have no content size, so the bound comes from the block headers.
    let Some(bound) = zstd::bulk::Decompressor::upper_bound(payload) else {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a zstd frame"));
    };
    let result = ZSTD.with_borrow_mut(|context| context.decompress(payload, bound.min(limit)));
    match result {
        Ok(records) => Ok(Some(records)),
        Err(_) if bound > limit => Ok(None),
        Err(error) => Err(error),
    }
}

fn unsnappy(payload: &[u8], limit: usize) -> io::Result<Option<Vec<u8>>> {
    let mut out = Vec::new();
    if !payload.starts_with(&XERIAL_MAGIC) {
        return Ok(unsnappy_block(payload, &mut out, limit)?.then_some(out));
    }
    let mut rest = payload.get(XERIAL_HEADER_LEN..).ok_or(io::ErrorKind::UnexpectedEof)?;
    while let Some((length, tail)) = rest.split_first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let (block, tail) = tail.split_at_checked(length).ok_or(io::ErrorKind::UnexpectedEof)?;
        if !unsnappy_block(block, &mut out, limit)? {
            return Ok(None);
        }
        rest = tail;
    }
    if rest.is_empty() { Ok(Some(out)) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Appends one snappy block to `out`; false when `out` would become longer than `limit`.
fn unsnappy_block(block: &[u8], out: &mut Vec<u8>, limit: usize) -> io::Result<bool> {
    let length = snap::raw::decompress_len(block)?;
    let start = out.len();
    if length > limit.saturating_sub(start) {
        return Ok(false);
    }
    // The densest element is a copy of 64 bytes in 3, so a larger claim is a lie.
    if length / 64 > block.len() / 3 + 1 {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "snappy block claims an impossible length"));
    }
    out.resize(start + length, 0);
    snap::raw::Decoder::new().decompress(block, &mut out[start..])?;
    Ok(true)
}

/// Compresses the records of a batch the way Java's producer frames them: xerial snappy, lz4 frames
/// without content checksum, zstd without content size.
///
/// # Errors
/// [`BatchError::Decompression`] carries the codec's refusal, which only lack of memory should cause.
pub fn compress(codec: Compression, records: &[u8]) -> Result<Vec<u8>, BatchError> {
    let compressed = match codec {
        Compression::None => Ok(records.to_vec()),
        Compression::Gzip => gzip(records),
        Compression::Snappy => snappy_xerial(records),
        Compression::Lz4 => lz4(records),
        Compression::Zstd => zstd_stream(records),
    };
    compressed.map_err(|error| BatchError::Decompression { codec, reason: error.to_string() })
}

fn gzip(records: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(records)?;
    encoder.finish()
}

fn snappy_xerial(records: &[u8]) -> io::Result<Vec<u8>> {
    let mut out = XERIAL_MAGIC.to_vec();
    out.extend_from_slice(&1u32.to_be_bytes());
    out.extend_from_slice(&1u32.to_be_bytes());
    let mut encoder = snap::raw::Encoder::new();
    for block in records.chunks(XERIAL_BLOCK_LEN) {
        let compressed = encoder.compress_vec(block)?;
        out.extend_from_slice(&(compressed.len() as u32).to_be_bytes());
        out.extend_from_slice(&compressed);
    }
    Ok(out)
}

fn lz4(records: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
    encoder.write_all(records)?;
    Ok(encoder.finish()?)
}

fn zstd_stream(records: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), zstd::DEFAULT_COMPRESSION_LEVEL)?;
    encoder.write_all(records)?;
    encoder.finish()
}
