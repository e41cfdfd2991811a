//! Memory that Python objects lend and memory that is lent to them: the buffer protocol and DLPack. The only file of
//! this crate with unsafe code.
//!
//! What Python lends stays where it is. Its owner is released with the last handle on the bytes, whenever and on
//! whatever thread that is: since a thread that computes must never wait for the interpreter's lock (its owner may wait
//! for what the thread holds), owners are put on a list, which the next entry into the interpreter empties
//! ([`release`]). Owners that are left when the interpreter is gone are forgotten.
//!
//! Python may write to arrays that it lends. The bytes must not change while a call reads them, and values that share
//! them change with them; the package says so where arrays are given.
#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use heirloom::mem::{Bytes, DType, Tensor};
use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::dlpack::{
    DLDevice, DLManagedTensor, DLManagedTensorVersioned, DLPackVersion, DLTensor, FLAG_READ_ONLY, NAME,
    NAME_VERSIONED, USED, USED_VERSIONED,
};
use crate::tensor::PyTensor;
use crate::view::View;

/// Frees a DLPack tensor.
pub(crate) type Deleter<M> = unsafe extern "C" fn(*mut M);

/// What keeps lent memory alive.
enum Owner {
    Buffer(Box<ffi::Py_buffer>),
    Managed(NonNull<DLManagedTensor>),
    Versioned(NonNull<DLManagedTensorVersioned>),
}

// SAFETY: an owner is only kept, moved and, by `free`, given back while attached to the interpreter. DLPack says that a
// tensor may be deleted on any thread; a `Py_buffer` may be released on any thread that is attached.
unsafe impl Send for Owner {}

impl Owner {
    /// Gives the memory back to its owner.
    fn free(self, _attached: Python<'_>) {
        match self {
            // SAFETY: the buffer was filled by `PyObject_GetBuffer` and is released here, once, since `self` is consumed.
            Owner::Buffer(mut buffer) => unsafe { ffi::PyBuffer_Release(&raw mut *buffer) },
            Owner::Managed(tensor) => {
                // SAFETY: `import` took the tensor out of its capsule, so it is ours to delete, once.
                unsafe {
                    if let Some(deleter) = (*tensor.as_ptr()).deleter {
                        deleter(tensor.as_ptr());
                    }
                }
            }
            Owner::Versioned(tensor) => {
                // SAFETY: as for `Managed`.
                unsafe {
                    if let Some(deleter) = (*tensor.as_ptr()).deleter {
                        deleter(tensor.as_ptr());
                    }
                }
            }
        }
    }
}

static WAITING: Mutex<Vec<Owner>> = Mutex::new(Vec::new());
static ANY_WAITING: AtomicBool = AtomicBool::new(false);

/// Gives memory back whose last handle is gone. Cheap when there is none.
pub(crate) fn release(py: Python<'_>) {
    if ANY_WAITING.swap(false, Relaxed) {
        let owners = std::mem::take(&mut *WAITING.lock().unwrap_or_else(PoisonError::into_inner));
        owners.into_iter().for_each(|owner| owner.free(py));
    }
}

/// Releases what its neighbours in a struct owned: put it behind the fields whose values may be the last handles.
#[derive(Default)]
pub(crate) struct ReleaseOnDrop;

impl Drop for ReleaseOnDrop {
    fn drop(&mut self) {
        // Objects of Python classes are dropped while attached; others leave the list to the next entry.
        if ANY_WAITING.load(Relaxed) {
            Python::try_attach(release);
        }
    }
}

/// A stretch of another owner's memory.
struct Held {
    ptr: NonNull<u8>,
    len: usize,
    owner: Option<Owner>,
}

// SAFETY: the memory is only read; the owner is `Send` and touched by `drop` alone.
unsafe impl Send for Held {}
// SAFETY: as for `Send`; `&Held` gives only `&[u8]`.
unsafe impl Sync for Held {}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `ptr..ptr+len` lies in memory that `owner` keeps alive and in place: a `Py_buffer` locks its exporter's
        // memory, a DLPack tensor owns it. It is initialized as far as any Python array is. That nobody writes to it
        // meanwhile is what the package asks of its users.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(owner) = self.owner.take() {
            WAITING.lock().unwrap_or_else(PoisonError::into_inner).push(owner);
            ANY_WAITING.store(true, Relaxed);
        }
    }
}

/// The bytes at `address` with their owner; none where there are no bytes, which need no owner.
fn held(py: Python<'_>, address: *mut c_void, len: usize, owner: Owner) -> Bytes {
    match NonNull::new(address.cast::<u8>()) {
        Some(ptr) if len > 0 => Bytes::from_owner(Held { ptr, len, owner: Some(owner) }),
        _ => {
            owner.free(py);
            Bytes::empty()
        }
    }
}

