//! [`Col2Im`](https://onnx.ai/onnx/operators/onnx__Col2Im.html): columns of windows put back into an image; what
//! falls on the same place is added up.

use half::{bf16, f16};
use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use smallvec::SmallVec;

use crate::attributes::only;
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::integers::{extent, list};
use crate::real::Real;
use crate::reals::misfit;
use crate::window::{FoldAxis, Window, fold, for_each_index};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Col2Im",
    versions: (18, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Col2Im {
    window: Window,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["dilations", "pads", "strides"])?;
    Ok(Box::new(Col2Im { window: Window::parse(&cx.node.attributes)? }))
}

impl Kernel for Col2Im {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16, f64], T => run::<T>(cx, self),
            _ => Err(wrong_type(cx, 0, "real numbers")))
    }
}

fn run<T: Real>(cx: &mut RunCx<'_>, node: &Col2Im) -> Result<(), KernelError> {
    let x = cx.dense(0)?;
    let (image, block) = (list(cx, 1)?, list(cx, 2)?);
    let rank = image.len();
    let fault = || {
        misfit("the input is [batch, channels * block, windows] for the image and the block", &[x.shape()])
    };
    let &[batch, columns, windows] = x.shape() else { return Err(fault()) };
    if block.len() != rank || rank == 0 {
        return Err(fault());
    }
    let axes: SmallVec<[FoldAxis; 3]> = (0..rank)
        .map(|at| {
            let stride = Window::one_of(&node.window.strides, at, rank, "the number of strides")?;
            let dilation = Window::one_of(&node.window.dilations, at, rank, "the number of dilations")?;
            let (before, after) = node.window.pads_of(at, rank)?;
            let (extent, kernel) = (extent("an extent", image[at])?, extent("an extent", block[at])?.max(1));
            let room =
                (extent + before + after).checked_sub((kernel - 1) * dilation + 1).ok_or_else(fault)?;
            Ok(FoldAxis { extent, blocks: room / stride + 1, stride, dilation, before: before as isize })
        })
        .collect::<Result<_, KernelError>>()?;
    let taps: Shape = block.iter().map(|&b| b.max(1) as usize).collect();
    let kernel: usize = taps.iter().product();
    if axes.iter().map(|a| a.blocks).product::<usize>() != windows || !columns.is_multiple_of(kernel) {
        return Err(fault());
    }
    let plane: usize = axes.iter().map(|a| a.extent).product();
    let channels = columns / kernel;
    let shape: Shape = [batch, channels].into_iter().chain(axes.iter().map(|a| a.extent)).collect();
    let wide: Vec<T::Wide> = x.as_slice::<T>()?.iter().map(|v| v.widen()).collect();
    let mut sums = vec![T::Wide::default(); batch * channels * plane];
    let mut watch = cx.cancel().watch();
    for (part, sums) in sums.chunks_exact_mut(plane.max(1)).enumerate() {
        watch.pass(kernel * windows)?;
        for_each_index(&taps, |tap, offset| {
            fold(&wide[(part * kernel + tap) * windows..][..windows], &axes, offset, sums);
        });
    }
    let mut out = cx.alloc(T::DTYPE, &shape)?;
    out.elements_mut::<T>().iter_mut().zip(sums).for_each(|(o, s)| *o = T::narrow(s));
    cx.set(0, out.freeze());
    Ok(())
}
