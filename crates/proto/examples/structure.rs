//! Reads a model, visits every node, writes it anew, and prints what that cost as JSON: the counterpart of
//! `bench/proto_structure.py`.
#![allow(clippy::print_stdout, reason = "a program for a terminal")]

use std::fs::read_to_string;
use std::path::Path;
use std::time::Duration;

use heirloom_mem::Bytes;
use heirloom_proto::ModelProto;

fn anonymous_bytes() -> u64 {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// The processor time of this process, which other programs on the machine do not lengthen.
fn processor_time() -> Duration {
    let times = read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(times.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = processor_time();
    let result = work();
    (result, processor_time() - start)
}

fn main() {
    let path = std::env::args().nth(1).expect("the path of a model");
    let bytes = Bytes::map_file(Path::new(&path)).expect("a model file");
    // The other side reads the file beforehand, too.
    let touched: u64 = bytes.iter().step_by(4096).map(|byte| u64::from(*byte)).sum();
    let before = anonymous_bytes();
    let (model, decode) = timed(|| ModelProto::decode(bytes).expect("a model"));
    let memory = anonymous_bytes().saturating_sub(before);
    let (characters, visit) = timed(|| {
        let nodes = model.graph().map_or(&[][..], |graph| graph.node());
        let of_node = |node: &heirloom_proto::NodeProto| {
            let names = node.input().iter().chain(node.output().iter()).map(str::len).sum::<usize>();
            let attributes: usize = node.attribute().iter().map(|a| a.name().len() + a.ints().len()).sum();
            names + attributes + node.name().len() + node.op_type().len()
        };
        nodes.iter().map(of_node).sum::<usize>()
    });
    let ((), check) = timed(|| heirloom_proto::check_payloads(&model).expect("payloads by the rules"));
    let (out, encode) = timed(|| model.to_canonical_bytes());
    let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
    let (_, dropping) = timed(|| drop(model));
    println!(
        "{{\"decode_ms\": {}, \"encode_ms\": {}, \"memory_mb\": {}, \"bytes\": {}}}",
        ms(decode),
        ms(encode),
        memory as f64 / 1e6,
        out.len()
    );
    print_details(ms(visit), ms(check), ms(dropping), (characters, touched));
}

#[allow(clippy::print_stderr, reason = "a program for a terminal")]
fn print_details(visit: f64, check: f64, dropping: f64, sums: (usize, u64)) {
    eprintln!("visit {visit:.2} ms, check payloads {check:.2} ms, drop {dropping:.2} ms (sums {sums:?})");
}
