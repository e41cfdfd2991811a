//! Verification gives every fault with its path, not only the first.

use heirloom_graph::{FunctionBuilder, ModelBuilder, OpenOptions, Problem, verify, verify_file};
use heirloom_mem::{Bytes, DType};
use heirloom_proto::{ExternalResolver, ModelProto};
use heirloom_types::{StructType, ValueType};

use crate::support::{accumulator, block, open, vector};

fn listed(proto: &ModelProto) -> Vec<(String, String)> {
    let faults = verify(proto, &ExternalResolver::without_base_dir());
    faults.into_iter().map(|fault| (fault.path.clone(), fault.problem.code().to_owned())).collect()
}

fn pairs(found: &[(String, String)]) -> Vec<(&str, &str)> {
    found.iter().map(|(path, code)| (&**path, &**code)).collect()
}

// proves: S5, C1, C5, B2
#[test]
fn all_faults_of_a_model_are_listed_with_their_paths() {
    let mut model = accumulator();
    let block = block();
    let g = model.graph();
    g.encoded("e", &block, None, Bytes::from_vec(vec![0u8; 36])).unwrap();
    g.input("c", &ValueType::sequence(ValueType::Struct(block))).unwrap();
    let mut proto = model.finish().unwrap();
    assert_eq!(listed(&proto), []);

    proto.opset_import_mut()[0].set_version(0);
    proto.struct_types_mut()[0].structure_mut().field_mut()[0].set_name("codes");
    let graph = proto.graph_mut();
    graph.output_mut()[0].clear_type();
    graph.node_mut()[0].input_mut().set(0, "nothing");
    graph.node_mut()[1].set_domain("com.acme");
    graph.encoded_initializer_mut()[0].set_name("y");
    graph.persistent_bindings_mut()[0].set_output_name("gone");
    let found = listed(&proto);
    assert_eq!(
        pairs(&found),
        [
            ("struct_types[0].structure.field[1]", "type"),
            ("graph.node[0].output[0]", "redefined"),
            ("graph.node[0].input[0]", "undefined"),
            ("graph.persistent_bindings[0]", "binding-output"),
            ("opset_import[0]", "opset-version"),
            ("graph.output[0]", "no-type"),
            ("graph.node[1]", "no-opset"),
        ]
    );
}

#[test]
fn types_and_bodies_within_attributes_and_functions_are_visited() {
    let mut function = FunctionBuilder::new("local", "Optional");
    function.opset("", 24).unwrap();
    let x = function.input("x").unwrap();
    let y = function
        .node("OptionalHasElement")
        .input(&x)
        .attr("type", &ValueType::optional(vector(2)))
        .output("y")
        .unwrap();
    function.output(&y).unwrap();
    let mut model = ModelBuilder::new("inside");
    model.opset("", 24).unwrap();
    model.function(function.finish().unwrap()).unwrap();
    let g = model.graph();
    let flag = g.input("flag", &ValueType::tensor(DType::Bool, &[])).unwrap();
    let mut body = g.body("body");
    let out = body.node("Not").input(&flag).output("out").unwrap();
    body.output(&out, &ValueType::tensor(DType::Bool, &[])).unwrap();
    let body = body.finish();
    let node = g.node("If").input(&flag).attr("then_branch", body.clone()).attr("else_branch", body);
    let result = node.output("result").unwrap();
    g.output(&result, &ValueType::tensor(DType::Bool, &[])).unwrap();
    let mut proto = model.finish().unwrap();
    assert_eq!(listed(&proto), []);

    let function = &mut proto.functions_mut()[0];
    function.node_mut()[0].attribute_mut()[0].tp_mut().optional_type_mut().clear_elem_type();
    let body = proto.graph_mut().node_mut()[0].attribute_mut()[1].g_mut();
    body.output_mut()[0].type_mut().tensor_type_mut().set_elem_type(99);
    body.node_mut()[0].input_mut().set(0, "lost");
    body.node_mut()[0].set_domain("com.acme");
    let found = listed(&proto);
    assert_eq!(
        pairs(&found),
        [
            ("functions[0].node[0].attribute[0].tp.optional_type.elem_type", "type"),
            ("graph.node[0].attribute[1].g.output[0].type.tensor_type.elem_type", "type"),
            ("graph.node[0].attribute[1].g.node[0].input[0]", "undefined"),
            ("graph.node[0].attribute[1].g.node[0]", "no-opset"),
        ]
    );
}

