//! Rows of an encoded matrix: an embedding table that stays quantized.

use heirloom_mem::{DType, Shape};
use heirloom_runtime::{BuildCx, Kernel, KernelError, KernelSpec, RunCx};
use heirloom_types::Value;

use crate::linear::Weight;

/// ONNX `Gather` along axis 0 of an encoded matrix [n, k]: only the rows asked for are decoded.
pub(crate) const SPEC: KernelSpec = KernelSpec {
    domain: "",
    op: "Gather",
    versions: (1, i64::MAX),
    rank: 10,
    accepts: |cx| {
        matches!(cx.constant(0), Some(Value::Encoded(_)))
            && cx.node.attributes.int_or("axis", 0).is_ok_and(|axis| axis == 0)
            && table(cx).is_some()
    },
    build: |cx| {
        let table = table(cx).ok_or(heirloom_runtime::BuildError::MissingInput { index: 0 })?;
        Ok(Box::new(Rows { table }))
    },
};

fn table(cx: &BuildCx<'_>) -> Option<Weight> {
    Weight::of(cx.constant(0)?).ok().flatten()
}

struct Rows {
    table: Weight,
}

impl Rows {
    fn index(&self, index: i64) -> Result<usize, KernelError> {
        let rows = self.table.rows as i64;
        if (-rows..rows).contains(&index) {
            return Ok(index.rem_euclid(rows) as usize);
        }
        Err(KernelError::Range { what: "an index", value: index, low: -rows, high: rows - 1 })
    }
}

impl Kernel for Rows {
    fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
        let indices = cx.dense(1)?;
        let width = self.table.row_len;
        let mut shape = Shape::from_slice(indices.shape());
        shape.push(width);
        let mut out = cx.alloc(DType::Float, &shape)?;
        let rows = out.elements_mut::<f32>().chunks_exact_mut(width);
        let mut watch = cx.cancel().watch();
        let mut read = |index: i64, to: &mut [f32]| {
            watch.pass(width)?;
            let row = self.index(index)?;
            let decoded = self.table.product.decode_row(self.table.bytes(), row, to);
            decoded.map_err(|e| KernelError::Other(e.to_string()))
        };
        match indices.dtype() {
            DType::Int64 => rows.zip(indices.as_slice::<i64>()?).try_for_each(|(to, &i)| read(i, to))?,
            DType::Int32 => {
                rows.zip(indices.as_slice::<i32>()?).try_for_each(|(to, &i)| read(i.into(), to))?
            }
            other => {
                let (expected, actual) = ("INT32 or INT64".into(), other.name().into());
                return Err(KernelError::InputType { index: 1, expected, actual });
            }
        }
        cx.set(0, out.freeze());
        Ok(())
    }
}
