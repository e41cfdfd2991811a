//! CPU kernels: products from quantized bytes, attention over the cache, and the thread team.