/// Whether the object offers the buffer protocol.
pub(crate) fn has_buffer(object: &Bound<'_, PyAny>) -> bool {
    // SAFETY: a valid object, while attached.
    unsafe { ffi::PyObject_CheckBuffer(object.as_ptr()) != 0 }
}

/// The memory of an object that offers the buffer protocol.
pub(crate) fn buffer(object: &Bound<'_, PyAny>) -> PyResult<View> {
    let py = object.py();
    let mut raw = Box::new(ffi::Py_buffer::new());
    // SAFETY: `raw` is a zeroed `Py_buffer` at a stable address (boxed: exporters may find it again by that address).
    let got = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &raw mut *raw, ffi::PyBUF_RECORDS_RO) };
    if got != 0 {
        return Err(PyErr::fetch(py));
    }
    let rank = usize::try_from(raw.ndim).unwrap_or(0);
    let item = usize::try_from(raw.itemsize).unwrap_or(0);
    let (mut shape, mut strides) = (Vec::with_capacity(rank), Vec::with_capacity(rank));
    let format;
    // SAFETY: the request's flags make the exporter set shape, strides (`ndim` numbers each, or null where there are
    // none to tell) and format (a C string, or null for bytes); all live until the buffer is released.
    unsafe {
        for axis in 0..rank {
            if raw.shape.is_null() {
                shape.push(usize::try_from(raw.len).unwrap_or(0) / item.max(1));
            } else {
                shape.push(usize::try_from(*raw.shape.add(axis)).unwrap_or(0));
            }
            if !raw.strides.is_null() {
                strides.push(*raw.strides.add(axis));
            }
        }
        let text = if raw.format.is_null() { c"B" } else { CStr::from_ptr(raw.format) };
        format = text.to_string_lossy().into_owned();
    }
    if strides.len() != rank {
        strides = View::dense_strides(&shape, item);
    }
    let address = raw.buf;
    let (below, span) = View::span(&shape, &strides, item);
    // SAFETY: `span` bytes from `below` bytes before `buf` on are those that shape and strides reach.
    let start = if address.is_null() { address } else { unsafe { address.byte_sub(below) } };
    let bytes = held(py, start, span, Owner::Buffer(raw));
    Ok(View { bytes, format, item, shape, strides })
}

/// A DLPack tensor's memory and device, taken out of its capsule.
pub(crate) fn from_dlpack(capsule: &Bound<'_, PyCapsule>) -> PyResult<(View, DLDevice)> {
    let py = capsule.py();
    let take = |name: &'static CStr, used: &'static CStr| -> PyResult<Option<NonNull<c_void>>> {
        // SAFETY: a valid capsule, while attached; the names live as long as the program.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 0 {
                return Ok(None);
            }
            let pointer = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr());
            if pointer.is_null() || ffi::PyCapsule_SetName(capsule.as_ptr(), used.as_ptr()) != 0 {
                return Err(PyErr::fetch(py));
            }
            Ok(NonNull::new(pointer))
        }
    };
    if let Some(pointer) = take(NAME_VERSIONED, USED_VERSIONED)? {
        let tensor = pointer.cast::<DLManagedTensorVersioned>();
        let owner = Owner::Versioned(tensor);
        // SAFETY: a capsule of this name holds a pointer to such a struct, ours since the capsule was renamed. Only the
        // version may be read before it is known.
        let version = unsafe { (*tensor.as_ptr()).version };
        if version.major != 1 {
            owner.free(py);
            let DLPackVersion { major, minor } = version;
            return Err(PyBufferError::new_err(format!("DLPack {major}.{minor} is not understood; 1.x is")));
        }
        // SAFETY: as above; the version is one of this layout.
        let inner = unsafe { &raw const (*tensor.as_ptr()).dl_tensor };
        return dlpack_view(py, inner, owner);
    }
    if let Some(pointer) = take(NAME, USED)? {
        let tensor = pointer.cast::<DLManagedTensor>();
        // SAFETY: a capsule of this name holds a pointer to such a struct, ours since the capsule was renamed.
        let inner = unsafe { &raw const (*tensor.as_ptr()).dl_tensor };
        return dlpack_view(py, inner, Owner::Managed(tensor));
    }
    Err(PyBufferError::new_err("no DLPack capsule, or one that was consumed before"))
}

