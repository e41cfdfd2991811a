//! Decoders of declarations as functions of standard ONNX: the fields of all records are their inputs.

use heirloom_mem::{Ledger, Shape, Tensor};
use heirloom_proto::{FunctionProto, NodeProto};
use heirloom_types::{Constant, EncodedValue, Located, StructType};

/// The domain of functions that decoders become.
pub(super) const DOMAIN: &str = "heirloom.decoders";

/// A decoder in standard ONNX.
pub(super) struct Standard {
    pub(super) function: FunctionProto,
    /// The function's inputs, and the field that each one is.
    pub(super) fields: Vec<(String, Vec<String>)>,
}

/// The decoder of a type, if it reads its records through `Field` alone.
pub(super) fn standard(ty: &StructType, number: usize) -> Option<Standard> {
    let decoder = ty.decoder()?;
    let inputs: Vec<&str> = decoder.input().iter().collect();
    let ([value], 1) = (&inputs[..], decoder.output().len()) else { return None };
    let mut fields = Vec::new();
    let mut nodes: Vec<NodeProto> = Vec::with_capacity(decoder.node().len());
    for node in decoder.node() {
        if node.domain() == "ai.heirloom" {
            let is_field = node.op_type() == "Field" && node.input().len() == 1 && &node.input()[0] == *value;
            let path = node.attribute().iter().find(|it| it.name() == "path");
            if !is_field || node.output().len() != 1 {
                return None;
            }
            let path = path.map(|it| it.strings().iter().map(String::from).collect()).unwrap_or_default();
            fields.push((String::from(&node.output()[0]), path));
            continue;
        }
        // A body could read the records too; none of ours does.
        let has_bodies = node.attribute().iter().any(|it| it.has_g() || !it.graphs().is_empty());
        if has_bodies || node.input().iter().any(|input| input == *value) {
            return None;
        }
        nodes.push(node.clone());
    }
    let mut function = FunctionProto::new();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    function.set_name(&format!("Decode_{}_{number}", ty.name().chars().map(plain).collect::<String>()));
    function.set_domain(DOMAIN);
    function.set_doc_string(decoder.doc_string());
    fields.iter().for_each(|(name, _)| function.input_mut().push(name));
    function.output_mut().extend(decoder.output().iter());
    function.node_mut().extend(nodes);
    let imports = decoder.opset_import().iter().filter(|it| it.domain() != "ai.heirloom").cloned();
    function.opset_import_mut().extend(imports);
    Some(Standard { function, fields })
}

/// A field of all records, as `Field` gives it: `[records, *dimensions]`, of a constant `[1, *its shape]`.
pub(super) fn column(value: &EncodedValue, path: &[String]) -> Result<Tensor, String> {
    let Some(records) = value.records() else { return Err("affine codes have no fields".into()) };
    match records.declaration().locate_names(path).map_err(|error| error.to_string())? {
        Located::Slot(slot) => records.column(&slot, &Ledger::default()).map_err(|error| error.to_string()),
        Located::Constant(Constant::Tensor(tensor)) => {
            let shape: Shape = std::iter::once(1).chain(tensor.shape().iter().copied()).collect();
            tensor.reshape(&shape).map_err(|error| error.to_string())
        }
        Located::Constant(_) => Err("a constant of strings".into()),
    }
}
