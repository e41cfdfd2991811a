//! [`AffineGrid`](https://onnx.ai/onnx/operators/onnx__AffineGrid.html): where the places of a picture lie after
//! affine maps of the square (or cube) from -1 to 1.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::integers::{extent, list};
use crate::reals::{input, misfit, written};
use crate::window::for_each_index;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "AffineGrid",
    versions: (20, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct AffineGrid {
    align_corners: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["align_corners"])?;
    Ok(Box::new(AffineGrid { align_corners: cx.node.attributes.int_or("align_corners", 0)? != 0 }))
}

impl Kernel for AffineGrid {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (dtype, theta_shape, theta) = input(cx, 0)?;
        let size: Shape = list(cx, 1)?.iter().map(|&d| extent("an extent", d)).collect::<Result<_, _>>()?;
        let fault = || {
            misfit(
                "theta is [batch, n, n + 1] for a size [batch, channels, n spatial extents]",
                &[&theta_shape, &size],
            )
        };
        let (&[batch, n, columns], [size_batch, _, spatial @ ..]) = (&*theta_shape, &*size) else {
            return Err(fault());
        };
        if batch != *size_batch || spatial.len() != n || columns != n + 1 || !(2..=3).contains(&n) {
            return Err(fault());
        }
        let place = |i: usize, extent: usize| match (self.align_corners, extent) {
            (true, 1) => 0.0,
            (true, _) => -1.0 + 2.0 * i as f64 / (extent - 1) as f64,
            (false, _) => -1.0 + (2 * i + 1) as f64 / extent as f64,
        };
        let mut out = Vec::with_capacity(batch * spatial.iter().product::<usize>() * n);
        let mut watch = cx.cancel().watch();
        for theta in theta.chunks_exact(n * columns) {
            let mut on = Ok(());
            for_each_index(spatial, |_, index| {
                on = on.and_then(|()| watch.pass(n * columns));
                if on.is_err() {
                    return;
                }
                for row in theta.chunks_exact(columns) {
                    // Coordinates go x, y, z: the last axis first.
                    let sum: f64 = (0..n).map(|c| row[c] * place(index[n - 1 - c], spatial[n - 1 - c])).sum();
                    out.push(sum + row[n]);
                }
            });
            on?;
        }
        let shape: Shape = [batch].into_iter().chain(spatial.iter().copied()).chain([n]).collect();
        let out = written(cx, dtype, &shape, &out)?;
        cx.set(0, out);
        Ok(())
    }
}
