//! A model that uses every message, and bytes that no message knows.

use heirloom_mem::Bytes;
use heirloom_proto::tensor_proto::{DataLocation, DataType};
use heirloom_proto::{
    AttributeProto, EncodedValueProto, FunctionProto, ModelProto, NodeProto, PersistentBindingProto,
    StringStringEntryProto, StructTypeProto, TensorProto, TypeProto, ValueInfoProto, attribute_proto,
    struct_type_proto,
};

pub(crate) fn entry(key: &str, value: &str) -> StringStringEntryProto {
    let mut entry = StringStringEntryProto::new();
    entry.set_key(key);
    entry.set_value(value);
    entry
}

pub(crate) fn tensor(name: &str, dims: &[i64], raw: Vec<u8>) -> TensorProto {
    let mut tensor = TensorProto::new();
    tensor.set_name(name);
    tensor.dims_mut().extend(dims.iter().copied());
    tensor.set_data_type(DataType::UINT8.0);
    tensor.set_raw_data(Bytes::from_vec(raw));
    tensor
}

pub(crate) fn float_type(dims: &[&str]) -> TypeProto {
    let mut ty = TypeProto::new();
    let tensor = ty.tensor_type_mut();
    tensor.set_elem_type(DataType::FLOAT.0);
    for dim in dims {
        let mut dimension = heirloom_proto::tensor_shape_proto::Dimension::new();
        match dim.parse() {
            Ok(size) => dimension.set_dim_value(size),
            Err(_) => dimension.set_dim_param(dim),
        }
        dimension.set_denotation("AXIS");
        tensor.shape_mut().dim_mut().push(dimension);
    }
    ty
}

pub(crate) fn value(name: &str, ty: TypeProto) -> ValueInfoProto {
    let mut value = ValueInfoProto::new();
    value.set_name(name);
    value.set_type(ty);
    value.set_doc_string("a value");
    value.metadata_props_mut().push(entry("of", "value"));
    value
}

pub(crate) fn node(op_type: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let mut node = NodeProto::new();
    node.input_mut().extend(inputs);
    node.output_mut().extend(outputs);
    node.set_name("a node");
    node.set_op_type(op_type);
    node.set_doc_string("a node");
    node.metadata_props_mut().push(entry("of", "node"));
    node
}

fn attributes() -> Vec<AttributeProto> {
    use attribute_proto::AttributeType as T;
    let make = |name: &str, ty: T, fill: &dyn Fn(&mut AttributeProto)| {
        let mut attribute = AttributeProto::new();
        attribute.set_name(name);
        attribute.set_type(ty);
        fill(&mut attribute);
        attribute
    };
    vec![
        make("f", T::FLOAT, &|a| a.set_f(-0.0)),
        make("i", T::INT, &|a| a.set_i(i64::MIN)),
        make("s", T::STRING, &|a| a.set_s(b"\xff\x00text")),
        make("t", T::TENSOR, &|a| a.set_t(tensor("t", &[2], vec![1, 2]))),
        make("floats", T::FLOATS, &|a| a.floats_mut().extend([f32::NAN, 1.5])),
        make("ints", T::INTS, &|a| a.ints_mut().extend([0, -1, i64::MAX])),
        make("strings", T::STRINGS, &|a| a.strings_mut().extend(["", "two"])),
        make("tensors", T::TENSORS, &|a| a.tensors_mut().push(tensor("u", &[], vec![7]))),
        make("tp", T::TYPE_PROTO, &|a| a.tp_mut().sequence_type_mut().set_elem_type(float_type(&["n"]))),
        make("ref", T::UNDEFINED, &|a| a.set_ref_attr_name("outer")),
        make("body", T::GRAPH, &|a| {
            a.g_mut().set_name("body");
            a.g_mut().node_mut().push(node("Identity", &["x"], &["y"]));
        }),
    ]
}

/// Two codes per byte and a scale: 20 bytes for 32 elements.
pub(crate) fn block_type() -> StructTypeProto {
    let mut block = StructTypeProto::new();
    block.set_name("Int4Block");
    block.set_type_id(2001);
    let mut codes = struct_type_proto::structure::Field::new();
    codes.set_name("codes");
    let bits = codes.type_mut().struct_type_mut().bit_packing_mut();
    let mut component = struct_type_proto::bit_packing::Component::new();
    component.set_name("code");
    component.set_bit_width(4);
    bits.component_mut().push(component);
    bits.set_dimension(32);
    let mut scale = struct_type_proto::structure::Field::new();
    scale.set_name("scale");
    scale.set_type(float_type(&[]));
    let mut zero = struct_type_proto::structure::Field::new();
    zero.set_name("zero");
    zero.set_constant(tensor("zero", &[], vec![8]));
    block.structure_mut().field_mut().extend([codes, scale, zero]);
    let mut decoder = FunctionProto::new();
    decoder.set_name("decode");
    decoder.input_mut().push("value");
    decoder.output_mut().push("result");
    decoder.node_mut().push(node("Field", &["value"], &["result"]));
    block.set_decoder(decoder);
    block
}

