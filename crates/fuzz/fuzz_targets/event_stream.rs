#![doc = "The target `event_stream`."]
#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| gate_fuzz::event_stream(body));
