//! `heirloom bench --roofline`: where the time of a token goes, beside what the memory and the processor could do.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use heirloom::cpu::limits;
use heirloom::graph::{Graph, Initializer, Node};
use heirloom::llm::{Conversation, LanguageModel};
use heirloom::mem::{Bytes, Storage};
use heirloom::runtime::Team;
use heirloom::types::Layout;
use heirloom::{Profile, Value};
use serde_json::{Value as Json, json};

use super::tokens;
use crate::error::CliError;
use crate::out;

/// What is timed.
pub(super) struct Task {
    /// Tokens of the prompt.
    pub(super) prompt: usize,
    /// Tokens in the state before the generated ones.
    pub(super) depth: usize,
    /// Tokens to generate.
    pub(super) generate: usize,
}

/// Time of one measurement of arithmetic.
const PEAK: Duration = Duration::from_millis(50);

/// The groups of nodes, in the order of the table.
const GROUPS: [&str; 4] = ["projections", "attention", "output head", "rest"];
const PROJECTIONS: usize = 0;
const ATTENTION: usize = 1;
const HEAD: usize = 2;
const REST: usize = 3;

/// Products with weights of one layout and shape.
#[derive(Default)]
struct Kind {
    nodes: u64,
    bytes: u64,
}

/// What the model's nodes do for one token.
#[derive(Default)]
struct Costs {
    /// The group of each node that is not of the rest, by name.
    groups: HashMap<String, usize>,
    /// The kind of each product with a weight, by the node's name.
    kinds: HashMap<String, String>,
    /// What products of each kind read.
    of_kinds: BTreeMap<String, Kind>,
    /// The weights of all products, in order.
    weights: Vec<Bytes>,
    /// Bytes of weights, by group.
    bytes: [u64; 4],
    /// Multiply-adds of products with weights for one row, twice, by group.
    operations: [u64; 4],
    /// Query heads that read the same head of keys and values.
    queries: u64,
}

/// The weight of a node whose second input is a constant matrix.
struct Weight {
    bytes: Bytes,
    elements: u64,
    kind: String,
}

fn weight(graph: &Graph, node: &Node) -> Option<Weight> {
    if !matches!(node.op_type.as_str(), "Gemm" | "MatMul") {
        return None;
    }
    let (bytes, layout, shape) = match graph.initializer((*node.inputs.get(1)?)?)? {
        Initializer::Encoded(value) => {
            let layout = match &value.layout {
                Layout::Struct(layout) => layout.name.to_string(),
                other => format!("{other:?}").split('(').next().unwrap_or_default().to_lowercase(),
            };
            (value.payload.clone(), layout, value.logical.as_ref()?.shape.clone())
        }
        Initializer::Tensor(tensor) => match tensor.storage() {
            Storage::Dense(bytes) => (
                bytes.clone(),
                tensor.dtype().to_string().to_lowercase(),
                tensor.shape().iter().copied().collect(),
            ),
            _ => return None,
        },
        _ => return None,
    };
    let [n, k] = shape[..] else { return None };
    Some(Weight { bytes, elements: (n * k) as u64, kind: format!("{layout} {n} x {k}") })
}

fn costs(graph: &Graph) -> Costs {
    let mut costs = Costs { queries: 1, ..Costs::default() };
    let mut last = None;
    for (_, node) in graph.ordered() {
        if let Some(Weight { bytes, elements, kind }) = weight(graph, node) {
            let of_kind = costs.of_kinds.entry(kind.clone()).or_default();
            of_kind.nodes += 1;
            of_kind.bytes += bytes.len() as u64;
            costs.kinds.insert(node.name.clone(), kind);
            costs.groups.insert(node.name.clone(), PROJECTIONS);
            costs.bytes[PROJECTIONS] += bytes.len() as u64;
            costs.operations[PROJECTIONS] += 2 * elements;
            last = Some((node.name.clone(), bytes.len() as u64, 2 * elements));
            costs.weights.push(bytes);
        } else if node.op_type.contains("Attention") {
            costs.groups.insert(node.name.clone(), ATTENTION);
            let heads =
                |name| node.attributes.int_or(name, 0).ok().and_then(|heads| u64::try_from(heads).ok());
            if let (Some(queries), Some(keys @ 1..)) = (heads("q_num_heads"), heads("kv_num_heads")) {
                costs.queries = queries / keys;
            }
        }
    }
    if let Some((name, bytes, operations)) = last {
        costs.groups.insert(name, HEAD);
        costs.bytes[PROJECTIONS] -= bytes;
        costs.operations[PROJECTIONS] -= operations;
        (costs.bytes[HEAD], costs.operations[HEAD]) = (bytes, operations);
    }
    costs
}

/// What the machine does at most, per second.
struct Peaks {
    float: f64,
    integer: f64,
}

fn peaks(isa: heirloom::cpu::Isa, team: &dyn Team) -> Peaks {
    let rate = |work: fn(heirloom::cpu::Isa, usize, &dyn Team) -> u64| {
        let mut best = 0.0f64;
        let started = Instant::now();
        while started.elapsed() < PEAK {
            let round = Instant::now();
            let operations = work(isa, 20_000, team);
            best = best.max(operations as f64 / round.elapsed().as_secs_f64());
        }
        best
    };
    Peaks { float: rate(limits::float_operations), integer: rate(limits::integer_operations) }
}

