//! Struct types, catalogue, byte layouts, encoded values and codecs.
