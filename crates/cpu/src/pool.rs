//! Pools of FLOAT planes: `MaxPool` and `AveragePool` in two dimensions, `GlobalAveragePool` in any.
#![allow(unsafe_code)]

use heirloom_mem::{DType, Shape};
use heirloom_ops::window::{Axis, Window, outputs};
use heirloom_runtime::{BuildCx, Kernel, KernelError, KernelSpec, RunCx, Watch};
use heirloom_simd::Isa;

use crate::disjoint::DisjointMut;
use crate::fallback::{Portable, are_float, may_be_float};
use crate::lanes::{self, for_level};

const fn spec(
    op: &'static str,
    build: fn(&BuildCx<'_>) -> Result<Box<dyn Kernel>, heirloom_runtime::BuildError>,
) -> KernelSpec {
    KernelSpec {
        domain: "",
        op,
        versions: (1, i64::MAX),
        rank: 10,
        accepts: |cx| {
            cx.plain_inputs() && may_be_float(cx, 0) && cx.node.outputs.iter().skip(1).all(Option::is_none)
        },
        build,
    }
}

/// ONNX `MaxPool` without indices.
pub(crate) const MAX: KernelSpec = spec("MaxPool", |cx| Ok(Box::new(Pool::new(cx, Kind::Max)?)));
/// ONNX `AveragePool`.
pub(crate) const AVERAGE: KernelSpec = spec("AveragePool", |cx| {
    let include = cx.node.attributes.int_or("count_include_pad", 0)? != 0;
    Ok(Box::new(Pool::new(cx, if include { Kind::AverageWithPadding } else { Kind::Average })?))
});
/// ONNX `GlobalAveragePool`.
pub(crate) const GLOBAL_AVERAGE: KernelSpec =
    spec("GlobalAveragePool", |cx| Ok(Box::new(GlobalAverage(Portable::new(cx)?))));

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Max,
    Average,
    AverageWithPadding,
}

struct Pool {
    kind: Kind,
    window: Window,
    isa: Isa,
    portable: Portable,
}

impl Pool {
    fn new(cx: &BuildCx<'_>, kind: Kind) -> Result<Pool, heirloom_runtime::BuildError> {
        let portable = Portable::new(cx)?;
        Ok(Pool { kind, window: Window::parse(&cx.node.attributes)?, isa: lanes::selected()?, portable })
    }
}

impl Kernel for Pool {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if !are_float(cx, 0..1) || cx.tensor(0)?.shape().len() != 4 || cx.tensor(0)?.is_empty() {
            return self.portable.run(cx);
        }
        let x = cx.dense(0)?;
        let axes = self.window.axes(&x.shape()[2..], &self.window.kernel()?)?;
        let &[rows, columns] = &axes[..] else { return self.portable.run(cx) };
        let shape: Shape = x.shape()[..2].iter().copied().chain(outputs(&axes)).collect();
        let (input, output) = (rows.input * columns.input, rows.output * columns.output);
        let planes = x.shape()[0] * x.shape()[1];
        let from = x.as_slice::<f32>()?;
        // NaN is greater than all numbers in a pool, which `max` does not know.
        if self.kind == Kind::Max {
            for piece in from.chunks(8 * Watch::PIECE) {
                cx.cancel().check()?;
                if piece.iter().any(|v| v.is_nan()) {
                    return self.portable.run(cx);
                }
            }
        }
        let mut out = cx.alloc(DType::Float, &shape)?;
        let to = DisjointMut::new(out.elements_mut::<f32>());
        let work = planes * output * rows.kernel * columns.kernel;
        let (tasks, each) = crate::gemm::share(planes, work, cx.team().threads());
        let (isa, cancel) = (self.isa, cx.cancel());
        cx.team().run(tasks, &|task| {
            let mut line = vec![0.0; columns.input];
            let mut watch = cancel.watch();
            for plane in task * each..((task + 1) * each).min(planes) {
                // SAFETY: each plane is written by one task.
                let to = unsafe { to.part(plane * output..(plane + 1) * output) };
                self.plane(
                    isa,
                    &from[plane * input..][..input],
                    to,
                    (&rows, &columns),
                    &mut line,
                    &mut watch,
                );
            }
        });
        cx.cancel().check()?;
        cx.set(0, out.freeze());
        Ok(())
    }
}

