//! The wire format itself: varints, tags, and how to step over a field without knowing it.

use std::ops::Range;

use crate::error::Problem;

pub(crate) const VARINT: u32 = 0;
pub(crate) const FIXED64: u32 = 1;
pub(crate) const LENGTH: u32 = 2;
pub(crate) const GROUP: u32 = 3;
pub(crate) const GROUP_END: u32 = 4;
pub(crate) const FIXED32: u32 = 5;

/// Groups within groups are followed this deep.
const GROUP_DEPTH: usize = 100;

/// A `usize` as `u64`; no machine has longer addresses.
pub(crate) fn wide(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

/// The low 32 bits, which is how a longer varint reads where 32 bits are expected.
pub(crate) fn low32(value: u64) -> u32 {
    u32::try_from(value & 0xffff_ffff).unwrap_or(0)
}

/// A cursor over the bytes of one message.
#[allow(unreachable_pub, reason = "in the signature of the sealed trait of packed elements")]
pub struct Reader<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    fn truncated(&self, needed: u64) -> Problem {
        Problem::Truncated { needed, left: wide(self.left()) }
    }

    #[inline]
    pub(crate) fn varint(&mut self) -> Result<u64, Problem> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u64::from(byte))
            }
            _ => self.long_varint(10),
        }
    }

    #[inline(never)]
    fn long_varint(&mut self, most: u32) -> Result<u64, Problem> {
        let mut value = 0u64;
        let mut at = self.at;
        for index in 0..most {
            let Some(&byte) = self.bytes.get(at) else { return Err(self.truncated(u64::from(index) + 1)) };
            at += 1;
            // Bits above the 64th are dropped, as every protobuf reader does.
            value |= u64::from(byte & 0x7f) << (index * 7);
            if byte < 0x80 {
                self.at = at;
                return Ok(value);
            }
        }
        Err(Problem::LongVarint)
    }

    /// A field's number and wire type in one: `number << 3 | wire type`, the number not zero.
    #[inline]
    pub(crate) fn tag(&mut self) -> Result<u32, Problem> {
        let tag = self.any_tag()?;
        if tag >> 3 == 0 { Err(Problem::FieldNumber) } else { Ok(tag) }
    }

    #[inline]
    fn any_tag(&mut self) -> Result<u32, Problem> {
        match self.bytes.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(u32::from(byte))
            }
            _ => u32::try_from(self.long_varint(5)?).map_err(|_| Problem::FieldNumber),
        }
    }

    /// Where the bytes of a length-delimited field lie; the cursor then stands behind them.
    #[inline]
    pub(crate) fn delimited(&mut self) -> Result<Range<usize>, Problem> {
        let length = self.varint()?;
        match usize::try_from(length) {
            Ok(n) if n <= self.left() => {
                let start = self.at;
                self.at += n;
                Ok(start..self.at)
            }
            _ => Err(self.truncated(length)),
        }
    }

    #[inline]
    pub(crate) fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Problem> {
        match self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<N>()) {
            Some(bytes) => {
                self.at += N;
                Ok(*bytes)
            }
            None => Err(self.truncated(wide(N))),
        }
    }

    /// Steps over the value of a field whose tag was just read.
    pub(crate) fn skip(&mut self, tag: u32) -> Result<(), Problem> {
        match tag & 7 {
            VARINT => self.varint().map(drop),
            FIXED64 => self.fixed::<8>().map(drop),
            LENGTH => self.delimited().map(drop),
            GROUP => self.skip_group(tag >> 3),
            GROUP_END => Err(Problem::GroupEnd { number: tag >> 3 }),
            FIXED32 => self.fixed::<4>().map(drop),
            wire_type => Err(Problem::WireType { number: tag >> 3, wire_type }),
        }
    }

    fn skip_group(&mut self, number: u32) -> Result<(), Problem> {
        let mut open = vec![number];
        while let Some(&innermost) = open.last() {
            // Other readers do not look at the numbers in here.
            let tag = self.any_tag()?;
            match tag & 7 {
                GROUP if open.len() >= GROUP_DEPTH => {
                    return Err(Problem::TooDeep { limit: GROUP_DEPTH });
                }
                GROUP => open.push(tag >> 3),
                GROUP_END if tag >> 3 == innermost => drop(open.pop()),
                _ => self.skip(tag)?,
            }
        }
        Ok(())
    }

    /// How many fields with this very tag, a length-delimited one, follow one another from here.
    pub(crate) fn run_length(&self, tag: u32) -> usize {
        let mut ahead = Reader { bytes: self.bytes, at: self.at };
        let mut count = 0;
        while !ahead.is_at_end() && ahead.tag().is_ok_and(|next| next == tag) && ahead.delimited().is_ok() {
            count += 1;
        }
        count
    }
}

/// How many bytes a varint takes.
pub(crate) fn varint_len(value: u64) -> u64 {
    u64::from((70 - (value | 1).leading_zeros()) / 7)
}

/// Appends a varint.
pub(crate) fn put_varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
        value >>= 7;
    }
    to.push(u8::try_from(value).unwrap_or(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_varint_is_what_writing_it_takes() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, (1u64 << shift) | 1] {
                let mut bytes = Vec::new();
                put_varint(&mut bytes, value);
                assert_eq!(varint_len(value), wide(bytes.len()), "{value}");
                assert_eq!(Reader::new(&bytes).varint(), Ok(value));
            }
        }
        assert_eq!(varint_len(u64::MAX), 10);
    }

    #[test]
    fn a_varint_of_more_than_ten_bytes_is_refused() {
        let mut bytes = vec![0xff; 9];
        bytes.push(0x7f);
        assert_eq!(Reader::new(&bytes).varint(), Ok(u64::MAX));
        assert_eq!(Reader::new(&[0x80; 11]).varint(), Err(Problem::LongVarint));
        assert_eq!(Reader::new(&[0x80; 3]).varint(), Err(Problem::Truncated { needed: 4, left: 3 }));
    }

    #[test]
    fn groups_nest_and_end_with_their_own_number() {
        // 5: { 6: { 7: 1 } }
        let mut reader = Reader::new(&[0x33, 0x38, 1, 0x34, 0x2c]);
        assert_eq!(reader.skip(0x2b), Ok(()));
        assert!(reader.is_at_end());
        assert_eq!(Reader::new(&[0x34]).skip(0x2b), Err(Problem::GroupEnd { number: 6 }));
        assert_eq!(Reader::new(&[0x33; 200]).skip(0x2b), Err(Problem::TooDeep { limit: 100 }));
    }
}
