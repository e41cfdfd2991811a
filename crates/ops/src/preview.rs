//! The table of ai.onnx.preview's operators. One line and one file each.

use crate::table::operators;

operators! {
    flex_attention,
}