// proves: C1, C3
#[test]
fn references_that_lead_nowhere_are_listed_where_they_stand() {
    let mut model = accumulator();
    model.graph().input("c", &ValueType::Struct(block())).unwrap();
    let mut proto = model.finish().unwrap();
    proto.struct_types_mut().clear();
    let found = verify(&proto, &ExternalResolver::without_base_dir());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].path, "graph.input[2].type.struct_type");
    assert!(found[0].to_string().contains("2001"), "{}", found[0]);
}

#[test]
fn codecs_are_functions_of_one_value_that_stand_alone() {
    let mut decoder = FunctionBuilder::new("ai.heirloom", "Decode");
    decoder.opset("", 24).unwrap().opset("ai.heirloom", 1).unwrap().opset("local", 1).unwrap();
    let value = decoder.input("value").unwrap();
    decoder.input("another").unwrap();
    let scale =
        decoder.node("Field").domain("ai.heirloom").input(&value).attr("path", ["scale"]).auto().unwrap();
    let helped = decoder.node("Help").domain("local").input(&scale).auto().unwrap();
    decoder.output(&helped).unwrap();
    let mut decoder = decoder.finish().unwrap();
    decoder.node_mut()[1].input_mut().set(0, "missing");
    let ty =
        StructType::structure("T").field("scale", DType::Float).type_id(5).decoder(decoder).build().unwrap();

    let mut help = FunctionBuilder::new("local", "Help");
    help.opset("", 24).unwrap();
    let x = help.input("x").unwrap();
    let y = help.node("Neg").input(&x).auto().unwrap();
    help.output(&y).unwrap();
    let mut model = accumulator();
    model.function(help.finish().unwrap()).unwrap();
    model.struct_type(&ty).unwrap();
    let error = model.finish().unwrap_err();
    let heirloom_graph::Error::Invalid { faults, .. } = error else { panic!("{error}") };
    let found: Vec<_> = faults.0.iter().map(|fault| (&*fault.path, fault.problem.code())).collect();
    assert_eq!(
        found,
        [
            ("struct_types[0].decoder", "codec-signature"),
            ("struct_types[0].decoder.node[1].input[0]", "undefined"),
            ("struct_types[0].decoder.node[1]", "codec-calls"),
        ]
    );
}

#[test]
fn a_damaged_file_lists_a_bounded_number_of_faults() {
    let mut proto = accumulator().finish().unwrap();
    let node = proto.graph().unwrap().node()[0].clone();
    for _ in 0..3000 {
        proto.graph_mut().node_mut().push(node.clone());
    }
    let found = verify(&proto, &ExternalResolver::without_base_dir());
    assert_eq!(found.len(), 1001);
    assert_eq!(found[1000].problem, Problem::More { limit: 1000 });
}

// proves: E3
#[test]
fn extents_are_checked_against_the_files() {
    let folder = heirloom_testkit::folder::TempFolder::new();
    folder.write("w.bin", &[0; 40]);
    let mut model = accumulator();
    let g = model.graph();
    let place = |offset, length| heirloom_proto::ExternalLocation::new("w.bin", offset, length).unwrap();
    g.encoded("fits", &block(), None, place(4, 36)).unwrap();
    g.encoded("beyond", &block(), None, place(5, 36)).unwrap();
    let path = folder.write("m.onnx", &model.finish().unwrap().to_bytes());
    let found = verify_file(&path, &OpenOptions::default()).unwrap();
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].path, "graph.encoded_initializer[1]");
    let message = found[0].to_string();
    assert!(message.contains("w.bin") && message.contains("40"), "{message}");
}

// proves: B2
#[test]
fn training_graphs_see_the_main_graph_and_hold_no_bindings() {
    let mut proto = accumulator().finish().unwrap();
    let mut training = heirloom_proto::TrainingInfoProto::new();
    let mut algorithm = proto.graph().unwrap().node()[0].clone();
    algorithm.output_mut().set(0, "updated");
    training.algorithm_mut().node_mut().push(algorithm.clone());
    training.initialization_mut().node_mut().push(algorithm);
    let mut binding = heirloom_proto::PersistentBindingProto::new();
    binding.set_input_name("x");
    binding.set_output_name("updated");
    training.algorithm_mut().persistent_bindings_mut().push(binding);
    proto.training_info_mut().push(training);
    let found = listed(&proto);
    assert_eq!(
        pairs(&found),
        [
            ("training_info[0].initialization.node[0].input[0]", "undefined"),
            ("training_info[0].initialization.node[0].input[1]", "undefined"),
            ("training_info[0].algorithm.persistent_bindings[0]", "binding-in-body"),
        ]
    );
}

