//! [`StringNormalizer`](https://onnx.ai/onnx/operators/onnx__StringNormalizer.html): strings without stop words, in upper or
//! lower case on request. Where none is left, one empty string.

use heirloom_mem::Shape;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::cells::{strings, strings_of};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "StringNormalizer",
    versions: (10, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

#[derive(Clone, Copy)]
enum Case {
    AsIs,
    Lower,
    Upper,
}

struct StringNormalizer {
    case: Case,
    sensitive: bool,
    /// In lower case where that does not matter.
    stop_words: Vec<String>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["case_change_action", "is_case_sensitive", "locale", "stopwords"])?;
    let attributes = &cx.node.attributes;
    let case = match attributes.opt_string("case_change_action")? {
        None | Some(b"NONE") => Case::AsIs,
        Some(b"LOWER") => Case::Lower,
        Some(b"UPPER") => Case::Upper,
        Some(other) => {
            let known = "NONE, LOWER and UPPER are";
            return Err(unsupported("case_change_action", String::from_utf8_lossy(other), known));
        }
    };
    // Cases are mapped as Unicode does, which holds for all languages but three.
    let locale = String::from_utf8_lossy(attributes.opt_string("locale")?.unwrap_or_default()).into_owned();
    if ["az", "lt", "tr"].iter().any(|language| locale.starts_with(language)) {
        return Err(unsupported("locale", locale, "languages with their own case mapping are not"));
    }
    let sensitive = attributes.int_or("is_case_sensitive", 0)? != 0;
    let stop_words = attributes.opt_strings("stopwords")?.unwrap_or_default().iter().map(|word| {
        let word = String::from_utf8_lossy(word);
        if sensitive { word.into_owned() } else { word.to_lowercase() }
    });
    Ok(Box::new(StringNormalizer { case, sensitive, stop_words: stop_words.collect() }))
}

impl StringNormalizer {
    fn stops(&self, text: &str) -> bool {
        let same = |word: &String| if self.sensitive { word == text } else { *word == text.to_lowercase() };
        self.stop_words.iter().any(same)
    }
}

impl Kernel for StringNormalizer {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let input = strings_of(cx, 0)?;
        if !matches!(input.shape[..], [_] | [1, _]) {
            return Err(KernelError::Shape {
                what: "the strings are one row",
                shapes: vec![input.shape.clone()],
            });
        }
        let texts = input.elements.iter().map(|text| String::from_utf8_lossy(text));
        let mut elements: Vec<Box<[u8]>> = texts
            .filter(|text| !self.stops(text))
            .map(|text| match self.case {
                Case::AsIs => text.as_bytes().into(),
                Case::Lower => text.to_lowercase().into_bytes().into(),
                Case::Upper => text.to_uppercase().into_bytes().into(),
            })
            .collect();
        if elements.is_empty() {
            elements.push(Box::default());
        }
        let mut shape: Shape = input.shape.clone();
        if let Some(last) = shape.last_mut() {
            *last = elements.len();
        }
        cx.set(0, strings(&shape, elements));
        Ok(())
    }
}
