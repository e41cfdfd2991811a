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
    average_pool,
    batch_normalization,
    cast,
    concat,
    constant_of_shape,
    conv,
    conv_transpose,
    cos,
    dequantize_linear,
    div,
    dynamic_quantize_linear,
    equal,
    expand,
    gather,
    gather_nd,
    gemm,
    global_average_pool,
    global_lp_pool,
    global_max_pool,
    group_normalization,
    gru,
    identity,
    instance_normalization,
    is_nan,
    layer_normalization,
    lp_normalization,
    lp_pool,
    lrn,
    lstm,
    mat_mul,
    mat_mul_integer,
    max_pool,
    mean_variance_normalization,
    modulo,
    mul,
    neg,
    optional,
    optional_get_element,
    optional_has_element,
    pow,
    quantize_linear,
    range,
    reduce_mean,
    reshape,
    resize,
    rms_normalization,
    rnn,
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
    upsample,
    r#where,
}
