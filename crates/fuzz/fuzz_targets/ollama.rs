#![doc = "The target `ollama`."]
#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| gate_fuzz::ollama(body));
