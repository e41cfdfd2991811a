//! ONNX operators: portable kernels, one file each.
