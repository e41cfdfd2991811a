//! Every model that the `onnx` package carries, and what the package makes of mutated ones.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use heirloom_mem::Bytes;
use heirloom_proto::ModelProto;

use crate::model::{full_model, unknown_of_every_wire_type};
use crate::python;

// proves: W2, W3
#[test]
fn every_model_of_the_onnx_package_survives_a_round_trip_byte_for_byte() {
    let Some(models) = python::onnx_models() else { return };
    assert!(models.len() >= 100, "the package carries {} models", models.len());
    for path in models {
        let bytes = Bytes::map_file(&path).unwrap();
        let model =
            ModelProto::decode(bytes.clone()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert_eq!(model.to_bytes(), bytes, "{}", path.display());
        assert_eq!(model.to_canonical_bytes(), bytes, "{} encoded anew", path.display());
        assert_eq!(model.encoded_len(), bytes.len() as u64);
        assert_eq!(model.find_invalid_utf8(), None);
        assert!(model.graph().is_some(), "{}", path.display());
        heirloom_proto::check_payloads(&model).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

/// A small generator of numbers that is the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}

/// A few changes of a few bytes: flips, insertions, removals, repetitions of a stretch.
fn mutate(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(3) {
        if bytes.is_empty() {
            break;
        }
        let at = random.below(bytes.len());
        match random.below(5) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.below(256) as u8,
            2 => bytes.insert(at, random.below(256) as u8),
            3 => drop(bytes.remove(at)),
            _ => {
                let end = bytes.len().min(at + 1 + random.below(24));
                let stretch = bytes[at..end].to_vec();
                bytes.splice(at..at, stretch);
            }
        }
    }
    bytes
}

/// Sends each case to the oracle and collects its answers.
fn ask(cases: &[(Vec<u8>, Vec<u8>)]) -> Vec<String> {
    let mut oracle = Command::new(python::interpreter())
        .arg(python::script("oracle.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut to = oracle.stdin.take().unwrap();
    let from = BufReader::new(oracle.stdout.take().unwrap());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for bytes in cases.iter().flat_map(|(original, ours)| [original, ours]) {
                to.write_all(&(bytes.len() as u32).to_le_bytes()).unwrap();
                to.write_all(bytes).unwrap();
            }
        });
        let answers = from.lines().map(Result::unwrap).collect();
        assert!(oracle.wait().unwrap().success());
        answers
    })
}

/// What this crate makes of the bytes when it encodes every message anew; nothing when it refuses them.
fn ours(bytes: &[u8]) -> Vec<u8> {
    match ModelProto::decode(Bytes::from_vec(bytes.to_vec())) {
        Ok(model) => model.to_canonical_bytes().to_vec(),
        Err(_) => Vec::new(),
    }
}

/// `HEIRLOOM_FUZZ_CASES` sets how many; `HEIRLOOM_FUZZ_SEED` which.
// proves: W2, W3
#[test]
fn mutated_models_mean_the_same_to_the_onnx_package() {
    let Some(models) = python::onnx_models() else { return };
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let count = number("HEIRLOOM_FUZZ_CASES").unwrap_or(1500);
    let mut random = Random(number("HEIRLOOM_FUZZ_SEED").unwrap_or(1) | 1 << 40);
    let mut sources: Vec<Vec<u8>> = models.iter().map(|path| std::fs::read(path).unwrap()).collect();
    sources.retain(|bytes| bytes.len() < 20_000);
    sources.push(full_model().to_bytes().to_vec());
    let cases: Vec<(Vec<u8>, Vec<u8>)> = (0..count)
        .map(|_| {
            let source = random.below(sources.len());
            let bytes = mutate(&sources[source], &mut random);
            let ours = ours(&bytes);
            (bytes, ours)
        })
        .collect();
    let answers = ask(&cases);
    assert_eq!(answers.len(), cases.len());
    for ((bytes, _), answer) in cases.iter().zip(&answers) {
        assert!(answer == "same" || answer == "refused", "{answer}: {bytes:02x?}");
    }
    let same = answers.iter().filter(|answer| *answer == "same").count() as u64;
    assert!(same * 10 > count && same < count, "{same} of {count} were taken: the mutations test little");
}

// proves: W2
#[test]
fn the_onnx_package_reads_our_fields_and_writes_them_again() {
    if python::onnx_package().is_none() {
        return;
    }
    let script = "import sys, onnx\n\
                  data = sys.stdin.buffer.read()\n\
                  sys.stdout.buffer.write(onnx.ModelProto.FromString(data).SerializeToString())";
    let mut model = full_model();
    let mut bytes = model.to_bytes().to_vec();
    bytes.extend(unknown_of_every_wire_type(777));
    model = ModelProto::decode(Bytes::from_vec(bytes)).unwrap();
    let mut onnx = Command::new(python::interpreter())
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    onnx.stdin.take().unwrap().write_all(&model.to_bytes()).unwrap();
    let output = onnx.wait_with_output().unwrap();
    assert!(output.status.success());
    let back = ModelProto::decode(Bytes::from_vec(output.stdout)).unwrap();
    assert_eq!(back, model);
    assert_eq!(back.struct_types().len(), 1);
    let graph = back.graph().unwrap();
    assert_eq!(graph.persistent_bindings()[0].input_name(), "past");
    assert_eq!(graph.encoded_initializer()[0].raw_data().unwrap().len(), 40);
}
