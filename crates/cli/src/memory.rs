//! How much memory this process uses.

/// Private (anonymous) resident memory in bytes, as the system reports it (`RssAnon`); `None` where it does not.
pub(crate) fn private_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
