//! Operators that move elements of any type, strings too, one by one.

use std::sync::Arc;

use heirloom_mem::{DType, Shape, Tensor, element_count};
use heirloom_runtime::{KernelError, RunCx, Watch};
use heirloom_types::{StringTensor, Value, bits};

use crate::spread;

/// Something done with elements whatever their type is.
pub(crate) trait Moves {
    /// Fills `out` from the elements of the inputs. It holds default elements: zeros, empty strings.
    fn apply<C: Clone>(
        &self,
        watch: &mut Watch<'_>,
        out: &mut [C],
        inputs: &[&[C]],
    ) -> Result<(), KernelError>;
}

fn differ(index: usize, expected: String, actual: String) -> KernelError {
    KernelError::InputType { index, expected, actual }
}

/// The result of `moves`, of shape `shape`, with the elements of the inputs `indices`, which have one type.
pub(crate) fn moved(
    cx: &mut RunCx<'_>,
    indices: &[usize],
    shape: &[usize],
    moves: &impl Moves,
) -> Result<Value, KernelError> {
    moved_with(cx, indices, &[], shape, moves)
}

/// [`moved`] with `more` tensors behind the inputs, which strings do not see.
pub(crate) fn moved_with(
    cx: &mut RunCx<'_>,
    indices: &[usize],
    more: &[Tensor],
    shape: &[usize],
    moves: &impl Moves,
) -> Result<Value, KernelError> {
    let values: Vec<Value> = indices
        .iter()
        .map(|&index| cx.value(index).cloned().ok_or(KernelError::MissingInput { index }))
        .collect::<Result<_, _>>()?;
    if let Some(Value::Strings(_)) = values.first() {
        let mut inputs: Vec<&[Box<[u8]>]> = Vec::with_capacity(values.len());
        for (value, &index) in values.iter().zip(indices) {
            match value {
                Value::Strings(strings) => inputs.push(&strings.elements),
                other => return Err(differ(index, "strings, as the first is".into(), other.kind().into())),
            }
        }
        let count = element_count(shape).unwrap_or(usize::MAX);
        cx.check_memory(count.saturating_mul(size_of::<Box<[u8]>>()))?;
        let mut elements: Vec<Box<[u8]>> = vec![Box::default(); count];
        moves.apply(&mut cx.cancel().watch(), &mut elements, &inputs)?;
        return Ok(strings(shape, elements));
    }
    let mut tensors: Vec<Tensor> = Vec::with_capacity(indices.len());
    for &index in indices {
        let tensor = cx.dense(index)?;
        if let Some(first) = tensors.first().filter(|first| first.dtype() != tensor.dtype()) {
            return Err(differ(
                index,
                format!("{} tensor, as the first is", first.dtype()),
                format!("{} tensor", tensor.dtype()),
            ));
        }
        tensors.push(tensor);
    }
    tensors.extend_from_slice(more);
    let dtype = tensors.first().map_or(DType::Uint8, Tensor::dtype);
    let mut out = cx.alloc(dtype, shape)?;
    let inputs: Vec<&[u8]> = tensors.iter().map(|tensor| tensor.dense_bytes().unwrap_or(&[])).collect();
    let width = dtype.bit_width().unwrap_or(8);
    macro_rules! whole {
        ($bytes:literal) => {{
            let inputs: Vec<&[[u8; $bytes]]> = inputs.iter().map(|bytes| bytes.as_chunks().0).collect();
            let out = out.bytes_mut().as_chunks_mut::<$bytes>().0;
            spread::pieces(cx.cancel(), out, |_, piece| piece.fill([0; $bytes]))?;
            moves.apply(&mut cx.cancel().watch(), out, &inputs)?;
        }};
    }
    match width {
        8 => whole!(1),
        16 => whole!(2),
        32 => whole!(4),
        64 => whole!(8),
        128 => whole!(16),
        _ => {
            let codes: Vec<Vec<u8>> = tensors.iter().zip(&inputs).map(|(t, bytes)| codes(t, bytes)).collect();
            let inputs: Vec<&[u8]> = codes.iter().map(|codes| &**codes).collect();
            let mut to = vec![0u8; out.shape().iter().product()];
            moves.apply(&mut cx.cancel().watch(), &mut to, &inputs)?;
            bits::pack(&to, width, out.bytes_mut());
        }
    }
    Ok(out.freeze().into())
}

/// One byte for each element of a type of less than a byte.
fn codes(tensor: &Tensor, bytes: &[u8]) -> Vec<u8> {
    let mut codes = vec![0; tensor.len()];
    bits::unpack(bytes, tensor.dtype().bit_width().unwrap_or(8), 0, &mut codes);
    codes
}

/// A tensor of strings.
pub(crate) fn strings(shape: &[usize], elements: Vec<Box<[u8]>>) -> Value {
    Value::Strings(Arc::new(StringTensor { shape: Shape::from_slice(shape), elements }))
}

/// Runs of elements, one behind the other.
struct Pick<'a> {
    starts: &'a [usize],
    run: usize,
}

impl Moves for Pick<'_> {
    fn apply<C: Clone>(
        &self,
        watch: &mut Watch<'_>,
        out: &mut [C],
        inputs: &[&[C]],
    ) -> Result<(), KernelError> {
        let from = inputs[0];
        if self.run == 1 {
            for (out, starts) in out.chunks_mut(Watch::PIECE).zip(self.starts.chunks(Watch::PIECE)) {
                watch.pass(out.len())?;
                out.iter_mut().zip(starts).for_each(|(o, &at)| *o = from[at].clone());
            }
            return Ok(());
        }
        for (out, &at) in out.chunks_exact_mut(self.run.max(1)).zip(self.starts) {
            watch.pass(self.run)?;
            put(out, &from[at..at + self.run]);
        }
        Ok(())
    }
}

/// The elements `from`, in `out`.
pub(crate) fn put<C: Clone>(out: &mut [C], from: &[C]) {
    out.iter_mut().zip(from).for_each(|(o, v)| *o = v.clone());
}

/// The runs of `run` elements of input `index` that begin at `starts`, one behind the other.
pub(crate) fn pick(
    cx: &mut RunCx<'_>,
    index: usize,
    shape: &[usize],
    starts: &[usize],
    run: usize,
) -> Result<Value, KernelError> {
    moved(cx, &[index], shape, &Pick { starts, run })
}

/// Input `index` as a tensor of strings.
pub(crate) fn strings_of(cx: &RunCx<'_>, index: usize) -> Result<Arc<StringTensor>, KernelError> {
    match cx.value(index) {
        Some(Value::Strings(strings)) => Ok(strings.clone()),
        Some(Value::Tensor(tensor)) => {
            Err(differ(index, "strings".into(), format!("{} tensor", tensor.dtype())))
        }
        Some(other) => Err(differ(index, "strings".into(), other.kind().into())),
        None => Err(KernelError::MissingInput { index }),
    }
}
