//! Bit packing against a slow definition.

use heirloom_types::bits;
use proptest::prelude::*;

/// Bit `i` of `bytes`, least-significant first.
fn bit(bytes: &[u8], i: usize) -> u64 {
    u64::from(bytes[i / 8] >> (i % 8) & 1)
}

proptest! {
    // proves: L2
    #[test]
    fn any_bits_are_read_as_the_definition_says(
        bytes in proptest::collection::vec(any::<u8>(), 0..24),
        offset in 0u64..200,
        width in 0u32..70,
    ) {
        let end = offset + u64::from(width);
        let read = bits::read(&bytes, offset, width);
        if !(1..=64).contains(&width) || end > bytes.len() as u64 * 8 {
            prop_assert_eq!(read, None);
        } else {
            let expected = (0..width as usize).fold(0, |n, i| n | bit(&bytes, offset as usize + i) << i);
            prop_assert_eq!(read, Some(expected));
        }
    }

    #[test]
    fn written_bits_are_read_back_and_the_others_stay(
        bytes in proptest::collection::vec(any::<u8>(), 9..24),
        offset in 0u64..64,
        width in 1u32..65,
        value in any::<u64>(),
    ) {
        let mut changed = bytes.clone();
        let fits = offset + u64::from(width) <= bytes.len() as u64 * 8;
        prop_assert_eq!(bits::write(&mut changed, offset, width, value).is_some(), fits);
        for i in 0..bytes.len() * 8 {
            let inside = fits && (offset..offset + u64::from(width)).contains(&(i as u64));
            let expected = if inside { value >> (i as u64 - offset) & 1 } else { bit(&bytes, i) };
            prop_assert_eq!(bit(&changed, i), expected);
        }
    }

    // proves: A2
    #[test]
    fn codes_of_every_width_unpack_from_anywhere_and_pack_again(
        width in 1u32..9,
        codes in proptest::collection::vec(any::<u8>(), 0..70),
        skip in 0usize..20,
    ) {
        let codes: Vec<u8> = codes.iter().map(|c| c & (u8::MAX >> (8 - width))).collect();
        let mut packed = vec![0xff; (codes.len() * width as usize).div_ceil(8)];
        bits::pack(&codes, width, &mut packed);
        for (i, code) in codes.iter().enumerate() {
            let read = bits::read(&packed, i as u64 * u64::from(width), width);
            prop_assert_eq!(read, Some(u64::from(*code)));
        }
        let used = codes.len() * width as usize % 8;
        if used != 0 {
            prop_assert_eq!(packed.last().unwrap() >> used, 0);
        }
        let skip = skip.min(codes.len());
        let mut out = vec![0; codes.len() - skip];
        bits::unpack(&packed, width, skip, &mut out);
        prop_assert_eq!(&out[..], &codes[skip..]);
    }
}

#[test]
fn twos_complement_codes_are_sign_extended() {
    assert_eq!([0x8, 0xf, 0x7].map(|code| bits::sign_extend(code, 4)), [-8, -1, 7]);
    assert_eq!(bits::sign_extend(u64::MAX, 64), -1);
    assert_eq!(bits::sign_extend(1, 1), -1);
}
