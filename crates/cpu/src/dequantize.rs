//! `DequantizeLinear` of 8-bit codes; those of constants are kept where the session keeps prepared objects.
#![allow(unsafe_code)]

use heirloom_mem::{DType, Shape, Tensor};
use heirloom_runtime::{
    Kernel, KernelError, KernelLayout, KernelSpec, PrepareCx, Prepared, RunCx, Team, Watch,
};
use heirloom_types::Value;

use crate::disjoint::DisjointMut;
use crate::fallback::{Portable, are_float, may_be_float};
use crate::integers::code;

/// ONNX `DequantizeLinear` of 8-bit codes with FLOAT scales, one or by axis.
pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "DequantizeLinear",
    versions: (10, i64::MAX),
    rank: 10,
    accepts: |cx| {
        cx.plain_inputs()
            && may_be_float(cx, 1)
            && cx.node.attributes.int_or("block_size", 0).is_ok_and(|b| b == 0)
            && cx.node.attributes.int_or("output_dtype", 0).is_ok_and(|t| t == 0)
    },
    build: |cx| {
        let axis = cx.node.attributes.int_or("axis", 1)?;
        Ok(Box::new(Dequantize { axis, prepared: None, portable: Portable::new(cx)? }))
    },
};

struct Dequantize {
    axis: i64,
    prepared: Option<Prepared>,
    portable: Portable,
}

/// FNV-1a, to tell scales and zero points apart.
fn hash(parts: [&[u8]; 2]) -> u64 {
    let bytes = parts.into_iter().flatten();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}

impl Kernel for Dequantize {
    fn prepare(&mut self, cx: &PrepareCx<'_>) {
        let bytes =
            |index: usize| cx.constant(index).and_then(Value::as_tensor).and_then(|t| t.dense_bytes());
        let known = |index: usize| cx.constant(index).is_some() || !cx.has_input(index);
        if let Some(Value::Tensor(x)) = cx.constant(0)
            && known(1)
            && known(2)
        {
            let parameters = [self.axis as u64, hash([bytes(1).unwrap_or(&[]), bytes(2).unwrap_or(&[])])];
            self.prepared = cx.claim(
                0,
                KernelLayout {
                    name: "cpu.f32.dequantized",
                    version: 1,
                    parameters: parameters.into_iter().collect(),
                    bytes: x.len() * size_of::<f32>(),
                },
            );
        }
    }

    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let byte = |t: &Tensor| matches!(t.dtype(), DType::Uint8 | DType::Int8);
        if !byte(cx.tensor(0)?) || !are_float(cx, 1..2) {
            return self.portable.run(cx);
        }
        let (x, scales) = (cx.dense(0)?, cx.dense(1)?);
        let zeros = cx.opt_tensor(2)?.is_some().then(|| cx.dense(2)).transpose()?;
        let shape = Shape::from_slice(x.shape());
        let (extent, inner) = match scales.len() {
            1 => (1, x.len().max(1)),
            len => {
                let axis = heirloom_runtime::normalize_axis(self.axis, shape.len())?;
                if shape[axis] != len {
                    return self.portable.run(cx);
                }
                (len, shape[axis + 1..].iter().product())
            }
        };
        if zeros.as_ref().is_some_and(|z| z.len() != scales.len() || z.dtype() != x.dtype()) {
            return self.portable.run(cx);
        }
        let signed = x.dtype() == DType::Int8;
        let scales = scales.as_slice::<f32>()?;
        let zeros = zeros.as_ref().and_then(|z| z.dense_bytes());
        let codes = x.dense_bytes().unwrap_or(&[]);
        // The codes of each run of one scale, its scale and its zero point.
        let runs = || {
            codes.chunks(inner.max(1)).enumerate().map(|(group, codes)| {
                let zero = zeros.map_or(0.0, |z| code(z[group % extent], signed));
                (codes, scales[group % extent], zero)
            })
        };
        if let Some(prepared) = &self.prepared {
            let made = cx.prepared(0, prepared, |to| {
                let to = to.chunks_mut((inner * size_of::<f32>()).max(1));
                for ((codes, scale, zero), to) in runs().zip(to) {
                    for (&byte, to) in codes.iter().zip(to.as_chunks_mut::<4>().0) {
                        *to = ((code(byte, signed) - zero) * scale).to_ne_bytes();
                    }
                }
                Ok(())
            })?;
            if let Some(bytes) = made {
                cx.set(0, Tensor::new(DType::Float, &shape, bytes)?);
                return Ok(());
            }
        }
        let mut out = cx.alloc(DType::Float, &shape)?;
        if inner == 1 && extent > 1 {
            rows(cx.team(), codes, scales, zeros, signed, out.elements_mut());
            cx.set(0, out.freeze());
            return Ok(());
        }
        let mut watch = cx.cancel().watch();
        for ((codes, scale, zero), to) in runs().zip(out.elements_mut::<f32>().chunks_mut(inner.max(1))) {
            for (to, codes) in to.chunks_mut(Watch::PIECE).zip(codes.chunks(Watch::PIECE)) {
                watch.pass(to.len())?;
                let pairs = to.iter_mut().zip(codes);
                if signed {
                    pairs.for_each(|(t, &c)| *t = (f32::from(c.cast_signed()) - zero) * scale);
                } else {
                    pairs.for_each(|(t, &c)| *t = (f32::from(c) - zero) * scale);
                }
            }
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}

/// Codes per task.
const PIECE: usize = 16384;

/// Rows of codes that have a scale for each column.
fn rows(team: &dyn Team, codes: &[u8], scales: &[f32], zeros: Option<&[u8]>, signed: bool, out: &mut [f32]) {
    let width = scales.len();
    let zeros: Vec<f32> = match zeros {
        Some(zeros) => zeros.iter().map(|&zero| code(zero, signed)).collect(),
        None => vec![0.0; width],
    };
    let step = (PIECE / width).max(1) * width;
    let to = DisjointMut::new(out);
    team.run(codes.len().div_ceil(step), &|task| {
        let range = task * step..((task + 1) * step).min(codes.len());
        // SAFETY: each piece is written by one task.
        let to = unsafe { to.part(range.clone()) };
        for (codes, to) in codes[range].chunks(width).zip(to.chunks_mut(width)) {
            let all = to.iter_mut().zip(codes).zip(scales.iter().zip(&zeros));
            if signed {
                all.for_each(|((t, &c), (scale, zero))| *t = (f32::from(c.cast_signed()) - zero) * scale);
            } else {
                all.for_each(|((t, &c), (scale, zero))| *t = (f32::from(c) - zero) * scale);
            }
        }
    });
}
