//! [`StringSplit`](https://onnx.ai/onnx/operators/onnx__StringSplit.html): the parts of each string between delimiters, or
//! without one between white space, filled up with empty strings; and how many parts there are.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::cells::{strings, strings_of};
use crate::elementwise::set_wanted;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "StringSplit",
    versions: (20, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct StringSplit {
    /// `None` is white space.
    delimiter: Option<String>,
    /// The most splits.
    most: usize,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["delimiter", "maxsplit"])?;
    let attributes = &cx.node.attributes;
    let delimiter =
        String::from_utf8_lossy(attributes.opt_string("delimiter")?.unwrap_or_default()).into_owned();
    let most = match attributes.opt_int("maxsplit")? {
        None => usize::MAX - 1,
        Some(most) => {
            usize::try_from(most).map_err(|_| unsupported("maxsplit", most, "it is not negative"))?
        }
    };
    Ok(Box::new(StringSplit { delimiter: Some(delimiter).filter(|text| !text.is_empty()), most }))
}

impl StringSplit {
    fn parts<'t>(&self, text: &'t str) -> Vec<&'t str> {
        if let Some(delimiter) = &self.delimiter {
            return text.splitn(self.most.saturating_add(1), &**delimiter).collect();
        }
        let mut parts = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let end =
                rest.find(char::is_whitespace).filter(|_| parts.len() < self.most).unwrap_or(rest.len());
            parts.push(&rest[..end]);
            rest = rest[end..].trim_start();
        }
        parts
    }
}

impl Kernel for StringSplit {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let input = strings_of(cx, 0)?;
        let texts: Vec<_> = input.elements.iter().map(|text| String::from_utf8_lossy(text)).collect();
        let parts: Vec<Vec<&str>> = texts.iter().map(|text| self.parts(text)).collect();
        let most = parts.iter().map(Vec::len).max().unwrap_or(0);
        let mut elements: Vec<Box<[u8]>> = Vec::with_capacity(parts.len() * most);
        for parts in &parts {
            elements.extend(parts.iter().map(|part| Box::from(part.as_bytes())));
            elements.extend((parts.len()..most).map(|_| Box::default()));
        }
        let mut shape = input.shape.clone();
        shape.push(most);
        cx.set(0, strings(&shape, elements));
        let mut counts = cx.alloc(DType::Int64, &input.shape)?;
        counts.elements_mut::<i64>().iter_mut().zip(&parts).for_each(|(o, parts)| *o = parts.len() as i64);
        set_wanted(cx, 1, counts.freeze());
        Ok(())
    }
}
