//! [`LinearAttention`](https://onnx.ai/onnx/operators/onnx__LinearAttention.html): attention through a state that
//! each token updates; heads are packed in the last axis.

use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::{only, unsupported};
use crate::reals::{input, misfit, opt_input, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "LinearAttention",
    versions: (27, super::NEWEST),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build,
};

struct LinearAttention {
    q_heads: usize,
    kv_heads: usize,
    scale: f64,
    gated: bool,
    delta: bool,
}

fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
    // `chunk_size` is a hint that changes no result.
    only(cx, &["chunk_size", "kv_num_heads", "q_num_heads", "scale", "update_rule"])?;
    let attributes = &cx.node.attributes;
    let heads = |name: &str| -> Result<usize, BuildError> {
        let heads = attributes.int(name)?;
        usize::try_from(heads)
            .ok()
            .filter(|&h| h > 0)
            .ok_or_else(|| unsupported(name, heads, "it is at least 1"))
    };
    let (gated, delta) = match attributes.opt_string("update_rule")? {
        Some(b"linear") => (false, false),
        Some(b"gated") => (true, false),
        Some(b"delta") => (false, true),
        None | Some(b"gated_delta") => (true, true),
        Some(other) => {
            return Err(unsupported("update_rule", String::from_utf8_lossy(other), "there is no such rule"));
        }
    };
    let (q_heads, kv_heads) = (heads("q_num_heads")?, heads("kv_num_heads")?);
    if !q_heads.is_multiple_of(kv_heads) {
        return Err(unsupported("q_num_heads", q_heads, "it is a multiple of `kv_num_heads`"));
    }
    let scale = f64::from(attributes.float_or("scale", 0.0)?);
    Ok(Box::new(LinearAttention { q_heads, kv_heads, scale, gated, delta }))
}

impl Kernel for LinearAttention {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let (dtype, q_shape, q) = input(cx, 0)?;
        let ((_, k_shape, k), (_, v_shape, v)) = (input(cx, 1)?, input(cx, 2)?);
        let fault = || {
            misfit("query, key and value are [batch, tokens, heads * width]", &[&q_shape, &k_shape, &v_shape])
        };
        let (&[batch, tokens, q_width], &[kb, kt, k_width], &[vb, vt, v_width]) =
            (&*q_shape, &*k_shape, &*v_shape)
        else {
            return Err(fault());
        };
        let (dk, dv) = (q_width / self.q_heads, v_width / self.kv_heads);
        if [kb, vb] != [batch; 2]
            || [kt, vt] != [tokens; 2]
            || k_width != dk * self.kv_heads
            || q_width != dk * self.q_heads
            || v_width != dv * self.kv_heads
        {
            return Err(fault());
        }
        let n = self.kv_heads;
        let (state_type, mut state) = match opt_input(cx, 3)? {
            Some((dtype, shape, state)) if *shape == [batch, n, dk, dv] => (dtype, state),
            Some((_, shape, _)) => {
                return Err(misfit("a state is [batch, heads, key width, value width]", &[&shape]));
            }
            None => (dtype, vec![0.0; batch * n * dk * dv]),
        };
        let (decay, beta) = (opt_input(cx, 4)?, opt_input(cx, 5)?);
        if decay.is_some() != self.gated || beta.is_some() != self.delta {
            return Err(KernelError::Other(
                "`decay` belongs to gated rules, `beta` to delta rules, and to no others".into(),
            ));
        }
        let per_token = |given: &Option<(_, heirloom_mem::Shape, Vec<f64>)>, widths: [usize; 2]| match given {
            None => Ok(1),
            Some((_, shape, _)) => match **shape {
                [b, t, w] if b == batch && t == tokens && widths.contains(&w) => Ok(w),
                _ => Err(misfit(
                    "`decay` and `beta` have a number for each head, or `decay` one for each key element",
                    &[shape],
                )),
            },
        };
        let decay_width = per_token(&decay, [n, n * dk])?;
        let beta_width = per_token(&beta, [n, 1])?;
        let scale = if self.scale == 0.0 { 1.0 / (dk as f64).sqrt() } else { self.scale };
        let group = self.q_heads / n;
        let mut out = vec![0.0; batch * tokens * self.q_heads * dv];
        let mut new = vec![0.0; dv];
        for b in 0..batch {
            for t in 0..tokens {
                cx.cancel().check()?;
                let token = b * tokens + t;
                for head in 0..n {
                    let state = &mut state[(b * n + head) * dk * dv..][..dk * dv];
                    let key = &k[token * k_width + head * dk..][..dk];
                    if let Some((_, _, decay)) = &decay {
                        for (i, row) in state.chunks_exact_mut(dv.max(1)).enumerate() {
                            let at = if decay_width == n { head } else { head * dk + i };
                            let factor = decay[token * decay_width + at].exp();
                            row.iter_mut().for_each(|s| *s *= factor);
                        }
                    }
                    new.iter_mut().zip(&v[token * v_width + head * dv..]).for_each(|(n, &v)| *n = v);
                    if let Some((_, _, beta)) = &beta {
                        for (key, row) in key.iter().zip(state.chunks_exact(dv.max(1))) {
                            new.iter_mut().zip(row).for_each(|(n, s)| *n -= key * s);
                        }
                        let rate = beta[token * beta_width + if beta_width == 1 { 0 } else { head }];
                        new.iter_mut().for_each(|n| *n *= rate);
                    }
                    for (key, row) in key.iter().zip(state.chunks_exact_mut(dv.max(1))) {
                        row.iter_mut().zip(&new).for_each(|(s, n)| *s += key * n);
                    }
                    for query in head * group..(head + 1) * group {
                        let out = &mut out[(token * self.q_heads + query) * dv..][..dv];
                        let q = &q[token * q_width + query * dk..][..dk];
                        for (q, row) in q.iter().zip(state.chunks_exact(dv.max(1))) {
                            out.iter_mut().zip(row).for_each(|(o, s)| *o += scale * q * s);
                        }
                    }
                }
            }
        }
        let out = written(cx, dtype, &[batch, tokens, self.q_heads * dv], &out)?;
        cx.set(0, out);
        let state = written(cx, state_type, &[batch, n, dk, dv], &state)?;
        if cx.output_count() > 1 {
            cx.set(1, state);
        }
        Ok(())
    }
}
