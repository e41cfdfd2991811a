//! Convolutions of each channel with its own kernel, in one or two dimensions.
#![allow(unsafe_code)]

use heirloom_runtime::RunCx;

use super::Call;
use super::planes::{Layout, SLACK};
use crate::disjoint::DisjointMut;
use crate::gemm::Gaps;
use crate::lanes::for_level;

pub(super) fn run(call: &Call<'_>, layout: &Layout, cx: &RunCx<'_>, out: &mut [f32]) {
    let (input, output, taps) = heirloom_ops::window::planes(&call.shape.axes);
    let groups = call.shape.groups;
    let planes = call.shape.batch * groups;
    let to = DisjointMut::new(out);
    let (tasks, each) = crate::gemm::share(planes, planes * output * taps, cx.team().threads());
    cx.team().run(tasks, &|task| {
        let mut padded = vec![0.0f32; layout.channel + SLACK];
        let mut watch = cx.cancel().watch();
        for plane in task * each..((task + 1) * each).min(planes) {
            // The caller notices.
            if watch.pass(output).is_err() {
                return;
            }
            let channel = plane % groups;
            layout.fill(&call.x[plane * input..][..input], &mut padded[..layout.channel]);
            // SAFETY: each plane is written by one task.
            let to = unsafe { to.part(plane * output..(plane + 1) * output) };
            let w = &call.w[channel * taps..][..taps];
            let start = call.bias.map_or(0.0, |b| b[channel]);
            plane_of(call.isa, &padded, (w, &layout.taps), start, (layout.places(), layout.gaps()), to);
        }
    });
}

/// Registers of sums under way.
const MANY: usize = 4;

for_level! {
    fn plane_of(
        s,
        padded: &[f32],
        taps: (&[f32], &[u32]),
        start: f32,
        places: (usize, Gaps),
        out: &mut [f32],
    ) {
        let (w, places_of) = taps;
        let (places, gaps) = places;
        let mut line = [0.0f32; MANY * 16];
        let mut at = 0;
        while at < places {
            let count = if places - at > 2 * S::N { MANY } else if places - at > S::N { 2 } else { 1 };
            let mut sums = [s.splat(start); MANY];
            // The number of sums is a constant in each arm, so that they stay in registers.
            macro_rules! sum {
                ($count:literal) => {
                    for (&w, &place) in w.iter().zip(places_of) {
                        let line = &padded[place as usize + at..][..$count * S::N];
                        let factor = s.splat(w);
                        for i in 0..$count {
                            sums[i] = s.fma(factor, s.load(&line[i * S::N..]), sums[i]);
                        }
                    }
                };
            }
            match count {
                1 => sum!(1),
                2 => sum!(2),
                _ => sum!(4),
            }
            let end = (at + count * S::N).min(places);
            for (i, sum) in sums[..count].iter().enumerate() {
                s.store(&mut line[i * S::N..], *sum);
            }
            gaps.close_into(&line, (at, end), out);
            at = end;
        }
    }
}
