//! [`MelWeightMatrix`](https://onnx.ai/onnx/operators/onnx__MelWeightMatrix.html): how much each bin of a spectrum
//! counts in each band of the mel scale: triangles that overlap by half.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use super::quantize_linear::type_attribute;
use crate::attributes::only;
use crate::by_type::by_type;
use crate::integers::{extent, list};
use crate::numbers::Number;
use crate::reals::input;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "MelWeightMatrix",
    versions: (17, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct MelWeightMatrix {
    dtype: DType,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["output_datatype"])?;
    Ok(Box::new(MelWeightMatrix { dtype: type_attribute(cx, "output_datatype")?.unwrap_or(DType::Float) }))
}

impl Kernel for MelWeightMatrix {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let integer = |index: usize| extent("a size", list(cx, index)?.first().copied().unwrap_or(0));
        let real = |index: usize| -> Result<f64, KernelError> {
            Ok(input(cx, index)?.2.first().copied().unwrap_or(0.0))
        };
        let (bands, length, rate) = (integer(0)?, integer(1)?, integer(2)?);
        let (low, high) = (real(3)?, real(4)?);
        let mel = |hertz: f64| 2595.0 * (1.0 + hertz / 700.0).log10();
        let (low, high) = (mel(low), mel(high));
        let bins = length / 2 + 1;
        // The bins where triangles begin, peak and end.
        let edges: Vec<usize> = (0..bands + 2)
            .map(|i| {
                let at = low + i as f64 * (high - low) / (bands + 2) as f64;
                let hertz = 700.0 * (10f64.powf(at / 2595.0) - 1.0);
                ((length + 1) as f64 * hertz / rate as f64).floor().max(0.0) as usize
            })
            .collect();
        let mut weights = vec![0.0; bins * bands];
        let mut watch = cx.cancel().watch();
        for band in 0..bands {
            watch.pass(edges[band + 2] - edges[band])?;
            let [begin, peak, end] = [edges[band], edges[band + 1], edges[band + 2]];
            let mut set = |bin: usize, weight: f64| {
                if bin < bins {
                    weights[bin * bands + band] = weight;
                }
            };
            if peak == begin {
                set(peak, 1.0);
            } else {
                (begin..=peak).for_each(|bin| set(bin, (bin - begin) as f64 / (peak - begin) as f64));
            }
            (peak..end).for_each(|bin| set(bin, (end - bin) as f64 / (end - peak) as f64));
        }
        let mut out = cx.alloc(self.dtype, &[bins, bands])?;
        by_type!(self.dtype, [f32, f64, half::f16, half::bf16, i8, i16, i32, i64, u8, u16, u32, u64],
            T => out.elements_mut::<T>().iter_mut().zip(weights).for_each(|(o, v)| *o = T::from_f64(v)),
            _ => return Err(KernelError::Other(format!("no weights are {}", self.dtype))));
        cx.set(0, out.freeze());
        Ok(())
    }
}
