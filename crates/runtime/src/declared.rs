//! Declared types of inputs and outputs, and whether actual values fit them.

use std::fmt::Write as _;
use std::sync::Arc;

use heirloom_mem::{DType, RegionKind};
use heirloom_types::{Content, Dim, EncodedValue, Layout, MapKey, StructType, TensorSpec, Value, ValueType};
use smallvec::SmallVec;

use crate::Mismatch;

/// Extents of a call's symbolic dimensions, and the index of the input that gave each first.
pub(crate) type Symbols = [Option<(usize, u32)>];

/// A declared type, ready to be compared with values.
#[derive(Clone, Debug)]
pub(crate) enum Declared {
    /// Nothing is declared.
    Any,
    /// A tensor (of strings too).
    Tensor { dtype: DType, dims: Option<SmallVec<[Extent; 6]>>, text: Arc<str> },
    /// Anything else.
    Other(ValueType),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Known(usize),
    Symbol(u32),
    Unknown,
}

/// Names of the symbols of one signature; an [`Extent::Symbol`] is an index.
pub(crate) type SymbolNames = Vec<Arc<str>>;

impl Declared {
    /// With `free`, symbols say nothing. Nor do those that are no names: `?` and numbers below zero, which exporters write
    /// for what they do not know.
    pub(crate) fn new(ty: Option<&ValueType>, symbols: &mut SymbolNames, free: bool) -> Declared {
        match ty {
            None => Declared::Any,
            Some(ValueType::Tensor(spec)) => {
                let extent = |dim: &Dim| match dim {
                    Dim::Known(extent) => Extent::Known(*extent),
                    Dim::Param(name) if free || !names(name) => Extent::Unknown,
                    Dim::Param(name) => {
                        let at = symbols.iter().position(|s| s == name).unwrap_or_else(|| {
                            symbols.push(name.clone());
                            symbols.len() - 1
                        });
                        Extent::Symbol(u32::try_from(at).expect("fewer than 2^32 symbols"))
                    }
                    Dim::Unknown => Extent::Unknown,
                };
                let dims = spec.dims.as_ref().map(|dims| dims.iter().map(extent).collect());
                Declared::Tensor { dtype: spec.dtype, dims, text: shape_text(spec).into() }
            }
            Some(other) => Declared::Other(other.clone()),
        }
    }

    /// Whether `value` fits. Symbols without an extent get theirs from it, as input `index`.
    ///
    /// The mismatch of a symbol names the input that it contradicts by index: `other` resolves it.
    pub(crate) fn check(
        &self,
        value: &Value,
        index: u32,
        symbols: &mut Symbols,
        names: &SymbolNames,
        other: impl Fn(u32) -> String,
    ) -> Result<(), Box<Mismatch>> {
        match self {
            Declared::Any => Ok(()),
            Declared::Other(ty) => check_type(ty, value).map_err(Box::new),
            Declared::Tensor { dtype, dims, text } => {
                let shape = check_tensor(*dtype, value)?;
                let Some(dims) = dims else { return Ok(()) };
                let differs = || Mismatch::Shape { expected: text.to_string(), actual: Vec::from(shape) };
                if dims.len() != shape.len() {
                    return Err(Box::new(differs()));
                }
                for (axis, (&dim, &actual)) in dims.iter().zip(shape).enumerate() {
                    match dim {
                        Extent::Known(expected) if expected != actual => return Err(Box::new(differs())),
                        Extent::Known(_) | Extent::Unknown => {}
                        // An empty value stands for one that is not there yet.
                        Extent::Symbol(_) if shape.contains(&0) => {}
                        Extent::Symbol(at) => match &mut symbols[at as usize] {
                            Some((expected, by)) if *expected != actual => {
                                return Err(Box::new(Mismatch::Symbol {
                                    axis,
                                    symbol: names[at as usize].to_string(),
                                    expected: *expected,
                                    actual,
                                    other: other(*by),
                                    shape: Vec::from(shape),
                                }));
                            }
                            Some(_) => {}
                            unset => *unset = Some((actual, index)),
                        },
                    }
                }
                Ok(())
            }
        }
    }
}

