//! Native records: payloads seen as slices of a Rust type, where that is proved to be right.

use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::sync::Arc;

use zerocopy::{FromBytes, Immutable, KnownLayout};

use crate::{Content, Difference, EncodedValue, Fault, Kind, Layout, StructType, TypeError, ValueType};

/// A Rust type that holds one record of a struct type byte for byte.
///
/// `#[derive(NativeRecord)]` implements it for a `#[repr(C)]` struct whose fields are scalars, arrays of them, or native
/// records: identity, declared name, and all fields in order. [The macro's page](macro@crate::NativeRecord) lists its
/// attributes, which give a field another declared type of the same size, such as packed codes for bytes, and declare
/// constants, which take no bytes of a record and are no fields of the Rust type.
///
/// ```
/// use heirloom_mem::Tensor;
/// use heirloom_types::NativeRecord;
/// use zerocopy::{FromBytes, Immutable, KnownLayout};
///
/// #[derive(Clone, Copy, FromBytes, Immutable, KnownLayout, NativeRecord)]
/// #[record(type_id = 2001, const zero_point = Tensor::scalar(0i8))]
/// #[repr(C)]
/// struct Int4Block {
///     #[record(array(Int4, 32))]
///     codes: [u8; 16],
///     scale: f32,
/// }
/// assert_eq!(Int4Block::declaration()?.record_bytes()?, 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait NativeRecord: FromBytes + Immutable + KnownLayout + 'static {
    /// The identity that the type is bound to.
    const TYPE_ID: u64;

    /// The declaration that a model must have under that identity.
    ///
    /// # Errors
    /// When the declaration is malformed.
    fn declaration() -> Result<Arc<StructType>, Fault>;

    /// Name and byte offset of each field of the Rust type, in the order of the declaration's fields, constants left
    /// out.
    fn offsets() -> Vec<(&'static str, usize)>;
}

/// A Rust type that a field of a native record may have.
pub trait NativeField {
    /// The declared type whose bytes it holds.
    fn value_type() -> ValueType;
}

macro_rules! scalars {
    ($($ty:ty),*) => {$(
        impl NativeField for $ty {
            fn value_type() -> ValueType {
                ValueType::tensor(<$ty as heirloom_mem::Element>::DTYPE, &[])
            }
        }
    )*};
}
scalars!(u8, i8, u16, i16, u32, i32, u64, i64, f32, f64, half::f16, half::bf16);

/// An array of the element's type; an empty one is no declarable type, and binding it fails.
impl<T: NativeField, const N: usize> NativeField for [T; N] {
    fn value_type() -> ValueType {
        match StructType::array("", T::value_type(), N as u64).build() {
            Ok(ty) => ValueType::Struct(ty),
            Err(_) => ValueType::AnyStruct,
        }
    }
}

/// The declared type of a field that is a native record itself; a faulty one is no declarable type, and binding what
/// holds it fails.
pub fn nested<T: NativeRecord>() -> ValueType {
    match T::declaration() {
        Ok(ty) => ValueType::Struct(ty),
        Err(_) => ValueType::AnyStruct,
    }
}

/// Why a payload cannot be seen as a slice of a Rust type. Reading it by field works all the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BindingError {
    /// The Rust type's own declaration is malformed.
    #[error("the native type's declaration: {0}")]
    Native(Fault),
    /// The Rust type's own declaration has no byte layout.
    #[error("the native type's declaration: {0}")]
    Layout(#[from] TypeError),
    /// The Rust type has another size than a record: padding of its own, for instance.
    #[error("a record takes {record} bytes and the native type {native}; declare padding as fields")]
    Size {
        /// Bytes of a record.
        record: usize,
        /// Bytes of the Rust type.
        native: usize,
    },
    /// A field of the Rust type lies elsewhere.
    #[error("field `{field}` lies at bit {record} of a record and at byte {native} of the native type")]
    Offset {
        /// The field.
        field: String,
        /// Bit offset in a record.
        record: u64,
        /// Byte offset in the Rust type.
        native: usize,
    },
    /// The Rust type names other fields than its declaration.
    #[error("the native type lists the fields {native:?}, its declaration {declared:?}")]
    Fields {
        /// The names of the Rust type.
        native: Vec<String>,
        /// The names of the declaration.
        declared: Vec<String>,
    },
    /// The value is affine-quantized.
    #[error("the value has the affine layout, not records")]
    Affine,
    /// The value's layout is an inline declaration, which has no identity to bind to.
    #[error(
        "the layout is an inline declaration; native types bind to type {expected}: read by field instead"
    )]
    Inline {
        /// The identity that the Rust type is bound to.
        expected: u64,
    },
    /// The value's layout has another identity.
    #[error("the layout is type {actual}; the native type is bound to type {expected}")]
    TypeId {
        /// The identity that the Rust type is bound to.
        expected: u64,
        /// The value's.
        actual: NonZeroU64,
    },
    /// The model declares something else under the identity.
    #[error("type {id} is declared differently than the native type expects: {difference}")]
    Declaration {
        /// The identity.
        id: u64,
        /// The first difference.
        difference: Difference,
    },
    /// The payload begins at an address that the Rust type cannot have.
    #[error(
        "misaligned: the payload begins at address {address:#x}, no multiple of {align}; read it by field"
    )]
    Misaligned {
        /// Where the payload begins.
        address: usize,
        /// The Rust type's alignment.
        align: usize,
    },
    /// The payload ends within a record.
    #[error("{payload} bytes are no whole number of records of {record} bytes")]
    Partial {
        /// Bytes of the payload.
        payload: usize,
        /// Bytes of a record.
        record: usize,
    },
}

