//! Whether two declarations mean the same, and if not, where they differ first.

use std::fmt;

use rustc_hash::FxHashSet;

use crate::struct_type::{Constant, Content, Field, Kind};
use crate::{StructType, ValueType};

/// The first difference between two declarations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The field, such as `quantized.codebook`; empty for the type itself.
    pub path: String,
    /// What the first declaration says there.
    pub expected: String,
    /// What the second one says.
    pub actual: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { path, expected, actual } = self;
        if !path.is_empty() {
            write!(f, "`{path}`: ")?;
        }
        write!(f, "{actual} instead of {expected}")
    }
}

type Found = Result<(), Difference>;

fn differs(expected: impl fmt::Display, actual: impl fmt::Display) -> Found {
    Err(Difference { path: String::new(), expected: expected.to_string(), actual: actual.to_string() })
}

fn within(result: Found, name: &str) -> Found {
    result.map_err(|mut difference| {
        let dot = if difference.path.is_empty() || difference.path.starts_with('[') { "" } else { "." };
        difference.path = format!("{name}{dot}{}", difference.path);
        difference
    })
}

impl StructType {
    /// The first difference in what makes another identity necessary: fields and their names, types, constants,
    /// layout, decoder and encoder, nested types included. `self` is what is expected. Names of declarations,
    /// identities, doc strings and annotations do not count, nor whether a nested type is inline or a reference.
    pub fn difference(&self, other: &StructType) -> Option<Difference> {
        Comparison { codecs: true, equal: FxHashSet::default() }.types(self, other).err()
    }

    /// As [`difference`](StructType::difference), decoders and encoders left out: what a native view depends on.
    pub fn layout_difference(&self, other: &StructType) -> Option<Difference> {
        Comparison { codecs: false, equal: FxHashSet::default() }.types(self, other).err()
    }
}

struct Comparison {
    codecs: bool,
    /// Addresses of pairs that were found equal: a type reached on many paths is compared once.
    equal: FxHashSet<(usize, usize)>,
}

impl Comparison {
    fn types(&mut self, a: &StructType, b: &StructType) -> Found {
        let pair = (std::ptr::from_ref(a).addr(), std::ptr::from_ref(b).addr());
        if pair.0 == pair.1 || self.equal.contains(&pair) {
            return Ok(());
        }
        match (&a.kind, &b.kind) {
            (Kind::Array { element: a, count: n }, Kind::Array { element: b, count: m }) => {
                if n != m {
                    return differs(format!("an array of {n}"), format!("an array of {m}"));
                }
                within(self.values(a, b), "[]")?;
            }
            (Kind::BitPacking { components: a, count: n }, Kind::BitPacking { components: b, count: m })
                if n == m && a == b => {}
            (Kind::Structure(a), Kind::Structure(b)) => self.fields(a, b)?,
            (a, b) => return differs(describe(a), describe(b)),
        }
        if self.codecs && a.decoder != b.decoder {
            return differs(
                codec("decoder", a.decoder.is_some()),
                other_codec("decoder", b.decoder.is_some()),
            );
        }
        if self.codecs && a.encoder != b.encoder {
            return differs(
                codec("encoder", a.encoder.is_some()),
                other_codec("encoder", b.encoder.is_some()),
            );
        }
        self.equal.insert(pair);
        Ok(())
    }

    fn fields(&mut self, a: &[Field], b: &[Field]) -> Found {
        for (a, b) in a.iter().zip(b) {
            if a.name != b.name {
                return within(
                    differs(format!("field `{}`", a.name), format!("field `{}`", b.name)),
                    &a.name,
                );
            }
            let result = match (&a.content, &b.content) {
                (Content::Type(a), Content::Type(b)) => self.values(a, b),
                (Content::Constant(a), Content::Constant(b)) => constants(a, b),
                (Content::Type(a), Content::Constant(b)) => differs(a, constant(b)),
                (Content::Constant(a), Content::Type(b)) => differs(constant(a), b),
            };
            within(result, &a.name)?;
        }
        match (a.get(b.len()), b.get(a.len())) {
            (Some(missing), _) => {
                within(differs(format!("field `{}`", missing.name), "no field"), &missing.name)
            }
            (_, Some(extra)) => within(differs("no field", format!("field `{}`", extra.name)), &extra.name),
            _ => Ok(()),
        }
    }

    fn values(&mut self, a: &ValueType, b: &ValueType) -> Found {
        match (a, b) {
            (ValueType::Struct(a), ValueType::Struct(b)) => self.types(a, b),
            (ValueType::Tensor(x), ValueType::Tensor(y)) | (ValueType::Sparse(x), ValueType::Sparse(y))
                if x == y =>
            {
                Ok(())
            }
            (ValueType::AnyStruct, ValueType::AnyStruct) => Ok(()),
            (ValueType::Sequence(a), ValueType::Sequence(b))
            | (ValueType::Optional(a), ValueType::Optional(b)) => within(self.values(a, b), "[]"),
            (ValueType::Map { key: k, value: a }, ValueType::Map { key: l, value: b }) if k == l => {
                within(self.values(a, b), "[]")
            }
            (ValueType::Opaque { domain: d, name: n }, ValueType::Opaque { domain: e, name: m })
                if d == e && n == m =>
            {
                Ok(())
            }
            (a, b) => differs(a, b),
        }
    }
}

fn codec(what: &str, there: bool) -> String {
    if there { format!("its {what}") } else { format!("no {what}") }
}

fn other_codec(what: &str, there: bool) -> String {
    if there { format!("another {what}") } else { format!("no {what}") }
}

fn constant(constant: &Constant) -> String {
    format!("the constant {}{:?}", constant.dtype(), constant.shape())
}

fn constants(a: &Constant, b: &Constant) -> Found {
    let same = match (a, b) {
        (Constant::Tensor(a), Constant::Tensor(b)) => {
            a.dtype() == b.dtype() && a.shape() == b.shape() && a.dense_bytes() == b.dense_bytes()
        }
        (Constant::Strings(a), Constant::Strings(b)) => a == b,
        _ => false,
    };
    if same {
        return Ok(());
    }
    let (x, y) = (constant(a), constant(b));
    if x == y { differs(x, "one of other values") } else { differs(x, y) }
}

fn describe(kind: &Kind) -> String {
    match kind {
        Kind::Array { element, count } => format!("an array of {count} × {element}"),
        Kind::Structure(fields) => format!("a structure of {} fields", fields.len()),
        Kind::BitPacking { components, count } => {
            let parts: Vec<String> =
                components.iter().map(|c| format!("{}:{}", c.name, c.bit_width)).collect();
            format!("{count} × bits ({})", parts.join(", "))
        }
    }
}
