#![doc = "The target `openai_responses`."]
#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| gate_fuzz::openai_responses(body));
