//! Models that need no GGUF file beside them.

use std::path::Path;

use heirloom_graph::{External, Model, OpenOptions, SaveOptions};
use heirloom_import::gguf::{CacheType, Gguf, overlay, vocabulary};
use heirloom_text::tokenizer_json;

use super::LlmError;
use super::text::{self, END_TOKENS, TOKENIZER, owned};

/// Writes the model that the GGUF file `gguf` holds to `output`, with its weights in the model file
/// ([`External::Inline`]) or in one file beside it ([`External::File`]), and its tokenizer and chat template in its
/// metadata: the GGUF file is not needed afterwards. Weights keep their bytes and layouts. [`External::Keep`] would
/// leave them in the GGUF file: for that see [`import`](heirloom_import::gguf::import).
///
/// # Errors
/// As of `import`; when a token of the vocabulary is no UTF-8; when an inline model would exceed 2 GiB. Whatever was at
/// the output's place is then still there.
pub fn import_contained(
    gguf: &Path,
    output: &Path,
    cache: CacheType,
    external: External,
) -> Result<(), LlmError> {
    let file = Gguf::open(gguf)?;
    let name = gguf
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or_else(|| LlmError::FileName { path: gguf.into() })?;
    let folder = gguf.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let model = Model::from_proto(overlay(&file, name, cache)?, Some(folder), &OpenOptions::default())?;
    let mut edit = model.edit();
    if model.metadata_value(text::FILE).is_some() {
        let vocabulary = owned(vocabulary(&file)?)?;
        let tokens = text::template_tokens(&vocabulary);
        edit.metadata(text::FILE, None)
            .metadata(TOKENIZER, Some(&tokenizer_json(&vocabulary)?))
            .metadata(text::TEMPLATE, vocabulary.chat_template.as_deref())
            .metadata(text::BOS, tokens.bos.as_deref())
            .metadata(text::EOS, tokens.eos.as_deref())
            .metadata(END_TOKENS, Some(&text::end_tokens(vocabulary)?));
    }
    Ok(edit.finish()?.save(output, &SaveOptions::default().external(external))?)
}
