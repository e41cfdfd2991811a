//! `DynamicQuantizeLSTM`: an LSTM whose weights are 8-bit codes, [directions, input, 4 * hidden]; inputs and states are
//! quantized on the way, all inputs together and the batch's states at each step.

use heirloom_mem::Shape;
use heirloom_runtime::{CancelToken, Cancelled, Kernel, KernelError, KernelSpec, RunCx};

use crate::attributes::only;
use crate::onnx::lstm::{Lstm, run_with};
use crate::product::product;
use crate::quantized::{dynamic, dynamic_codes, floats, integers, zero_points};
use crate::recurrent::{ATTRIBUTES, Extents, Products, per_direction};

pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "com.microsoft",
    op: "DynamicQuantizeLSTM",
    versions: (1, 1),
    rank: 0,
    accepts: |cx| cx.plain_inputs(),
    build: |cx| {
        only(cx, &[&ATTRIBUTES[..], &["input_forget"]].concat())?;
        Ok(Box::new(DynamicQuantizeLstm(Lstm::new(cx)?)))
    },
};

struct DynamicQuantizeLstm(Lstm);

/// A weight [directions, rows, width] less its zero points, with its scales.
struct Coded {
    rows: usize,
    width: usize,
    codes: Vec<i32>,
    /// One for each direction, or for each column too.
    scales: Vec<f32>,
    directions: usize,
}

impl Coded {
    fn read(cx: &RunCx<'_>, index: usize, scale: usize) -> Result<Coded, KernelError> {
        let tensor = cx.dense(index)?;
        let &[directions, rows, width] = tensor.shape() else {
            let shapes = vec![Shape::from_slice(tensor.shape())];
            return Err(KernelError::Shape { what: "a weight is [directions, rows, 4 * hidden]", shapes });
        };
        let mut codes = integers(cx, index, &tensor)?;
        let (scales, zeros) = (floats(cx, scale)?, zero_points(cx, scale + 1)?);
        let fits = |len: usize| len == directions || len == directions * width;
        if !fits(scales.len()) || !(fits(zeros.len()) || zeros.len() == 1) {
            return Err(KernelError::Shape {
                what: "there is a scale and a zero point for each direction, or each of its columns",
                shapes: vec![Shape::from_slice(tensor.shape()), Shape::from_elem(scales.len(), 1)],
            });
        }
        for (at, code) in codes.iter_mut().enumerate() {
            let direction = at / (rows * width).max(1);
            *code -= match zeros.len() {
                1 => zeros[0],
                len if len == directions => zeros[direction],
                _ => zeros[direction * width + at % width],
            };
        }
        Ok(Coded { rows, width, codes, scales, directions })
    }

    fn multiply(
        &self,
        direction: usize,
        x: &[f64],
        out: &mut [f64],
        cancel: &CancelToken,
    ) -> Result<(), Cancelled> {
        let x: Vec<f32> = x.iter().map(|&v| v as f32).collect();
        let (scale, zero) = dynamic(&x);
        let codes: Vec<i32> = dynamic_codes(&x, scale, zero).collect();
        let mut sums = vec![0; out.len()];
        let size = self.rows * self.width;
        let own = &self.codes[direction * size..][..size];
        product(&mut sums, &codes, own, (self.width, self.rows), false, cancel)?;
        for (at, (out, sum)) in out.iter_mut().zip(sums).enumerate() {
            let own = match self.scales.len() == self.directions {
                true => self.scales[direction],
                false => self.scales[direction * self.width + at % self.width],
            };
            *out = f64::from(sum) * f64::from(scale * own);
        }
        Ok(())
    }
}

struct Weights {
    w: Coded,
    r: Coded,
}

impl Products<f64> for Weights {
    fn width(&self) -> usize {
        self.w.width
    }

    fn inputs(
        &self,
        direction: usize,
        x: &[f64],
        out: &mut [f64],
        cancel: &CancelToken,
    ) -> Result<(), Cancelled> {
        self.w.multiply(direction, x, out, cancel)
    }

    fn states(
        &self,
        direction: usize,
        h: &[f64],
        out: &mut [f64],
        cancel: &CancelToken,
    ) -> Result<(), Cancelled> {
        self.r.multiply(direction, h, out, cancel)
    }
}

impl Kernel for DynamicQuantizeLstm {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let weights = Weights { w: Coded::read(cx, 1, 8)?, r: Coded::read(cx, 2, 10)? };
        // The plain operator has the last two axes the other way round.
        let turned = |w: &Coded| [w.directions, w.width, w.rows];
        let extents = Extents::new(cx, &self.0.common, 4, &turned(&weights.w), &turned(&weights.r))?;
        let what = "B is [directions, 8 * hidden]";
        let bias = per_direction::<f32>(cx, 3, extents.directions, 8 * extents.hidden, what)?;
        let x = cx.dense(0)?;
        // States are quantized at each step, where noise would decide ties, so all between is computed in DOUBLE.
        let wide = |list: &[f32]| -> Vec<f64> { list.iter().map(|&v| f64::from(v)).collect() };
        let (x, bias) = (wide(x.as_slice()?), wide(&bias));
        run_with::<f32, f64>(cx, &self.0, &extents, &x, (&weights, &bias))
    }
}
