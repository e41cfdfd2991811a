//! Memory of a Python object as its exporter describes it, and as a tensor of ours.

use heirloom::mem::{Bytes, DType, Storage, Tensor, element_count};

/// Why an array cannot be used where it lies, and what to do about it.
pub(crate) struct Unfit {
    pub(crate) reason: String,
    pub(crate) remedy: &'static str,
}

impl Unfit {
    fn new(reason: impl Into<String>, remedy: &'static str) -> Unfit {
        Unfit { reason: reason.into(), remedy }
    }
}

/// A foreign array. Strides are in bytes.
pub(crate) struct View {
    /// From the lowest to the highest byte that the elements take.
    pub(crate) bytes: Bytes,
    /// The element type, as the exporter names it.
    pub(crate) format: String,
    /// Bytes of an element.
    pub(crate) item: usize,
    pub(crate) shape: Vec<usize>,
    pub(crate) strides: Vec<isize>,
}

impl View {
    /// The strides of elements of `item` bytes that lie one behind the other.
    pub(crate) fn dense_strides(shape: &[usize], item: usize) -> Vec<isize> {
        let mut strides = vec![0; shape.len()];
        let mut step = item as isize;
        for (stride, &extent) in strides.iter_mut().zip(shape).rev() {
            *stride = step;
            step = step.saturating_mul(extent.max(1) as isize);
        }
        strides
    }

    /// How many bytes below the first element the lowest one lies, and how many bytes there are from the lowest to the
    /// end of the highest; `(0, 0)` where there are no elements.
    pub(crate) fn span(shape: &[usize], strides: &[isize], item: usize) -> (usize, usize) {
        if shape.contains(&0) {
            return (0, 0);
        }
        let (mut below, mut above) = (0usize, 0usize);
        for (&extent, &stride) in shape.iter().zip(strides) {
            let reach = (extent - 1).saturating_mul(stride.unsigned_abs());
            *(if stride < 0 { &mut below } else { &mut above }) += reach;
        }
        (below, below + above + item)
    }

    /// The elements as a tensor, in place.
    pub(crate) fn tensor(&self, dtype: DType) -> Result<Tensor, Unfit> {
        const DENSE: &str = "np.ascontiguousarray(x)";
        let width = dtype.bit_width().unwrap_or(0) as usize / 8;
        if width != self.item || width == 0 {
            let reason = format!("its elements take {} bytes, {dtype} takes {width}", self.item);
            return Err(Unfit::new(reason, "x.astype(...)"));
        }
        if element_count(&self.shape) == Some(0) {
            let empty = Tensor::new(dtype, &self.shape, Bytes::empty());
            return empty.map_err(|error| Unfit::new(error.to_string(), DENSE));
        }
        let backwards = |(&stride, &extent): (&isize, &usize)| stride < 0 && extent > 1;
        if let Some(axis) = self.strides.iter().zip(&self.shape).position(backwards) {
            let reason = format!("it runs backwards along axis {axis} (stride {})", self.strides[axis]);
            return Err(Unfit::new(reason, DENSE));
        }
        let align = width.min(8);
        if !self.bytes.address().is_multiple_of(align) {
            let reason = format!("its address is no multiple of {align}, as {dtype} needs");
            return Err(Unfit::new(reason, "x.copy()"));
        }
        let mut strides = Vec::with_capacity(self.strides.len());
        for (axis, (&stride, &extent)) in self.strides.iter().zip(&self.shape).enumerate() {
            let stride = if extent == 1 { 0 } else { stride.unsigned_abs() };
            if stride % width != 0 {
                let reason =
                    format!("its stride along axis {axis}, {stride} bytes, is no multiple of {width}");
                return Err(Unfit::new(reason, DENSE));
            }
            strides.push(stride / width);
        }
        Tensor::strided(dtype, &self.shape, &strides, self.bytes.clone())
            .map_err(|error| Unfit::new(error.to_string(), DENSE))
    }
}

/// The element type of a buffer's format, in the syntax of Python's `struct` (with `Z` for complex).
pub(crate) fn dtype_of_format(format: &str, item: usize) -> Result<DType, Unfit> {
    let (order, code) = match format.as_bytes() {
        [b'@' | b'=' | b'<' | b'>' | b'!', ..] => format.split_at(1),
        _ => ("@", format),
    };
    let dtype = match (code, item) {
        ("?", 1) => DType::Bool,
        ("b", 1) => DType::Int8,
        ("B", 1) => DType::Uint8,
        ("h" | "i" | "l" | "q" | "n", 2) => DType::Int16,
        ("H" | "I" | "L" | "Q" | "N", 2) => DType::Uint16,
        ("i" | "l" | "q" | "n", 4) => DType::Int32,
        ("I" | "L" | "Q" | "N", 4) => DType::Uint32,
        ("l" | "q" | "n", 8) => DType::Int64,
        ("L" | "Q" | "N", 8) => DType::Uint64,
        ("e", 2) => DType::Float16,
        ("f", 4) => DType::Float,
        ("d", 8) => DType::Double,
        ("Zf", 8) => DType::Complex64,
        ("Zd", 16) => DType::Complex128,
        _ => {
            let reason = format!("ONNX has no element type like `{format}` of {item} bytes");
            return Err(Unfit::new(reason, "x.astype(...)"));
        }
    };
    if matches!(order, ">" | "!") && item > 1 {
        let reason = format!("its {dtype} elements are big-endian");
        return Err(Unfit::new(reason, "x.astype(x.dtype.newbyteorder('='))"));
    }
    Ok(dtype)
}

/// Strides in bytes of a tensor's elements, wherever they lie; `None` for packed elements of less than a byte, and where
/// the rows of a cache lie in several segments.
pub(crate) fn strides_of(tensor: &Tensor) -> Option<Vec<isize>> {
    let width = tensor.dtype().bit_width()? as usize;
    if !width.is_multiple_of(8) {
        return None;
    }
    let item = width / 8;
    let dense = View::dense_strides(tensor.shape(), item);
    match tensor.storage() {
        Storage::Dense(_) => Some(dense),
        Storage::Strided { strides, .. } => Some(strides.iter().map(|&s| (s * item) as isize).collect()),
        Storage::Append { .. } if tensor.is_empty() => Some(dense),
        Storage::Append { view, axis } => {
            let first = view.contiguous(0)?;
            let mut strides = dense;
            if view.outer() > 1 {
                // Runs lie equally far apart, whatever the view sees of each.
                let mut step = (view.contiguous(1)?.as_ptr().addr() - first.as_ptr().addr()) as isize;
                for at in (0..*axis).rev() {
                    strides[at] = step;
                    step *= tensor.shape()[at].max(1) as isize;
                }
            }
            Some(strides)
        }
    }
}
