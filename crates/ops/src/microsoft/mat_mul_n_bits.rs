//! [`MatMulNBits`](https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md#com.microsoft.MatMulNBits):
//! a product with the rows of a matrix of 2-, 4- or 8-bit codes, a scale and a zero point for each block of a row.

use heirloom_mem::{DType, Shape, Tensor};
use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::bits;

use crate::attributes::{only, unsupported};
use crate::elementwise::wrong_type;
use crate::integers;
use crate::product::dot;
use crate::quantized::floats;
use crate::reals::{input, misfit, opt_input, written};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "MatMulNBits",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build: |cx| Ok(Box::new(NBits::new(cx)?)),
};

/// What the attributes say about the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NBits {
    /// Rows, `N`.
    pub rows: usize,
    /// Elements of a row, `K`.
    pub columns: usize,
    /// Bits of a code.
    pub bits: u32,
    /// Elements of a block.
    pub block: usize,
}

impl NBits {
    /// From a node's attributes. `accuracy_level` allows less exact activations, which nobody has to make use of.
    ///
    /// # Errors
    /// When a value is not allowed.
    pub fn new(cx: &BuildCx<'_>) -> Result<NBits, BuildError> {
        only(cx, &["K", "N", "accuracy_level", "bits", "block_size", "weight_prepacked"])?;
        let attributes = &cx.node.attributes;
        let extent = |name: &str| -> Result<usize, BuildError> {
            let value = attributes.int(name)?;
            let fits = usize::try_from(value).ok().filter(|v| (1..1 << 31).contains(v));
            fits.ok_or_else(|| unsupported(name, value, "it is a positive number of elements"))
        };
        let bits = attributes.int_or("bits", 4)?;
        let block = extent("block_size")?;
        if ![2, 4, 8].contains(&bits) {
            return Err(unsupported("bits", bits, "2, 4 and 8 are"));
        }
        if !block.is_power_of_two() || block < 16 {
            return Err(unsupported("block_size", block, "powers of two from 16 on are"));
        }
        match attributes.int_or("weight_prepacked", 0)? {
            0 => {}
            other => return Err(unsupported("weight_prepacked", other, "codes as they were exported are")),
        }
        let given = |index: usize| cx.node.inputs.get(index).copied().flatten().is_some();
        if given(3) && given(4) {
            let reason =
                "ONNX Runtime leaves zero points out where there is `g_idx`, the definition does not";
            return Err(unsupported("g_idx", "given with zero points", reason));
        }
        match attributes.int_or("accuracy_level", 0)? {
            0..=4 => {}
            other => return Err(unsupported("accuracy_level", other, "0 to 4 are")),
        }
        Ok(NBits { rows: extent("N")?, columns: extent("K")?, bits: bits as u32, block })
    }

    /// Blocks of a row.
    pub fn blocks(&self) -> usize {
        self.columns.div_ceil(self.block)
    }

    /// Bytes of the codes of a row, whose last block is filled up.
    pub fn row_bytes(&self) -> usize {
        self.blocks() * (self.block * self.bits as usize / 8)
    }

    /// Bytes of the packed zero points of a row.
    pub fn zero_point_bytes(&self) -> usize {
        (self.blocks() * self.bits as usize).div_ceil(8)
    }

    /// Whether codes, scales and zero points have the sizes that the attributes ask for.
    ///
    /// # Errors
    /// When they do not, with the shapes.
    pub fn check(
        &self,
        codes: &Tensor,
        scales: &Tensor,
        zero_points: Option<&Tensor>,
    ) -> Result<(), KernelError> {
        let shapes = || {
            let all = [Some(codes), Some(scales), zero_points];
            all.into_iter().flatten().map(|t| Shape::from_slice(t.shape())).collect()
        };
        let fits = |len: usize, each: usize| self.rows.checked_mul(each) == Some(len);
        if codes.dtype() != DType::Uint8 || !fits(codes.len(), self.row_bytes()) {
            let what = "the codes are UINT8 [N, blocks of a row, bytes of a block]";
            return Err(KernelError::Shape { what, shapes: shapes() });
        }
        let each = match zero_points {
            Some(t) if t.dtype() == DType::Uint8 => self.zero_point_bytes(),
            _ => self.blocks(),
        };
        if !fits(scales.len(), self.blocks()) || zero_points.is_some_and(|t| !fits(t.len(), each)) {
            let what =
                "there is one scale and one zero point for each block, those of a row packed as codes are";
            return Err(KernelError::Shape { what, shapes: shapes() });
        }
        Ok(())
    }
}

