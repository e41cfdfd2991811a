//! `heirloom inspect`: what is in a model file, without reading a payload.

use std::path::PathBuf;
use std::process::ExitCode;

use heirloom::graph::inspect::{
    ConstantKind, ConstantReport, FieldContent, FieldReport, LayoutReport, PlaceReport, TypeReport,
    ValueReport,
};
use heirloom::graph::{Inspection, inspect};
use heirloom::{Model, OpenOptions};
use serde_json::{Value, json};

use crate::error::CliError;
use crate::out;

/// Show what is in a model: types, constants and where they lie, state, operators
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The model (`.onnx`)
    model: PathBuf,
    /// Another folder that the model's external data may lie in; may be given several times
    #[arg(long, value_name = "FOLDER")]
    external_root: Vec<PathBuf>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let options = OpenOptions::default().allow_missing_files(true);
    let options = args.external_root.iter().fold(options, |open, root| open.external_root(root));
    let inspection = inspect(&Model::open(&args.model, &options)?);
    if args.json {
        out::json(&as_json(&inspection));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    inspection.write_text(&mut text).map_err(|_| CliError::Message("the report cannot be written".into()))?;
    out::line(text.trim_end());
    Ok(ExitCode::SUCCESS)
}

fn as_json(inspection: &Inspection) -> Value {
    let metadata = inspection.metadata.iter().map(|(key, value)| (key.clone(), json!(value)));
    json!({
        "path": inspection.path,
        "ir_version": inspection.ir_version,
        "producer": inspection.producer,
        "graph_name": inspection.graph_name,
        "opsets": inspection.opsets.iter().map(|(d, v)| json!({ "domain": d, "version": v })).collect::<Vec<_>>(),
        "inputs": inspection.inputs.iter().map(value).collect::<Vec<_>>(),
        "outputs": inspection.outputs.iter().map(value).collect::<Vec<_>>(),
        "persistent_bindings":
            inspection.bindings.iter().map(|(i, o)| json!({ "input": i, "output": o })).collect::<Vec<_>>(),
        "struct_types": inspection.types.iter().map(struct_type).collect::<Vec<_>>(),
        "constants": inspection.constants.iter().map(constant).collect::<Vec<_>>(),
        "operators": inspection
            .operators
            .iter()
            .map(|o| json!({ "domain": o.domain, "name": o.name, "count": o.count }))
            .collect::<Vec<_>>(),
        "functions": inspection.functions.iter().map(|(n, c)| json!({ "name": n, "nodes": c })).collect::<Vec<_>>(),
        "metadata": Value::Object(metadata.collect()),
    })
}

fn value(value: &ValueReport) -> Value {
    json!({ "name": value.name, "type": value.ty, "bound_to": value.bound_to, "optional": value.is_optional })
}

fn struct_type(ty: &TypeReport) -> Value {
    json!({
        "type_id": ty.type_id, "name": ty.name, "bits": ty.bit_size, "decoder": ty.has_decoder,
        "encoder": ty.has_encoder, "values": ty.values, "fields": ty.fields.iter().map(field).collect::<Vec<_>>(),
        "fields_cut": ty.is_cut,
    })
}

fn field(field: &FieldReport) -> Value {
    match &field.content {
        FieldContent::Stored { element, bits, bit_offset, dims } => json!({
            "path": field.path, "element": element, "bits": bits, "bit_offset": bit_offset,
            "dims": dims.iter().map(|(count, stride)| json!({ "count": count, "stride_bits": stride })).collect::<Vec<_>>(),
        }),
        FieldContent::Dynamic { ty } => json!({ "path": field.path, "dynamic": ty }),
        FieldContent::Constant { ty } => json!({ "path": field.path, "constant": ty }),
        _ => json!({ "path": field.path }),
    }
}

fn constant(constant: &ConstantReport) -> Value {
    let kind = match &constant.kind {
        ConstantKind::Dense => json!("dense"),
        ConstantKind::Sparse => json!("sparse"),
        ConstantKind::Encoded(LayoutReport::Affine { storage, scale, has_zero_point, axis, block_size }) => {
            json!({
                "affine": {
                    "storage": storage, "scale": scale, "zero_point": has_zero_point, "axis": axis, "block_size": block_size,
                }
            })
        }
        ConstantKind::Encoded(LayoutReport::Struct {
            type_id,
            type_name,
            record_bytes,
            records,
            has_decoder,
            ..
        }) => {
            json!({
                "struct": {
                    "type_id": type_id, "name": type_name, "record_bytes": record_bytes, "records": records,
                    "decoder": has_decoder,
                }
            })
        }
        _ => Value::Null,
    };
    let place = match &constant.place {
        PlaceReport::Inline => json!("inline"),
        PlaceReport::External { location, file, offset, length } => {
            json!({ "location": location, "file": file, "offset": offset, "length": length })
        }
        _ => Value::Null,
    };
    json!({
        "name": constant.name, "graph": constant.graph, "layout": kind, "logical_type": constant.logical_type,
        "payload_bytes": constant.payload_bytes, "place": place,
    })
}
