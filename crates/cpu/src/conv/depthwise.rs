//! Convolutions of each channel with its own kernel, in one or two dimensions.
#![allow(unsafe_code)]

use heirloom_ops::window::Axis;
use heirloom_runtime::RunCx;

use super::Call;
use crate::disjoint::DisjointMut;
use crate::lanes::for_level;

const ONE: Axis = Axis { input: 1, output: 1, kernel: 1, stride: 1, dilation: 1, before: 0, after: 0 };

pub(super) fn run(call: &Call<'_>, cx: &RunCx<'_>, out: &mut [f32]) {
    let (rows, columns) = match *call.shape.axes {
        [columns] => (ONE, columns),
        [rows, columns] => (rows, columns),
        _ => return,
    };
    let (input, output) = (rows.input * columns.input, rows.output * columns.output);
    let taps = rows.kernel * columns.kernel;
    let groups = call.shape.groups;
    let planes = call.shape.batch * groups;
    let to = DisjointMut::new(out);
    let (tasks, each) = crate::gemm::share(planes, planes * output * taps, cx.team().threads());
    cx.team().run(tasks, &|task| {
        // A padded copy of the plane, each phase of the stride in a row of its own, so that all reads are whole.
        let reach = (columns.kernel - 1) * columns.dilation;
        let width = columns.output + reach / columns.stride + 1;
        let mut phases = vec![0.0f32; rows.input * columns.stride * width + 16];
        for plane in task * each..((task + 1) * each).min(planes) {
            let x = &call.x[plane * input..][..input];
            let channel = plane % groups;
            // SAFETY: each plane is written by one task.
            let to = unsafe { to.part(plane * output..(plane + 1) * output) };
            for (row, x) in x.chunks_exact(columns.input).enumerate() {
                for phase in 0..columns.stride {
                    let line = &mut phases[(row * columns.stride + phase) * width..][..width];
                    // Element i of a phase is padded element i * stride + phase.
                    let first = columns.before.saturating_sub(phase).div_ceil(columns.stride).min(width);
                    let from =
                        first * columns.stride + phase - columns.before.min(first * columns.stride + phase);
                    let count =
                        columns.input.saturating_sub(from).div_ceil(columns.stride).min(width - first);
                    line[..first].fill(0.0);
                    line[first + count..].fill(0.0);
                    let x = x[from.min(columns.input)..].iter().step_by(columns.stride);
                    line[first..first + count].iter_mut().zip(x).for_each(|(l, &v)| *l = v);
                }
            }
            let w = &call.w[channel * taps..][..taps];
            let start = call.bias.map_or(0.0, |b| b[channel]);
            plane_of(call.isa, &phases, width, w, start, (&rows, &columns), to);
        }
    });
}

for_level! {
    fn plane_of(
        s,
        phases: &[f32],
        width: usize,
        w: &[f32],
        start: f32,
        axes: (&Axis, &Axis),
        out: &mut [f32],
    ) {
        let (rows, columns) = axes;
        let stride = columns.stride;
        for (y, out) in out.chunks_exact_mut(columns.output).enumerate() {
            let (tap_from, tap_to) = rows.taps(y);
            let mut at = 0;
            while at < columns.output {
                // Four registers of sums at a time.
                let many = columns.output - at >= 4 * S::N;
                let count = if many { 4 } else { 1 };
                let mut sums = [s.splat(start); 4];
                for ky in tap_from..tap_to {
                    let row = rows.place(y, ky) * stride;
                    for kx in 0..columns.kernel {
                        let shift = kx * columns.dilation;
                        let line = &phases[(row + shift % stride) * width + shift / stride + at..];
                        let factor = s.splat(w[ky * columns.kernel + kx]);
                        for (i, sum) in sums[..count].iter_mut().enumerate() {
                            *sum = s.fma(factor, s.load(&line[i * S::N..]), *sum);
                        }
                    }
                }
                if many || columns.output - at >= S::N {
                    for (i, sum) in sums[..count].iter().enumerate() {
                        s.store(&mut out[at + i * S::N..], *sum);
                    }
                } else {
                    let mut last = [0.0f32; 16];
                    s.store(&mut last, sums[0]);
                    out[at..].iter_mut().zip(last).for_each(|(o, v)| *o = v);
                }
                at += count * S::N;
            }
        }
    }
}