/// What stands for a weight: `(code - zero point) * scale`.
struct Weights<'a> {
    node: NBits,
    codes: &'a [u8],
    scales: Vec<f32>,
    zero_points: Vec<f32>,
    /// The block of each element of a row, where they are not in order.
    groups: Option<Vec<usize>>,
}

impl Weights<'_> {
    fn row(&self, row: usize, out: &mut [f64]) {
        let NBits { bits, block, .. } = self.node;
        let blocks = self.node.blocks();
        let mut codes = vec![0; blocks * block];
        let bytes = self.node.row_bytes();
        bits::unpack(&self.codes[row * bytes..(row + 1) * bytes], bits, 0, &mut codes);
        for (at, (out, code)) in out.iter_mut().zip(codes).enumerate() {
            let block = row * blocks + self.groups.as_ref().map_or(at / block, |groups| groups[at]);
            *out = f64::from((f32::from(code) - self.zero_points[block]) * self.scales[block]);
        }
    }
}

impl Kernel for NBits {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let NBits { rows: n, columns: k, .. } = *self;
        let (dtype, shape, x) = input(cx, 0)?;
        if shape.last() != Some(&k) {
            return Err(misfit("the last extent of A is `K`", &[&shape, &[n, k]]));
        }
        let (codes, scales) = (cx.dense(1)?, cx.dense(2)?);
        let zero_points = cx.opt_tensor(3)?.is_some().then(|| cx.dense(3)).transpose()?;
        self.check(&codes, &scales, zero_points.as_ref())?;
        let blocks = n * self.blocks();
        let zero_points = match &zero_points {
            None => vec![(1u32 << (self.bits - 1)) as f32; blocks],
            Some(packed) if packed.dtype() == DType::Uint8 => {
                let mut codes = vec![0; blocks];
                let rows = packed.dense_bytes().unwrap_or(&[]).chunks_exact(self.zero_point_bytes());
                for (to, bytes) in codes.chunks_exact_mut(self.blocks()).zip(rows) {
                    bits::unpack(bytes, self.bits, 0, to);
                }
                codes.into_iter().map(f32::from).collect()
            }
            Some(_) => floats(cx, 3)?,
        };
        let groups = match integers::opt_list(cx, 4)? {
            None => None,
            Some(list) if list.len() < k => {
                return Err(misfit("`g_idx` has a block for each of K", &[&[list.len()], &[k]]));
            }
            Some(list) => {
                let high = self.blocks() as i64 - 1;
                let place = |&value: &i64| {
                    let range = KernelError::Range { what: "an element of g_idx", value, low: 0, high };
                    usize::try_from(value).ok().filter(|_| value <= high).ok_or(range)
                };
                Some(list[..k].iter().map(place).collect::<Result<Vec<_>, _>>()?)
            }
        };
        let bias = opt_input(cx, 5)?;
        if bias.as_ref().is_some_and(|(_, _, bias)| bias.len() != n) {
            return Err(misfit("the bias is [N]", &[&bias.map(|b| b.1).unwrap_or_default(), &[n]]));
        }
        let Some(codes) = codes.dense_bytes() else { return Err(wrong_type(cx, 1, "UINT8")) };
        let weights = Weights { node: *self, codes, scales: floats(cx, 2)?, zero_points, groups };
        let mut out = vec![0.0; x.len() / k * n];
        let mut weight = vec![0.0; k];
        for row in 0..n {
            cx.cancel().check()?;
            weights.row(row, &mut weight);
            let start = bias.as_ref().map_or(0.0, |(_, _, bias)| bias[row]);
            let columns = out.iter_mut().skip(row).step_by(n);
            columns.zip(x.chunks_exact(k)).for_each(|(to, x)| *to = start + dot(x, &weight));
        }
        let mut shape = shape;
        if let Some(last) = shape.last_mut() {
            *last = n;
        }
        let out = written(cx, dtype, &shape, &out)?;
        cx.set(0, out);
        Ok(())
    }
}
