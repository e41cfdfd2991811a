//! The table of operators. One line and one file each.

use heirloom_runtime::KernelSpec;

/// The newest version of ai.onnx that these kernels were written for.
pub(crate) const NEWEST: i64 = 28;

macro_rules! ops {
    ($($name:ident),* $(,)?) => {
        $(pub(crate) mod $name;)*

        /// All portable kernels.
        pub(crate) const KERNELS: &[KernelSpec] = &[$($name::SPEC),*];
    };
}

ops! {
    add,
    attention,
    cast,
    concat,
    constant_of_shape,
    cos,
    div,
    equal,
    expand,
    gather,
    gather_nd,
    gemm,
    identity,
    is_nan,
    mat_mul,
    modulo,
    mul,
    neg,
    optional,
    optional_get_element,
    optional_has_element,
    pow,
    range,
    reduce_mean,
    reshape,
    rms_normalization,
    rotary_embedding,
    sequence_at,
    sequence_construct,
    sequence_empty,
    sequence_erase,
    sequence_insert,
    sequence_length,
    shape,
    sigmoid,
    sin,
    slice,
    softmax,
    split,
    sqrt,
    squeeze,
    sub,
    swish,
    transpose,
    unsqueeze,
    r#where,
}
