//! Byte-level spelling: every byte is written as one printable character, as GPT-2 began it. Bytes that print in
//! Latin-1 stand for themselves; the others are U+0100, U+0101, … in order.

/// Whether `byte` stands for itself.
const fn prints(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The byte for each character below U+0144, or 256 where a character stands for none.
const BYTES: [u16; 0x144] = {
    let mut table = [256; 0x144];
    let mut next = 0x100;
    let mut byte = 0;
    while byte < 256 {
        if prints(byte as u8) {
            table[byte] = byte as u16;
        } else {
            table[next] = byte as u16;
            next += 1;
        }
        byte += 1;
    }
    table
};

/// The byte that `character` spells.
pub(crate) fn byte_of(character: char) -> Option<u8> {
    let byte = *BYTES.get(character as usize)?;
    u8::try_from(byte).ok()
}

/// Appends to `out` the bytes that `spelling` stands for; false, and nothing appended, when it is not byte-level.
pub(crate) fn append_bytes(spelling: &str, out: &mut Vec<u8>) -> bool {
    let start = out.len();
    for character in spelling.chars() {
        match byte_of(character) {
            Some(byte) => out.push(byte),
            None => {
                out.truncate(start);
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_exactly_one_character() {
        let mut seen = std::collections::BTreeSet::new();
        for character in (0..0x144).filter_map(char::from_u32) {
            if let Some(byte) = byte_of(character) {
                assert!(seen.insert(byte), "{byte}");
            }
        }
        assert_eq!(seen.len(), 256);
        // The spellings that every GPT-2 vocabulary shows: space, newline, tab, é in two bytes.
        assert_eq!(['Ġ', 'Ċ', 'ĉ', 'Ã', '©'].map(byte_of), [b' ', b'\n', b'\t', 0xC3, 0xA9].map(Some));
        assert_eq!((byte_of('\u{144}'), byte_of('あ')), (None, None));
    }
}
