//! Types from their messages. All faults are found, each with its path; what hangs on a faulty type that was
//! reported elsewhere is passed over in silence.

use std::num::NonZeroU64;
use std::sync::Arc;

use heirloom_mem::DType;
use heirloom_proto::struct_type_proto::structure::{Field as FieldProto, field::Content as ContentProto};
use heirloom_proto::struct_type_proto::{BitPacking, Kind as KindProto, Structure};
use heirloom_proto::{
    ExternalResolver, StructTypeProto, TensorShapeProto, TypeProto, tensor_shape_proto, type_proto,
};

use crate::path::{FaultList, Path};
use crate::rules::{self, Names};
use crate::struct_type::{Component, Content, Field, Kind, MAX_DEPTH};
use crate::{Dim, StructType, TensorSpec, TypeError, ValueType, constant_from_proto};

/// What an identity stands for.
pub(crate) enum Lookup {
    Found(Arc<StructType>),
    /// Declared, and reported as faulty where it is declared.
    Faulty,
    Missing,
}

/// Where a type stands, as far as it decides what may stand there.
#[derive(Clone, Copy)]
struct Place {
    /// Within how many types.
    depth: u32,
    /// Directly in a sequence or map: the category may stand here.
    in_collection: bool,
    /// Within a struct type: extents must be right, not merely unknown.
    in_struct: bool,
}

impl Place {
    fn within(self) -> Place {
        Place { depth: self.depth + 1, in_collection: false, ..self }
    }
}

pub(crate) struct TypeReader<'a> {
    pub(crate) lookup: &'a dyn Fn(NonZeroU64) -> Lookup,
    pub(crate) files: Option<&'a ExternalResolver>,
    pub(crate) faults: &'a mut FaultList,
}

