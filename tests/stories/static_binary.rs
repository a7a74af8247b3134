//! The binary that is delivered for Linux needs nothing of the machine it runs on.

use crate::harness::binary;

/// A program header's type that names the loader of shared libraries.
const PT_INTERP: u32 = 3;

#[test]
fn the_binary_of_the_tests_has_its_c_library_in_it() {
    if std::env::var_os("GATE_STATIC").is_none() {
        eprintln!("skipped: GATE_STATIC is not set: `cargo xtask test` builds the static binary");
        return;
    }
    let bytes = std::fs::read(binary()).unwrap();
    assert_eq!(&bytes[..5], b"\x7fELF\x02", "a 64-bit ELF");
    let number = |at: usize, width: usize| {
        bytes[at..at + width].iter().rev().fold(0_usize, |number, byte| number << 8 | usize::from(*byte))
    };
    let (first, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    let types: Vec<u32> = (0..count).map(|header| number(first + header * size, 4) as u32).collect();
    assert!(types.contains(&1), "it has segments to load: {types:?}");
    assert!(!types.contains(&PT_INTERP), "it asks for a loader of shared libraries");
}
