//! `ai.heirloom.PagedAttention`: attention over a cache of blocks, each of which keeps its keys and values in a layout of its
//! own. Nothing of the whole cache's size is copied, decoded or allocated.
//!
//! Inputs: `query`, `key`, `value` as those of [`Attention`](https://onnx.ai/onnx/operators/onnx__Attention.html) of FLOAT,
//! FLOAT16 or BFLOAT16, and `cache`, a struct `{ blocks: sequence of structs { keys, values, start, length }, length }`.
//! `keys` and `values` are [batch, heads, tokens, size], dense or encoded; the first `length` of a block's tokens are valid,
//! and `start` is the number of the first, counted over the whole cache; `length` of the cache is the sum. All three are
//! INT64 scalars: the valid length is data, whatever the payloads' sizes.
//!
//! Outputs: the attention of the queries over the cache and the new tokens, and the cache with the new tokens in it.
//!
//! New tokens go into the last block, in the type they came in, until it holds `block_size`; then the next one begins. A
//! block that is full gets the layout that its age asks for: the `tiers[0]` newest full ones `layouts[0]`, the next
//! `tiers[1]` ones `layouts[1]`, and so on, all older ones the last layout; `value_layouts` are those of values, where they
//! differ. The first `exact_first` blocks of the cache stay as they came. A layout is `exact`, `int8` or `int4` (affine codes
//! with a FLOAT scale for each `group` elements of a head), or the name of a format of records, such as `q8_0` or `nf4`. A
//! block changes its layout in the call after which it is due, it alone; one that its layout cannot hold (it has a NaN, say)
//! stays exact.
//!
//! Attributes: `q_num_heads`, `kv_num_heads`, `scale`, `softcap`, `is_causal` (1 where it is left out) and
//! `left_window_size` are Attention's; `block_size` (128), `layouts` (`exact`), `value_layouts`, `tiers` (as many as layouts
//! but the last), `exact_first` (0) and `group` (32).

mod attend;
mod blocks;
mod policy;
mod rows;

use half::{bf16, f16};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use self::attend::Sight;
use self::blocks::Cache;
use self::policy::Policy;
use self::rows::{Heads, Rows};
use crate::attributes::{only, unsupported};
use crate::by_type::by_type;
use crate::elementwise::wrong_type;
use crate::real::Real;

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "ai.heirloom",
    op: "PagedAttention",
    versions: (1, i64::MAX),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct PagedAttention {
    q_heads: Option<usize>,
    kv_heads: Option<usize>,
    scale: Option<f32>,
    softcap: f32,
    causal: bool,
    left: Option<usize>,
    policy: Policy,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    const KNOWN: &[&str] = &[
        "block_size",
        "exact_first",
        "group",
        "is_causal",
        "kv_num_heads",
        "layouts",
        "left_window_size",
        "q_num_heads",
        "scale",
        "softcap",
        "tiers",
        "value_layouts",
    ];
    only(cx, KNOWN)?;
    let attributes = &cx.node.attributes;
    let heads = |name: &str| -> Result<Option<usize>, BuildError> {
        let count = attributes.opt_int(name)?;
        let positive = |n: i64| usize::try_from(n).ok().filter(|&n| n > 0);
        count.map(|n| positive(n).ok_or_else(|| unsupported(name, n, "it is a number of heads"))).transpose()
    };
    let left = match attributes.int_or("left_window_size", -1)? {
        -1 => None,
        n => Some(
            usize::try_from(n)
                .map_err(|_| unsupported("left_window_size", n, "it is -1 or a number of positions"))?,
        ),
    };
    let kv_heads = heads("kv_num_heads")?;
    let policy = Policy::read(attributes)?;
    let known = |at: usize| cx.inputs.get(at).and_then(|facts| facts.as_ref()?.shape.as_ref());
    for (at, layouts) in [(1, &policy.keys), (2, &policy.values)] {
        if let Some(size) = known(at).and_then(|shape| rows::head_size(shape, kv_heads)) {
            policy::check_size(layouts, size, policy.block_size)?;
        }
    }
    Ok(Box::new(PagedAttention {
        q_heads: heads("q_num_heads")?,
        kv_heads,
        scale: attributes.opt_float("scale")?,
        softcap: attributes.float_or("softcap", 0.0)?,
        causal: attributes.int_or("is_causal", 1)? != 0,
        left,
        policy,
    }))
}

impl Kernel for PagedAttention {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        by_type!(cx.tensor(0)?.dtype(), [f32, f16, bf16], T => self.attend::<T>(cx),
            _ => Err(wrong_type(cx, 0, "a FLOAT, FLOAT16 or BFLOAT16 tensor")))
    }
}

impl PagedAttention {
    fn attend<T: Real<Wide = f32>>(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let query = Rows::new::<T>(cx, 0, self.q_heads)?;
        let new = Heads {
            keys: Rows::new::<T>(cx, 1, self.kv_heads)?,
            values: Rows::new::<T>(cx, 2, self.kv_heads)?,
        };
        new.check(&query)?;
        for (rows, layouts) in [(&new.keys, &self.policy.keys), (&new.values, &self.policy.values)] {
            policy::check_size(layouts, rows.size, self.policy.block_size)
                .map_err(|error| KernelError::Other(error.to_string()))?;
        }
        let value = cx.value(3).cloned().ok_or(KernelError::MissingInput { index: 3 })?;
        let cache = Cache::read(&value, &new)?;
        let total = cache.length.saturating_add(new.keys.tokens);
        if let Some(capacity) = cx.cache_limit().filter(|&limit| total > limit) {
            let (len, rows) = (cache.length, new.keys.tokens);
            return Err(heirloom_mem::ClaimError::Full { len, rows, capacity }.into());
        }
        let sight = Sight { past: cache.length, total, causal: self.causal, left: self.left };
        let scale = self.scale.unwrap_or(1.0 / (query.size as f32).sqrt());
        let out = attend::attend::<T>(cx, &query, &new, &cache, &sight, (scale, self.softcap))?;
        cx.set(0, out);
        if cx.wants(1) {
            let next = cache.with::<T>(cx, &new, &self.policy)?;
            cx.set(1, next);
        }
        Ok(())
    }
}
