//! State of real models: equal to the loop by hand, streams do not mix, a reset is a fresh start. The models are no part
//! of the repository: `python tests/zoo/fetch.py --stateful` brings them, and one that is not there is passed over.

use std::sync::Arc;

use heirloom::{
    CachePolicy, CallOptions, Engine, EngineOptions, Model, OpenOptions, Outputs, Session, State, Tensor,
};
use heirloom_testkit::models::cache_folder;

struct Subject {
    file: &'static str,
    /// Outputs and the inputs of the next call that they supply, with their shapes.
    pairs: &'static [(&'static str, &'static str, &'static [usize])],
    inputs: &'static [(&'static str, &'static [usize])],
    /// A rate of samples that is fed beside.
    rate: Option<(&'static str, i64)>,
}

const SUBJECTS: &[Subject] = &[
    Subject {
        file: "silero-vad/silero_vad.onnx",
        pairs: &[("stateN", "state", &[2, 1, 128])],
        inputs: &[("input", &[1, 576])],
        rate: Some(("sr", 16_000)),
    },
    Subject {
        file: "gtcrn/gtcrn_simple.onnx",
        pairs: &[
            ("conv_cache_out", "conv_cache", &[2, 1, 16, 16, 33]),
            ("tra_cache_out", "tra_cache", &[2, 3, 1, 1, 16]),
            ("inter_cache_out", "inter_cache", &[2, 1, 33, 16]),
        ],
        inputs: &[("mix", &[1, 257, 1, 2])],
        rate: None,
    },
    Subject {
        file: "dtln-1/model_1.onnx",
        pairs: &[("tf_op_layer_stack_2", "input_3", &[1, 2, 128, 2])],
        inputs: &[("input_2", &[1, 1, 257])],
        rate: None,
    },
];

const CALLS: usize = 5;

/// Noise that depends on the stream and the call alone.
fn noise(shape: &[usize], stream: usize, call: usize) -> Tensor {
    let mut word = (stream * 1000 + call + 1) as u32;
    let len = shape.iter().product();
    let elements = (0..len).map(|_| {
        word ^= word << 13;
        word ^= word >> 17;
        word ^= word << 5;
        (word >> 8) as f32 / 16_777_216.0 * 0.2 - 0.1
    });
    Tensor::from_vec(shape, elements.collect()).unwrap()
}

impl Subject {
    fn feeds(&self, stream: usize, call: usize) -> Vec<(&'static str, Tensor)> {
        let mut feeds: Vec<_> =
            self.inputs.iter().map(|&(name, shape)| (name, noise(shape, stream, call))).collect();
        feeds.extend(self.rate.map(|(name, rate)| (name, Tensor::scalar(rate))));
        feeds
    }

    fn zeros(&self) -> Vec<(&'static str, Tensor)> {
        let zeros = |shape: &[usize]| Tensor::from_vec(shape, vec![0f32; shape.iter().product()]).unwrap();
        self.pairs.iter().map(|&(_, input, shape)| (input, zeros(shape))).collect()
    }

    /// The model as it is, and with its pairs bound.
    fn sessions(&self) -> Option<(Session, Session)> {
        let path = cache_folder()?.join("zoo").join(self.file);
        if !path.is_file() {
            return None;
        }
        let engine = Engine::new(EngineOptions { threads: Some(1) }).unwrap();
        let model = Model::open(path, &OpenOptions::default()).unwrap();
        let mut edit = model.edit();
        for (output, input, _) in self.pairs {
            edit.bind(input, output);
        }
        let bound = edit.finish().unwrap();
        let session = |model| engine.session(Arc::new(model), CachePolicy::default()).unwrap();
        Some((session(model), session(bound)))
    }

    /// All outputs of a stream's calls, the state carried by hand.
    fn by_hand(&self, session: &Session, stream: usize) -> Vec<Vec<u32>> {
        let mut state = self.zeros();
        (0..CALLS)
            .map(|call| {
                let feeds: Vec<_> =
                    self.feeds(stream, call).into_iter().chain(state.iter().cloned()).collect();
                let outputs = session
                    .run(feeds.into_iter().collect::<heirloom::Feeds<'_>>(), &CallOptions::default())
                    .unwrap();
                for ((_, value), (output, ..)) in state.iter_mut().zip(self.pairs) {
                    *value = outputs[output].as_tensor().unwrap().clone();
                }
                bits(&outputs)
            })
            .collect()
    }

    fn step(&self, state: &State, stream: usize, call: usize) -> Vec<u32> {
        let feeds = self.feeds(stream, call);
        bits(&state.run(feeds.into_iter().collect::<heirloom::Feeds<'_>>(), &CallOptions::default()).unwrap())
    }
}

/// All FLOAT outputs, bit for bit.
fn bits(outputs: &Outputs) -> Vec<u32> {
    let tensors = outputs.iter().map(|(_, value)| value.as_tensor().unwrap().clone());
    tensors
        .flat_map(|t| t.as_slice::<f32>().unwrap().iter().map(|v| v.to_bits()).collect::<Vec<_>>())
        .collect()
}

#[test]
fn bound_real_models_equal_the_loop_by_hand_and_streams_do_not_mix() {
    for subject in SUBJECTS {
        let Some((plain, bound)) = subject.sessions() else { continue };
        let expected = [subject.by_hand(&plain, 0), subject.by_hand(&plain, 1)];
        assert_ne!(expected[0], expected[1], "{}: the streams are told apart", subject.file);
        let initial = || subject.zeros().into_iter().collect::<heirloom::Feeds<'_>>();
        let states = [bound.make_state(initial()).unwrap(), bound.make_state(initial()).unwrap()];
        for call in 0..CALLS {
            for (stream, (state, expected)) in states.iter().zip(&expected).enumerate() {
                let actual = subject.step(state, stream, call);
                assert!(actual == expected[call], "{}: stream {stream}, call {call}", subject.file);
            }
        }
        // After a reset the first stream begins anew; the second goes on as if nothing had happened.
        states[0].reset(initial()).unwrap();
        for (call, expected) in expected[0].iter().enumerate() {
            let actual = subject.step(&states[0], 0, call);
            assert!(actual == *expected, "{}: call {call} after a reset", subject.file);
        }
    }
}
