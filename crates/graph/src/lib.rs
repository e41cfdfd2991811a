//! Graph IR, builder, verification, persistent bindings and symbolic shapes.
