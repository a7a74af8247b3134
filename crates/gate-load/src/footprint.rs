//! What this process takes of its machine: open descriptors and resident memory.

use gate_model::Footprint;

/// What this process has at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resources {
    /// Open descriptors, less the one with which they are counted.
    pub(crate) descriptors: Option<u32>,
    /// Resident memory, in bytes.
    pub(crate) memory: Option<u64>,
}

impl Resources {
    /// What it has now; nothing is known where the system does not tell.
    pub(crate) fn now() -> Self {
        Self { descriptors: descriptors(), memory: memory() }
    }

    /// The footprint of a run that began with these resources and ends now.
    pub(crate) fn footprint(self, connections: u32, journal_bytes: u64) -> Footprint {
        let now = Self::now();
        Footprint {
            connections,
            descriptors: self.descriptors.zip(now.descriptors),
            memory: self.memory.zip(now.memory),
            journal_bytes,
        }
    }
}

#[cfg(target_os = "linux")]
fn descriptors() -> Option<u32> {
    let open = std::fs::read_dir("/proc/self/fd").ok()?.filter(Result::is_ok).count();
    u32::try_from(open.saturating_sub(1)).ok()
}

#[cfg(target_os = "linux")]
fn memory() -> Option<u64> {
    let pages = resident_pages(&std::fs::read_to_string("/proc/self/statm").ok()?)?;
    pages.checked_mul(u64::try_from(rustix::param::page_size()).ok()?)
}

/// The second field of `statm`, in pages.
#[cfg(any(target_os = "linux", test))]
fn resident_pages(statm: &str) -> Option<u64> {
    statm.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(not(target_os = "linux"))]
fn descriptors() -> Option<u32> {
    None
}

#[cfg(not(target_os = "linux"))]
fn memory() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_the_second_field() {
        assert_eq!(resident_pages("6171 1234 900 10 0 300 0\n"), Some(1_234));
        assert_eq!(resident_pages("6171"), None);
        assert_eq!(resident_pages("a b c"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_opened_and_filled_is_seen() {
        let before = Resources::now();
        // Other tests open and close too: so many that those do not matter.
        let files: Vec<_> = (0..200).map(|_| std::fs::File::open("/proc/self/statm").unwrap()).collect();
        let filled = vec![1_u8; 64 << 20];
        let footprint = before.footprint(3, 42);
        assert!(filled.iter().all(|byte| *byte == 1));
        let (from, to) = footprint.descriptors.unwrap();
        assert!(to > from + 100 && to < from + 300, "{from} {to}");
        let (from, to) = footprint.memory.unwrap();
        assert!(to > from + (48 << 20), "{from} {to}");
        assert_eq!((footprint.connections, footprint.journal_bytes), (3, 42));
        drop(files);
    }
}