#[test]
fn a_codec_becomes_a_function_with_a_graph_of_its_own() {
    let mut decoder = FunctionBuilder::new("ai.heirloom", "Decode");
    decoder.opset("", 24).unwrap().opset("ai.heirloom", 1).unwrap();
    let value = decoder.input("value").unwrap();
    let codes =
        decoder.node("Field").domain("ai.heirloom").input(&value).attr("path", ["codes"]).auto().unwrap();
    let out = decoder.node("Cast").input(&codes).attr("to", 1).auto().unwrap();
    decoder.output(&out).unwrap();
    let mut proto = decoder.finish().unwrap();
    let catalogue = heirloom_types::Catalogue::new();
    let function = heirloom_graph::Function::from_proto(&proto, &catalogue).unwrap();
    let ops: Vec<&str> = function.body().ordered().map(|(_, node)| &*node.op_type).collect();
    assert_eq!(ops, ["Field", "Cast"]);
    assert_eq!((function.opset(""), function.opset("ai.heirloom")), (Some(24), Some(1)));
    proto.node_mut()[1].input_mut().set(0, "Fiel");
    let message = heirloom_graph::Function::from_proto(&proto, &catalogue).unwrap_err().to_string();
    assert!(message.contains("`node[1].input[0]`") && message.contains("did you mean `Field`"), "{message}");
}

// A walk of every path through the type would take years.
// proves: L1, S1
#[test]
fn a_diamond_of_30_levels_is_visited_once_per_type_wherever_it_stands() {
    let mut ty = StructType::structure("").type_id(1).field("leaf", DType::Int8).build().unwrap();
    for id in 2..=31 {
        ty = StructType::structure("").type_id(id).nested("l", &ty).nested("r", &ty).build().unwrap();
    }
    let mut model = ModelBuilder::new("diamond");
    model.opset("", 24).unwrap();
    let g = model.graph();
    let value = ValueType::Struct(ty.clone());
    let past = g.input("past", &value).unwrap();
    let next = g.node("Identity").input(&past).output("next").unwrap();
    g.output(&next, &value).unwrap();
    g.bind(&past, &next).unwrap();
    let outer = StructType::structure("").nested("top", &ty).field("more", DType::Int8).build().unwrap();
    g.encoded("empty", &outer, None, Bytes::empty()).unwrap();
    let proto = model.finish().unwrap();
    assert_eq!(proto.struct_types().len(), 31);
    let start = std::time::Instant::now();
    assert_eq!(listed(&proto), []);
    let model = open(proto.clone()).unwrap();
    assert_eq!(model.catalogue().get(31).unwrap().bit_size(), Some(8 << 30));
    let report = heirloom_graph::inspect(&model).to_string();
    assert!(report.len() < 1 << 20, "{} bytes of report", report.len());
    // Another name at the bottom is found, and named, on one path.
    let mut other = proto;
    other.struct_types_mut()[0].structure_mut().field_mut()[0].set_name("other");
    let other = open(other).unwrap();
    let difference = ty.difference(other.catalogue().get(31).unwrap()).unwrap();
    assert_eq!(difference.path, format!("{}leaf", "l.".repeat(30)));
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
}

// proves: C1
#[test]
fn a_model_of_100_000_types_is_verified_in_one_pass() {
    let mut proto = accumulator().finish().unwrap();
    let types = (1..=100_000u64).map(|id| {
        let ty = StructType::structure("T").type_id(id).field("v", DType::Int8).build().unwrap();
        let mut ty = ty.to_proto();
        if id % 16 != 0 {
            let field = ty.structure_mut().field_mut();
            let mut below = field[0].clone();
            below.set_name("below");
            below.type_mut().struct_type_mut().set_type_ref(id / 16 * 16 + 16);
            field.push(below);
        }
        ty
    });
    proto.struct_types_mut().extend(types);
    let start = std::time::Instant::now();
    let found = listed(&proto);
    assert!(start.elapsed() < std::time::Duration::from_secs(60), "{:?}", start.elapsed());
    assert_eq!(found, []);
}
