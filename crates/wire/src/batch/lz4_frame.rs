//! Reading of lz4 frames (format 1.6.x of the lz4 project), which hold the records of an lz4 batch.
//!
//! The blocks are decompressed straight into one buffer. A general frame reader goes through buffers as
//! large as the block size that the frame claims, up to 12 MiB for a batch of 100 bytes.

use lz4_flex::block::{DecompressError, decompress_into_with_dict};
use twox_hash::XxHash32;

const MAGIC: [u8; 4] = 0x184d_2204u32.to_le_bytes();

/// Linked blocks may refer this far back.
const WINDOW: usize = 64 * 1024;

/// No byte of a block becomes more than this many: the length of a match grows by 255 per byte.
const MAX_RATIO: usize = 255;

const UNCOMPRESSED: u32 = 1 << 31;

/// Decompresses all frames of `input`; `None` when that is more than `limit` bytes.
///
/// Kafka's writers need one frame only; that several follow each other is part of the format.
pub(super) fn decompress(mut input: &[u8], limit: usize) -> Result<Option<Vec<u8>>, &'static str> {
    let mut out = Vec::new();
    while !input.is_empty() {
        let Some(rest) = frame(input, &mut out, limit)? else {
            return Ok(None);
        };
        input = rest;
    }
    Ok(Some(out))
}

struct Descriptor {
    linked: bool,
    block_checksums: bool,
    content_checksum: bool,
    content_size: Option<u64>,
    max_block: usize,
}

/// Appends one frame to `out` and returns what follows it, or `None` when the limit is reached.
fn frame<'a>(input: &'a [u8], out: &mut Vec<u8>, limit: usize) -> Result<Option<&'a [u8]>, &'static str> {
    let (descriptor, mut input) = descriptor(input)?;
    let start = out.len();
    if let Some(size) = descriptor.content_size {
        // Only a hint, and not believed beyond what the bytes can become.
        let possible = input.len().saturating_mul(MAX_RATIO).min(limit.saturating_sub(start));
        out.reserve_exact(usize::try_from(size).unwrap_or(possible).min(possible));
    }
    loop {
        let header = little_endian(&mut input)?;
        if header == 0 {
            break;
        }
        let block = take(&mut input, (header & !UNCOMPRESSED) as usize)?;
        if block.len() > descriptor.max_block {
            return Err("block is larger than the frame allows");
        }
        if descriptor.block_checksums && little_endian(&mut input)? != XxHash32::oneshot(0, block) {
            return Err("block checksum does not match");
        }
        let fits = if header & UNCOMPRESSED == 0 {
            let window = if descriptor.linked { start.max(out.len().saturating_sub(WINDOW)) } else { out.len() };
            append_block(block, out, window, descriptor.max_block, limit)?
        } else {
            out.extend_from_slice(block);
            out.len() <= limit
        };
        if !fits {
            return Ok(None);
        }
    }
    let content = &out[start..];
    if descriptor.content_size.is_some_and(|size| size != content.len() as u64) {
        return Err("content size does not match");
    }
    if descriptor.content_checksum && little_endian(&mut input)? != XxHash32::oneshot(0, content) {
        return Err("content checksum does not match");
    }
    Ok(Some(input))
}

fn descriptor(input: &[u8]) -> Result<(Descriptor, &[u8]), &'static str> {
    let mut rest = input.strip_prefix(&MAGIC).ok_or("not an lz4 frame")?;
    let from_flags = rest;
    let [flags, block_size] = *take_array(&mut rest)?;
    if flags >> 6 != 1 {
        return Err("unknown version of the lz4 frame format");
    }
    if flags & 1 != 0 {
        return Err("lz4 dictionaries are not supported");
    }
    let content_size = if flags & 1 << 3 != 0 { Some(u64::from_le_bytes(*take_array(&mut rest)?)) } else { None };
    let described = &from_flags[..from_flags.len() - rest.len()];
    let [checksum] = *take_array(&mut rest)?;
    if checksum != (XxHash32::oneshot(0, described) >> 8) as u8 {
        return Err("header checksum does not match");
    }
    let max_block = match block_size >> 4 & 0b111 {
        4 => 64 << 10,
        5 => 256 << 10,
        6 => 1 << 20,
        7 => 4 << 20,
        _ => return Err("unknown block size"),
    };
    let descriptor = Descriptor {
        linked: flags & 1 << 5 == 0,
        block_checksums: flags & 1 << 4 != 0,
        content_checksum: flags & 1 << 2 != 0,
        content_size,
        max_block,
    };
    Ok((descriptor, rest))
}

