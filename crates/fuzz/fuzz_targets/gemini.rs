#![doc = "The target `gemini`."]
#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| gate_fuzz::gemini(body));
