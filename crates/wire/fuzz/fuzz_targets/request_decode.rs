#![no_main]

#[path = "../entry.rs"]
#[allow(dead_code)]
mod entry;

libfuzzer_sys::fuzz_target!(|frame: &[u8]| {
    entry::request_decode(frame);
});
