//! The few facts about a shared library that the size gate asks for, read from its ELF headers (System V ABI, 64 bit,
//! little-endian).

/// What a shared library takes and offers.
pub(crate) struct Library {
    /// The file's length.
    pub(crate) bytes: u64,
    /// The length of `.text`.
    pub(crate) text: u64,
    /// Defined dynamic symbols.
    pub(crate) symbols: u64,
    /// Names of the libraries that it needs (`DT_NEEDED`).
    pub(crate) needed: Vec<String>,
}

/// A section header.
struct Section<'a> {
    name: usize,
    kind: u64,
    link: usize,
    body: &'a [u8],
}

const DYNAMIC: u64 = 6;
const DYNSYM: u64 = 11;
const NO_BITS: u64 = 8;
const DT_NEEDED: u64 = 1;

fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
}

fn position(bytes: &[u8], at: usize, length: usize) -> Option<usize> {
    usize::try_from(number(bytes, at, length)?).ok()
}

fn name(strings: &[u8], at: usize) -> Option<&str> {
    std::str::from_utf8(strings.get(at..)?.split(|byte| *byte == 0).next()?).ok()
}

impl Library {
    /// Reads a library; `None` when the bytes are none.
    pub(crate) fn read(file: &[u8]) -> Option<Library> {
        if !file.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let (table, count, names) =
            (position(file, 0x28, 8)?, position(file, 0x3c, 2)?, position(file, 0x3e, 2)?);
        let sections: Vec<Section<'_>> = (0..count)
            .map(|index| {
                let at = table + index * 0x40;
                let kind = number(file, at + 4, 4)?;
                let (offset, size) = (position(file, at + 0x18, 8)?, position(file, at + 0x20, 8)?);
                let body = if kind == NO_BITS { &[] } else { file.get(offset..offset.checked_add(size)?)? };
                Some(Section {
                    name: position(file, at, 4)?,
                    kind,
                    link: position(file, at + 0x28, 4)?,
                    body,
                })
            })
            .collect::<Option<_>>()?;
        let names = sections.get(names)?.body;
        let text = sections.iter().find(|section| name(names, section.name) == Some(".text"))?;
        let symbols = sections.iter().find(|section| section.kind == DYNSYM)?;
        let defined = symbols.body.chunks_exact(0x18).filter(|symbol| number(symbol, 6, 2) != Some(0));
        let dynamic = sections.iter().find(|section| section.kind == DYNAMIC)?;
        let strings = sections.get(dynamic.link)?.body;
        let needed = dynamic.body.chunks_exact(0x10).filter(|entry| number(entry, 0, 8) == Some(DT_NEEDED));
        Some(Library {
            bytes: u64::try_from(file.len()).ok()?,
            text: u64::try_from(text.body.len()).ok()?,
            symbols: u64::try_from(defined.count()).ok()?,
            needed: needed
                .map(|entry| name(strings, position(entry, 8, 8)?).map(str::to_owned))
                .collect::<Option<_>>()?,
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn this_very_program_is_read_and_other_bytes_are_refused() {
        let mut bytes = Vec::new();
        std::fs::File::open(std::env::current_exe().unwrap()).unwrap().read_to_end(&mut bytes).unwrap();
        let program = Library::read(&bytes).unwrap();
        assert_eq!(program.bytes, u64::try_from(bytes.len()).unwrap());
        assert!(program.text > 100_000 && program.text < program.bytes, "{}", program.text);
        assert!(program.needed.iter().any(|name| name.starts_with("libc.so.")), "{:?}", program.needed);
        assert!(Library::read(b"\x7fELF\x02\x01").is_none());
        assert!(Library::read(&bytes[..bytes.len() / 2]).is_none());
        assert!(Library::read(b"no library").is_none());
    }
}
