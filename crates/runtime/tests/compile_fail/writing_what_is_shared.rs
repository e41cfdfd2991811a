use heirloom_mem::BytesMut;
use heirloom_runtime::Outputs;

fn after_freezing(mut bytes: BytesMut) {
    let shared = bytes.freeze();
    bytes.as_mut_slice()[0] = 1;
    drop(shared);
}

fn an_output(outputs: &Outputs) {
    outputs["y"].as_tensor().unwrap().as_slice::<f32>().unwrap()[0] = 1.0;
}

fn main() {}
