//! Importers: GGUF files and the model architectures they hold.
