//! The entries of the fuzz targets over recorded bytes, damaged ones and noise, with a fixed seed.

use std::fs;
use std::path::Path;

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

/// The recorded files, which are the seed corpus of the fuzz targets too: those of `folder` itself, those of
/// its clients.
fn recorded(folder: &Path) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (mut own, mut of_clients) = (Vec::new(), Vec::new());
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            of_clients.extend(recorded(&path).0);
        } else if path.extension().is_some_and(|extension| extension == "bin") {
            own.push(fs::read(path).unwrap());
        }
    }
    (own, of_clients)
}

#[test]
fn requests_of_clients() {
    let mut rng = StdRng::seed_from_u64(3);
    let (_, frames) = recorded(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/requests"));
    assert!(frames.len() > 50);
    for frame in &frames {
        assert!(entry::request_decode(frame) || is_api_versions(frame));
        for _ in 0..50 {
            let mut frame = frame.clone();
            damage(&mut rng, &mut frame);
            entry::request_decode(&frame);
        }
    }
}

/// Clients ask for versions of ApiVersions that are not served.
fn is_api_versions(frame: &[u8]) -> bool {
    frame[4..6] == [0, 18]
}

#[test]
fn batches() {
    let mut rng = StdRng::seed_from_u64(2);
    let (batches, of_clients) = recorded(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/batches"));
    assert!(batches.len() > 10 && of_clients.len() > 10);
    for batch in &batches {
        assert!(entry::batch_view(batch));
    }
    // A file of a client may hold several batches.
    for batch in batches.iter().chain(&of_clients) {
        for _ in 0..100 {
            let mut batch = batch.clone();
            damage(&mut rng, &mut batch);
            entry::batch_view(&batch);
        }
    }
}