/// Whether a symbol is a name or a formula of names.
fn names(symbol: &str) -> bool {
    symbol.contains(|c: char| c.is_alphabetic())
}

fn shape_text(spec: &TensorSpec) -> String {
    let Some(dims) = &spec.dims else { return "of any rank".into() };
    let mut text = String::from("[");
    for (at, dim) in dims.iter().enumerate() {
        let _ = write!(text, "{}{dim}", if at == 0 { "" } else { ", " });
    }
    text + "]"
}

/// The shape of a tensor value with `dtype` elements.
fn check_tensor(dtype: DType, value: &Value) -> Result<&[usize], Mismatch> {
    let kind = |expected: &str| Mismatch::Kind { expected: expected.into(), actual: value.kind().into() };
    match (value, dtype) {
        (Value::Strings(strings), DType::String) => Ok(&strings.shape),
        (_, DType::String) => Err(kind("string tensor")),
        (Value::Tensor(tensor), _) if tensor.dtype() == dtype => Ok(tensor.shape()),
        (Value::Tensor(tensor), _) => Err(Mismatch::DType { expected: dtype, actual: tensor.dtype() }),
        _ => Err(kind("tensor")),
    }
}

fn within(path: impl ToString, result: Result<(), Mismatch>) -> Result<(), Mismatch> {
    result.map_err(|inner| Mismatch::Within { path: path.to_string(), inner: Box::new(inner) })
}

/// Whether `value` is a value of type `ty`. Symbols stand for any extent here.
pub(crate) fn check_type(ty: &ValueType, value: &Value) -> Result<(), Mismatch> {
    let kind = || Mismatch::Kind { expected: ty.kind().into(), actual: value.kind().into() };
    match (ty, value) {
        (ValueType::Tensor(spec), Value::Encoded(encoded)) => check_logical(spec, encoded),
        (ValueType::Tensor(spec), _) => {
            let shape = check_tensor(spec.dtype, value)?;
            check_dims(spec, shape)
        }
        (ValueType::Struct(ty), Value::Struct(fields)) => {
            let declared = ty.fields().iter().filter_map(|field| match &field.content {
                Content::Type(ty) => Some((&field.name, ty)),
                Content::Constant(_) => None,
            });
            let mut actual = fields.fields.iter();
            for (name, ty) in declared {
                match actual.next() {
                    Some((n, value)) if n == name => within(name, check_type(ty, value))?,
                    Some((n, _)) => {
                        return Err(Mismatch::Kind {
                            expected: format!("field `{name}`"),
                            actual: format!("field `{n}`"),
                        });
                    }
                    None => {
                        return Err(Mismatch::Kind {
                            expected: format!("field `{name}`"),
                            actual: "struct without it".into(),
                        });
                    }
                }
            }
            match actual.next() {
                Some((name, _)) => Err(Mismatch::Kind {
                    expected: format!("{ty}"),
                    actual: format!("struct with a field `{name}` more"),
                }),
                None => Ok(()),
            }
        }
        (ValueType::Struct(ty), Value::Encoded(encoded)) => check_layout(ty, encoded),
        (ValueType::AnyStruct, Value::Struct(_) | Value::Encoded(_)) => Ok(()),
        (ValueType::Sequence(ty), Value::Sequence(elements)) => {
            elements.iter().enumerate().try_for_each(|(at, value)| within(at, check_type(ty, value)))
        }
        (ValueType::Map { key, value: ty }, Value::Map(entries)) => {
            entries.iter().try_for_each(|(k, value)| {
                let (path, string) = match k {
                    MapKey::Int(key) => (key.to_string(), false),
                    MapKey::String(key) => (key.to_string(), true),
                };
                if string != (*key == DType::String) {
                    let actual = if string { DType::String } else { DType::Int64 };
                    return within(path, Err(Mismatch::DType { expected: *key, actual }));
                }
                within(path, check_type(ty, value))
            })
        }
        (ValueType::Optional(_), Value::Optional(None)) => Ok(()),
        (ValueType::Optional(ty), Value::Optional(Some(value))) => check_type(ty, value),
        // An optional input may be fed the value itself.
        (ValueType::Optional(ty), value) => check_type(ty, value),
        _ => Err(kind()),
    }
}

