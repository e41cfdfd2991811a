//! Lossless, zero-copy ONNX messages with the fields 1000 and 1001.
