//! Reads the recorded results of other implementations.

/// A cursor over a recorded file.
pub(crate) struct Fixture<'a>(&'a [u8]);

impl<'a> Fixture<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Fixture<'a> {
        Fixture(bytes)
    }

    pub(crate) fn is_at_end(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&mut self, len: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(len);
        self.0 = rest;
        head
    }

    pub(crate) fn u8(&mut self) -> u8 {
        self.bytes(1)[0]
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.bytes(4).try_into().unwrap())
    }

    pub(crate) fn usize(&mut self) -> usize {
        self.u32() as usize
    }

    pub(crate) fn f32s(&mut self, count: usize) -> Vec<f32> {
        let (words, _) = self.bytes(count * 4).as_chunks::<4>();
        words.iter().map(|word| f32::from_le_bytes(*word)).collect()
    }

    /// A byte string with its length in front.
    pub(crate) fn sized(&mut self) -> &'a [u8] {
        let len = self.usize();
        self.bytes(len)
    }
}
