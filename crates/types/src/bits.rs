//! Numbers of any width at any bit: least-significant bit first, as ONNX packs its sub-byte types.

/// The `width` bits (1 to 64) at bit `offset` of `bytes`, as an unsigned number; `None` where they do not lie within
/// the bytes or the width is impossible.
#[inline]
pub fn read(bytes: &[u8], offset: u64, width: u32) -> Option<u64> {
    let (start, shift) = place(bytes, offset, width)?;
    let end = start + ((shift + width) as usize).div_ceil(8);
    // Up to 71 bits: 64 and a shift of 7.
    let mut word = 0u128;
    if let Some(sixteen) = bytes.get(start..start + 16) {
        word = u128::from_le_bytes(sixteen.try_into().ok()?);
    } else {
        for (i, &byte) in bytes[start..end].iter().enumerate() {
            word |= u128::from(byte) << (8 * i);
        }
    }
    Some((word >> shift) as u64 & mask(width))
}

/// Writes the low `width` bits (1 to 64) of `value` at bit `offset` and leaves the bits around them; `None`, and
/// nothing is written, where they do not lie within the bytes or the width is impossible.
pub fn write(bytes: &mut [u8], offset: u64, width: u32, value: u64) -> Option<()> {
    let (start, shift) = place(bytes, offset, width)?;
    let end = start + ((shift + width) as usize).div_ceil(8);
    let (keep, value) = (u128::from(mask(width)) << shift, u128::from(value & mask(width)) << shift);
    for (i, byte) in bytes[start..end].iter_mut().enumerate() {
        let at = 8 * i;
        *byte = *byte & !((keep >> at) as u8) | (value >> at) as u8;
    }
    Some(())
}

fn place(bytes: &[u8], offset: u64, width: u32) -> Option<(usize, u32)> {
    if !(1..=64).contains(&width) {
        return None;
    }
    let end = offset.checked_add(u64::from(width))?;
    if end.div_ceil(8) > bytes.len() as u64 {
        return None;
    }
    Some((usize::try_from(offset / 8).ok()?, (offset % 8) as u32))
}

/// The lowest `width` bits set.
pub(crate) fn mask(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

/// The `width`-bit two's complement number in the low bits of `bits`.
#[inline]
pub fn sign_extend(bits: u64, width: u32) -> i64 {
    let shift = 64 - width;
    (bits << shift).cast_signed() >> shift
}

/// Unpacks the `out.len()` codes of `width` bits (1 to 8) from code `first` on; each becomes one byte, zero-extended.
///
/// # Panics
/// When the codes do not lie within the bytes, or the width is impossible.
pub fn unpack(bytes: &[u8], width: u32, first: usize, out: &mut [u8]) {
    assert!((1..=8).contains(&width), "codes of 1 to 8 bits");
    let wide = width as usize;
    let end = first.checked_add(out.len()).and_then(|end| end.checked_mul(wide));
    assert!(end.is_some_and(|end| end.div_ceil(8) <= bytes.len()), "codes within the bytes");
    match width {
        8 => out.iter_mut().zip(&bytes[first..]).for_each(|(to, from)| *to = *from),
        4 => unpack_whole::<2>(bytes, first, out),
        2 => unpack_whole::<4>(bytes, first, out),
        1 => unpack_whole::<8>(bytes, first, out),
        _ => {
            for (i, to) in out.iter_mut().enumerate() {
                let at = (first + i) * wide;
                let word = u16::from(bytes[at / 8]) | u16::from(*bytes.get(at / 8 + 1).unwrap_or(&0)) << 8;
                *to = (word >> (at % 8)) as u8 & (u8::MAX >> (8 - width));
            }
        }
    }
}

/// Codes that lie `PER_BYTE` to a byte.
fn unpack_whole<const PER_BYTE: usize>(bytes: &[u8], first: usize, out: &mut [u8]) {
    let width = 8 / PER_BYTE;
    let mask = u8::MAX >> (8 - width);
    let code = |byte: u8, i: usize| byte >> (i * width) & mask;
    let head = ((PER_BYTE - first % PER_BYTE) % PER_BYTE).min(out.len());
    let (start, rest) = out.split_at_mut(head);
    for (i, to) in start.iter_mut().enumerate() {
        *to = code(bytes[first / PER_BYTE], first % PER_BYTE + i);
    }
    let bytes = &bytes[(first + head) / PER_BYTE..];
    let mut groups = rest.chunks_exact_mut(PER_BYTE);
    let mut at = 0;
    for (group, &byte) in (&mut groups).zip(bytes) {
        for (i, to) in group.iter_mut().enumerate() {
            *to = code(byte, i);
        }
        at += 1;
    }
    for (i, to) in groups.into_remainder().iter_mut().enumerate() {
        *to = code(bytes[at], i);
    }
}

/// Packs codes of `width` bits (1 to 8), the low bits of each byte, from the first bit of `out` on; bits of the last
/// byte behind the last code become zero.
///
/// # Panics
/// When `out` is not exactly as long as the codes need, or the width is impossible.
pub fn pack(codes: &[u8], width: u32, out: &mut [u8]) {
    assert!((1..=8).contains(&width), "codes of 1 to 8 bits");
    let wide = width as usize;
    let bytes = codes.len().checked_mul(wide).map(|bits| bits.div_ceil(8));
    assert_eq!(bytes, Some(out.len()), "room for the codes");
    let mask = u8::MAX >> (8 - width);
    if 8 % width == 0 {
        for (to, group) in out.iter_mut().zip(codes.chunks(8 / wide)) {
            *to = group.iter().enumerate().fold(0, |byte, (i, code)| byte | (code & mask) << (i * wide));
        }
        return;
    }
    out.fill(0);
    for (i, &code) in codes.iter().enumerate() {
        let at = i * wide;
        let word = u16::from(code & mask) << (at % 8);
        out[at / 8] |= word as u8;
        if let Some(next) = out.get_mut(at / 8 + 1) {
            *next |= (word >> 8) as u8;
        }
    }
}
