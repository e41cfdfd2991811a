//! Constants in another form.

use heirloom_proto::{GraphProto, ModelProto};
use heirloom_types::{EncodedValue, Layout, Value, tensor_to_proto};

use super::Edit;
use crate::{Error, Problem};

/// Where an initializer of the main graph stands.
enum Place {
    Dense(usize),
    Encoded(usize),
}

fn find(proto: &ModelProto, name: &str) -> Option<Place> {
    let graph = proto.graph()?;
    let dense = graph.initializer().iter().position(|it| it.name() == name).map(Place::Dense);
    dense.or_else(|| graph.encoded_initializer().iter().position(|it| it.name() == name).map(Place::Encoded))
}

impl Edit<'_> {
    /// Gives the dense or encoded initializer `name` of the main graph another value: a tensor, or an encoded value
    /// whose struct type is declared in the model where it is not yet. The name and what reads it stay; the payload is
    /// shared, not copied.
    ///
    /// # Errors
    /// When there is no such initializer, the value is of another kind, or its type's identity is another
    /// declaration's. That the value does not fit a declared type is found by [`finish`](Edit::finish).
    pub fn set_initializer(&mut self, name: &str, value: &Value) -> Result<&mut Self, Error> {
        let Some(place) = find(&self.proto, name) else {
            let graph = self.graph();
            let dense = graph.map_or(&[][..], GraphProto::initializer).iter().map(|it| it.name());
            let encoded = graph.map_or(&[][..], GraphProto::encoded_initializer).iter().map(|it| it.name());
            return Err(self.no_such("set initializer", name, dense.chain(encoded)));
        };
        let refused = |problem: Problem| Error::call(format!("set initializer `{name}`"), problem);
        match value {
            Value::Tensor(tensor) => {
                let proto = tensor_to_proto(tensor, name).map_err(|e| refused(Problem::Tensor(e)))?;
                let graph = self.proto.graph_mut();
                match place {
                    Place::Dense(at) => graph.initializer_mut()[at] = proto,
                    Place::Encoded(at) => {
                        graph.encoded_initializer_mut().remove(at);
                        graph.initializer_mut().push(proto);
                    }
                }
            }
            Value::Encoded(encoded) => {
                let mut proto = encoded.to_proto().map_err(|e| refused(Problem::Type(e)))?;
                proto.set_name(name);
                self.declare(encoded).map_err(refused)?;
                let graph = self.proto.graph_mut();
                match place {
                    Place::Encoded(at) => graph.encoded_initializer_mut()[at] = proto,
                    Place::Dense(at) => {
                        graph.initializer_mut().remove(at);
                        graph.encoded_initializer_mut().push(proto);
                    }
                }
            }
            other => return Err(refused(Problem::ConstantKind { actual: other.kind() })),
        }
        Ok(self)
    }

    /// Declares the struct type of a value, and those that it refers to, where the model does not.
    fn declare(&mut self, value: &EncodedValue) -> Result<(), Problem> {
        let Layout::Struct(layout) = &value.layout else { return Ok(()) };
        if layout.type_id.is_none() {
            return Ok(());
        }
        let types = self.types.get_or_insert_with(|| (**self.model.catalogue()).clone());
        let known = types.len();
        types.define(&layout.declaration).map_err(Problem::Type)?;
        for ty in types.iter().skip(known) {
            self.proto.struct_types_mut().push(ty.to_proto());
        }
        Ok(())
    }
}
