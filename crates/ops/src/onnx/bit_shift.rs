//! [`BitShift`](https://onnx.ai/onnx/operators/onnx__BitShift.html): the bits of integers moved left or right, broadcast. Moved
//! by a negative number or by all bits, only copies of the sign bit are left to the right, and 0 to the left.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::{binary, common_type, wrong_type};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "BitShift",
    versions: (11, super::NEWEST),
    rank: 0,
    accepts: |cx| crate::attributes::takes(cx, 2, crate::attributes::is_integer),
    build,
};

struct BitShift {
    left: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["direction"])?;
    match cx.node.attributes.string("direction")? {
        b"LEFT" => Ok(Box::new(BitShift { left: true })),
        b"RIGHT" => Ok(Box::new(BitShift { left: false })),
        other => Err(unsupported("direction", String::from_utf8_lossy(other), "LEFT and RIGHT are")),
    }
}

impl Kernel for BitShift {
    #[allow(clippy::useless_conversion, clippy::unnecessary_fallible_conversions)] // For some types it is none.
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let left = self.left;
        by_type!(common_type(cx, 2)?, [i64, i32, i16, i8, u64, u32, u16, u8], T => binary(cx, |x: T, by: T| {
            let by = u32::try_from(by).ok().filter(|&by| by < T::BITS);
            match (left, by) {
                (true, Some(by)) => x << by,
                (true, None) => 0,
                (false, Some(by)) => x >> by,
                // All ones for negative numbers, else 0.
                (false, None) => (x >> (T::BITS - 1)) * T::from(T::MIN != 0),
            }
        }), _ => Err(wrong_type(cx, 0, "integers")))
    }
}
