//! The table of com.microsoft's operators. One line and one file each.

use crate::table::operators;

operators! {
    bias_gelu,
    dequantize_linear,
    dynamic_quantize_lstm,
    dynamic_quantize_mat_mul,
    fast_gelu,
    fused_conv,
    fused_mat_mul,
    gelu,
    group_query_attention,
    mat_mul_integer_to_float,
    q_linear_add,
    q_linear_global_average_pool,
    q_linear_leaky_relu,
    q_linear_mul,
    q_linear_sigmoid,
    quick_gelu,
    skip_layer_normalization,
    skip_simplified_layer_normalization,
}