/// Appends one compressed block; matches may reach back to `window` in `out`. False when the limit is reached.
fn append_block(
    block: &[u8],
    out: &mut Vec<u8>,
    window: usize,
    max_block: usize,
    limit: usize,
) -> Result<bool, &'static str> {
    let start = out.len();
    let allowed = limit.saturating_sub(start);
    let room = max_block.min(block.len() * MAX_RATIO).min(allowed);
    out.resize(start + room, 0);
    let (before, target) = out.split_at_mut(start);
    match decompress_into_with_dict(block, target, &before[window..]) {
        Ok(written) => {
            out.truncate(start + written);
            Ok(true)
        }
        Err(DecompressError::OutputTooSmall { .. }) if room == allowed => Ok(false),
        Err(DecompressError::OutputTooSmall { .. }) => Err("block becomes larger than the frame allows"),
        Err(_) => Err("malformed block"),
    }
}

fn take<'a>(input: &mut &'a [u8], length: usize) -> Result<&'a [u8], &'static str> {
    let (taken, rest) = input.split_at_checked(length).ok_or(CUT_SHORT)?;
    *input = rest;
    Ok(taken)
}

fn take_array<'a, const N: usize>(input: &mut &'a [u8]) -> Result<&'a [u8; N], &'static str> {
    let (taken, rest) = input.split_first_chunk().ok_or(CUT_SHORT)?;
    *input = rest;
    Ok(taken)
}

fn little_endian(input: &mut &[u8]) -> Result<u32, &'static str> {
    take_array(input).map(|bytes| u32::from_le_bytes(*bytes))
}

const CUT_SHORT: &str = "lz4 frame is cut short";

#[cfg(test)]
mod tests {
    use std::io::Write;

    use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};

    use super::*;

    fn text() -> Vec<u8> {
        (0..40_000u32).flat_map(|i| format!("{:05} ", i * 7919 % 65_521).into_bytes()).collect()
    }

    fn compress(info: FrameInfo, content: &[u8]) -> Vec<u8> {
        let mut encoder = FrameEncoder::with_frame_info(info, Vec::new());
        encoder.write_all(content).unwrap();
        encoder.finish().unwrap()
    }

    fn infos() -> Vec<FrameInfo> {
        let mut infos = Vec::new();
        for block_size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max4MB] {
            for mode in [BlockMode::Independent, BlockMode::Linked] {
                for checksums in [false, true] {
                    let info = FrameInfo::new().block_size(block_size).block_mode(mode);
                    infos.push(info.block_checksums(checksums).content_checksum(checksums));
                }
            }
        }
        infos
    }

    #[test]
    fn every_kind_of_frame() {
        let text = text();
        for info in infos() {
            let sized = info.clone().content_size(Some(text.len() as u64));
            for frame in [compress(info, &text), compress(sized, &text)] {
                assert!(decompress(&frame, text.len()) == Ok(Some(text.clone())));
                for limit in [text.len() - 1, 70_000, 65_536, 65_535, 1, 0] {
                    assert_eq!(decompress(&frame, limit), Ok(None));
                }
                let twice = [&frame[..], &frame[..]].concat();
                assert!(decompress(&twice, 1 << 20) == Ok(Some([&text[..], &text[..]].concat())));
            }
        }
    }

    #[test]
    fn cut_and_damaged_frames() {
        let info = FrameInfo::new().content_checksum(true).block_checksums(true);
        let frame = compress(info, &text()[..3000]);
        for end in 1..frame.len() {
            assert!(decompress(&frame[..end], 1 << 20).is_err(), "cut at {end}");
        }
        for at in 0..frame.len() {
            let mut damaged = frame.clone();
            damaged[at] ^= 0x10;
            assert!(decompress(&damaged, 1 << 20).is_err(), "damaged at {at}");
        }
    }

    #[test]
    fn incompressible_content_is_stored() {
        let noise: Vec<u8> = (0..100_000u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        let frame = compress(FrameInfo::new(), &noise);
        assert!(decompress(&frame, noise.len()) == Ok(Some(noise)));
        assert_eq!(decompress(&compress(FrameInfo::new(), b""), 0), Ok(Some(Vec::new())));
    }
}
