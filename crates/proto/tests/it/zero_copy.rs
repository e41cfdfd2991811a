//! Payloads and strings stay where they are.

use std::io::Write;

use heirloom_mem::{Bytes, RegionKind};
use heirloom_proto::{AttributeProto, ModelProto, Packed};

use crate::files::Folder;
use crate::model::{encoded, tensor};

fn lies_in(inner: &Bytes, outer: &Bytes) -> bool {
    let (start, end) = (outer.address(), outer.address() + outer.len());
    inner.region_id() == outer.region_id() && inner.address() >= start && inner.address() + inner.len() <= end
}

fn large_model() -> ModelProto {
    let mut model = ModelProto::new();
    let graph = model.graph_mut();
    graph.initializer_mut().push(tensor("raw", &[1 << 20], vec![7; 1 << 20]));
    let mut lists = heirloom_proto::TensorProto::new();
    lists.float_data_mut().extend((0..50_000u16).map(f32::from));
    lists.int64_data_mut().extend(0..70_000);
    graph.initializer_mut().push(lists);
    let mut value = encoded("encoded");
    value.set_raw_data(Bytes::from_vec(vec![3; 1 << 20]));
    graph.encoded_initializer_mut().push(value);
    let mut node = heirloom_proto::NodeProto::new();
    let mut context = AttributeProto::new();
    context.set_s(&vec![9; 100_000]);
    context.t_mut().set_raw_data(Bytes::from_vec(vec![5; 100_000]));
    node.attribute_mut().push(context);
    graph.node_mut().push(node);
    model
}

// proves: W5
#[test]
fn every_payload_of_a_loaded_model_is_a_slice_of_the_mapping() {
    let folder = Folder::new();
    let path = folder.path("model.onnx");
    std::fs::write(&path, &*large_model().to_bytes()).unwrap();
    let model = heirloom_proto::load(&path).unwrap();
    let file = model.original().unwrap();
    assert_eq!(file.kind(), RegionKind::Mapped);
    let graph = model.graph().unwrap();
    assert!(lies_in(graph.initializer()[0].raw_data().unwrap(), file));
    assert!(lies_in(graph.encoded_initializer()[0].raw_data().unwrap(), file));
    let lists = &graph.initializer()[1];
    assert!(lies_in(lists.float_data().bytes().unwrap(), file));
    assert!(lies_in(lists.int64_data().bytes().unwrap(), file));
    assert_eq!((lists.float_data().len(), lists.int64_data().len()), (50_000, 70_000));
    assert_eq!(lists.int64_data().iter().last(), Some(69_999));
    let attribute = &graph.node()[0].attribute()[0];
    assert!(lies_in(&attribute.s_shared(), file));
    assert!(lies_in(attribute.t().unwrap().raw_data().unwrap(), file));
    assert_eq!(attribute.s().as_ptr().addr(), attribute.s_shared().address());
}

// proves: W5
#[test]
fn a_borrowed_buffer_stays_where_it_is() {
    let bytes = Bytes::from_owner(large_model().to_bytes().to_vec());
    let model = ModelProto::decode(bytes.clone()).unwrap();
    assert!(lies_in(model.graph().unwrap().initializer()[0].raw_data().unwrap(), &bytes));
}

/// Counts what it is given and remembers where large pieces came from.
#[derive(Default)]
struct Counter {
    bytes: u64,
    large: Vec<usize>,
}

impl Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes += bytes.len() as u64;
        if bytes.len() >= 8 << 10 {
            self.large.push(bytes.as_ptr().addr());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

// proves: W5
#[test]
fn large_payloads_of_a_touched_model_go_from_the_mapping_to_the_writer() {
    let mut model = ModelProto::decode(large_model().to_bytes()).unwrap();
    model.graph_mut().initializer_mut()[0].set_name("renamed");
    model.graph_mut().encoded_initializer_mut()[0].set_name("renamed");
    let mut counter = Counter::default();
    model.encode_to(&mut counter).unwrap();
    assert_eq!(counter.bytes, model.encoded_len());
    let graph = model.graph().unwrap();
    for payload in [graph.initializer()[0].raw_data(), graph.encoded_initializer()[0].raw_data()] {
        assert!(counter.large.contains(&payload.unwrap().address()));
    }
}

#[test]
fn a_packed_list_leaves_the_file_only_when_it_is_changed() {
    let mut model = ModelProto::decode(large_model().to_bytes()).unwrap();
    let copy = model.clone();
    let lists = &mut model.graph_mut().initializer_mut()[1];
    lists.float_data_mut()[1] = 0.5;
    assert_eq!(lists.float_data().bytes(), None);
    assert_eq!(lists.float_data().iter().take(3).collect::<Vec<_>>(), [0.0, 0.5, 2.0]);
    let before: &Packed<f32> = copy.graph().unwrap().initializer()[1].float_data();
    assert_eq!(before.iter().nth(1), Some(1.0));
    assert_ne!(before, model.graph().unwrap().initializer()[1].float_data());
}
