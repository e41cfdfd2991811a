//! Encoded values: bytes in a declared layout, with the tensor they stand for.

use std::sync::Arc;

use heirloom_mem::{Bytes, BytesMut, DType, Ledger, Tensor, element_count};
use heirloom_proto::{EncodedValueProto, ExternalResolver, Payload, TypeProto, encoded_value_proto};

use crate::affine::{AffineError, Declared};
use crate::path::{FaultList, Path};
use crate::{
    Affine, Catalogue, Codec, CodecError, Fault, Faults, Records, StructLayout, TensorType, TypeError,
};

/// How the bytes of an encoded value are laid out.
#[derive(Clone, Debug)]
pub enum Layout {
    /// The built-in affine quantization (INT8 per tensor or axis, INT4 blockwise, …).
    Affine(Arc<Affine>),
    /// Records of a struct type.
    Struct(Arc<StructLayout>),
}

impl Layout {
    /// The struct layout, unless the value is affine.
    pub fn as_struct(&self) -> Option<&Arc<StructLayout>> {
        match self {
            Layout::Struct(layout) => Some(layout),
            Layout::Affine(_) => None,
        }
    }

    /// The affine parameters, unless the value is records.
    pub fn as_affine(&self) -> Option<&Arc<Affine>> {
        match self {
            Layout::Affine(affine) => Some(affine),
            Layout::Struct(_) => None,
        }
    }
}

/// Layouts in which equal bytes mean the same.
impl PartialEq for Layout {
    fn eq(&self, other: &Layout) -> bool {
        match (self, other) {
            (Layout::Affine(a), Layout::Affine(b)) => a == b,
            (Layout::Struct(a), Layout::Struct(b)) => a.declaration == b.declaration,
            _ => false,
        }
    }
}

impl std::fmt::Display for Layout {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Layout::Struct(layout) => write!(f, "{}", layout.declaration),
            Layout::Affine(affine) => {
                write!(f, "affine {} with {} scales", affine.storage, affine.scale.dtype())?;
                match (affine.axis, affine.block_size) {
                    (Some(axis), Some(size)) => write!(f, " per {size} along axis {axis}"),
                    (Some(axis), None) => write!(f, " per index of axis {axis}"),
                    _ => Ok(()),
                }
            }
        }
    }
}

/// A validated encoded value. Its payload stays where it was loaded or mapped.
#[derive(Clone, Debug)]
pub struct EncodedValue {
    /// The value's name in its graph; empty for values that have none.
    pub name: String,
    /// How the bytes are laid out.
    pub layout: Layout,
    /// The tensor that the bytes decode to; absent for structs without tensor meaning.
    pub logical: Option<TensorType>,
    /// The records or codes.
    pub payload: Bytes,
}

/// An encoded value without its payload: what its message declares.
#[derive(Clone, Debug)]
pub struct EncodedType {
    /// The value's name in its graph; empty for values that have none.
    pub name: String,
    /// How the bytes are laid out.
    pub layout: Layout,
    /// The tensor that the bytes decode to; absent for structs without tensor meaning.
    pub logical: Option<TensorType>,
}

impl EncodedType {
    /// What the message declares: layout and logical type, checked against each other and the catalogue. Scales in
    /// external data need `files`. `path` is where the message stands. The payload is not looked at.
    ///
    /// # Errors
    /// All faults, each with its path.
    pub fn from_proto(
        proto: &EncodedValueProto,
        catalogue: &Catalogue,
        files: Option<&ExternalResolver>,
        path: &str,
    ) -> Result<EncodedType, Faults> {
        let mut faults = FaultList::default();
        let ty = read(proto, catalogue, files, &Path::root(path), &mut faults);
        let faults = faults.into_vec();
        ty.filter(|_| faults.is_empty()).ok_or(Faults(faults))
    }

    /// Whether a payload of `bytes` bytes fits: the exact length of affine codes, or a whole number of records.
    ///
    /// # Errors
    /// When it does not.
    pub fn check_length(&self, bytes: u64) -> Result<(), TypeError> {
        match &self.layout {
            Layout::Struct(layout) => {
                let record = layout.record_bytes as u64;
                if !bytes.is_multiple_of(record) {
                    return Err(TypeError::PartialRecord { payload: bytes, record });
                }
            }
            Layout::Affine(affine) => {
                let elements = self.logical.as_ref().and_then(|logical| element_count(&logical.shape));
                let expected = elements.and_then(|n| affine.payload_bytes(n));
                let expected =
                    expected.map(|n| n as u64).ok_or(TypeError::SizeOverflow { path: String::new() })?;
                if bytes != expected {
                    return Err(TypeError::PayloadLength { expected, actual: bytes });
                }
            }
        }
        Ok(())
    }

