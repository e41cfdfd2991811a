//! Attributes of nodes and functions.

use std::sync::Arc;

use heirloom_proto::attribute_proto::AttributeType as T;
use heirloom_proto::{AttributeProto, NodeProto, Strings};

use super::Importer;
use crate::path::Path;
use crate::{AttrValue, Attributes, Problem};

impl Importer<'_> {
    pub(super) fn attributes(&mut self, node: &NodeProto, path: &Path<'_>) -> Attributes {
        let mut attributes = Attributes::default();
        for (index, attribute) in node.attribute().iter().enumerate() {
            let path = path.index("attribute", index);
            let name = attribute.name();
            if name.is_empty() {
                self.fault(&path, Problem::NoName { what: "attribute" });
                continue;
            }
            if attributes.get(name).is_some() {
                let first = node.attribute().iter().position(|other| other.name() == name).unwrap_or(0);
                let first = format!("attribute[{first}]");
                self.fault(&path, Problem::Duplicate { what: "attribute", name: name.into(), first });
                continue;
            }
            if let Some(value) = self.attribute(attribute, &path) {
                attributes.set(name, value);
            }
        }
        attributes
    }

    pub(super) fn attribute(&mut self, attribute: &AttributeProto, path: &Path<'_>) -> Option<AttrValue> {
        if !attribute.ref_attr_name().is_empty() {
            return self.reference(attribute, path);
        }
        let kind = kind(attribute);
        let missing = |importer: &mut Self| {
            let kind = kind.name().unwrap_or("of an unknown type");
            let reason = format!("is {kind} and holds no such value");
            importer.fault(path, Problem::Attribute { name: attribute.name().into(), reason });
            None
        };
        Some(match kind {
            T::FLOAT => AttrValue::Float(attribute.f()),
            T::INT => AttrValue::Int(attribute.i()),
            T::STRING => AttrValue::String(attribute.s().into()),
            T::FLOATS => AttrValue::Floats(Vec::from(attribute.floats())),
            T::INTS => AttrValue::Ints(Vec::from(attribute.ints())),
            T::STRINGS => AttrValue::Strings(boxes(attribute.strings())),
            T::TENSOR => match attribute.t() {
                None => return missing(self),
                Some(tensor) => match self.tensor(tensor, &path.field("t"))? {
                    heirloom_types::Constant::Tensor(tensor) => AttrValue::Tensor(tensor),
                    heirloom_types::Constant::Strings(strings) => AttrValue::Strings1(strings),
                },
            },
            T::TENSORS => {
                let mut tensors = Vec::with_capacity(attribute.tensors().len());
                for (index, tensor) in attribute.tensors().iter().enumerate() {
                    match self.tensor(tensor, &path.index("tensors", index))? {
                        heirloom_types::Constant::Tensor(tensor) => tensors.push(tensor),
                        heirloom_types::Constant::Strings(_) => {
                            return Some(AttrValue::Other(attribute.clone()));
                        }
                    }
                }
                AttrValue::Tensors(tensors)
            }
            T::GRAPH => match attribute.g() {
                None => return missing(self),
                Some(body) => AttrValue::Graph(Arc::new(self.graph(body, &path.field("g")))),
            },
            T::GRAPHS => {
                let bodies = attribute.graphs().iter().enumerate();
                AttrValue::Graphs(
                    bodies.map(|(i, body)| Arc::new(self.graph(body, &path.index("graphs", i)))).collect(),
                )
            }
            T::SPARSE_TENSOR => match attribute.sparse_tensor() {
                None => return missing(self),
                Some(sparse) => {
                    self.sparse(sparse, &path.field("sparse_tensor"));
                    AttrValue::Other(attribute.clone())
                }
            },
            T::SPARSE_TENSORS => {
                for (index, sparse) in attribute.sparse_tensors().iter().enumerate() {
                    self.sparse(sparse, &path.index("sparse_tensors", index));
                }
                AttrValue::Other(attribute.clone())
            }
            T::TYPE_PROTO => match attribute.tp() {
                None => return missing(self),
                Some(ty) => {
                    self.value_type(ty, &path.field("tp"));
                    AttrValue::Other(attribute.clone())
                }
            },
            T::TYPE_PROTOS => {
                for (index, ty) in attribute.type_protos().iter().enumerate() {
                    self.value_type(ty, &path.index("type_protos", index));
                }
                AttrValue::Other(attribute.clone())
            }
            _ => return missing(self),
        })
    }

    fn reference(&mut self, attribute: &AttributeProto, path: &Path<'_>) -> Option<AttrValue> {
        let to = attribute.ref_attr_name();
        let within = match &self.function {
            Some(function) if function.has_attribute(to) => return Some(AttrValue::Reference(to.into())),
            Some(function) => Some(function.proto.name().into()),
            None => None,
        };
        self.fault(
            path,
            Problem::AttributeReference { name: attribute.name().into(), to: to.into(), within },
        );
        None
    }
}

/// What an attribute holds. Before IR version 2 files did not say so: then the field that is present tells.
fn kind(attribute: &AttributeProto) -> T {
    if attribute.type_() != T::UNDEFINED {
        return attribute.type_();
    }
    let present = [
        (attribute.has_f(), T::FLOAT),
        (attribute.has_i(), T::INT),
        (attribute.has_s(), T::STRING),
        (attribute.has_t(), T::TENSOR),
        (attribute.has_g(), T::GRAPH),
        (attribute.has_sparse_tensor(), T::SPARSE_TENSOR),
        (attribute.has_tp(), T::TYPE_PROTO),
        (!attribute.floats().is_empty(), T::FLOATS),
        (!attribute.ints().is_empty(), T::INTS),
        (!attribute.strings().is_empty(), T::STRINGS),
        (!attribute.tensors().is_empty(), T::TENSORS),
        (!attribute.graphs().is_empty(), T::GRAPHS),
        (!attribute.sparse_tensors().is_empty(), T::SPARSE_TENSORS),
        (!attribute.type_protos().is_empty(), T::TYPE_PROTOS),
    ];
    present.into_iter().find(|(is_present, _)| *is_present).map_or(T::UNDEFINED, |(_, kind)| kind)
}

fn boxes(strings: Strings<'_>) -> Vec<Box<[u8]>> {
    strings.iter_bytes().map(Box::from).collect()
}
