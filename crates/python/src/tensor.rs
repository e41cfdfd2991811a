//! Tensors of ours as Python objects.

use heirloom::mem::copy::{self, Purpose};
use heirloom::mem::{BytesMut, DType, Ledger, RegionKind, Storage, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyTuple};

use crate::foreign::{self, ReleaseOnDrop};
use crate::view::strides_of;
use crate::{input, output};

/// A tensor in memory that Heirloom owns or keeps alive. NumPy (`np.asarray`), PyTorch (`torch.from_dlpack`) and all that
/// reads buffers or DLPack use the same memory. Elements of less than a byte are packed as ONNX packs them.
#[pyclass(frozen, name = "Tensor", module = "heirloom")]
pub(crate) struct PyTensor {
    pub(crate) tensor: Tensor,
    pub(crate) writable: bool,
    /// What the buffer protocol tells: packed elements are told as bytes.
    pub(crate) shape: Box<[isize]>,
    pub(crate) strides: Box<[isize]>,
    pub(crate) item: usize,
    pub(crate) is_dense: bool,
    /// Whether the rows of a cache lie in several segments, so that no strides lead to all of them.
    pub(crate) is_segmented: bool,
    _release: ReleaseOnDrop,
}

impl PyTensor {
    pub(crate) fn new(tensor: Tensor, writable: bool) -> PyTensor {
        let strides = strides_of(&tensor);
        let is_dense = tensor.dense_bytes().is_some();
        let is_packed = tensor.dtype().bit_width().is_some_and(|bits| !bits.is_multiple_of(8));
        let is_segmented = strides.is_none() && !is_packed;
        let (shape, strides, item): (Box<[isize]>, Box<[isize]>, usize) = match strides {
            Some(strides) => {
                let item = tensor.dtype().bit_width().unwrap_or(8) as usize / 8;
                (tensor.shape().iter().map(|&n| n as isize).collect(), strides.into(), item)
            }
            None => ([tensor.byte_len() as isize].into(), [1].into(), 1),
        };
        PyTensor { tensor, writable, shape, strides, item, is_dense, is_segmented, _release: ReleaseOnDrop }
    }

    pub(crate) fn tensor(&self) -> &Tensor {
        &self.tensor
    }

    pub(crate) fn is_packed(&self) -> bool {
        self.tensor.dtype().bit_width().is_some_and(|bits| !bits.is_multiple_of(8))
    }

    /// Refuses what needs one stretch of memory.
    pub(crate) fn refuse_segments(&self) -> PyResult<()> {
        if !self.is_segmented {
            return Ok(());
        }
        let message =
            "the rows lie in several segments of memory: use `segments()`, each in place, or `copy()`";
        Err(PyBufferError::new_err(message))
    }
}

#[pymethods]
impl PyTensor {
    /// The tensor in the memory of an array, DLPack tensor or buffer: nothing is copied.
    ///
    /// With `dtype` and `shape`, the bytes of any buffer are taken for elements of that ONNX type (`"INT4"`, packed) in
    /// that shape.
    #[new]
    #[pyo3(signature = (data, *, dtype=None, shape=None))]
    fn py_new(data: &Bound<'_, PyAny>, dtype: Option<&str>, shape: Option<Vec<usize>>) -> PyResult<PyTensor> {
        let Some(name) = dtype else {
            if shape.is_some() {
                return Err(PyTypeError::new_err("`shape` goes with `dtype`"));
            }
            return Ok(PyTensor::new(input::tensor(data, None, "Tensor")?, false));
        };
        let dtype = dtype_named(name)?;
        let (bytes, _) = input::payload(data, "Tensor")?;
        let shape = match (shape, dtype.bit_width()) {
            (Some(shape), _) => shape,
            (None, Some(bits)) => vec![bytes.len() * 8 / bits as usize],
            (None, None) => return Err(PyTypeError::new_err("strings have no payload of fixed width")),
        };
        let tensor =
            Tensor::new(dtype, &shape, bytes).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(PyTensor::new(tensor, false))
    }

