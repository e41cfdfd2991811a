//! Reports of models as dicts.

use heirloom::graph::inspect::{
    ConstantKind, ConstantReport, FieldContent, Inspection, LayoutReport, PlaceReport, TypeReport,
    ValueReport,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

macro_rules! dict {
    ($py:expr, { $($key:literal: $value:expr),* $(,)? }) => {{
        let dict = PyDict::new($py);
        $(dict.set_item($key, $value)?;)*
        dict
    }};
}

/// All that a model's report tells.
pub(crate) fn dict<'py>(py: Python<'py>, report: &Inspection) -> PyResult<Bound<'py, PyDict>> {
    let operators: Vec<(&str, &str, usize)> =
        report.operators.iter().map(|op| (&*op.domain, &*op.name, op.count)).collect();
    let metadata = PyDict::new(py);
    report.metadata.iter().try_for_each(|(key, value)| metadata.set_item(key, value))?;
    Ok(dict!(py, {
        "path": report.path.as_ref().map(|path| path.display().to_string()),
        "ir_version": report.ir_version,
        "producer": &report.producer,
        "graph_name": &report.graph_name,
        "opsets": &report.opsets,
        "inputs": list(py, &report.inputs, value)?,
        "outputs": list(py, &report.outputs, value)?,
        "bindings": &report.bindings,
        "types": list(py, &report.types, struct_type)?,
        "constants": list(py, &report.constants, constant)?,
        "operators": operators,
        "functions": &report.functions,
        "metadata": metadata,
        "inline_bytes": report.inline_bytes(),
        "external_bytes": report.external_bytes(),
        "text": report.to_string(),
    }))
}

fn list<'py, T>(
    py: Python<'py>,
    items: &[T],
    one: impl Fn(Python<'py>, &T) -> PyResult<Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyList>> {
    let items: PyResult<Vec<_>> = items.iter().map(|item| one(py, item)).collect();
    PyList::new(py, items?)
}

fn value<'py>(py: Python<'py>, report: &ValueReport) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict!(py, {
        "name": &report.name,
        "type": &report.ty,
        "bound_to": &report.bound_to,
        "optional": report.is_optional,
    }))
}

/// A struct type's report.
pub(crate) fn struct_type<'py>(py: Python<'py>, report: &TypeReport) -> PyResult<Bound<'py, PyDict>> {
    let fields = PyList::empty(py);
    for field in &report.fields {
        let dict = dict!(py, { "path": &field.path });
        match &field.content {
            FieldContent::Stored { element, bits, bit_offset, dims } => {
                dict.set_item("kind", "stored")?;
                dict.set_item("element", element)?;
                dict.set_item("bits", bits)?;
                dict.set_item("bit_offset", bit_offset)?;
                dict.set_item("dims", dims)?;
            }
            FieldContent::Dynamic { ty } => {
                dict.set_item("kind", "dynamic")?;
                dict.set_item("type", ty)?;
            }
            FieldContent::Constant { ty } => {
                dict.set_item("kind", "constant")?;
                dict.set_item("type", ty)?;
            }
            _ => dict.set_item("kind", "other")?,
        }
        fields.append(dict)?;
    }
    Ok(dict!(py, {
        "type_id": report.type_id,
        "name": &report.name,
        "bit_size": report.bit_size,
        "has_decoder": report.has_decoder,
        "has_encoder": report.has_encoder,
        "fields": fields,
        "cut": report.is_cut,
        "values": report.values,
    }))
}

fn constant<'py>(py: Python<'py>, report: &ConstantReport) -> PyResult<Bound<'py, PyDict>> {
    let dict = dict!(py, {
        "name": &report.name,
        "graph": &report.graph,
        "logical_type": &report.logical_type,
        "payload_bytes": report.payload_bytes,
    });
    match &report.kind {
        ConstantKind::Dense => dict.set_item("kind", "dense")?,
        ConstantKind::Sparse => dict.set_item("kind", "sparse")?,
        ConstantKind::Encoded(LayoutReport::Affine { storage, scale, has_zero_point, axis, block_size }) => {
            dict.set_item("kind", "affine")?;
            dict.set_item("storage", storage)?;
            dict.set_item("scale", scale)?;
            dict.set_item("has_zero_point", has_zero_point)?;
            dict.set_item("axis", axis)?;
            dict.set_item("block_size", block_size)?;
        }
        ConstantKind::Encoded(LayoutReport::Struct {
            type_index,
            type_id,
            type_name,
            record_bytes,
            records,
            has_decoder,
        }) => {
            dict.set_item("kind", "struct")?;
            dict.set_item("type_index", type_index)?;
            dict.set_item("type_id", type_id)?;
            dict.set_item("type_name", type_name)?;
            dict.set_item("record_bytes", record_bytes)?;
            dict.set_item("records", records)?;
            dict.set_item("has_decoder", has_decoder)?;
        }
        _ => dict.set_item("kind", "other")?,
    }
    if let PlaceReport::External { location, file, offset, length } = &report.place {
        dict.set_item("location", location)?;
        dict.set_item("file", file.as_ref().map(|file| file.display().to_string()))?;
        dict.set_item("offset", offset)?;
        dict.set_item("length", length)?;
    }
    Ok(dict)
}
