//! `DynamicQuantizeLinear`: UINT8 codes of FLOAT numbers, for the range that they have.
#![allow(unsafe_code)]

use heirloom_mem::{DType, Tensor};
use heirloom_runtime::{Kernel, KernelError, KernelSpec, RunCx};
use heirloom_simd::Isa;

use crate::disjoint::DisjointMut;
use crate::fallback::{Portable, are_float, may_be_float};
use crate::lanes::{self, for_level};

/// ONNX `DynamicQuantizeLinear`.
pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "DynamicQuantizeLinear",
    versions: (11, i64::MAX),
    rank: 10,
    accepts: |cx| cx.plain_inputs() && may_be_float(cx, 0),
    build: |cx| Ok(Box::new(Quantize { isa: lanes::selected()?, portable: Portable::new(cx)? })),
};

struct Quantize {
    isa: Isa,
    portable: Portable,
}

/// What codes stand for: `scale * (code - zero)`.
#[derive(Clone, Copy)]
pub(crate) struct Scale {
    pub(crate) scale: f32,
    pub(crate) zero: u8,
}

impl Scale {
    /// The scale whose codes cover all of `x`, and zero; `None` where a number is not finite.
    pub(crate) fn of(isa: Isa, x: &[f32]) -> Option<Scale> {
        let mut range = Range { low: 0.0, high: 0.0, finite: true };
        range_of(isa, x, &mut range);
        if !range.finite || !(range.high - range.low).is_finite() {
            return None;
        }
        let scale = if range.high == range.low { 1.0 } else { (range.high - range.low) / 255.0 };
        let zero = (-range.low / scale).round_ties_even().clamp(0.0, 255.0) as u8;
        // A range of less than the smallest normal numbers has no scale to divide by.
        (scale > 0.0).then_some(Scale { scale, zero })
    }

    /// Writes the codes of `x`.
    pub(crate) fn codes(self, isa: Isa, x: &[f32], to: &mut [u8]) {
        codes_of(isa, x, self, to);
    }
}

/// Elements per task.
const PIECE: usize = 16384;

impl Kernel for Quantize {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if !are_float(cx, 0..1) {
            return self.portable.run(cx);
        }
        let x = cx.dense(0)?;
        let values = x.as_slice::<f32>()?;
        let Some(scale) = Scale::of(self.isa, values) else { return self.portable.run(cx) };
        let mut out = cx.alloc(DType::Uint8, x.shape())?;
        let to = DisjointMut::new(out.bytes_mut());
        cx.team().run(values.len().div_ceil(PIECE), &|task| {
            if task > 0 && cx.cancel().is_cancelled() {
                return;
            }
            let range = task * PIECE..((task + 1) * PIECE).min(values.len());
            // SAFETY: each piece is written by one task.
            scale.codes(self.isa, &values[range.clone()], unsafe { to.part(range) });
        });
        cx.cancel().check()?;
        cx.set(0, out.freeze());
        if cx.wants(1) {
            cx.set(1, Tensor::scalar(scale.scale));
        }
        if cx.wants(2) {
            cx.set(2, Tensor::scalar(scale.zero));
        }
        Ok(())
    }
}

pub(crate) struct Range {
    low: f32,
    high: f32,
    finite: bool,
}

for_level! {
    fn range_of(s, x: &[f32], range: &mut Range) {
        let zero = s.splat(0.0);
        let (mut low, mut high, mut check) = ([zero; 2], [zero; 2], [zero; 2]);
        let mut chunks = x.chunks_exact(2 * S::N);
        for chunk in &mut chunks {
            for i in 0..2 {
                let v = s.load(&chunk[i * S::N..]);
                (low[i], high[i]) = (s.min(v, low[i]), s.max(v, high[i]));
                // 0, or NaN where a number is not finite.
                check[i] = s.add(check[i], s.sub(v, v));
            }
        }
        let low = s.min(low[0], low[1]);
        range.low = -s.largest(s.sub(zero, low));
        range.high = s.largest(s.max(high[0], high[1]));
        range.finite = s.sum(s.add(check[0], check[1])) == 0.0;
        for &v in chunks.remainder() {
            range.low = range.low.min(v);
            range.high = range.high.max(v);
            range.finite &= v.is_finite();
        }
    }
}

for_level! {
    fn codes_of(s, x: &[f32], scale: Scale, to: &mut [u8]) {
        let (divisor, zero) = (s.splat(scale.scale), s.splat(f32::from(scale.zero)));
        let (least, most) = (s.splat(0.0), s.splat(255.0));
        for (from, to) in x.chunks(16).zip(to.chunks_mut(16)) {
            let mut part = [0.0f32; 16];
            let from = match from.first_chunk::<16>() {
                Some(from) => from,
                None => {
                    part.iter_mut().zip(from).for_each(|(p, &v)| *p = v);
                    &part
                }
            };
            let mut rounded = [0.0f32; 16];
            for at in (0..16).step_by(S::N) {
                let code = s.add(s.round(s.div(s.load(&from[at..]), divisor)), zero);
                s.store(&mut rounded[at..], s.min(s.max(code, least), most));
            }
            // SAFETY: the numbers lie within 0..=255.
            let codes: [u8; 16] = std::array::from_fn(|i| unsafe { rounded[i].to_int_unchecked::<i32>() } as u8);
            to.iter_mut().zip(codes).for_each(|(t, c)| *t = c);
        }
    }
}
