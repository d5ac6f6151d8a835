//! What the fuzz targets run (`make soak`); tests/it/fuzz_entries.rs runs the same for a short time in every test run.

use bytes::Bytes;
use wire::batch::{BatchView, ProduceLimits, ProducedBatch, Records};
use wire::{FrameHead, FrameLimits, RequestHeader, decode_request};

/// A frame as a connection reads it. Returns whether it held a request.
pub(crate) fn request_decode(frame: &[u8]) -> bool {
    let Some(Ok(head)) = frame.first_chunk().map(FrameHead::parse) else {
        return false;
    };
    let _ = FrameLimits::default().check(&head);
    // The size field is for the connection; what was read is what there is.
    let mut body = Bytes::copy_from_slice(&frame[8..]);
    let Ok(header) = RequestHeader::decode(head.api_key, head.api_version, &mut body) else {
        return false;
    };
    decode_request(header.api_key, header.api_version, body).is_ok()
}

/// Record batches as a producer sends them and as a consumer reads them. Returns whether they could be produced.
pub(crate) fn batch_view(bytes: &[u8]) -> bool {
    const LIMIT: usize = 1 << 20;
    let mut rest = bytes;
    while let Ok((view, tail)) = BatchView::parse(rest) {
        rest = tail;
        let _ = view.crc_is_valid();
        // Past the CRC, which a fuzzer cannot guess.
        let _ = ProducedBatch::validate(view.header().assemble(view.payload()), LIMITS);
        if let Ok(records) = view.decompress(LIMIT) {
            assert!(records.len() <= LIMIT);
            for record in Records::new(&records).flatten() {
                assert_eq!(record.headers.iter().count(), record.headers.len());
            }
        }
    }
    const LIMITS: ProduceLimits = ProduceLimits { max_batch_bytes: LIMIT, max_decompressed_bytes: LIMIT };
    match ProducedBatch::validate(Bytes::copy_from_slice(bytes), LIMITS) {
        Ok(batch) => {
            assert_eq!(batch.records().count(), batch.record_count());
            true
        }
        Err(_) => false,
    }
}
