//! Every kernel of the table gets inputs that it may not take: it answers, it never panics.

use std::panic::{AssertUnwindSafe, catch_unwind};

use heirloom_graph::{AttrValue, Attributes};
use heirloom_mem::{BytesMut, DType, Ledger, Tensor};
use heirloom_runtime::{NodeCall, NodeInput};

use crate::registry;

fn zeros(dtype: DType, shape: &[usize]) -> Tensor {
    let len = dtype.payload_bytes(shape.iter().product()).unwrap();
    Tensor::new(dtype, shape, BytesMut::zeroed(len, &Ledger::default()).freeze()).unwrap()
}

/// Attributes that some operators need, each with the first value that is allowed.
fn attributes(op: &str) -> Attributes {
    let ints = |name: &str, list: &[i64]| (name.to_string(), AttrValue::Ints(list.to_vec()));
    let list = match op {
        "BitCast" | "Cast" => vec![("to".to_string(), AttrValue::Int(1))],
        "BitShift" => vec![("direction".to_string(), AttrValue::String(b"LEFT"[..].into()))],
        "Concat" | "ConcatFromSequence" => vec![("axis".to_string(), AttrValue::Int(-1))],
        "Einsum" => vec![("equation".to_string(), AttrValue::String(b"...i->i..."[..].into()))],
        "RandomNormal" | "RandomUniform" => vec![ints("shape", &[2, 0])],
        _ => Vec::new(),
    };
    list.into_iter().collect()
}

#[test]
fn empty_scalar_and_unfit_inputs_never_panic() {
    let shapes: [&[usize]; 5] = [&[0, 3], &[], &[2, 0], &[3], &[1, 2, 3, 4]];
    let types = [DType::Float, DType::Int64, DType::Bool, DType::Int4, DType::BFloat16, DType::Complex64];
    let (mut panics, mut answered) = (Vec::new(), 0);
    for spec in heirloom_ops::KERNELS {
        let name =
            if spec.domain.is_empty() { spec.op.into() } else { format!("{}.{}", spec.domain, spec.op) };
        for (inputs, outputs) in [(1, 1), (2, 1), (3, 2), (5, 1)] {
            for dtype in types {
                for shape in shapes {
                    let fed = vec![NodeInput::Fed; inputs];
                    let run = || {
                        let version = spec.versions.1.min(heirloom_ops::NEWEST);
                        let call =
                            NodeCall::new(&registry(), &name, version, attributes(spec.op), fed, outputs);
                        call.is_ok_and(|mut call| call.run(vec![zeros(dtype, shape); inputs]).is_ok())
                    };
                    match catch_unwind(AssertUnwindSafe(run)) {
                        Ok(done) => answered += usize::from(done),
                        Err(_) => panics.push(format!("{name}({dtype} {shape:?} × {inputs})")),
                    }
                }
            }
        }
    }
    assert!(panics.is_empty(), "{} panics: {}", panics.len(), panics.join(", "));
    assert!(answered > 1000, "{answered}");
}
