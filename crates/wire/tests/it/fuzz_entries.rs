//! The entries of the fuzz targets over recorded bytes, damaged ones and noise, with a fixed seed.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::requests::every_request;

#[path = "../../fuzz/entry.rs"]
mod entry;

/// One to four changes: bits, bytes, extremes, a cut, a repetition.
fn damage(rng: &mut StdRng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.random_range(1..=4) {
        if bytes.is_empty() {
            return;
        }
        let at = rng.random_range(0..bytes.len());
        match rng.random_range(0..7) {
            0 => bytes[at] ^= 1 << rng.random_range(0..8),
            1 => bytes[at] = rng.random(),
            2 => bytes[at] = 0xff,
            3 => bytes[at..].iter_mut().take(4).for_each(|byte| *byte = 0x7f),
            4 => bytes.truncate(at),
            5 => bytes.insert(at, rng.random()),
            _ => bytes.extend_from_within(at..),
        }
        bytes.truncate(200_000);
    }
}

#[test]
fn requests() {
    let mut rng = StdRng::seed_from_u64(1);
    for (key, version, request) in every_request() {
        let frame = wire::encode_request(key, version, 1, Some("client"), &request).unwrap();
        assert!(entry::request_decode(&frame));
        for _ in 0..200 {
            let mut frame = frame.to_vec();
            damage(&mut rng, &mut frame);
            entry::request_decode(&frame);
        }
        // A plausible head before noise.
        for _ in 0..50 {
            let mut noise = frame[..14].to_vec();
            noise.extend((0..rng.random_range(0..100)).map(|_| rng.random::<u8>() & 0x83));
            entry::request_decode(&noise);
        }
    }
}

#[test]
fn batches() {
    let mut rng = StdRng::seed_from_u64(2);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/batches");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let batches: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "bin"))
        .map(|path| std::fs::read(path).unwrap())
        .collect();
    assert!(batches.len() > 10);
    for batch in &batches {
        assert!(entry::batch_view(batch));
        for _ in 0..100 {
            let mut batch = batch.clone();
            damage(&mut rng, &mut batch);
            entry::batch_view(&batch);
        }
    }
}
