//! Where the parts of a record lie: leaves at any bit, found by name and index.

use std::sync::Arc;

use heirloom_mem::DType;
use smallvec::SmallVec;

use crate::struct_type::{Constant, Content, Kind};
use crate::{RecordError, StructType, TypeError, ValueType};

/// What one element of a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf {
    /// A scalar of an ONNX type.
    Scalar(DType),
    /// An unsigned bit field of so many bits.
    Bits(u32),
}

impl Leaf {
    /// Bits of one element.
    pub fn bit_width(self) -> u32 {
        match self {
            Leaf::Scalar(dtype) => dtype.bit_width().unwrap_or(0),
            Leaf::Bits(width) => width,
        }
    }
}

impl std::fmt::Display for Leaf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Leaf::Scalar(dtype) => write!(f, "{dtype}"),
            Leaf::Bits(width) => write!(f, "{width} bits"),
        }
    }
}

/// One dimension of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotDim {
    /// Elements along the dimension.
    pub count: u64,
    /// Bits from one to the next.
    pub stride: u64,
}

/// Equal leaves of a record, laid out regularly: element `[i, j, …]` lies at bit
/// `bit_offset + i * dims[0].stride + j * dims[1].stride + …` of the record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The names that lead to it, such as `quantized.codes.index`; empty for a root that is an array of scalars.
    pub path: String,
    /// What each element is.
    pub leaf: Leaf,
    /// Where the first element lies within the record.
    pub bit_offset: u64,
    /// Every enclosing array and packing, outermost first, then the tensor's own dimensions; empty for a scalar.
    pub dims: SmallVec<[SlotDim; 4]>,
}

impl Slot {
    /// The number of elements in a record; `None` on overflow.
    pub fn elements(&self) -> Option<u64> {
        if self.dims.iter().any(|d| d.count == 0) {
            return Some(0);
        }
        self.dims.iter().try_fold(1u64, |n, d| n.checked_mul(d.count))
    }
}

/// Where everything lies in one instance of a struct type that has a fixed size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ByteLayout {
    /// Bits of an instance.
    pub bits: u64,
    /// All leaves in the order of their offsets; constants are none.
    pub slots: Vec<Slot>,
}

/// What a path leads to.
#[derive(Clone, Debug)]
pub enum Located<'a> {
    /// Leaves of each record.
    Slot(Slot),
    /// A constant, which no record stores.
    Constant(&'a Constant),
}

/// One step of a path into a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// To the field or bit field of this name; arrays in between are entered with all their elements.
    Name(&'a str),
    /// To one element of the first dimension, not indexed yet, of what the last name led to.
    Index(u64),
}

/// The steps of a textual path: names separated by dots, indices in brackets, such as `quantized.codes[3].index`.
/// Names that contain dots or brackets themselves are reached by [`Step`]s alone.
///
/// # Errors
/// When a bracket is not closed or holds no number, or a name is empty.
pub fn parse_path(path: &str) -> Result<SmallVec<[Step<'_>; 8]>, RecordError> {
    let malformed = || RecordError::Path { path: path.into() };
    let mut steps = SmallVec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(behind) = rest.strip_prefix('[') {
            let (index, behind) = behind.split_once(']').ok_or_else(malformed)?;
            steps.push(Step::Index(index.parse().map_err(|_| malformed())?));
            rest = behind;
            continue;
        }
        if !steps.is_empty() {
            rest = rest.strip_prefix('.').ok_or_else(malformed)?;
        }
        let end = rest.find(['.', '[']).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        if name.is_empty() {
            return Err(malformed());
        }
        steps.push(Step::Name(name));
        rest = behind;
    }
    Ok(steps)
}

/// A place within a record while a path is followed.
struct Cursor<'a> {
    node: Node<'a>,
    bit_offset: u64,
    dims: SmallVec<[SlotDim; 4]>,
    /// The first dimension that an index may take: those before it belong to earlier names.
    fresh: usize,
    path: String,
}

