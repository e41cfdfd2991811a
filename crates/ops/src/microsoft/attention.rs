//! [`Attention`](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.Attention):
//! queries, keys and values by one product, then attention of heads over past and new rows.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::heads::{self, Rules};
use crate::product::product;
use crate::reals::{input, misfit, opt_input};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "Attention",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct Attention {
    rules: Rules,
    /// Columns of queries, keys and values; nothing: a third each.
    widths: Option<heads::Widths>,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    only(
        cx,
        &[
            "do_rotary",
            "mask_filter_value",
            "num_heads",
            "past_present_share_buffer",
            "qkv_hidden_sizes",
            "rotary_embedding_dim",
            "scale",
            "unidirectional",
        ],
    )?;
    let attributes = &cx.node.attributes;
    refuse_variants(cx)?;
    let widths = match attributes.opt_ints("qkv_hidden_sizes")? {
        None | Some([]) => None,
        Some(list) => {
            let widths = list.iter().map(|&w| usize::try_from(w)).collect::<Result<Vec<_>, _>>();
            let widths = widths.ok().and_then(|widths| <[usize; 3]>::try_from(widths).ok());
            let refused = || unsupported("qkv_hidden_sizes", format!("{list:?}"), "three widths are");
            Some(widths.ok_or_else(refused)?)
        }
    };
    Ok(Box::new(Attention { rules: Rules::read(cx)?, widths }))
}

/// Refuses what changes the operator beyond its definition.
pub(super) fn refuse_variants(cx: &BuildCx<'_>) -> Result<(), BuildError> {
    for (name, reason) in [
        ("do_rotary", "rotation is the work of RotaryEmbedding"),
        ("past_present_share_buffer", "the present is a tensor of its own"),
        ("rotary_embedding_dim", "rotation is the work of RotaryEmbedding"),
    ] {
        match cx.node.attributes.int_or(name, 0)? {
            0 => {}
            other => return Err(unsupported(name, other, reason)),
        }
    }
    Ok(())
}

impl Kernel for Attention {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (dtype, [batch, rows, k], x) = heads::rows(cx, 0)?;
        let (_, shape, weights) = input(cx, 1)?;
        let n = shape.last().copied().unwrap_or(0);
        let widths = self.widths.unwrap_or([n / 3; 3]);
        let sum = widths.iter().try_fold(0usize, |sum, &w| sum.checked_add(w));
        if *shape != [k, n] || sum != Some(n) {
            return Err(misfit("the weights are [width, queries + keys + values]", &[&shape, &[k], &widths]));
        }
        let mut sums = vec![0.0; batch * rows * n];
        product(&mut sums, &x, &weights, (n, k), false, cx.cancel())?;
        if let Some((_, shape, bias)) = opt_input(cx, 2)? {
            if *shape != [n] {
                return Err(misfit("the bias has an element for each column", &[&shape, &[n]]));
            }
            for row in sums.chunks_exact_mut(n.max(1)) {
                row.iter_mut().zip(&bias).for_each(|(sum, bias)| *sum += bias);
            }
        }
        heads::packed(cx, &self.rules, (dtype, [batch, rows]), (&sums, widths), [3, 4, 5])
    }
}
