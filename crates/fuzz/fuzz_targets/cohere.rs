#![doc = "The target `cohere`."]
#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| gate_fuzz::cohere(body));
