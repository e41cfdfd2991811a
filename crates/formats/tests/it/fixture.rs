//! Reads recorded bytes one part after another.

pub(crate) struct Fixture(&'static [u8]);

impl Fixture {
    pub(crate) fn new(bytes: &'static [u8]) -> Fixture {
        Fixture(bytes)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn bytes(&mut self, count: usize) -> &'static [u8] {
        let (head, rest) = self.0.split_at(count);
        self.0 = rest;
        head
    }

    pub(crate) fn number(&mut self) -> usize {
        u32::from_le_bytes(self.bytes(4).try_into().unwrap()) as usize
    }

    pub(crate) fn floats(&mut self, count: usize) -> Vec<f32> {
        self.bytes(4 * count).as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect()
    }
}
