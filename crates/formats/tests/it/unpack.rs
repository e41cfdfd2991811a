//! Unpacking into registers against the native codecs, at every level of this processor.

use heirloom_formats::{Format, Unpack};
use heirloom_simd::{BLOCK, BLOCKS, Isa, Kernel, LANE_OF_BLOCK, STEP, Simd};
use heirloom_types::Codec;

use crate::random::Random;

/// The elements of one step, from codes, scales and minima.
struct Unpacked<'a, U> {
    records: &'a [u8],
    blocks: usize,
    format: std::marker::PhantomData<U>,
}

#[inline(always)]
fn lanes<S: Simd>(s: S, lanes: S::F32x8) -> [f32; BLOCKS] {
    let mut stored = [f32::NAN; BLOCKS];
    s.store_f32x8(lanes, &mut stored);
    LANE_OF_BLOCK.map(|lane| stored[lane])
}

impl<U: Unpack> Kernel for Unpacked<'_, U> {
    type Output = Vec<f32>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Vec<f32> {
        let Unpacked { records, blocks, .. } = self;
        let whole = blocks == BLOCKS;
        let scales = lanes(s, if whole { U::scales(s, records) } else { U::scales_half(s, records) });
        let minima = lanes(s, if whole { U::minima(s, records) } else { U::minima_half(s, records) });
        let groups = U::groups(records);
        let mut values = Vec::new();
        for block in 0..blocks {
            let codes = U::codes(s, records, block / 4);
            let mut of = [[0; 64]; 2];
            codes.into_iter().zip(&mut of).for_each(|(codes, to)| s.store(codes, to));
            for i in 0..BLOCK {
                let code = of[i / 16][block % 4 * 16 + i % 16];
                let code = if U::SIGNED {
                    i32::from(code as i8)
                } else {
                    assert!(code <= U::MAX, "{} has a code {code} at {}", U::format().name, S::LEVEL);
                    i32::from(code) - U::OFFSET
                };
                let group = if U::GROUPS { i32::from(groups[2 * block + i / 16] as i8) } else { 1 };
                let minimum = if U::MINIMA { minima[block] } else { 0.0 };
                values.push(scales[block] * (code * group) as f32 + minimum);
            }
        }
        if !whole {
            assert_eq!(scales[blocks..], [0.0; 4], "lanes of blocks that are not there");
            assert!(!U::MINIMA || minima[blocks..] == [0.0; 4], "lanes of blocks that are not there");
        }
        values
    }
}

/// Where a record's FLOAT16 values are: all others may be any bytes.
fn f16_fields(format: &Format) -> &'static [usize] {
    match format.name {
        "q4_0" | "q5_0" | "q8_0" => &[0],
        "q4_1" | "q5_1" | "q4_k" | "q5_k" => &[0, 2],
        "q6_k" => &[208],
        other => panic!("{other} is unpacked, but this test does not know its fields"),
    }
}

fn check<U: Unpack>() {
    let format = U::format();
    assert_eq!(U::RECORD_BYTES, format.record_bytes);
    assert_eq!(U::RECORD_BLOCKS * BLOCK, format.elements);
    let mut random = Random(11);
    let halves: &[usize] = if U::RECORD_BLOCKS == 1 { &[BLOCKS, 4] } else { &[BLOCKS] };
    for round in 0..300 {
        let mut records = random.bytes(STEP / format.elements * format.record_bytes);
        for record in records.chunks_exact_mut(format.record_bytes) {
            for &at in f16_fields(format) {
                // Any finite scale: subnormal ones, zeros and the largest too.
                let mut bits = random.next() as u16;
                if bits & 0x7c00 == 0x7c00 || round % 3 == 0 {
                    bits &= !0x7c00;
                }
                record[at..at + 2].copy_from_slice(&bits.to_le_bytes());
            }
        }
        for &blocks in halves {
            let bytes = blocks / U::RECORD_BLOCKS * U::RECORD_BYTES;
            let mut decoded = vec![f32::NAN; blocks * BLOCK];
            format.decode(&records[..bytes], &mut decoded).expect("whole records");
            for isa in Isa::available() {
                let job =
                    Unpacked::<U> { records: &records[..bytes], blocks, format: std::marker::PhantomData };
                assert_eq!(isa.run(job), decoded, "{} at {}, {blocks} blocks", format.name, isa.level());
            }
        }
    }
}

macro_rules! check_all {
    ($($format:ty,)*) => {
        [$((<$format as Unpack>::format as fn() -> &'static Format, check::<$format> as fn()),)*]
    };
}

#[test]
fn registers_hold_what_the_native_codecs_decode() {
    for (format, check) in heirloom_formats::for_each_unpack!(check_all) {
        assert!(format().gguf_type.is_some());
        check();
    }
}