enum Node<'a> {
    Leaf(Leaf),
    Constant(&'a Constant),
    /// A structure or bit packing, which a name leads into.
    Group(&'a StructType),
}

impl<'a> Cursor<'a> {
    fn at(ty: &'a StructType) -> Result<Cursor<'a>, RecordError> {
        ty.bit_size().ok_or_else(|| match ty.record_bytes() {
            Err(error) => RecordError::Layout(error),
            Ok(_) => RecordError::Layout(TypeError::EmptyRecord),
        })?;
        let node = Node::Group(ty);
        let mut cursor = Cursor { node, bit_offset: 0, dims: SmallVec::new(), fresh: 0, path: String::new() };
        cursor.enter(ty)?;
        Ok(cursor)
    }

    /// Enters a struct: arrays and packings add a dimension.
    fn enter(&mut self, mut ty: &'a StructType) -> Result<(), RecordError> {
        loop {
            self.node = Node::Group(ty);
            match ty.kind() {
                Kind::Structure(_) => return Ok(()),
                Kind::BitPacking { components, count } => {
                    let stride = components.iter().map(|c| u64::from(c.bit_width)).sum();
                    self.dims.push(SlotDim { count: *count, stride });
                    return Ok(());
                }
                Kind::Array { element, count } => {
                    let stride = ty.bit_size().unwrap_or(0) / count;
                    self.dims.push(SlotDim { count: *count, stride });
                    match element {
                        ValueType::Struct(inner) => ty = inner,
                        element => return self.enter_value(element),
                    }
                }
            }
        }
    }

    fn enter_value(&mut self, ty: &'a ValueType) -> Result<(), RecordError> {
        match ty {
            ValueType::Struct(ty) => self.enter(ty),
            ValueType::Tensor(spec) => {
                let leaf = Leaf::Scalar(spec.dtype);
                let shape = spec.shape().unwrap_or_default();
                let mut stride = u64::from(leaf.bit_width());
                let at = self.dims.len();
                for &count in shape.iter().rev() {
                    let count = count as u64;
                    self.dims.insert(at, SlotDim { count, stride });
                    // Where an extent is 0 the strides before it mean nothing.
                    stride = stride.saturating_mul(count);
                }
                self.node = Node::Leaf(leaf);
                Ok(())
            }
            other => Err(RecordError::Layout(TypeError::NotFixedSize {
                path: self.path.clone(),
                what: other.kind().into(),
            })),
        }
    }

    fn no_field(&self, name: &str) -> RecordError {
        RecordError::NoField { within: self.path.clone(), name: name.into() }
    }

    fn step(&mut self, step: Step<'_>) -> Result<(), RecordError> {
        match step {
            Step::Index(index) => {
                let no_dim = || RecordError::NoDimension { path: self.path.clone() };
                let dim = *self.dims.get(self.fresh).ok_or_else(no_dim)?;
                if index >= dim.count {
                    return Err(RecordError::Index { path: self.path.clone(), index, count: dim.count });
                }
                self.bit_offset += index * dim.stride;
                self.dims.remove(self.fresh);
            }
            Step::Name(name) => {
                let Node::Group(ty) = self.node else { return Err(self.no_field(name)) };
                self.fresh = self.dims.len();
                match ty.kind() {
                    Kind::BitPacking { components, .. } => {
                        let mut skipped = 0;
                        let found = components.iter().find(|c| {
                            let here = &*c.name == name;
                            skipped += if here { 0 } else { u64::from(c.bit_width) };
                            here
                        });
                        let component = found.ok_or_else(|| self.no_field(name))?;
                        self.bit_offset += skipped;
                        self.node = Node::Leaf(Leaf::Bits(component.bit_width));
                        self.extend_path(name);
                    }
                    Kind::Structure(fields) => {
                        let mut skipped = 0;
                        let found = fields.iter().find(|field| {
                            let here = &*field.name == name;
                            skipped += if here { 0 } else { content_bits(&field.content) };
                            here
                        });
                        let field = found.ok_or_else(|| self.no_field(name))?;
                        self.bit_offset += skipped;
                        self.extend_path(name);
                        match &field.content {
                            Content::Type(ty) => self.enter_value(ty)?,
                            Content::Constant(constant) => self.node = Node::Constant(constant),
                        }
                    }
                    Kind::Array { .. } => return Err(self.no_field(name)),
                }
            }
        }
        Ok(())
    }

    fn extend_path(&mut self, name: &str) {
        if !self.path.is_empty() {
            self.path.push('.');
        }
        self.path.push_str(name);
    }
}

fn content_bits(content: &Content) -> u64 {
    match content {
        Content::Constant(_) => 0,
        Content::Type(ty) => value_bits(ty),
    }
}

/// Bits of a value of a type that is known to have a fixed size, whose arithmetic was checked when it was declared.
pub(crate) fn value_bits(ty: &ValueType) -> u64 {
    match ty {
        ValueType::Struct(ty) => ty.bit_size().unwrap_or(0),
        ValueType::Tensor(spec) => {
            let width = u64::from(spec.dtype.bit_width().unwrap_or(0));
            let shape = spec.shape().unwrap_or_default();
            if shape.contains(&0) { 0 } else { shape.iter().fold(width, |bits, &d| bits * d as u64) }
        }
        _ => 0,
    }
}

impl StructType {
    /// Finds leaves of the records, or a constant, by steps.
    ///
    /// # Errors
    /// When the type has no fixed size, a name or dimension does not exist, an index lies outside, or the path ends
    /// at a structure or packing.
    pub fn locate(&self, steps: &[Step<'_>]) -> Result<Located<'_>, RecordError> {
        let mut cursor = Cursor::at(self)?;
        for step in steps {
            cursor.step(*step)?;
        }
        let Cursor { node, bit_offset, dims, path, .. } = cursor;
        match node {
            Node::Leaf(leaf) => Ok(Located::Slot(Slot { path, leaf, bit_offset, dims })),
            Node::Constant(constant) => Ok(Located::Constant(constant)),
            Node::Group(_) => Err(RecordError::Group { path }),
        }
    }

    /// Finds leaves of the records, or a constant, by names alone, one per element; arrays and packings on the way
    /// are dimensions of what is found.
    ///
    /// # Errors
    /// As [`locate`](StructType::locate).
    pub fn locate_names<S: AsRef<str>>(&self, names: &[S]) -> Result<Located<'_>, RecordError> {
        let steps: SmallVec<[Step<'_>; 8]> = names.iter().map(|name| Step::Name(name.as_ref())).collect();
        self.locate(&steps)
    }

    /// The byte layout: the size and all leaves, at most `limit` of them.
    ///
    /// # Errors
    /// As [`slots`](StructType::slots).
    pub fn byte_layout(&self, limit: usize) -> Result<ByteLayout, RecordError> {
        let slots = self.slots(limit)?;
        Ok(ByteLayout { bits: self.bit_size().unwrap_or(0), slots })
    }

    /// All leaves of a record in the order of their offsets.
    ///
    /// # Errors
    /// When the type has no fixed size, or has more than `limit` slots: types that are used on many paths unfold.
    pub fn slots(&self, limit: usize) -> Result<Vec<Slot>, RecordError> {
        let mut slots = Vec::new();
        unfold(Cursor::at(self)?, limit, &mut slots)?;
        Ok(slots)
    }
}

fn unfold(cursor: Cursor<'_>, limit: usize, slots: &mut Vec<Slot>) -> Result<(), RecordError> {
    let names: Vec<&Arc<str>> = match cursor.node {
        Node::Constant(_) => return Ok(()),
        Node::Leaf(leaf) => {
            if slots.len() == limit {
                return Err(RecordError::TooManySlots { limit });
            }
            let Cursor { bit_offset, dims, path, .. } = cursor;
            slots.push(Slot { path, leaf, bit_offset, dims });
            return Ok(());
        }
        Node::Group(ty) => match ty.kind() {
            Kind::BitPacking { components, .. } => components.iter().map(|c| &c.name).collect(),
            Kind::Structure(fields) => fields.iter().map(|f| &f.name).collect(),
            Kind::Array { .. } => return Ok(()),
        },
    };
    let Node::Group(group) = cursor.node else { return Ok(()) };
    for name in names {
        let mut inner = Cursor {
            node: Node::Group(group),
            bit_offset: cursor.bit_offset,
            dims: cursor.dims.clone(),
            fresh: cursor.fresh,
            path: cursor.path.clone(),
        };
        inner.step(Step::Name(name))?;
        unfold(inner, limit, slots)?;
    }
    Ok(())
}