    /// The ONNX element type, such as `FLOAT` or `BFLOAT16`.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.tensor.dtype().name()
    }

    /// The extents.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.tensor.shape())
    }

    /// Distances of the elements along each axis in bytes; `None` for packed elements and for several segments.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        if self.is_packed() || self.is_segmented {
            Ok(None)
        } else {
            PyTuple::new(py, self.strides.iter()).map(Some)
        }
    }

    /// Bytes that the elements take.
    #[getter]
    fn nbytes(&self) -> usize {
        self.tensor.byte_len()
    }

    /// The address of the first element, to prove that two values share memory.
    #[getter]
    fn address(&self) -> usize {
        self.tensor.address()
    }

    /// Whether consumers may write: nothing else refers to the memory.
    #[getter]
    fn writable(&self) -> bool {
        self.writable
    }

    /// Whether the elements lie one behind the other.
    #[getter]
    fn contiguous(&self) -> bool {
        self.is_dense
    }

    /// Where the memory is: `heap`, `mapped` (a file), `foreign` (another owner's), `append` (a cache that grows).
    #[getter]
    fn place(&self) -> &'static str {
        match self.tensor.storage() {
            Storage::Append { .. } => "append",
            Storage::Dense(bytes) | Storage::Strided { bytes, .. } => match bytes.kind() {
                RegionKind::Mapped => "mapped",
                RegionKind::Foreign => "foreign",
                RegionKind::Lent => "lent",
                _ => "heap",
            },
        }
    }

    /// Whether the elements lie in one stretch of memory that strides describe. A cache that grew or was forked may lie in
    /// several `segments`.
    #[getter]
    fn single(&self) -> bool {
        !self.is_segmented
    }

    /// The stretches of memory that hold the rows of a cache, one behind the other along the axis that grows, each an array
    /// in place; one for other tensors.
    fn segments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        let Some((view, axis)) = self.tensor.append_view().filter(|_| self.is_segmented) else {
            list.append(output::array(py, self.tensor.clone(), self.writable)?)?;
            return Ok(list);
        };
        let shape = self.tensor.shape();
        let mut start = 0;
        for stretch in view.segments(0) {
            let end = start + stretch.len() / view.row_bytes().max(1);
            let rows = view.part(start, end);
            let part = Tensor::from_append(self.tensor.dtype(), &shape[..axis], &shape[axis + 1..], rows);
            let part = part.map_err(|error| PyValueError::new_err(error.to_string()))?;
            list.append(output::array(py, part, false)?)?;
            start = end;
        }
        Ok(list)
    }

    /// A dense copy of the elements, as an array that is the caller's alone (a tensor for packed elements).
    fn copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let ledger = Ledger::default();
        let copied = py.detach(|| {
            let mut bytes = BytesMut::zeroed(self.tensor.byte_len(), &ledger);
            let mut rest = bytes.as_mut_slice();
            self.tensor.for_each_run(|run| {
                let (now, later) = std::mem::take(&mut rest).split_at_mut(run.len());
                copy::into(now, run, Purpose::Kernel, &ledger);
                rest = later;
            });
            Tensor::new(self.tensor.dtype(), self.tensor.shape(), bytes.freeze())
        });
        output::array(py, copied.map_err(|error| PyValueError::new_err(error.to_string()))?, true)
    }

    /// What `np.asarray` asks for where the buffer protocol has no answer.
    #[pyo3(signature = (dtype=None, *, copy=None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy != Some(true) {
            self.refuse_segments().map_err(|error| PyValueError::new_err(error.value(py).to_string()))?;
        }
        let array = if copy == Some(true) {
            self.copy(py)?
        } else {
            output::array(py, self.tensor.clone(), self.writable)?
        };
        match dtype {
            Some(dtype) => array.call_method1("astype", (dtype,)),
            None => Ok(array),
        }
    }

    /// The same elements in another shape, in the same memory.
    fn reshape(&self, shape: Vec<usize>) -> PyResult<PyTensor> {
        let tensor = self.tensor.reshape(&shape);
        let tensor = tensor.map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(PyTensor::new(tensor, self.writable))
    }

    /// `(1, 0)`: the processor's memory.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }

    /// A DLPack capsule over the same memory. From `max_version=(1, 0)` on it says whether the memory is read-only; for
    /// older consumers nothing does: they must not write to a tensor that is not `writable`.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        if stream.is_some() {
            return Err(PyBufferError::new_err(
                "memory of the processor has no streams: `stream` must be None",
            ));
        }
        if dl_device.is_some_and(|device| device != (1, 0)) {
            return Err(PyBufferError::new_err("the tensor is in the processor's memory, device (1, 0)"));
        }
        if copy == Some(true) {
            return Err(PyBufferError::new_err("nothing is copied here: copy the array that you make of it"));
        }
        if self.is_packed() {
            let message = format!("DLPack has no packed {}; use `unpack`", self.tensor.dtype());
            return Err(PyBufferError::new_err(message));
        }
        self.refuse_segments()?;
        let versioned = max_version.is_some_and(|(major, _)| major >= 1);
        foreign::to_dlpack(py, self.tensor.clone(), &self.strides, !self.writable, versioned)
    }

    fn __len__(&self) -> PyResult<usize> {
        self.tensor.shape().first().copied().ok_or_else(|| PyTypeError::new_err("a scalar has no length"))
    }

    fn __repr__(&self) -> String {
        let shape: Vec<String> = self.tensor.shape().iter().map(ToString::to_string).collect();
        let access = if self.writable { "writable" } else { "read-only" };
        format!(
            "heirloom.Tensor({}[{}], {} bytes, {}, {access})",
            self.tensor.dtype(),
            shape.join(", "),
            self.tensor.byte_len(),
            self.place()
        )
    }
}

/// The element type of ONNX's upper-case name, in any case.
pub(crate) fn dtype_named(name: &str) -> PyResult<DType> {
    let found = DType::ALL.into_iter().find(|dtype| dtype.name().eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.name()).collect();
        PyValueError::new_err(format!("`{name}` is no element type; those of ONNX are {}", names.join(", ")))
    })
}
