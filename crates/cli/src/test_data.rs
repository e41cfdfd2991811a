//! Tensors in files, laid out as the ONNX standard lays out its test data: a folder `test_data_set_K` for each call, in
//! it `input_J.pb` and `output_J.pb`, each a tensor with its name.

use std::fs::File;
use std::path::{Path, PathBuf};

use heirloom::Tensor;
use heirloom::Value;
use heirloom::mem::{Bytes, Ledger, copy};
use heirloom::proto::TensorProto;
use heirloom::types::{strings_to_proto, tensor_to_proto, value_from_proto};

use crate::error::CliError;

/// The named inputs of each call, in order.
pub(crate) fn read_inputs(folder: &Path) -> Result<Vec<Vec<(String, Value)>>, CliError> {
    let mut calls = Vec::new();
    loop {
        let set = folder.join(format!("test_data_set_{}", calls.len()));
        if !set.is_dir() {
            break;
        }
        let mut inputs = Vec::new();
        loop {
            let path = set.join(format!("input_{}.pb", inputs.len()));
            if !path.is_file() {
                break;
            }
            inputs.push(read_tensor(&path)?);
        }
        calls.push(inputs);
    }
    if calls.is_empty() {
        return Err(CliError::Message(format!("`{}` has no folder `test_data_set_0`", folder.display())));
    }
    Ok(calls)
}

fn read_tensor(path: &Path) -> Result<(String, Value), CliError> {
    let message = |error: &dyn std::error::Error| CliError::Message(format!("`{}`: {error}", path.display()));
    let bytes = Bytes::map_file(path).map_err(|e| message(&e))?;
    let proto = TensorProto::decode(bytes).map_err(|e| message(&e))?;
    let value = value_from_proto(&proto, None).map_err(|e| message(&e))?;
    Ok((proto.name().into(), value))
}

/// Writes the named outputs of call `call`.
pub(crate) fn write_outputs<'v>(
    folder: &Path,
    call: usize,
    outputs: impl Iterator<Item = (&'v str, &'v Value)>,
) -> Result<(), CliError> {
    let set = folder.join(format!("test_data_set_{call}"));
    let io = |path: &Path, source| CliError::Io { path: PathBuf::from(path), source };
    std::fs::create_dir_all(&set).map_err(|e| io(&set, e))?;
    for (at, (name, value)) in outputs.enumerate() {
        let path = set.join(format!("output_{at}.pb"));
        let proto = match value {
            Value::Tensor(tensor) => tensor_to_proto(&dense(tensor), name),
            Value::Strings(strings) => Ok(strings_to_proto(strings, name)),
            other => {
                return Err(CliError::Message(format!(
                    "output `{name}` is a {}: only tensors are saved",
                    other.kind()
                )));
            }
        };
        let proto = proto.map_err(|e| CliError::Message(format!("output `{name}`: {e}")))?;
        let mut file = File::create(&path).map_err(|e| io(&path, e))?;
        proto.encode_to(&mut file).map_err(|e| io(&path, e))?;
    }
    Ok(())
}

fn dense(tensor: &Tensor) -> Tensor {
    copy::to_dense(tensor, copy::Purpose::Kernel, &Ledger::default())
}
