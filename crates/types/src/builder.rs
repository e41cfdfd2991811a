//! Writing declarations in Rust.

use std::num::NonZeroU64;
use std::sync::Arc;

use heirloom_mem::{DType, Tensor};

use crate::struct_type::{Component, Constant, Content, Field, Kind};
use crate::{Fault, FunctionProto, StructType, TypeError, ValueType, rules};

/// A declaration in the making. What is wrong with it is said by [`build`](StructBuilder::build).
///
/// ```
/// use heirloom_mem::DType::{Float16, Uint4};
/// let q4_0 = heirloom_types::StructType::structure("Q4_0")
///     .field("scale", Float16)
///     .array("codes", Uint4, 32)
///     .build()?;
/// assert_eq!(q4_0.record_bytes()?, 18);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct StructBuilder {
    name: Arc<str>,
    type_id: Option<u64>,
    kind: Kind,
    decoder: Option<Arc<FunctionProto>>,
    encoder: Option<Arc<FunctionProto>>,
    fault: Option<Fault>,
}

impl StructBuilder {
    fn new(name: &str, kind: Kind) -> StructBuilder {
        let name = name.into();
        StructBuilder { name, type_id: None, kind, decoder: None, encoder: None, fault: None }
    }

    pub(crate) fn structure(name: &str) -> StructBuilder {
        StructBuilder::new(name, Kind::Structure(Vec::new()))
    }

    pub(crate) fn array_of(name: &str, element: ValueType, count: u64) -> StructBuilder {
        StructBuilder::new(name, Kind::Array { element, count })
    }

    pub(crate) fn bit_packing(name: &str, components: &[(&str, u32)], count: u64) -> StructBuilder {
        StructBuilder::new(name, packing(components, count))
    }

    fn push(mut self, name: &str, content: Content) -> StructBuilder {
        match &mut self.kind {
            Kind::Structure(fields) => fields.push(Field { name: name.into(), content }),
            _ => self.note(name, TypeError::NotAStructure),
        }
        self
    }

    fn note(&mut self, path: &str, error: TypeError) {
        self.fault.get_or_insert_with(|| Fault { path: path.into(), error });
    }

    /// Adds a field of any type.
    pub fn typed(self, name: &str, ty: ValueType) -> StructBuilder {
        self.push(name, Content::Type(ty))
    }

    /// Adds one scalar.
    pub fn field(self, name: &str, dtype: DType) -> StructBuilder {
        self.typed(name, ValueType::tensor(dtype, &[]))
    }

    /// Adds a dense tensor.
    pub fn tensor(self, name: &str, dtype: DType, shape: &[usize]) -> StructBuilder {
        self.typed(name, ValueType::tensor(dtype, shape))
    }

    /// Adds an inline array of `count` scalars.
    pub fn array(self, name: &str, dtype: DType, count: u64) -> StructBuilder {
        self.inline(name, Kind::Array { element: ValueType::tensor(dtype, &[]), count })
    }

    /// Adds an inline packing: `count` groups of unsigned bit fields, each a name and a width.
    pub fn bits(self, name: &str, components: &[(&str, u32)], count: u64) -> StructBuilder {
        self.inline(name, packing(components, count))
    }

    /// Adds a struct: by reference where the type has an identity, else inline.
    pub fn nested(self, name: &str, ty: &Arc<StructType>) -> StructBuilder {
        self.typed(name, ValueType::Struct(ty.clone()))
    }

    /// Adds an inline array of `count` structs.
    pub fn nested_array(self, name: &str, ty: &Arc<StructType>, count: u64) -> StructBuilder {
        self.inline(name, Kind::Array { element: ValueType::Struct(ty.clone()), count })
    }

    /// Adds a constant of the format. It takes no bytes of a record.
    pub fn constant(self, name: &str, value: Tensor) -> StructBuilder {
        self.constant_value(name, Constant::Tensor(value))
    }

    /// Adds a constant of any kind, strings too.
    pub fn constant_value(self, name: &str, value: Constant) -> StructBuilder {
        self.push(name, Content::Constant(value))
    }

    fn inline(mut self, name: &str, kind: Kind) -> StructBuilder {
        match StructBuilder::new("", kind).build() {
            Ok(ty) => self.nested(name, &ty),
            Err(fault) => {
                self.note(name, fault.error);
                self
            }
        }
    }

    /// Gives the type its identity in a catalogue; not 0.
    pub fn type_id(mut self, id: u64) -> StructBuilder {
        self.type_id = Some(id);
        self
    }

    /// Gives the type a decoder: a function of one struct input and one tensor output, of shape
    /// `[records, elements per record]`.
    pub fn decoder(mut self, function: FunctionProto) -> StructBuilder {
        self.decoder = Some(Arc::new(function));
        self
    }

    /// Gives the type an encoder, the decoder's mirror.
    pub fn encoder(mut self, function: FunctionProto) -> StructBuilder {
        self.encoder = Some(Arc::new(function));
        self
    }

    /// The finished type.
    ///
    /// # Errors
    /// The first fault and the field it lies in: empty or doubled names, counts of 0, impossible bit widths,
    /// constants with gaps, sizes that overflow, a nesting that is too deep, the identity 0.
    pub fn build(self) -> Result<Arc<StructType>, Fault> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let type_id = match self.type_id {
            None => None,
            Some(id) => Some(NonZeroU64::new(id).ok_or(TypeError::ZeroTypeId)?),
        };
        rules::check(&self.kind)?;
        let ty = StructType::assemble(self.name, type_id, self.kind, self.decoder, self.encoder)?;
        Ok(Arc::new(ty))
    }
}

fn packing(components: &[(&str, u32)], count: u64) -> Kind {
    let components =
        components.iter().map(|&(name, bit_width)| Component { name: name.into(), bit_width }).collect();
    Kind::BitPacking { components, count }
}