impl TypeReader<'_> {
    /// The type of a graph's value.
    pub(crate) fn graph_type(&mut self, proto: &TypeProto, path: &Path<'_>) -> Option<ValueType> {
        self.value_type(proto, path, Place { depth: 0, in_collection: false, in_struct: false })
    }

    /// A declaration of the catalogue.
    pub(crate) fn declaration(&mut self, proto: &StructTypeProto, path: &Path<'_>) -> Option<StructType> {
        let id = self.faults.note(path, catalogue_id(proto));
        if let Some(KindProto::TypeRef(id)) = proto.kind() {
            self.faults.add(path, TypeError::ReferenceAsDeclaration { id });
            return None;
        }
        let mut ty = self.content(proto, path, Place { depth: 0, in_collection: false, in_struct: true })?;
        ty.type_id = Some(id?);
        ty.source = Some(Arc::new(proto.clone()));
        Some(ty)
    }

    /// The layout of a payload: an exact reference or an inline declaration.
    pub(crate) fn layout(&mut self, proto: &StructTypeProto, path: &Path<'_>) -> Option<Arc<StructType>> {
        let place = Place { depth: 0, in_collection: false, in_struct: true };
        if let Some(KindProto::TypeRef(id)) = proto.kind() {
            return self.reference(proto, id, path);
        }
        self.inline(proto, path, place).map(|mut ty| {
            ty.source = Some(Arc::new(proto.clone()));
            Arc::new(ty)
        })
    }

    fn value_type(&mut self, proto: &TypeProto, path: &Path<'_>, place: Place) -> Option<ValueType> {
        use type_proto::Value;
        if place.depth > MAX_DEPTH {
            self.faults.add(path, TypeError::TooDeep { limit: MAX_DEPTH });
            return None;
        }
        match proto.value() {
            Some(Value::TensorType(tensor)) => {
                let path = path.field("tensor_type");
                self.tensor(tensor.elem_type(), tensor.shape(), &path, place).map(ValueType::Tensor)
            }
            Some(Value::SparseTensorType(tensor)) => {
                let path = path.field("sparse_tensor_type");
                self.tensor(tensor.elem_type(), tensor.shape(), &path, place).map(ValueType::Sparse)
            }
            Some(Value::SequenceType(sequence)) => {
                let path = path.field("sequence_type");
                let inner = Place { in_collection: true, ..place.within() };
                self.inner(sequence.elem_type(), "sequence's element", &path.field("elem_type"), inner)
                    .map(ValueType::sequence)
            }
            Some(Value::OptionalType(optional)) => {
                let path = path.field("optional_type");
                let inner = Place { in_collection: place.in_collection, ..place.within() };
                self.inner(optional.elem_type(), "optional's value", &path.field("elem_type"), inner)
                    .map(ValueType::optional)
            }
            Some(Value::MapType(map)) => {
                let path = path.field("map_type");
                let key = self.map_key(map.key_type(), &path.field("key_type"));
                let inner = Place { in_collection: true, ..place.within() };
                let value = self.inner(map.value_type(), "map's value", &path.field("value_type"), inner);
                Some(ValueType::map(key?, value?))
            }
            Some(Value::OpaqueType(opaque)) => {
                Some(ValueType::Opaque { domain: opaque.domain().into(), name: opaque.name().into() })
            }
            Some(Value::StructType(ty)) => self.struct_type(ty, &path.field("struct_type"), place),
            _ => {
                self.faults.add(path, TypeError::NoType { what: "value" });
                None
            }
        }
    }

    fn inner(
        &mut self,
        proto: Option<&TypeProto>,
        what: &'static str,
        path: &Path<'_>,
        place: Place,
    ) -> Option<ValueType> {
        match proto {
            Some(proto) => self.value_type(proto, path, place),
            None => {
                self.faults.add(path, TypeError::NoType { what });
                None
            }
        }
    }

    fn map_key(&mut self, number: i32, path: &Path<'_>) -> Option<DType> {
        let key = self.dtype(number, path)?;
        let wide = key.bit_width().is_none_or(|width| width >= 8);
        if key != DType::String && !(key.is_integer() && wide) {
            self.faults.add(path, TypeError::MapKey { key });
            return None;
        }
        Some(key)
    }

    fn dtype(&mut self, number: i32, path: &Path<'_>) -> Option<DType> {
        self.faults.note(path, DType::from_onnx(number).ok_or(TypeError::ElementType { number }))
    }

    fn tensor(
        &mut self,
        number: i32,
        shape: Option<&TensorShapeProto>,
        path: &Path<'_>,
        place: Place,
    ) -> Option<TensorSpec> {
        let dtype = self.dtype(number, &path.field("elem_type"));
        let mut right = true;
        let dims = shape.map(|shape| {
            let mut dims = Vec::with_capacity(shape.dim().len());
            for (axis, dim) in shape.dim().iter().enumerate() {
                dims.push(match dim.value() {
                    Some(tensor_shape_proto::dimension::Value::DimParam(symbol)) if !symbol.is_empty() => {
                        Dim::Param(symbol.into())
                    }
                    Some(tensor_shape_proto::dimension::Value::DimValue(extent)) => {
                        match usize::try_from(extent) {
                            Ok(extent) => Dim::Known(extent),
                            Err(_) => {
                                if place.in_struct {
                                    right = false;
                                    let path = path.field("shape");
                                    self.faults
                                        .add(&path.element("dim", axis), TypeError::Extent { axis, extent });
                                }
                                // Exporters write -1 for an extent that they do not know.
                                Dim::Unknown
                            }
                        }
                    }
                    _ => Dim::Unknown,
                });
            }
            dims
        });
        right.then_some(TensorSpec { dtype: dtype?, dims })
    }

    fn struct_type(&mut self, proto: &StructTypeProto, path: &Path<'_>, place: Place) -> Option<ValueType> {
        match proto.kind() {
            Some(KindProto::TypeRef(id)) => self.reference(proto, id, path).map(ValueType::Struct),
            None => {
                if let Some(field) = codec_or_id(proto) {
                    self.faults.add(path, TypeError::CategoryWithMore { field });
                    return None;
                }
                if !place.in_collection {
                    self.faults.add(path, TypeError::CategoryHere);
                    return None;
                }
                Some(ValueType::AnyStruct)
            }
            _ => self.inline(proto, path, place).map(|ty| ValueType::Struct(Arc::new(ty))),
        }
    }

    fn reference(&mut self, proto: &StructTypeProto, id: u64, path: &Path<'_>) -> Option<Arc<StructType>> {
        let field = codec_or_id(proto).or_else(|| {
            let named = [
                ("name", proto.has_name()),
                ("doc_string", proto.has_doc_string()),
                ("metadata_props", !proto.metadata_props().is_empty()),
            ];
            named.iter().find(|(_, there)| *there).map(|(field, _)| *field)
        });
        if let Some(field) = field {
            self.faults.add(path, TypeError::ReferenceWithMore { id, field });
            return None;
        }
        let id = self.faults.note(path, NonZeroU64::new(id).ok_or(TypeError::ZeroTypeId))?;
        match (self.lookup)(id) {
            Lookup::Found(ty) => Some(ty),
            Lookup::Faulty => None,
            Lookup::Missing => {
                self.faults.add(path, TypeError::Unresolved { id });
                None
            }
        }
    }

    fn inline(&mut self, proto: &StructTypeProto, path: &Path<'_>, place: Place) -> Option<StructType> {
        if proto.has_type_id() {
            self.faults.add(path, TypeError::InlineWithId { id: proto.type_id() });
        }
        let ty = self.content(proto, path, place);
        if proto.has_type_id() { None } else { ty }
    }

    /// A declaration, whatever its identity.
    fn content(&mut self, proto: &StructTypeProto, path: &Path<'_>, place: Place) -> Option<StructType> {
        let inner = Place { in_struct: true, ..place.within() };
        let kind = match proto.kind() {
            Some(KindProto::Array(array)) => {
                let path = path.field("array");
                let count = array.dimension();
                let counted = rules::not_empty("array", "element", count);
                let counted = self.faults.note(&path.field("dimension"), counted);
                let element =
                    self.inner(array.element_type(), "array's element", &path.field("element_type"), inner);
                counted.and(element).map(|element| Kind::Array { element, count })
            }
            Some(KindProto::Structure(structure)) => {
                self.structure(structure, &path.field("structure"), inner)
            }
            Some(KindProto::BitPacking(packing)) => self.packing(packing, &path.field("bit_packing")),
            _ => {
                self.faults.add(path, TypeError::NoKind);
                None
            }
        }?;
        let decoder = proto.decoder().cloned().map(Arc::new);
        let encoder = proto.encoder().cloned().map(Arc::new);
        let ty = StructType::assemble(proto.name().into(), None, kind, decoder, encoder);
        self.faults.note(path, ty)
    }

    fn structure(&mut self, proto: &Structure, path: &Path<'_>, place: Place) -> Option<Kind> {
        let protos = proto.field();
        let mut right =
            self.faults.note(path, rules::not_empty("structure", "field", protos.len() as u64)).is_some();
        let mut names = Names::default();
        let mut fields = Vec::with_capacity(protos.len());
        for (index, proto) in protos.iter().enumerate() {
            let path = path.element("field", index);
            right &= self.faults.note(&path, names.take("field", proto.name())).is_some();
            match self.field(proto, &path, place) {
                Some(content) => fields.push(Field { name: proto.name().into(), content }),
                None => right = false,
            }
        }
        right.then_some(Kind::Structure(fields))
    }

    fn field(&mut self, proto: &FieldProto, path: &Path<'_>, place: Place) -> Option<Content> {
        match proto.content() {
            Some(ContentProto::Type(ty)) => {
                self.value_type(ty, &path.field("type"), place).map(Content::Type)
            }
            Some(ContentProto::Constant(tensor)) => {
                let constant = constant_from_proto(tensor, self.files);
                let constant = constant.map_err(|error| TypeError::Constant {
                    name: proto.name().into(),
                    error: Box::new(error),
                });
                self.faults.note(&path.field("constant"), constant).map(Content::Constant)
            }
            _ => {
                self.faults.add(path, TypeError::NoContent { name: proto.name().into() });
                None
            }
        }
    }

    fn packing(&mut self, proto: &BitPacking, path: &Path<'_>) -> Option<Kind> {
        let protos = proto.component();
        let some = rules::not_empty("bit packing", "component", protos.len() as u64);
        let mut right = self.faults.note(path, some).is_some();
        let counted = rules::not_empty("bit packing", "group", proto.dimension());
        right &= self.faults.note(&path.field("dimension"), counted).is_some();
        let mut names = Names::default();
        let mut components = Vec::with_capacity(protos.len());
        for (index, component) in protos.iter().enumerate() {
            let path = path.element("component", index);
            let (name, width) = (component.name(), component.bit_width());
            right &= self.faults.note(&path, names.take("component", name)).is_some();
            right &= self.faults.note(&path, rules::bit_width(name, width)).is_some();
            components.push(Component { name: name.into(), bit_width: width });
        }
        right.then_some(Kind::BitPacking { components, count: proto.dimension() })
    }
}

/// The identity of a declaration in the catalogue.
pub(crate) fn catalogue_id(proto: &StructTypeProto) -> Result<NonZeroU64, TypeError> {
    if !proto.has_type_id() {
        return Err(TypeError::NoTypeId);
    }
    NonZeroU64::new(proto.type_id()).ok_or(TypeError::ZeroTypeId)
}

fn codec_or_id(proto: &StructTypeProto) -> Option<&'static str> {
    let fields = [
        ("type_id", proto.has_type_id()),
        ("decoder", proto.has_decoder()),
        ("encoder", proto.has_encoder()),
    ];
    fields.iter().find(|(_, there)| *there).map(|(field, _)| *field)
}
