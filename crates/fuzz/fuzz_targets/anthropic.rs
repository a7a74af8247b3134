#![doc = "The target `anthropic`."]
#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| gate_fuzz::anthropic(body));