/// A Rust type whose own layout is proved to be that of its declaration.
pub struct Binding<T> {
    declaration: Arc<StructType>,
    native: PhantomData<fn() -> T>,
}

impl<T: NativeRecord> Binding<T> {
    /// Proves that `T` lies in memory as its declaration says: size, and the offset of every field.
    ///
    /// # Errors
    /// When it does not.
    pub fn new() -> Result<Binding<T>, BindingError> {
        let declaration = T::declaration().map_err(BindingError::Native)?;
        let record = declaration.record_bytes()?;
        if record != size_of::<T>() {
            return Err(BindingError::Size { record, native: size_of::<T>() });
        }
        let (mut bits, mut declared) = (0, Vec::new());
        if let Kind::Structure(fields) = declaration.kind() {
            for field in fields {
                if let Content::Type(ty) = &field.content {
                    declared.push((field.name.to_string(), bits));
                    bits += crate::slot::value_bits(ty);
                }
            }
        }
        let native = T::offsets();
        if !declared.iter().map(|(name, _)| &**name).eq(native.iter().map(|(name, _)| *name)) {
            let native = native.iter().map(|(name, _)| (*name).into()).collect();
            let declared = declared.into_iter().map(|(name, _)| name).collect();
            return Err(BindingError::Fields { native, declared });
        }
        for ((field, record), (_, native)) in declared.into_iter().zip(native) {
            if record != native as u64 * 8 {
                return Err(BindingError::Offset { field, record, native });
            }
        }
        Ok(Binding { declaration, native: PhantomData })
    }

    /// The declaration that a model must have.
    pub fn declaration(&self) -> &Arc<StructType> {
        &self.declaration
    }

    /// The records of `value`, in place.
    ///
    /// # Errors
    /// When the value is not of the bound type, the model declares that type differently (fields, constants, layout;
    /// nested types too), or the payload is misaligned for `T`.
    pub fn view<'a>(&self, value: &'a EncodedValue) -> Result<&'a [T], BindingError> {
        let Layout::Struct(layout) = &value.layout else { return Err(BindingError::Affine) };
        let Some(actual) = layout.type_id else { return Err(BindingError::Inline { expected: T::TYPE_ID }) };
        if actual.get() != T::TYPE_ID {
            return Err(BindingError::TypeId { expected: T::TYPE_ID, actual });
        }
        if let Some(difference) = self.declaration.layout_difference(&layout.declaration) {
            return Err(BindingError::Declaration { id: T::TYPE_ID, difference });
        }
        let payload = &value.payload;
        if payload.is_empty() {
            return Ok(&[]);
        }
        let record = layout.record_bytes;
        if !payload.len().is_multiple_of(record) {
            return Err(BindingError::Partial { payload: payload.len(), record });
        }
        let (address, align) = (payload.address(), align_of::<T>());
        payload.cast::<T>().ok_or(BindingError::Misaligned { address, align })
    }
}

impl<T> std::fmt::Debug for Binding<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Binding({} to {})", self.declaration, std::any::type_name::<T>())
    }
}

impl EncodedValue {
    /// The records as a slice of a Rust type, in place. Keep a [`Binding`] to prove the Rust type's layout only once.
    ///
    /// # Errors
    /// As [`Binding::new`] and [`Binding::view`].
    pub fn view<T: NativeRecord>(&self) -> Result<&[T], BindingError> {
        Binding::<T>::new()?.view(self)
    }
}