fn dlpack_view(py: Python<'_>, tensor: *const DLTensor, owner: Owner) -> PyResult<(View, DLDevice)> {
    // SAFETY: the tensor lives as long as `owner`; shape has `ndim` numbers, strides too unless null.
    let (view, address, device) = unsafe {
        let tensor = &*tensor;
        let rank = usize::try_from(tensor.ndim).unwrap_or(0);
        let item = usize::from(tensor.dtype.bits) * usize::from(tensor.dtype.lanes) / 8;
        let shape: Vec<usize> =
            (0..rank).map(|axis| usize::try_from(*tensor.shape.add(axis)).unwrap_or(0)).collect();
        let strides = if tensor.strides.is_null() {
            View::dense_strides(&shape, item)
        } else {
            let bytes = isize::try_from(item).unwrap_or(0);
            (0..rank).map(|axis| (*tensor.strides.add(axis) as isize).saturating_mul(bytes)).collect()
        };
        let (below, _) = View::span(&shape, &strides, item);
        let format = tensor.dtype.to_string();
        let address = if tensor.data.is_null() || tensor.device.device_type != DLDevice::CPU.device_type {
            std::ptr::null_mut()
        } else {
            tensor.data.byte_add(usize::try_from(tensor.byte_offset).unwrap_or(0)).byte_sub(below)
        };
        let view = View { bytes: Bytes::empty(), format, item, shape, strides };
        (view, address, tensor.device)
    };
    let (_, span) = View::span(&view.shape, &view.strides, view.item);
    let bytes = held(py, address, span, owner);
    Ok((View { bytes, ..view }, device))
}

/// What an exported DLPack tensor needs as long as its consumer has it.
struct Exported<M> {
    managed: M,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _tensor: Tensor,
}

/// # Safety
/// `managed` came from [`to_dlpack`] and was not deleted before.
unsafe extern "C" fn delete(managed: *mut DLManagedTensor) {
    // SAFETY: `manager_ctx` is the box that `to_dlpack` leaked, and nobody frees it twice. Dropping the tensor needs no
    // interpreter: foreign owners in it go to the list.
    drop(unsafe { Box::from_raw((*managed).manager_ctx.cast::<Exported<DLManagedTensor>>()) });
}

/// # Safety
/// As [`delete`].
unsafe extern "C" fn delete_versioned(managed: *mut DLManagedTensorVersioned) {
    // SAFETY: as in `delete`.
    drop(unsafe { Box::from_raw((*managed).manager_ctx.cast::<Exported<DLManagedTensorVersioned>>()) });
}

/// # Safety
/// Called by the interpreter alone, for a capsule of [`to_dlpack`].
unsafe extern "C" fn drop_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: the interpreter passes a valid capsule. Under its first name it was not consumed and still owns its tensor;
    // a consumer renames it.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME_VERSIONED.as_ptr()) != 0 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, NAME_VERSIONED.as_ptr()).cast());
        } else if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) != 0 {
            delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()).cast());
        }
    }
}

/// A DLPack capsule of a tensor, which lives as long as its consumer needs it. Without `versioned`, consumers are not told
/// that the memory is read-only: that layout has no place for it.
pub(crate) fn to_dlpack<'py>(
    py: Python<'py>,
    tensor: Tensor,
    strides: &[isize],
    readonly: bool,
    versioned: bool,
) -> PyResult<Bound<'py, PyCapsule>> {
    let dtype = crate::dlpack::dtype_of(tensor.dtype())
        .ok_or_else(|| PyBufferError::new_err(format!("DLPack has no {}", tensor.dtype())))?;
    let item = isize::try_from(tensor.dtype().bit_width().unwrap_or(8) / 8).unwrap_or(1).max(1);
    let shape: Vec<i64> = tensor.shape().iter().map(|&n| i64::try_from(n).unwrap_or(i64::MAX)).collect();
    let strides: Vec<i64> = strides.iter().map(|&s| (s / item) as i64).collect();
    let inner = DLTensor {
        data: std::ptr::with_exposed_provenance_mut(address(&tensor)),
        device: DLDevice::CPU,
        ndim: i32::try_from(shape.len()).unwrap_or(i32::MAX),
        dtype,
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let (pointer, name) = if versioned {
        let managed = DLManagedTensorVersioned {
            version: DLPackVersion { major: 1, minor: 0 },
            manager_ctx: std::ptr::null_mut(),
            deleter: Some(delete_versioned),
            flags: if readonly { FLAG_READ_ONLY } else { 0 },
            dl_tensor: inner,
        };
        let exported = Box::into_raw(Box::new(Exported { managed, shape, strides, _tensor: tensor }));
        // SAFETY: the box was just made and has no other user; shape and strides have their final addresses now.
        unsafe {
            (*exported).managed.manager_ctx = exported.cast();
            (*exported).managed.dl_tensor.shape = (*exported).shape.as_mut_ptr();
            (*exported).managed.dl_tensor.strides = (*exported).strides.as_mut_ptr();
            (NonNull::from(&mut (*exported).managed).cast::<c_void>(), NAME_VERSIONED)
        }
    } else {
        let managed =
            DLManagedTensor { dl_tensor: inner, manager_ctx: std::ptr::null_mut(), deleter: Some(delete) };
        let exported = Box::into_raw(Box::new(Exported { managed, shape, strides, _tensor: tensor }));
        // SAFETY: as above.
        unsafe {
            (*exported).managed.manager_ctx = exported.cast();
            (*exported).managed.dl_tensor.shape = (*exported).shape.as_mut_ptr();
            (*exported).managed.dl_tensor.strides = (*exported).strides.as_mut_ptr();
            (NonNull::from(&mut (*exported).managed).cast::<c_void>(), NAME)
        }
    };
    // SAFETY: the pointer is to a tensor of the layout that the name stands for; `drop_capsule` frees it if no consumer
    // takes it. It may run on any thread that is attached.
    unsafe { PyCapsule::new_with_pointer_and_destructor(py, pointer, name, Some(drop_capsule)) }
}

