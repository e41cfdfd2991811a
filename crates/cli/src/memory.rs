//! How much memory this process uses.

/// Private (anonymous) resident memory in bytes, as the system reports it (`RssAnon`); `None` where it does not.
pub(crate) fn private_bytes() -> Option<u64> {
    kib("/proc/self/status", "RssAnon:").map(|kib| kib * 1024)
}

/// Resident memory in bytes, mapped files included.
pub(crate) fn resident_bytes() -> Option<u64> {
    kib("/proc/self/status", "VmRSS:").map(|kib| kib * 1024)
}

/// The most resident memory so far, in bytes.
pub(crate) fn peak_bytes() -> Option<u64> {
    kib("/proc/self/status", "VmHWM:").map(|kib| kib * 1024)
}

/// Bytes that this process made the system read from storage.
pub(crate) fn read_bytes() -> Option<u64> {
    kib("/proc/self/io", "read_bytes:")
}

/// The number behind `key`.
fn kib(file: &str, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}