fn check_dims(spec: &TensorSpec, shape: &[usize]) -> Result<(), Mismatch> {
    let fits = spec.dims.as_ref().is_none_or(|dims| {
        dims.len() == shape.len()
            && dims.iter().zip(shape).all(|(dim, &d)| dim.known().is_none_or(|k| k == d))
    });
    if fits { Ok(()) } else { Err(Mismatch::Shape { expected: shape_text(spec), actual: Vec::from(shape) }) }
}

/// A field or element that is declared as a tensor may be encoded, where its logical type says what it stands for.
fn check_logical(spec: &TensorSpec, encoded: &EncodedValue) -> Result<(), Mismatch> {
    match &encoded.logical {
        Some(logical) if logical.dtype == spec.dtype => check_dims(spec, &logical.shape),
        Some(logical) => Err(Mismatch::DType { expected: spec.dtype, actual: logical.dtype }),
        None => Err(Mismatch::Kind {
            expected: "tensor".into(),
            actual: "encoded value without logical type".into(),
        }),
    }
}

fn check_layout(ty: &StructType, encoded: &EncodedValue) -> Result<(), Mismatch> {
    let actual = match &encoded.layout {
        Layout::Struct(layout) if *layout.declaration == *ty => return Ok(()),
        layout => layout_text(layout),
    };
    Err(Mismatch::Layout { expected: ty.to_string(), actual })
}

/// A layout as messages name it.
pub(crate) fn layout_text(layout: &Layout) -> String {
    match layout {
        Layout::Affine(affine) => match (affine.axis, affine.block_size) {
            (None, _) => format!("affine {} per tensor", affine.storage),
            (Some(axis), None) => format!("affine {} per axis {axis}", affine.storage),
            (Some(axis), Some(block)) => {
                format!("affine {} in blocks of {block} along axis {axis}", affine.storage)
            }
        },
        Layout::Struct(layout) => match layout.type_id {
            Some(id) => format!("`{}` (type id {id})", layout.name),
            None => format!("`{}` (inline, {} bytes per record)", layout.name, layout.record_bytes),
        },
    }
}

/// Whether any part of a value is lent for a call alone.
pub(crate) fn is_lent(value: &Value) -> bool {
    let mut lent = false;
    value.for_each_payload(&mut |part| lent |= part.kind == RegionKind::Lent);
    lent
}

/// Refuses what is lent for a call alone in a value that is to be retained.
pub(crate) fn refuse_lent(value: &Value) -> Result<(), Mismatch> {
    if is_lent(value) { Err(Mismatch::Lent) } else { Ok(()) }
}

/// Refuses strings anywhere in a value that is to be retained.
pub(crate) fn refuse_strings(value: &Value) -> Result<(), Mismatch> {
    match value {
        Value::Strings(_) => Err(Mismatch::Strings),
        Value::Tensor(_) => Ok(()),
        Value::Encoded(encoded) => match &encoded.layout {
            Layout::Struct(layout) if layout.declaration.contains_strings() => Err(Mismatch::Strings),
            _ => Ok(()),
        },
        Value::Struct(fields) => {
            fields.fields.iter().try_for_each(|(name, value)| within(name, refuse_strings(value)))
        }
        Value::Sequence(values) => {
            values.iter().enumerate().try_for_each(|(at, value)| within(at, refuse_strings(value)))
        }
        Value::Map(entries) => entries.iter().try_for_each(|(key, value)| match key {
            MapKey::String(key) => within(key, Err(Mismatch::Strings)),
            MapKey::Int(key) => within(key, refuse_strings(value)),
        }),
        Value::Optional(Some(value)) => refuse_strings(value),
        Value::Optional(None) => Ok(()),
        _ => Ok(()),
    }
}