    /// The value with this payload.
    ///
    /// # Errors
    /// When the length does not fit, or unused bits of the last byte of codes are set.
    pub fn with_payload(self, payload: Bytes) -> Result<EncodedValue, TypeError> {
        self.check_length(payload.len() as u64)?;
        if let (Layout::Affine(affine), Some(logical)) = (&self.layout, &self.logical) {
            let codes = Tensor::new(affine.storage, &logical.shape, payload.clone());
            let codes = codes.map_err(|_| TypeError::SizeOverflow { path: String::new() })?;
            crate::rules::unused_bits(&codes)?;
        }
        let EncodedType { name, layout, logical } = self;
        Ok(EncodedValue { name, layout, logical, payload })
    }
}

fn read(
    proto: &EncodedValueProto,
    catalogue: &Catalogue,
    files: Option<&ExternalResolver>,
    path: &Path<'_>,
    faults: &mut FaultList,
) -> Option<EncodedType> {
    use encoded_value_proto::Layout as LayoutProto;
    let logical = match proto.logical_type() {
        None => Some(None),
        Some(ty) => logical_type(ty, catalogue, &path.field("logical_type"), faults).map(Some),
    };
    let layout = match proto.layout() {
        Some(LayoutProto::Affine(affine)) => {
            let path = path.field("affine");
            let declared = Declared::read(affine, files, &path, faults);
            if let Some(None) = logical {
                faults.add(&path, AffineError::NoLogicalType);
            }
            match (declared, &logical) {
                (Some(declared), Some(Some(logical))) => {
                    let affine = faults.note(&path, declared.resolve(logical));
                    affine.map(|affine| Layout::Affine(Arc::new(affine)))
                }
                _ => None,
            }
        }
        Some(LayoutProto::StructType(ty)) => {
            let path = path.field("struct_type");
            let ty = catalogue.struct_type_into(ty, &path, files, faults);
            let layout = ty.and_then(|ty| faults.note(&path, StructLayout::new(ty)));
            layout.map(|layout| Layout::Struct(Arc::new(layout)))
        }
        _ => {
            faults.add(path, TypeError::NoLayout);
            None
        }
    };
    Some(EncodedType { name: proto.name().into(), layout: layout?, logical: logical? })
}

/// A tensor type with concrete extents.
fn logical_type(
    proto: &TypeProto,
    catalogue: &Catalogue,
    path: &Path<'_>,
    faults: &mut FaultList,
) -> Option<TensorType> {
    let ty = catalogue.value_type_into(proto, path, faults)?;
    let Some(spec) = ty.as_tensor() else {
        faults.add(path, TypeError::LogicalNotTensor { actual: ty.to_string() });
        return None;
    };
    let concrete = spec.to_concrete().filter(|concrete| element_count(&concrete.shape).is_some());
    if concrete.is_none() {
        faults.add(path, TypeError::LogicalNotConcrete { actual: ty.to_string() });
    }
    concrete
}

impl EncodedValue {
    /// The value that the message declares, with a payload that the caller found. Everything is checked before any
    /// codec can run; the payload is not copied, and at most its last byte is read. Scales must lie in the message:
    /// [`load`](EncodedValue::load) finds external ones.
    ///
    /// # Errors
    /// All faults, each with its path within the message.
    pub fn from_proto(
        proto: &EncodedValueProto,
        catalogue: &Catalogue,
        payload: Bytes,
    ) -> Result<EncodedValue, Faults> {
        let ty = EncodedType::from_proto(proto, catalogue, None, "")?;
        ty.with_payload(payload).map_err(|error| Faults(vec![error.into()]))
    }

    /// The value that the message declares, with the payload that it holds or names.
    ///
    /// # Errors
    /// All faults, each with its path within the message.
    pub fn load(
        proto: &EncodedValueProto,
        catalogue: &Catalogue,
        files: &ExternalResolver,
    ) -> Result<EncodedValue, Faults> {
        let ty = EncodedType::from_proto(proto, catalogue, Some(files), "")?;
        let payload =
            proto.payload_bytes(files).map_err(|error| TypeError::Payload { reason: error.to_string() });
        payload.and_then(|payload| ty.with_payload(payload)).map_err(|error| Faults(vec![error.into()]))
    }

    /// All faults of a message, each with its path; `path` is where the message stands. External payloads are judged
    /// by their declared length; no file is touched but those of external scales, where `files` are given.
    pub fn check(
        proto: &EncodedValueProto,
        catalogue: &Catalogue,
        files: Option<&ExternalResolver>,
        path: &str,
    ) -> Vec<Fault> {
        let root = Path::root(path);
        let mut faults = FaultList::default();
        let ty = read(proto, catalogue, files, &root, &mut faults);
        let payload = proto.payload().map_err(|error| TypeError::Payload { reason: error.to_string() });
        if let (Some(payload), Some(ty)) = (faults.note(&root, payload), ty) {
            let result = match payload {
                Payload::Raw(bytes) => ty.with_payload(bytes.clone()).map(|_| ()),
                Payload::External(place) => ty.check_length(place.length.unwrap_or(0)),
                _ => ty.check_length(0),
            };
            faults.note(&root, result);
        }
        faults.into_vec()
    }

