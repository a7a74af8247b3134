#![doc = "The target `saved`."]
#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| gate_fuzz::saved(body));
