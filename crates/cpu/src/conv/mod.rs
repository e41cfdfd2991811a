//! Convolutions of FLOAT: products of the weight with windows of the input, which become panels of columns on the way.
#![allow(unsafe_code)]

mod columns;
mod depthwise;
mod few;
mod planes;
mod transpose;

pub(crate) use transpose::SPEC as TRANSPOSE;

use half::f16;
use half::slice::HalfFloatSliceExt;
use heirloom_mem::{DType, Shape, Tensor};
use heirloom_ops::convolution::Convolution;
use heirloom_ops::window::{self, Window};
use heirloom_runtime::{BuildCx, Kernel, KernelError, KernelLayout, KernelSpec, PrepareCx, Prepared, RunCx};
use heirloom_simd::Isa;
use heirloom_types::Value;

use crate::disjoint::DisjointMut;
use crate::fallback::{Portable, are_float, may_be_float};
use crate::gemm::{Matrix, PANEL, Product, Right, Scattered, Start};
use crate::lanes;
use columns::Windows;
use planes::{Layout, SLACK};

/// ONNX `Conv` of FLOAT, in any number of dimensions.
pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Conv",
    versions: (1, i64::MAX),
    rank: 10,
    accepts: |cx| cx.plain_inputs() && (0..2).all(|i| may_be_float(cx, i) || may_be_half(cx, i)),
    build: |cx| Ok(Box::new(Conv::new(cx)?)),
};

fn may_be_half(cx: &BuildCx<'_>, index: usize) -> bool {
    cx.inputs.get(index).and_then(Option::as_ref).is_some_and(|facts| facts.dtype == Some(DType::Float16))
}

struct Conv {
    window: Window,
    groups: usize,
    isa: Isa,
    portable: Portable,
    /// A FLOAT16 weight as FLOAT.
    wide: Option<Prepared>,
}

impl Conv {
    fn new(cx: &BuildCx<'_>) -> Result<Conv, heirloom_runtime::BuildError> {
        // The portable kernel refuses what the operator does not allow.
        let portable = Portable::new(cx)?;
        let groups = cx.node.attributes.int_or("group", 1)? as usize;
        Ok(Conv {
            window: Window::parse(&cx.node.attributes)?,
            groups,
            isa: lanes::selected()?,
            portable,
            wide: None,
        })
    }
}

impl Kernel for Conv {
    fn prepare(&mut self, cx: &PrepareCx<'_>) {
        if let Some(Value::Tensor(w)) = cx.constant(1)
            && w.dtype() == DType::Float16
        {
            let (parameters, bytes) = ([w.len() as u64].into_iter().collect(), w.len() * size_of::<f32>());
            self.wide = cx.claim(1, KernelLayout { name: "cpu.f32.widened", version: 1, parameters, bytes });
        }
    }

    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let half = halves(cx, 0..3);
        if !half && !are_float(cx, 0..3) {
            return self.portable.run(cx);
        }
        let (x, w) = (float(cx.dense(0)?)?, self.weight(cx)?);
        let shape = Convolution::new(x.shape(), w.shape(), self.groups, &self.window)?;
        let maps = shape.groups * shape.maps;
        let bias = match cx.opt_tensor(2)? {
            Some(_) => Some(float(cx.dense(2)?)?),
            None => None,
        };
        if let Some(bias) = &bias
            && bias.shape() != [maps]
        {
            return Err(KernelError::Shape {
                what: "the bias has one element for each output channel",
                shapes: vec![Shape::from_slice(bias.shape()), Shape::from_elem(maps, 1)],
            });
        }
        let bias = bias.as_ref().map(|b| b.as_slice::<f32>()).transpose()?;
        let mut out = cx.alloc(DType::Float, &shape.shape())?;
        let call = Call { isa: self.isa, shape: &shape, x: x.as_slice()?, w: w.as_slice()?, bias };
        let plan = Plan::of(&shape);
        // The call's own scratch memory, which later nodes use too.
        let mut padded = cx.scratch(plan.floats * size_of::<f32>());
        let done = call.run(cx, &plan, padded.elements_mut(), out.elements_mut());
        cx.release(padded);
        done?;
        if half {
            let sums = out.freeze();
            let mut out = cx.alloc(DType::Float16, sums.shape())?;
            out.elements_mut::<f16>().convert_from_f32_slice(sums.as_slice()?);
            cx.set(0, out.freeze());
            return Ok(());
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}

/// Whether dot products are faster than registers of places: these would be half empty, or each weight read for one
/// register alone.
fn is_few(output: usize, depth: usize) -> bool {
    output <= 4 || output <= PANEL && depth >= 128
}

impl Conv {
    /// The weight as FLOAT.
    fn weight(&self, cx: &RunCx<'_>) -> Result<Tensor, KernelError> {
        let w = cx.dense(1)?;
        if let Some(prepared) = &self.wide
            && prepared.layout().bytes == w.len() * size_of::<f32>()
            && let Some(bytes) = cx.prepared(1, prepared, |to| {
                let wide = float(w.clone())?;
                for (to, v) in to.chunks_exact_mut(size_of::<f32>()).zip(wide.as_slice::<f32>()?) {
                    to.iter_mut().zip(v.to_ne_bytes()).for_each(|(t, b)| *t = b);
                }
                Ok(())
            })?
            && let Ok(wide) = Tensor::new(DType::Float, w.shape(), bytes)
        {
            return Ok(wide);
        }
        float(w)
    }
}

/// Whether inputs `indices`, where they are present, are all FLOAT16 tensors.
fn halves(cx: &RunCx<'_>, indices: std::ops::Range<usize>) -> bool {
    indices.filter_map(|i| cx.value(i)).all(|v| v.as_tensor().is_some_and(|t| t.dtype() == DType::Float16))
}

/// FLOAT16 elements as FLOAT ones; others as they are.
fn float(tensor: Tensor) -> Result<Tensor, KernelError> {
    if tensor.dtype() != DType::Float16 {
        return Ok(tensor);
    }
    let mut wide = vec![0.0f32; tensor.len()];
    tensor.as_slice::<f16>()?.convert_to_f32_slice(&mut wide);
    Ok(Tensor::from_vec(tensor.shape(), wide)?)
}

/// One convolution's operands.
struct Call<'a> {
    isa: Isa,
    shape: &'a Convolution,
    x: &'a [f32],
    w: &'a [f32],
    bias: Option<&'a [f32]>,
}