    /// The value as a message, its payload shared in `raw_data`.
    ///
    /// # Errors
    /// When a scale or zero point has gaps between its elements.
    pub fn to_proto(&self) -> Result<EncodedValueProto, TypeError> {
        let mut proto = EncodedValueProto::new();
        match &self.layout {
            Layout::Affine(affine) => proto.set_affine(affine.to_proto()?),
            Layout::Struct(layout) => proto.set_struct_type(layout.declaration.to_reference()),
        }
        if let Some(logical) = &self.logical {
            proto.set_logical_type(crate::ValueType::tensor(logical.dtype, &logical.shape).to_proto());
        }
        proto.set_raw_data(self.payload.clone());
        if !self.name.is_empty() {
            proto.set_name(&self.name);
        }
        Ok(proto)
    }

    /// The records; `None` for affine codes.
    pub fn records(&self) -> Option<Records<'_>> {
        // The length was checked when the value was made; a payload replaced since may not fit.
        Records::new(self.layout.as_struct()?, &self.payload).ok()
    }

    /// The number of records; `None` for affine codes.
    pub fn record_count(&self) -> Option<usize> {
        self.records().map(|records| records.len())
    }

    /// The whole value as a tensor of its logical type. Records need their `codec`; affine codes do not.
    ///
    /// # Errors
    /// When there is no logical type, no codec, or the codec does not yield exactly the logical type's elements.
    pub fn decode(&self, codec: Option<&dyn Codec>, ledger: &Ledger) -> Result<Tensor, CodecError> {
        let logical = self.logical.as_ref().ok_or(CodecError::NoLogicalType)?;
        let elements = element_count(&logical.shape).ok_or(CodecError::TooLarge)?;
        // Never more memory than the payload can stand for: sizes are checked before anything is allocated.
        if let Layout::Struct(layout) = &self.layout {
            let codec = codec.ok_or_else(|| CodecError::NoCodec { ty: layout.declaration.to_string() })?;
            codec.check(self.payload.len(), elements)?;
        }
        let bytes =
            elements.checked_mul(4).filter(|&n| isize::try_from(n).is_ok()).ok_or(CodecError::TooLarge)?;
        let mut out = BytesMut::zeroed(bytes, ledger);
        self.decode_range(codec, 0, out.elements_mut())?;
        let dense = |bytes: Bytes| {
            Tensor::new(logical.dtype, &logical.shape, bytes).map_err(|_| CodecError::TooLarge)
        };
        match logical.dtype {
            DType::Float => dense(out.freeze()),
            DType::Float16 => dense(narrowed(&out, half::f16::from_f32, ledger)),
            DType::BFloat16 => dense(narrowed(&out, half::bf16::from_f32, ledger)),
            actual => Err(CodecError::LogicalType { expected: "FLOAT, FLOAT16 or BFLOAT16", actual }),
        }
    }

    /// Decodes the `out.len()` elements from flat element `first` on; `out` holds numbers of the logical element
    /// type.
    ///
    /// # Errors
    /// As [`decode`](EncodedValue::decode), and when the elements lie outside.
    pub fn decode_range(
        &self,
        codec: Option<&dyn Codec>,
        first: usize,
        out: &mut [f32],
    ) -> Result<(), CodecError> {
        let logical = self.logical.as_ref().ok_or(CodecError::NoLogicalType)?;
        let elements = element_count(&logical.shape).ok_or(CodecError::TooLarge)?;
        let end = first.checked_add(out.len()).filter(|&end| end <= elements);
        let end = end.ok_or(CodecError::Range { first, count: out.len(), available: elements })?;
        match &self.layout {
            Layout::Affine(affine) => affine.decode_range(logical, &self.payload, first..end, out),
            Layout::Struct(layout) => {
                let codec =
                    codec.ok_or_else(|| CodecError::NoCodec { ty: layout.declaration.to_string() })?;
                codec.check(self.payload.len(), elements)?;
                codec.decode_range(&self.payload, first, out)?;
                match logical.dtype {
                    DType::Float => {}
                    DType::Float16 => out.iter_mut().for_each(|x| *x = half::f16::from_f32(*x).to_f32()),
                    DType::BFloat16 => out.iter_mut().for_each(|x| *x = half::bf16::from_f32(*x).to_f32()),
                    actual => {
                        return Err(CodecError::LogicalType {
                            expected: "FLOAT, FLOAT16 or BFLOAT16",
                            actual,
                        });
                    }
                }
                Ok(())
            }
        }
    }
}

fn narrowed<T>(from: &BytesMut, narrow: fn(f32) -> T, ledger: &Ledger) -> Bytes
where
    T: heirloom_mem::Element,
{
    let from = from.elements::<f32>();
    let mut to = BytesMut::zeroed(size_of_val(from) / 2, ledger);
    to.elements_mut::<T>().iter_mut().zip(from).for_each(|(to, from)| *to = narrow(*from));
    to.freeze()
}
