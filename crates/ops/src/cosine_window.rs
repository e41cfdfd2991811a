//! Windows that are sums of cosines.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, RunCx};

use crate::attributes::only;
use crate::by_type::by_type;
use crate::integers::{extent, list};
use crate::numbers::Number;
use crate::onnx::quantize_linear::type_attribute;

/// `a[0] - a[1] cos(2 pi n / N) + a[2] cos(4 pi n / N)`, for as many n as input 0 says.
struct CosineWindow {
    a: [f64; 3],
    dtype: DType,
    periodic: bool,
}

pub(crate) fn build(cx: &BuildCx<'_>, a: [f64; 3]) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["output_datatype", "periodic"])?;
    let periodic = cx.node.attributes.int_or("periodic", 1)? != 0;
    let dtype = type_attribute(cx, "output_datatype")?.unwrap_or(DType::Float);
    Ok(Box::new(CosineWindow { a, dtype, periodic }))
}

impl Kernel for CosineWindow {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let size = extent("the size", list(cx, 0)?.first().copied().unwrap_or(0))?;
        let period = if self.periodic { size } else { size.max(2) - 1 } as f64;
        let mut watch = cx.cancel().watch();
        let mut out = cx.alloc(self.dtype, &[size])?;
        by_type!(self.dtype, [f32, f64, half::f16, half::bf16, i8, i16, i32, i64, u8, u16, u32, u64], T => {
            for (n, o) in out.elements_mut::<T>().iter_mut().enumerate() {
                watch.pass(4)?;
                let angle = std::f64::consts::TAU * n as f64 / period;
                *o = T::from_f64(self.a[0] - self.a[1] * angle.cos() + self.a[2] * (2.0 * angle).cos());
            }
        }, _ => return Err(KernelError::Other(format!("no window has elements of {}", self.dtype))));
        cx.set(0, out.freeze());
        Ok(())
    }
}