impl Call<'_> {
    fn run(
        &self,
        cx: &RunCx<'_>,
        plan: &Plan,
        padded: &mut [f32],
        out: &mut [f32],
    ) -> Result<(), KernelError> {
        let Convolution { batch, groups, channels, maps, ref axes } = *self.shape;
        let (input, output, kernel) = window::planes(axes);
        let depth = channels * kernel;
        if out.is_empty() {
            return Ok(());
        }
        if let Way::Depthwise(layout) = &plan.way {
            depthwise::run(self, layout, cx, out);
            return Ok(cx.cancel().check()?);
        }
        for part in 0..batch * groups {
            let group = part % groups;
            let x = &self.x[part * channels * input..][..channels * input];
            let w = &self.w[group * maps * depth..][..maps * depth];
            let out = &mut out[part * maps * output..][..maps * output];
            let bias = self.bias.map(|b| &b[group * maps..][..maps]);
            let matrix = Matrix { data: x, stride: output };
            let windows = Windows { x, axes };
            let (b, n) = match &plan.way {
                Way::Few => {
                    few::run(self, cx, (x, w, bias), out)?;
                    continue;
                }
                Way::Padded(layout, rows) => {
                    spread(cx, layout, x, padded);
                    (Right::Scattered(padded, rows, layout.gaps()), layout.places())
                }
                Way::Same if maps <= 6 => (Right::Rows(x, output), output),
                Way::Same => (Right::Columns(&matrix), output),
                Way::Windows | Way::Depthwise(_) => (Right::Columns(&windows), output),
            };
            let product = Product {
                isa: self.isa,
                m: maps,
                n,
                k: depth,
                a: w,
                lda: depth,
                b,
                start: bias.map_or(Start::Zero, Start::Row),
                ldo: output,
            };
            product.run(out, cx.team(), cx.cancel())?;
        }
        Ok(())
    }
}

/// How a convolution is computed.
enum Way {
    /// Each channel by itself, from padded copies.
    Depthwise(Layout),
    /// Dot products.
    Few,
    /// 1x1 windows that meet every element once: from the input itself.
    Same,
    /// From a padded copy.
    Padded(Layout, Scattered),
    /// Windows put into panels.
    Windows,
}

struct Plan {
    way: Way,
    /// Of the padded copy.
    floats: usize,
}

impl Plan {
    fn of(shape: &Convolution) -> Plan {
        let Convolution { groups, channels, maps, ref axes, .. } = *shape;
        let (_, output, kernel) = window::planes(axes);
        let same = kernel == 1 && axes.iter().all(|a| a.stride == 1 && a.before == 0 && a.after == 0);
        let layout = || if output > 0 { Layout::new(axes) } else { None };
        let mut floats = 0;
        let way = if channels == 1
            && maps == 1
            && groups > 1
            && let Some(layout) = layout()
        {
            Way::Depthwise(layout)
        } else if is_few(output, channels * kernel) {
            Way::Few
        } else if same {
            Way::Same
        } else if let Some(layout) = layout()
            && let Some(rows) = layout.rows(channels)
        {
            floats = channels * layout.channel + SLACK;
            Way::Padded(layout, rows)
        } else {
            Way::Windows
        };
        Plan { way, floats }
    }
}

/// Lays out all channels of `x`.
fn spread(cx: &RunCx<'_>, layout: &Layout, x: &[f32], padded: &mut [f32]) {
    let channels = x.len() / layout.input().max(1);
    padded[channels * layout.channel..].fill(0.0);
    let to = DisjointMut::new(padded);
    let (tasks, each) = crate::gemm::share(channels, channels * layout.channel, cx.team().threads());
    cx.team().run(tasks, &|task| {
        for channel in task * each..((task + 1) * each).min(channels) {
            // SAFETY: each channel is written by one task.
            let to = unsafe { to.part(channel * layout.channel..(channel + 1) * layout.channel) };
            layout.fill(&x[channel * layout.input()..][..layout.input()], to);
        }
    });
}
