//! `TensorProto` and tensors: one runtime view of data that stand in `raw_data`, in typed lists or in a file.

use std::sync::Arc;

use heirloom_mem::{Bytes, DType, Shape, Tensor, element_count};
use heirloom_proto::{ExternalResolver, TensorProto};

use crate::{Constant, StringTensor, TensorError, Value, bits, rules};

/// The tensor that `proto` holds, of strings too. `raw_data`, lists of floats and external data stay where they are;
/// lists of integers, which ONNX stores as varints, are decoded. External data need `files`.
///
/// # Errors
/// When the type is unknown, the shape impossible, the data too few or too many, in a list of another type or in two
/// places, an entry does not fit the type, unused bits are set, or a file is not at hand.
pub fn value_from_proto(proto: &TensorProto, files: Option<&ExternalResolver>) -> Result<Value, TensorError> {
    Ok(match constant_from_proto(proto, files)? {
        Constant::Tensor(tensor) => Value::Tensor(tensor),
        Constant::Strings(strings) => Value::Strings(strings),
    })
}

/// As [`value_from_proto`], for elements of fixed width.
///
/// # Errors
/// As [`value_from_proto`], and for STRING.
pub fn tensor_from_proto(
    proto: &TensorProto,
    files: Option<&ExternalResolver>,
) -> Result<Tensor, TensorError> {
    match constant_from_proto(proto, files)? {
        Constant::Tensor(tensor) => Ok(tensor),
        Constant::Strings(_) => Err(TensorError::Strings),
    }
}

/// As [`value_from_proto`], as the constant of a declaration.
///
/// # Errors
/// As [`value_from_proto`].
pub fn constant_from_proto(
    proto: &TensorProto,
    files: Option<&ExternalResolver>,
) -> Result<Constant, TensorError> {
    let number = proto.data_type();
    let dtype = DType::from_onnx(number).ok_or(TensorError::ElementType { number })?;
    if proto.has_segment() {
        return Err(TensorError::Segment);
    }
    let data = Data { proto, dtype };
    let shape = data.shape()?;
    let elements = element_count(&shape).ok_or_else(|| data.impossible())?;
    let list = data.the_list()?;
    if dtype == DType::String {
        return data.strings(shape, elements, list).map(|s| Constant::Strings(Arc::new(s)));
    }
    let bytes = match list {
        Some(list) => data.list_bytes(list, elements)?,
        None => data.payload_bytes(elements, files)?,
    };
    let actual = bytes.len();
    let tensor =
        Tensor::new(dtype, &shape, bytes).map_err(|_| data.length("raw_data", "bytes", elements, actual))?;
    rules::unused_bits(&tensor)?;
    Ok(Constant::Tensor(tensor))
}

/// A tensor's proto with its data in `raw_data`, where they are shared, not copied.
///
/// # Errors
/// When the tensor's elements have gaps between them.
pub fn tensor_to_proto(tensor: &Tensor, name: &str) -> Result<TensorProto, TensorError> {
    let mut proto = TensorProto::new();
    proto.dims_mut().extend(tensor.shape().iter().map(|&d| d as i64));
    proto.set_data_type(tensor.dtype().onnx());
    if !name.is_empty() {
        proto.set_name(name);
    }
    match tensor.storage() {
        heirloom_mem::Storage::Dense(bytes) => proto.set_raw_data(bytes.clone()),
        _ if tensor.is_empty() => proto.set_raw_data(Bytes::empty()),
        // A view of one run of an append buffer keeps the buffer alive; its bytes are its tensor's.
        _ if tensor.dense_bytes().is_some() => proto.set_raw_data(Bytes::from_owner(Run(tensor.clone()))),
        _ => return Err(TensorError::Gaps),
    }
    Ok(proto)
}

struct Run(Tensor);

impl AsRef<[u8]> for Run {
    fn as_ref(&self) -> &[u8] {
        self.0.dense_bytes().unwrap_or(&[])
    }
}

/// The proto of a tensor of strings.
pub fn strings_to_proto(strings: &StringTensor, name: &str) -> TensorProto {
    let mut proto = TensorProto::new();
    proto.dims_mut().extend(strings.shape.iter().map(|&d| d as i64));
    proto.set_data_type(DType::String.onnx());
    if !name.is_empty() {
        proto.set_name(name);
    }
    proto.string_data_mut().extend(strings.elements.iter());
    proto
}

/// The typed lists of a `TensorProto`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    Float,
    Int32,
    String,
    Int64,
    Double,
    Uint64,
}

