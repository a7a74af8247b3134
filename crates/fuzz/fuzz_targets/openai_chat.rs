#![doc = "The target `openai_chat`."]
#![no_main]

libfuzzer_sys::fuzz_target!(|body: &[u8]| gate_fuzz::openai_chat(body));