/// The address of a tensor's first element, to be given to others: its provenance is exposed.
fn address(tensor: &Tensor) -> usize {
    tensor.for_each_run(|run| {
        let _ = run.as_ptr().expose_provenance();
    });
    tensor.address()
}

#[pymethods]
impl PyTensor {
    /// Answers a request for the tensor's buffer: with strides always, without them where the elements are dense.
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let this = slf.get();
        // SAFETY: the interpreter passes a view to fill; a failed request must leave no object in it.
        unsafe { (*view).obj = std::ptr::null_mut() };
        let wants = |flag: c_int| flags & flag == flag;
        if wants(ffi::PyBUF_WRITABLE) && !this.writable {
            return Err(PyBufferError::new_err(
                "the tensor is read-only: it shares memory; copy it to change it",
            ));
        }
        this.refuse_segments()?;
        let strided = wants(ffi::PyBUF_STRIDES);
        let dense = wants(ffi::PyBUF_C_CONTIGUOUS) || wants(ffi::PyBUF_ANY_CONTIGUOUS);
        if !this.is_dense && (!strided || dense || wants(ffi::PyBUF_F_CONTIGUOUS)) {
            return Err(PyBufferError::new_err("the tensor's rows have gaps between them; ask for strides"));
        }
        let format = if this.is_packed() { c"B" } else { format_of(this.tensor.dtype()) };
        let item = this.item as isize;
        let shaped = wants(ffi::PyBUF_ND);
        // SAFETY: `view` is valid for writes. The object, of which a reference is stored, keeps memory, shape and strides
        // until the view is released; it is frozen, so they neither move nor change. The format is static.
        unsafe {
            (*view).buf = std::ptr::with_exposed_provenance_mut(address(&this.tensor));
            (*view).len = this.shape.iter().product::<isize>() * item;
            (*view).itemsize = item;
            (*view).readonly = c_int::from(!this.writable);
            (*view).ndim = if shaped { c_int::try_from(this.shape.len())? } else { 1 };
            let null = std::ptr::null_mut();
            (*view).format =
                if wants(ffi::PyBUF_FORMAT) { format.as_ptr().cast_mut() } else { std::ptr::null_mut() };
            (*view).shape = if shaped { this.shape.as_ptr().cast_mut() } else { null };
            (*view).strides = if strided { this.strides.as_ptr().cast_mut() } else { null };
            (*view).suboffsets = null;
            (*view).internal = std::ptr::null_mut();
            (*view).obj = slf.into_ptr();
        }
        Ok(())
    }
}

/// Element types whose buffers NumPy reads under their own format.
fn format_of(dtype: DType) -> &'static CStr {
    match dtype {
        DType::Float => c"f",
        DType::Double => c"d",
        DType::Float16 => c"e",
        DType::Int8 => c"b",
        DType::Int16 => c"h",
        DType::Int32 => c"i",
        DType::Int64 => c"q",
        DType::Uint16 | DType::BFloat16 => c"H",
        DType::Uint32 => c"I",
        DType::Uint64 => c"Q",
        DType::Bool => c"?",
        DType::Complex64 => c"Zf",
        DType::Complex128 => c"Zd",
        _ => c"B",
    }
}
