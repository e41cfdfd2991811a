//! Instruction-set tokens and safe register operations.