impl List {
    fn name(self) -> &'static str {
        match self {
            List::Float => "float_data",
            List::Int32 => "int32_data",
            List::String => "string_data",
            List::Int64 => "int64_data",
            List::Double => "double_data",
            List::Uint64 => "uint64_data",
        }
    }

    /// The list that ONNX stores elements of `dtype` in.
    fn of(dtype: DType) -> List {
        match dtype {
            DType::Float | DType::Complex64 => List::Float,
            DType::Double | DType::Complex128 => List::Double,
            DType::Int64 => List::Int64,
            DType::Uint32 | DType::Uint64 => List::Uint64,
            DType::String => List::String,
            _ => List::Int32,
        }
    }
}

struct Data<'a> {
    proto: &'a TensorProto,
    dtype: DType,
}

impl Data<'_> {
    fn dims(&self) -> Vec<i64> {
        Vec::from(self.proto.dims())
    }

    fn impossible(&self) -> TensorError {
        TensorError::Shape { dims: self.dims() }
    }

    fn shape(&self) -> Result<Shape, TensorError> {
        let shape = self.proto.dims().iter().map(|&d| usize::try_from(d).ok()).collect::<Option<Shape>>();
        shape.ok_or_else(|| self.impossible())
    }

    fn length(&self, field: &'static str, unit: &'static str, elements: usize, actual: usize) -> TensorError {
        let expected = match unit {
            "bytes" => self.dtype.payload_bytes(elements).unwrap_or(usize::MAX),
            _ => elements,
        };
        let (expected, actual) = (expected as u64, actual as u64);
        TensorError::Length { dtype: self.dtype, dims: self.dims(), field, unit, expected, actual }
    }

    /// The one list that holds data.
    fn the_list(&self) -> Result<Option<List>, TensorError> {
        let p = self.proto;
        let lists = [
            (List::Float, p.float_data().is_empty()),
            (List::Int32, p.int32_data().is_empty()),
            (List::String, p.string_data().is_empty()),
            (List::Int64, p.int64_data().is_empty()),
            (List::Double, p.double_data().is_empty()),
            (List::Uint64, p.uint64_data().is_empty()),
        ];
        let mut found = None;
        for (list, _) in lists.iter().filter(|(_, empty)| !empty) {
            if let Some(first) = found.replace(*list) {
                return Err(TensorError::TwoFields { first: first.name(), second: list.name() });
            }
        }
        let Some(list) = found else { return Ok(None) };
        if p.has_raw_data() {
            return Err(TensorError::TwoFields { first: "raw_data", second: list.name() });
        }
        if List::of(self.dtype) != list {
            return Err(TensorError::Field { dtype: self.dtype, field: list.name() });
        }
        // A list beside `external_data` is a contradiction that the payload's own check names.
        self.proto.payload().map_err(|error| self.external("", &error))?;
        Ok(found)
    }

    fn external(&self, location: &str, error: &dyn std::fmt::Display) -> TensorError {
        TensorError::External { location: location.into(), reason: error.to_string() }
    }

    fn strings(
        &self,
        shape: Shape,
        elements: usize,
        list: Option<List>,
    ) -> Result<StringTensor, TensorError> {
        if list.is_none() && self.proto.has_raw_data() {
            return Err(TensorError::Field { dtype: self.dtype, field: "raw_data" });
        }
        self.proto.payload().map_err(|error| self.external("", &error))?;
        let strings = self.proto.string_data();
        if strings.len() != elements {
            return Err(self.length("string_data", "entries", elements, strings.len()));
        }
        Ok(StringTensor { shape, elements: strings.iter_bytes().map(Box::from).collect() })
    }

    fn payload_bytes(&self, elements: usize, files: Option<&ExternalResolver>) -> Result<Bytes, TensorError> {
        use heirloom_proto::Payload;
        let bytes = match self.proto.payload().map_err(|error| self.external("", &error))? {
            Payload::Raw(bytes) => bytes.clone(),
            Payload::External(place) => {
                let Some(files) = files else {
                    let reason = "no folder was given to look it up in";
                    return Err(self.external(&place.location, &reason));
                };
                files.resolve(&place).map_err(|error| self.external(&place.location, &error))?
            }
            _ => Bytes::empty(),
        };
        if self.dtype.payload_bytes(elements) != Some(bytes.len()) {
            return Err(self.length("raw_data", "bytes", elements, bytes.len()));
        }
        Ok(bytes)
    }

    fn list_bytes(&self, list: List, elements: usize) -> Result<Bytes, TensorError> {
        let p = self.proto;
        // COMPLEX types take two entries for each element.
        let doubled = if matches!(self.dtype, DType::Complex64 | DType::Complex128) { 2 } else { 1 };
        let entries = elements.checked_mul(doubled).ok_or_else(|| self.impossible())?;
        let expect = |count: usize, expected: usize| {
            let error = || self.length(list.name(), "entries", expected, count);
            if count == expected { Ok(()) } else { Err(error()) }
        };
        match list {
            List::Float => {
                expect(p.float_data().len(), entries)?;
                let list = p.float_data();
                let decoded = || Bytes::from_vec(list.iter().collect::<Vec<f32>>());
                Ok(list.bytes().cloned().unwrap_or_else(decoded))
            }
            List::Double => {
                expect(p.double_data().len(), entries)?;
                let list = p.double_data();
                let decoded = || Bytes::from_vec(list.iter().collect::<Vec<f64>>());
                Ok(list.bytes().cloned().unwrap_or_else(decoded))
            }
            List::Int64 => {
                expect(p.int64_data().len(), entries)?;
                Ok(Bytes::from_vec(p.int64_data().iter().collect::<Vec<i64>>()))
            }
            List::Uint64 if self.dtype == DType::Uint64 => {
                expect(p.uint64_data().len(), entries)?;
                Ok(Bytes::from_vec(p.uint64_data().iter().collect::<Vec<u64>>()))
            }
            List::Uint64 => {
                expect(p.uint64_data().len(), entries)?;
                let narrow = |(index, value): (usize, u64)| {
                    u32::try_from(value)
                        .map_err(|_| self.entry(list, index, i64::try_from(value).unwrap_or(i64::MAX)))
                };
                let elements: Vec<u32> =
                    p.uint64_data().iter().enumerate().map(narrow).collect::<Result<_, _>>()?;
                Ok(Bytes::from_vec(elements))
            }
            List::Int32 => self.int32_bytes(elements),
            List::String => Err(TensorError::Strings),
        }
    }

    fn entry(&self, list: List, index: usize, value: i64) -> TensorError {
        TensorError::Entry { dtype: self.dtype, field: list.name(), index, value }
    }

    /// `int32_data`: integers by value, floats by their bits, and types below 8 bits as the bytes that `raw_data`
    /// would hold, except 6-bit floats, which take an entry each.
    fn int32_bytes(&self, elements: usize) -> Result<Bytes, TensorError> {
        let (list, data) = (List::Int32, self.proto.int32_data());
        let width = self.dtype.bit_width().unwrap_or(32);
        let entries =
            if width < 6 { self.dtype.payload_bytes(elements).unwrap_or(usize::MAX) } else { elements };
        if data.len() != entries {
            return Err(self.length(list.name(), "entries", entries, data.len()));
        }
        let ranged = |low: i32, high: i32| {
            data.iter().enumerate().map(move |(index, value)| {
                let fits = (low..=high).contains(&value);
                if fits { Ok(value) } else { Err(self.entry(list, index, i64::from(value))) }
            })
        };
        // Values within the range of their type; the low bits are the element.
        Ok(match (self.dtype, width) {
            (DType::Int32, _) => Bytes::from_vec(data.iter().collect::<Vec<i32>>()),
            (DType::Bool, _) => Bytes::from_vec(data.iter().map(|v| u8::from(v != 0)).collect::<Vec<u8>>()),
            (DType::Int8, _) => bytes_of(ranged(-128, 127))?,
            (DType::Uint8, _) => bytes_of(ranged(0, 255))?,
            (DType::Int16, _) => words_of(ranged(-32768, 32767))?,
            (DType::Uint16, _) => words_of(ranged(0, 65535))?,
            // Bits, which some writers sign-extend.
            (_, 16) => words_of(ranged(-32768, 65535))?,
            (_, 6) => {
                let codes = ranged(0, 63).map(|v| v.map(|v| v as u8)).collect::<Result<Vec<u8>, _>>()?;
                let mut packed = vec![0; self.dtype.payload_bytes(elements).unwrap_or(0)];
                bits::pack(&codes, 6, &mut packed);
                Bytes::from_vec(packed)
            }
            _ => bytes_of(ranged(-128, 255))?,
        })
    }
}

fn bytes_of(values: impl Iterator<Item = Result<i32, TensorError>>) -> Result<Bytes, TensorError> {
    Ok(Bytes::from_vec(values.map(|v| v.map(|v| v as u8)).collect::<Result<Vec<u8>, _>>()?))
}

fn words_of(values: impl Iterator<Item = Result<i32, TensorError>>) -> Result<Bytes, TensorError> {
    Ok(Bytes::from_vec(values.map(|v| v.map(|v| v as u16)).collect::<Result<Vec<u16>, _>>()?))
}
