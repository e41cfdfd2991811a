//! The table of com.microsoft's operators. One line and one file each.

use crate::table::operators;

operators! {
    dequantize_linear,
    dynamic_quantize_lstm,
}
