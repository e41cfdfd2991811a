//! Heirloom runs ONNX models with quantized values and persistent state.
