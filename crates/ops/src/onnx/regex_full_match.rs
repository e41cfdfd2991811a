//! [`RegexFullMatch`](https://onnx.ai/onnx/operators/onnx__RegexFullMatch.html): whether a pattern matches the whole of each
//! string. The syntax is that of RE2, whose classes such as `\w` hold Unicode's letters here.

use heirloom_mem::DType;
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use regex::Regex;

use crate::attributes::{only, unsupported};
use crate::cells::strings_of;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "RegexFullMatch",
    versions: (20, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct RegexFullMatch {
    pattern: Regex,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(cx, &["pattern"])?;
    let text = String::from_utf8_lossy(cx.node.attributes.opt_string("pattern")?.unwrap_or_default());
    let pattern = Regex::new(&format!(r"\A(?:{text})\z"))
        .map_err(|error| unsupported("pattern", &text, &error.to_string()))?;
    Ok(Box::new(RegexFullMatch { pattern }))
}

impl Kernel for RegexFullMatch {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let input = strings_of(cx, 0)?;
        let mut out = cx.alloc(DType::Bool, &input.shape)?;
        for (o, text) in out.bytes_mut().iter_mut().zip(&input.elements) {
            *o = u8::from(self.pattern.is_match(&String::from_utf8_lossy(text)));
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}
