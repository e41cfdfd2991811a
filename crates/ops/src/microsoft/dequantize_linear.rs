//! `DequantizeLinear` of com.microsoft: that of ai.onnx, for more types at its time.

use heirloom_runtime::KernelSpec;

pub(crate) const SPEC: KernelSpec = crate::onnx::dequantize_linear::MICROSOFT;
