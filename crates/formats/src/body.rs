//! Writes the body of an in-file decoder: standard ONNX operators and `ai.heirloom` `Field`.

use heirloom_mem::DType;
use heirloom_proto::attribute_proto::AttributeType;
use heirloom_proto::{AttributeProto, FunctionProto, NodeProto, OperatorSetIdProto};

/// The operator set that decoders are written in, unless they need a newer one.
const OPSET: i64 = 24;

/// The domain of `Field`.
const DOMAIN: &str = "ai.heirloom";

/// A value within the body.
#[derive(Clone, Debug)]
pub struct Val(String);

/// The body of a decoder that is being written. Its input is the encoded value.
#[derive(Debug)]
pub struct Body {
    nodes: Vec<NodeProto>,
    opset: i64,
}

/// The value of an attribute.
#[derive(Clone, Copy, Debug)]
pub enum Attr<'a> {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f32),
    /// Integers.
    Ints(&'a [i64]),
    /// Strings.
    Strings(&'a [&'a str]),
}

impl Attr<'_> {
    fn named(self, name: &str) -> AttributeProto {
        let mut attribute = AttributeProto::default();
        attribute.set_name(name);
        let ty = match self {
            Attr::Int(value) => {
                attribute.set_i(value);
                AttributeType::INT
            }
            Attr::Float(value) => {
                attribute.set_f(value);
                AttributeType::FLOAT
            }
            Attr::Ints(values) => {
                attribute.ints_mut().extend(values.iter().copied());
                AttributeType::INTS
            }
            Attr::Strings(values) => {
                attribute.strings_mut().extend(values);
                AttributeType::STRINGS
            }
        };
        attribute.set_type(ty);
        attribute
    }
}

/// The name of the decoder's input.
const INPUT: &str = "records";

impl Default for Body {
    fn default() -> Body {
        Body { nodes: Vec::new(), opset: OPSET }
    }
}

impl Body {
    /// An empty body.
    pub fn new() -> Body {
        Body::default()
    }

    /// Writes the decoder in operator set `version` at least.
    pub fn require_opset(&mut self, version: i64) {
        self.opset = self.opset.max(version);
    }

    /// The result of `op` over `inputs`.
    pub fn op(&mut self, op: &str, inputs: &[&Val], attributes: &[(&str, Attr<'_>)]) -> Val {
        let output = format!("v{}", self.nodes.len());
        let mut node = NodeProto::default();
        node.set_op_type(op);
        node.input_mut().extend(inputs.iter().map(|v| &v.0));
        node.output_mut().push(&output);
        node.attribute_mut().extend(attributes.iter().map(|&(name, value)| value.named(name)));
        self.nodes.push(node);
        Val(output)
    }

    /// The field at `path` of all records: [records, *enclosing dimensions, *field shape]; a constant: [1, *shape].
    pub fn field(&mut self, path: &[&str]) -> Val {
        let value = self.op("Field", &[&Val(INPUT.to_owned())], &[("path", Attr::Strings(path))]);
        self.nodes.last_mut().expect("the node just added").set_domain(DOMAIN);
        value
    }

    /// The field at `path` as FLOAT.
    pub fn float_field(&mut self, path: &[&str]) -> Val {
        let field = self.field(path);
        self.cast(&field, DType::Float)
    }

    /// The components `names` of the bit packing at `path` as FLOAT, joined along the packing's dimension, which is
    /// `axis` of each.
    pub fn joined_components(&mut self, path: &[&str], names: &[&str], axis: i64) -> Val {
        let parts: Vec<Val> = names.iter().map(|name| self.field(&[path, &[name]].concat())).collect();
        let joined = self.concat(&parts.iter().collect::<Vec<_>>(), axis);
        self.cast(&joined, DType::Float)
    }

    /// `value` converted.
    pub fn cast(&mut self, value: &Val, to: DType) -> Val {
        self.op("Cast", &[value], &[("to", Attr::Int(i64::from(to.onnx())))])
    }

    /// A FLOAT scalar.
    pub fn float(&mut self, value: f32) -> Val {
        self.op("Constant", &[], &[("value_float", Attr::Float(value))])
    }

    /// An INT32 scalar.
    pub fn int32(&mut self, value: i64) -> Val {
        let value = self.op("Constant", &[], &[("value_int", Attr::Int(value))]);
        self.cast(&value, DType::Int32)
    }

    /// An INT64 vector.
    pub fn ints(&mut self, values: &[i64]) -> Val {
        self.op("Constant", &[], &[("value_ints", Attr::Ints(values))])
    }

    /// `a + b`.
    pub fn add(&mut self, a: &Val, b: &Val) -> Val {
        self.op("Add", &[a, b], &[])
    }

    /// `a - b`.
    pub fn sub(&mut self, a: &Val, b: &Val) -> Val {
        self.op("Sub", &[a, b], &[])
    }

    /// `a * b`.
    pub fn mul(&mut self, a: &Val, b: &Val) -> Val {
        self.op("Mul", &[a, b], &[])
    }

    /// `value - offset`.
    pub fn minus(&mut self, value: &Val, offset: f32) -> Val {
        let offset = self.float(offset);
        self.sub(value, &offset)
    }

    /// `low + high * 2^bits`, the parts of a code that a record stores apart, as FLOAT.
    pub fn with_high_bits(&mut self, low: &Val, high: &Val, bits: i32) -> Val {
        let weight = self.float(2f32.powi(bits));
        let high = self.mul(high, &weight);
        self.add(low, &high)
    }

    /// `values` one after another along `axis`.
    pub fn concat(&mut self, values: &[&Val], axis: i64) -> Val {
        self.op("Concat", values, &[("axis", Attr::Int(axis))])
    }

    /// `value` in another shape; 0 keeps the extent of that axis, so that it holds for no records too.
    pub fn reshape(&mut self, value: &Val, shape: &[i64]) -> Val {
        let shape = self.ints(shape);
        self.op("Reshape", &[value, &shape], &[])
    }

    /// A vector [records] as a column [records, 1].
    pub fn column(&mut self, value: &Val) -> Val {
        self.reshape(value, &[0, 1])
    }

    /// `table[indices]` for a constant field of shape [entries].
    pub fn lookup(&mut self, table: &[&str], indices: &Val) -> Val {
        let table = self.float_field(table);
        let table = self.reshape(&table, &[-1]);
        let indices = self.cast(indices, DType::Int32);
        self.op("Gather", &[&table, &indices], &[("axis", Attr::Int(0))])
    }

    /// The function that decodes `format`: it computes `output`, [records, elements of a record].
    pub fn finish(self, format: &str, output: &Val) -> FunctionProto {
        let mut function = FunctionProto::default();
        function.set_domain(DOMAIN);
        function.set_name(&format!("decode_{format}"));
        function.input_mut().push(INPUT);
        function.output_mut().push(&output.0);
        *function.node_mut() = self.nodes;
        for (domain, version) in [("", self.opset), (DOMAIN, 1)] {
            let mut import = OperatorSetIdProto::default();
            import.set_domain(domain);
            import.set_version(version);
            function.opset_import_mut().push(import);
        }
        function
    }
}