/// The seconds that one pure read of all weights takes, the faster of one stream and two for each thread.
fn pure_read(model: &LanguageModel, costs: &Costs, team: &dyn Team) -> f64 {
    let payloads: Vec<&[u8]> = costs.weights.iter().map(|bytes| &bytes[..]).collect();
    let time = |streams| {
        let started = Instant::now();
        std::hint::black_box(limits::read(model.engine().instructions(), &payloads, streams, team));
        started.elapsed().as_secs_f64()
    };
    time(1).min(time(2))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The seconds of each group in `profile`, and what is between the nodes of `wall` seconds.
fn by_group(costs: &Costs, profile: &Profile, wall: f64) -> [f64; 5] {
    let mut seconds = [0.0; 5];
    for node in profile.nodes() {
        seconds[*costs.groups.get(&node.name).unwrap_or(&REST)] += node.time.as_secs_f64();
    }
    seconds[4] = wall - seconds.iter().sum::<f64>();
    seconds
}

/// The seconds of the products of each kind in `profile`, in the order of their names.
fn by_kind(costs: &Costs, profile: &Profile) -> Vec<f64> {
    let mut seconds: BTreeMap<&str, f64> = costs.of_kinds.keys().map(|kind| (kind.as_str(), 0.0)).collect();
    for node in profile.nodes() {
        if let Some(sum) = costs.kinds.get(&node.name).and_then(|kind| seconds.get_mut(kind.as_str())) {
            *sum += node.time.as_secs_f64();
        }
    }
    seconds.into_values().collect()
}

/// Bytes that a token adds to the state, and the elements that these are.
fn appended(conversation: &Conversation) -> (u64, u64) {
    let tokens = conversation.seen().len().max(1) as u64;
    let report = conversation.report();
    let width = conversation.state().values().ok().and_then(|values| {
        let mut widths = values.iter().filter_map(|(_, value)| match value {
            Value::Tensor(tensor) => Some(tensor.dtype().payload_bytes(1)? as u64),
            _ => None,
        });
        widths.next()
    });
    let bytes = report.retained_bytes / tokens;
    (bytes, bytes / width.unwrap_or(2).max(1))
}

/// Measures and gives the whole as JSON.
pub(super) fn measure(model: &LanguageModel, task: &Task) -> Result<Json, CliError> {
    let costs = costs(model.session().model().graph());
    let options = model.engine().session_options();
    let (isa, team) = (model.engine().instructions(), &*options.team);
    let peaks = peaks(isa, team);

    // Tokens and pure reads take turns, so that both see the same machine.
    let mut conversation = model.conversation()?;
    if task.depth > 0 {
        conversation.feed(&tokens(task.depth, 0), None)?;
    }
    conversation.feed(&tokens(1, 1), None)?;
    let (mut walls, mut reads, mut groups, mut kinds) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for token in tokens(task.generate, 17) {
        let profile = Arc::new(Profile::new());
        conversation.set_profile(Some(profile.clone()));
        let started = Instant::now();
        conversation.feed(&[token], None)?;
        let wall = started.elapsed().as_secs_f64();
        walls.push(wall);
        groups.push(by_group(&costs, &profile, wall));
        kinds.push(by_kind(&costs, &profile));
        reads.push(pure_read(model, &costs, team));
    }
    let (token_bytes, token_elements) = appended(&conversation);
    let cached = (task.depth + task.generate / 2) as u64;
    let mut bytes = costs.bytes;
    bytes[ATTENTION] = token_bytes * cached;
    let mut operations = costs.operations;
    operations[ATTENTION] = 2 * token_elements * costs.queries * cached;
    let (read, weights) = (median(reads), costs.bytes.iter().sum::<u64>());
    let rate = weights as f64 / read;
    let seconds: [f64; 5] = std::array::from_fn(|group| median(groups.iter().map(|g| g[group]).collect()));
    let wall = median(walls);
    let products: Vec<_> = costs
        .of_kinds
        .iter()
        .enumerate()
        .map(|(at, (kind, Kind { nodes, bytes }))| {
            let seconds = median(kinds.iter().map(|seconds| seconds[at]).collect());
            json!({
                "weight": kind, "nodes": nodes, "ms": seconds * 1e3, "bytes": bytes,
                "fraction_of_limit": *bytes as f64 / rate / seconds,
            })
        })
        .collect();
    let decode = json!({
        "tokens": task.generate, "depth": task.depth, "ms_per_token": wall * 1e3, "tokens_per_s": 1.0 / wall,
        "pure_read_ms": read * 1e3, "fraction_of_pure_read": read / wall,
        "groups": rows(&seconds, &bytes, &operations, Some(rate), None), "products": products,
    });

    let prefill = if task.prompt > 0 {
        let mut rounds = Vec::new();
        for round in 0..3 {
            let mut conversation = model.conversation()?;
            let profile = Arc::new(Profile::new());
            conversation.set_profile(Some(profile.clone()));
            let started = Instant::now();
            conversation.feed(&tokens(task.prompt, round), None)?;
            let wall = started.elapsed().as_secs_f64();
            rounds.push((wall, by_group(&costs, &profile, wall)));
        }
        rounds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (wall, seconds) = rounds[1];
        let prompt = task.prompt as u64;
        let mut operations = costs.operations;
        operations[PROJECTIONS] *= prompt;
        operations[ATTENTION] = 2 * token_elements * costs.queries * prompt * (prompt + 1) / 2;
        let mut bytes = costs.bytes;
        bytes[ATTENTION] = token_bytes * prompt;
        Some(json!({
            "tokens": prompt, "ms": wall * 1e3, "tokens_per_s": prompt as f64 / wall,
            "groups": rows(&seconds, &bytes, &operations, None, Some(&peaks)),
        }))
    } else {
        None
    };
    Ok(json!({
        "isa": model.engine().isa().name(), "threads": model.engine().threads(),
        "limits": {
            "read_bytes_per_s": rate, "float_operations_per_s": peaks.float, "integer_operations_per_s": peaks.integer,
        },
        "weights_bytes": weights, "decode": decode, "prefill": prefill,
    }))
}

/// The rows of one phase: each group's time, what it touches and does, and the fraction of the limit: of `read` bytes a
/// second, or of the operations that `peaks` tells.
fn rows(
    seconds: &[f64; 5],
    bytes: &[u64; 4],
    operations: &[u64; 4],
    read: Option<f64>,
    peaks: Option<&Peaks>,
) -> Json {
    let whole = (0..5).map(|group| {
        let (bytes, operations) = match bytes.get(group) {
            Some(bytes) => (*bytes, operations[group]),
            None => (0, 0),
        };
        let of_read = read.map(|rate| bytes as f64 / rate / seconds[group]);
        let of_peak = peaks.map(|peaks| {
            let peak = if group == ATTENTION { peaks.float } else { peaks.integer };
            operations as f64 / peak / seconds[group]
        });
        let fraction = of_read.or(of_peak).filter(|_| bytes > 0);
        json!({
            "group": GROUPS.get(group).unwrap_or(&"between nodes"), "ms": seconds[group] * 1e3, "bytes": bytes,
            "operations": operations, "fraction_of_limit": fraction,
        })
    });
    Json::Array(whole.collect())
}

/// A table of what [`measure`] gave.
pub(super) fn print(all: &Json) {
    let number = |of: &Json, path: &str| of.pointer(path).and_then(Json::as_f64).unwrap_or(f64::NAN);
    out::line(&format!(
        "at most: {:.1} GB/s read, {:.0} Gop/s in float, {:.0} Gop/s in 8-bit integers ({}, {} threads)",
        number(all, "/limits/read_bytes_per_s") / 1e9,
        number(all, "/limits/float_operations_per_s") / 1e9,
        number(all, "/limits/integer_operations_per_s") / 1e9,
        all["isa"].as_str().unwrap_or_default(),
        all["threads"]
    ));
    let decode = &all["decode"];
    out::line(&format!(
        "a token behind {}: {:.2} ms ({:.1} tokens/s); a pure read of its weights takes {:.2} ms, {:.0} % of that",
        decode["depth"],
        number(decode, "/ms_per_token"),
        number(decode, "/tokens_per_s"),
        number(decode, "/pure_read_ms"),
        100.0 * number(decode, "/fraction_of_pure_read")
    ));
    groups(decode);
    products(decode);
    let prefill = &all["prefill"];
    if !prefill.is_null() {
        out::line(&format!(
            "a prompt of {} tokens: {:.0} ms ({:.0} tokens/s)",
            prefill["tokens"],
            number(prefill, "/ms"),
            number(prefill, "/tokens_per_s")
        ));
        groups(prefill);
    }
}

fn products(phase: &Json) {
    out::line("  weights                   nodes       ms          MB    % of limit");
    for row in phase["products"].as_array().into_iter().flatten() {
        let number = |key: &str| row[key].as_f64().unwrap_or(f64::NAN);
        out::line(&format!(
            "  {:<26}{:>5}{:>9.3}{:>12.1}{:>14.0}",
            row["weight"].as_str().unwrap_or_default(),
            number("nodes"),
            number("ms"),
            number("bytes") / 1e6,
            100.0 * number("fraction_of_limit")
        ));
    }
}

fn groups(phase: &Json) {
    out::line("  group               ms          MB         Gop    % of limit");
    for row in phase["groups"].as_array().into_iter().flatten() {
        let number = |key: &str| row[key].as_f64().unwrap_or(0.0);
        let fraction =
            row["fraction_of_limit"].as_f64().map_or(String::new(), |f| format!("{:.0}", 100.0 * f));
        out::line(&format!(
            "  {:<14}{:>9.3}{:>12.1}{:>12.3}{fraction:>14}",
            row["group"].as_str().unwrap_or_default(),
            number("ms"),
            number("bytes") / 1e6,
            number("operations") / 1e9
        ));
    }
}
