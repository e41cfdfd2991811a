//! `heirloom infer`: the type and symbolic shape of every value, and where a model contradicts itself.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

use heirloom::graph::Graph;
use heirloom::infer::{Dim, InferOptions, Scope, ShapesContext, Type};
use heirloom::types::ValueType;
use heirloom::{Model, OpenOptions};
use serde_json::{Value, json};

use crate::error::CliError;
use crate::out;

/// Infer the type and symbolic shape of every value; fails where the model contradicts itself
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The model (`.onnx`)
    model: PathBuf,
    /// The shape that an input has in a call, such as `tokens=1,16`: extents are printed for it, too; may be given
    /// several times
    #[arg(long, value_name = "INPUT=DIMS", value_parser = shape)]
    shape: Vec<(String, Vec<i64>)>,
    /// Leave types aside that the model declares of values in between and of outputs
    #[arg(long)]
    ignore_declared: bool,
    /// Another folder that the model's external data may lie in; may be given several times
    #[arg(long, value_name = "FOLDER")]
    external_root: Vec<PathBuf>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

fn shape(text: &str) -> Result<(String, Vec<i64>), String> {
    let (name, dims) = text.rsplit_once('=').ok_or("write it as INPUT=DIM,DIM")?;
    let dims = dims.split(',').map(str::trim).filter(|dim| !dim.is_empty());
    let dims: Result<Vec<i64>, _> = dims.map(str::parse).collect();
    Ok((name.into(), dims.map_err(|error| error.to_string())?))
}

pub(crate) fn run(args: Args) -> Result<ExitCode, CliError> {
    let options = OpenOptions::default().allow_missing_files(true);
    let options = args.external_root.iter().fold(options, |open, root| open.external_root(root));
    let model = Model::open(&args.model, &options)?;
    let options = InferOptions::default().ignore_declared(args.ignore_declared);
    let mut context = ShapesContext::infer(&model, &options);
    let mut extents = BTreeMap::new();
    if let Some(symbol) = bind(model.graph(), context.main(), &args.shape, &mut extents)? {
        out::note(&format!(
            "the shapes are not one call's, for `{symbol}` is not one extent: inferred for these numbers"
        ));
        let concrete = args.shape.iter().fold(options, |options, (name, shape)| {
            let value = model.graph().value(name).and_then(|value| model.graph().value_type(value));
            let Some(dtype) = value.and_then(|ty| ty.as_tensor()).map(|ty| ty.dtype) else { return options };
            let shape: Vec<usize> = shape.iter().map(|&it| usize::try_from(it).unwrap_or(0)).collect();
            options.input(name, ValueType::tensor(dtype, &shape))
        });
        context = ShapesContext::infer(&model, &concrete);
        extents.clear();
        bind(model.graph(), context.main(), &args.shape, &mut extents)?;
    }
    if args.json {
        print_json(&model, &context, &extents);
    } else {
        print_text(&model, &context, &extents);
    }
    Ok(if context.conflicts().is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What symbols stand for, by the shapes of inputs; gives a symbol that stands for two extents, if there is one.
fn bind(
    graph: &Graph,
    scope: &Scope,
    shapes: &[(String, Vec<i64>)],
    extents: &mut BTreeMap<String, i64>,
) -> Result<Option<String>, CliError> {
    let mut twice = None;
    for (name, shape) in shapes {
        let input = graph.inputs().iter().find(|&&value| graph.value_name(value) == name);
        let fact = input.and_then(|&value| scope.fact(value).ty.as_ref()?.as_tensor()?.dims.as_ref());
        let dims = fact
            .filter(|dims| dims.len() == shape.len())
            .ok_or_else(|| CliError::Message(format!("`{name}` is no input of {} axes", shape.len())))?;
        for (dim, extent) in dims.iter().zip(shape) {
            if let Some(symbol) = dim.as_ref().and_then(|it| it.as_symbol()) {
                let first = *extents.entry(symbol.into()).or_insert(*extent);
                if first != *extent {
                    twice = Some(symbol.into());
                }
            }
        }
    }
    Ok(twice)
}

fn at(ty: &Type, extents: &BTreeMap<String, i64>) -> Option<Vec<i64>> {
    ty.as_tensor()?.shape_at(&|symbol| extents.get(symbol).copied())
}

fn print_text(model: &Model, context: &ShapesContext, extents: &BTreeMap<String, i64>) {
    context.each(model, &mut |place, graph, scope| {
        if !place.is_empty() {
            out::line(&format!("\n{place}:"));
        }
        for value in graph.values() {
            let fact = scope.fact(value);
            let ty = fact.ty.as_ref().map_or_else(|| "?".into(), ToString::to_string);
            let concrete = fact.ty.as_ref().filter(|_| !extents.is_empty()).and_then(|ty| at(ty, extents));
            let concrete = concrete.map(|shape| format!(" = {shape:?}")).unwrap_or_default();
            let layout = fact.physical.as_ref().map(|it| format!(", stored as {}", it.value.layout));
            out::line(&format!("{}: {ty}{concrete}{}", graph.value_name(value), layout.unwrap_or_default()));
        }
    });
    for (domain, name, count) in context.unknown_operators() {
        let domain = if domain.is_empty() { "ai.onnx" } else { domain };
        out::note(&format!("no rule for `{name}` of `{domain}`, which occurs {count} times"));
    }
    for conflict in context.conflicts() {
        out::note(&format!("conflict: {conflict}"));
    }
}

fn print_json(model: &Model, context: &ShapesContext, extents: &BTreeMap<String, i64>) {
    context.each(model, &mut |place, graph, scope| {
        for value in graph.values() {
            let fact = scope.fact(value);
            let tensor = fact.ty.as_ref().and_then(Type::as_tensor);
            let dim = |dim: &Dim| match dim {
                Some(expr) if !expr.is_closed() => Value::Null,
                Some(expr) => expr.as_number().map_or_else(|| json!(expr.to_string()), |number| json!(number)),
                None => Value::Null,
            };
            let dims = tensor.and_then(|it| it.dims.as_ref()).map(|dims| dims.iter().map(dim).collect::<Vec<_>>());
            let physical = fact.physical.as_ref().map(|it| {
                json!({
                    "layout": it.value.layout.to_string(), "records": it.records, "bytes": it.value.payload.len(),
                })
            });
            out::json(&json!({
                "graph": place, "value": graph.value_name(value),
                "type": fact.ty.as_ref().map(ToString::to_string),
                "dtype": tensor.map(|it| it.dtype.name()), "dims": dims,
                "complete": fact.ty.as_ref().is_some_and(Type::is_closed),
                "shape": fact.ty.as_ref().and_then(|ty| at(ty, extents)),
                "stored": physical,
            }));
        }
    });
    for (domain, name, count) in context.unknown_operators() {
        out::json(&json!({ "no_rule": name, "domain": domain, "count": count }));
    }
    for conflict in context.conflicts() {
        out::json(&json!({ "conflict": conflict.to_string() }));
    }
}
