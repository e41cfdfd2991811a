//! Bytes that lie.

use heirloom_mem::Bytes;
use heirloom_proto::{DecodeError, GraphProto, Limits, ModelProto, Problem, TensorProto};

use crate::model::field;

fn refuse(bytes: Vec<u8>) -> DecodeError {
    ModelProto::decode(Bytes::from_vec(bytes)).unwrap_err()
}

#[test]
fn an_error_says_where_it_is_and_in_which_message() {
    let node = [field(4, 2, b"Relu"), vec![0x0a, 50, b'x']].concat();
    let graph = [field(1, 2, &field(4, 2, b"Add")), field(1, 2, &node)].concat();
    let error = refuse([field(1, 0, &[14]), field(7, 2, &graph)].concat());
    assert_eq!(error.path(), "ModelProto.graph.node[1]");
    assert_eq!(error.problem(), &Problem::Truncated { needed: 50, left: 1 });
    // ir_version 2 bytes, graph's tag and length 2, node[0] 7, node[1]'s tag and length 2, op_type 6.
    assert_eq!(error.offset(), 2 + 2 + 7 + 2 + 6);
    assert_eq!(
        error.to_string(),
        "`ModelProto.graph.node[1]` at byte 19: the field takes 50 bytes and 1 are left; the file is cut short or damaged"
    );
}

#[test]
fn a_claimed_length_takes_no_memory() {
    let error = refuse(vec![0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]);
    assert!(matches!(error.problem(), Problem::Truncated { left: 0, .. }), "{error}");
    let error = refuse(vec![0x3a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
    assert!(matches!(error.problem(), Problem::Truncated { .. }), "{error}");
}

#[test]
fn malformed_tags_and_groups_are_refused() {
    let cases: [(&[u8], Problem); 6] = [
        (&[0x00], Problem::FieldNumber),
        (&[0xf8, 0xff, 0xff, 0xff, 0x1f], Problem::FieldNumber),
        (&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1], Problem::LongVarint),
        (&[0xff, 0x3f], Problem::WireType { number: 1023, wire_type: 7 }),
        (&[0x0c], Problem::GroupEnd { number: 1 }),
        (&[0x08, 0x80], Problem::Truncated { needed: 2, left: 1 }),
    ];
    for (bytes, problem) in cases {
        assert_eq!(refuse(bytes.to_vec()).problem(), &problem, "{bytes:02x?}");
    }
}

#[test]
fn a_packed_list_of_a_broken_length_is_refused() {
    let error = TensorProto::decode(Bytes::from_vec(field(4, 2, &[0; 7]))).unwrap_err();
    assert_eq!(error.problem(), &Problem::PackedLength { length: 7, size: 4 });
    let error = TensorProto::decode(Bytes::from_vec(field(7, 2, &[1, 2, 0x80]))).unwrap_err();
    assert!(matches!(error.problem(), Problem::Truncated { .. }), "{error}");
    assert_eq!(error.offset(), 4);
}

/// `depth` graphs, each in an attribute of a node of the one around it: three messages a level.
fn nested(levels: usize) -> Vec<u8> {
    (0..levels).fold(Vec::new(), |graph, _| field(1, 2, &field(5, 2, &field(6, 2, &graph))))
}

#[test]
fn depth_is_limited() {
    assert!(GraphProto::decode(Bytes::from_vec(nested(33))).is_ok());
    let error = GraphProto::decode(Bytes::from_vec(nested(34))).unwrap_err();
    assert_eq!(error.problem(), &Problem::TooDeep { limit: 100 });
    let bytes = Bytes::from_vec(nested(34));
    let limits = Limits::for_length(bytes.len()).with_depth(200);
    assert!(GraphProto::decode_within(bytes, &limits).is_ok());
}

#[test]
fn memory_is_limited_by_default() {
    // Two bytes of file for each empty node.
    let bytes = Bytes::from_vec([0x0au8, 0].repeat(512 << 10));
    let error = GraphProto::decode(bytes.clone()).unwrap_err();
    assert!(matches!(error.problem(), Problem::TooLarge { .. }), "{error}");
    let limits = Limits::for_length(bytes.len()).with_memory(u64::MAX);
    assert_eq!(GraphProto::decode_within(bytes, &limits).unwrap().node().len(), 512 << 10);
}

#[test]
fn a_list_that_must_leave_the_file_is_paid_for() {
    // A packed list in place, then one number more: all of them move to memory.
    let bytes = [field(7, 2, &vec![1; 1 << 20]), field(7, 0, &[2])].concat();
    let limits = Limits::for_length(bytes.len()).with_memory(1 << 20);
    let error = TensorProto::decode_within(Bytes::from_vec(bytes.clone()), &limits).unwrap_err();
    assert!(matches!(error.problem(), Problem::TooLarge { .. }), "{error}");
    let tensor = TensorProto::decode(Bytes::from_vec(bytes)).unwrap();
    assert_eq!(tensor.int64_data().len(), (1 << 20) + 1);
}

#[test]
fn repeated_singular_messages_cannot_make_decoding_quadratic() {
    // A graph with many strings, then the same field again and again.
    let names: Vec<u8> = (0..100_000).flat_map(|_| field(4, 2, b"x")).collect();
    let again = field(5, 2, &[]).repeat(100_000);
    let bytes = [field(5, 2, &names), again].concat();
    let start = std::time::Instant::now();
    let outcome = heirloom_proto::StructTypeProto::decode(Bytes::from_vec(bytes));
    assert!(matches!(outcome.unwrap_err().problem(), Problem::TooLarge { .. }));
    assert!(start.elapsed().as_secs() < 20);
}