impl Pool {
    /// One plane; what is left out where the call is cancelled is noticed by the caller.
    fn plane(
        &self,
        isa: Isa,
        x: &[f32],
        out: &mut [f32],
        (rows, columns): (&Axis, &Axis),
        line: &mut [f32],
        watch: &mut Watch<'_>,
    ) {
        let max = self.kind == Kind::Max;
        for (y, out) in out.chunks_exact_mut(columns.output).enumerate() {
            if watch.pass(columns.input + columns.output).is_err() {
                return;
            }
            let (from, to) = rows.taps(y);
            // One line of all rows of the window, then its columns.
            let first = if max { f32::NEG_INFINITY } else { 0.0 };
            line.fill(first);
            out.fill(first);
            for ky in from..to {
                gather(isa, &x[rows.place(y, ky) * columns.input..][..columns.input], 1, max, line);
            }
            for kx in 0..columns.kernel {
                // Places whose tap falls on the input.
                let reach = kx * columns.dilation;
                let first = columns.before.saturating_sub(reach).div_ceil(columns.stride).min(columns.output);
                let end = (columns.input + columns.before).saturating_sub(reach).div_ceil(columns.stride);
                let end = end.clamp(first, columns.output);
                if first < end {
                    let line = &line[first * columns.stride + reach - columns.before..];
                    gather(isa, line, columns.stride, max, &mut out[first..end]);
                }
            }
            if max {
                continue;
            }
            for (i, out) in out.iter_mut().enumerate() {
                let count = match self.kind {
                    Kind::AverageWithPadding => rows.padded_taps(y) * columns.padded_taps(i),
                    _ => {
                        let (first, last) = columns.taps(i);
                        (to - from) * (last - first)
                    }
                };
                *out /= count as f32;
            }
        }
    }
}

for_level! {
    /// Adds every `stride`th of x to `to`, or takes the greater.
    fn gather(_s, x: &[f32], stride: usize, max: bool, to: &mut [f32]) {
        match (max, stride) {
            (true, 1) => to.iter_mut().zip(x).for_each(|(t, &v)| *t = if v > *t { v } else { *t }),
            (true, 2) => {
                let (pairs, rest) = x.as_chunks::<2>();
                let (whole, last) = to.split_at_mut(to.len().min(pairs.len()));
                whole.iter_mut().zip(pairs).for_each(|(t, v)| *t = if v[0] > *t { v[0] } else { *t });
                last.iter_mut().zip(rest).for_each(|(t, &v)| *t = if v > *t { v } else { *t });
            }
            (true, _) => {
                to.iter_mut().zip(x.iter().step_by(stride)).for_each(|(t, &v)| *t = if v > *t { v } else { *t });
            }
            (false, 1) => to.iter_mut().zip(x).for_each(|(t, &v)| *t += v),
            (false, _) => to.iter_mut().zip(x.iter().step_by(stride)).for_each(|(t, &v)| *t += v),
        }
    }
}

struct GlobalAverage(Portable);

impl Kernel for GlobalAverage {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        if !are_float(cx, 0..1) || cx.tensor(0)?.shape().len() < 3 || cx.tensor(0)?.is_empty() {
            return self.0.run(cx);
        }
        let x = cx.dense(0)?;
        let shape: Shape =
            x.shape().iter().enumerate().map(|(axis, &d)| if axis < 2 { d } else { 1 }).collect();
        let plane: usize = x.shape()[2..].iter().product();
        let mut out = cx.alloc(DType::Float, &shape)?;
        let planes = x.as_slice::<f32>()?.chunks_exact(plane);
        let mut watch = cx.cancel().watch();
        for (to, x) in out.elements_mut::<f32>().iter_mut().zip(planes) {
            watch.pass(plane / 8)?;
            let (chunks, rest) = x.as_chunks::<16>();
            let mut sums = [0.0f32; 16];
            chunks.iter().for_each(|c| sums.iter_mut().zip(c).for_each(|(s, v)| *s += v));
            *to = (sums.iter().sum::<f32>() + rest.iter().sum::<f32>()) / plane as f32;
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}