/// An encoded value of two records.
pub(crate) fn encoded(name: &str) -> EncodedValueProto {
    let mut value = EncodedValueProto::new();
    value.set_name(name);
    value.struct_type_mut().set_type_ref(2001);
    value.set_logical_type(float_type(&["64"]));
    value.set_raw_data(Bytes::from_vec((0..40u8).collect()));
    value.set_doc_string("an encoded value");
    value
}

/// Metadata on model, graph, node, value and function, texts everywhere, sparse and encoded initializers,
/// quantization annotations, training information, functions, devices, bindings.
pub(crate) fn full_model() -> ModelProto {
    let mut model = ModelProto::new();
    model.set_ir_version(i64::from(heirloom_proto::Version::IR_VERSION.0));
    model.set_producer_name("heirloom");
    model.set_doc_string("a model");
    model.set_model_version(0);
    let mut opset = heirloom_proto::OperatorSetIdProto::new();
    opset.set_domain("");
    opset.set_version(24);
    model.opset_import_mut().push(opset);
    model.metadata_props_mut().push(entry("of", "model"));
    let graph = model.graph_mut();
    graph.set_name("main");
    graph.set_doc_string("a graph");
    graph.metadata_props_mut().push(entry("of", "graph"));
    graph.input_mut().push(value("past", float_type(&["batch", "64"])));
    graph.output_mut().push(value("present", float_type(&["batch", "64"])));
    graph.value_info_mut().push(value("middle", float_type(&["batch", "64"])));
    let mut add = node("Add", &["past", "encoded"], &["middle"]);
    *add.attribute_mut() = attributes();
    let mut device = heirloom_proto::NodeDeviceConfigurationProto::new();
    device.set_configuration_id("pair");
    device.set_pipeline_stage(0);
    let mut sharding = heirloom_proto::ShardingSpecProto::new();
    sharding.set_tensor_name("past");
    sharding.device_mut().extend([0, 1]);
    device.sharding_spec_mut().push(sharding);
    add.device_configurations_mut().push(device);
    graph.node_mut().extend([add, node("Identity", &["middle"], &["present"])]);
    graph.initializer_mut().push(tensor("dense", &[3], vec![1, 2, 3]));
    let mut lists = TensorProto::new();
    lists.set_name("lists");
    lists.float_data_mut().extend([1.0, -2.5]);
    lists.int32_data_mut().extend([-1, 300]);
    lists.int64_data_mut().extend([i64::MIN, 5]);
    lists.double_data_mut().push(0.1);
    lists.uint64_data_mut().push(u64::MAX);
    lists.string_data_mut().extend(["a", ""]);
    graph.initializer_mut().push(lists);
    let mut external = TensorProto::new();
    external.set_name("external");
    external.external_data_mut().extend([entry("location", "w.bin"), entry("length", "4")]);
    external.set_data_location(DataLocation::EXTERNAL);
    graph.initializer_mut().push(external);
    let mut sparse = heirloom_proto::SparseTensorProto::new();
    sparse.set_values(tensor("sparse", &[1], vec![9]));
    sparse.set_indices(tensor("", &[1], vec![0; 8]));
    sparse.dims_mut().push(10);
    graph.sparse_initializer_mut().push(sparse);
    let mut annotation = heirloom_proto::TensorAnnotation::new();
    annotation.set_tensor_name("dense");
    annotation.quant_parameter_tensor_names_mut().push(entry("SCALE_TENSOR", "scale"));
    graph.quantization_annotation_mut().push(annotation);
    graph.encoded_initializer_mut().push(encoded("encoded"));
    let mut binding = PersistentBindingProto::new();
    binding.set_input_name("past");
    binding.set_output_name("present");
    graph.persistent_bindings_mut().push(binding);
    let mut training = heirloom_proto::TrainingInfoProto::new();
    training.algorithm_mut().set_name("step");
    training.update_binding_mut().push(entry("dense", "new"));
    model.training_info_mut().push(training);
    let mut function = FunctionProto::new();
    function.set_name("f");
    function.set_domain("local");
    function.set_doc_string("a function");
    function.metadata_props_mut().push(entry("of", "function"));
    function.attribute_mut().push("alpha");
    function.node_mut().push(node("Relu", &["x"], &["y"]));
    model.functions_mut().push(function);
    let mut devices = heirloom_proto::DeviceConfigurationProto::new();
    devices.set_name("pair");
    devices.set_num_devices(2);
    devices.device_mut().extend(["a", "b"]);
    model.configuration_mut().push(devices);
    model.struct_types_mut().push(block_type());
    model
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field of any number and wire type with a given body.
pub(crate) fn field(number: u64, wire_type: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = varint(number << 3 | wire_type);
    if wire_type == 2 {
        bytes.extend(varint(body.len() as u64));
    }
    bytes.extend(body);
    bytes
}

/// One field of each wire type.
pub(crate) fn unknown_of_every_wire_type(number: u64) -> Vec<u8> {
    let group: Vec<u8> = [field(1, 0, &[5]), field(2, 2, b"in"), field(number, 4, &[])].concat();
    [
        field(number, 0, &[0x96, 0x01]),
        field(number, 1, &[1, 2, 3, 4, 5, 6, 7, 8]),
        field(number, 2, b"unknown bytes"),
        field(number, 3, &group),
        field(number, 5, &[9, 8, 7, 6]),
    ]
    .concat()
}
