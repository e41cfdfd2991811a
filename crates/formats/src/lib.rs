//! Quantization formats: declaration, codec, in-file decoder and register-level unpacking, one file each.
