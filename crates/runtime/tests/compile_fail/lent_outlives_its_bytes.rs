use heirloom_mem::{DType, LentTensor};

fn returned() -> LentTensor<'static> {
    let data = vec![0u8; 4];
    LentTensor::new(DType::Float, &[1], &data).unwrap()
}

fn freed_before_the_call(session: &heirloom_runtime::Session) {
    let data = vec![0u8; 4];
    let x = LentTensor::new(DType::Float, &[1], &data).unwrap();
    drop(data);
    let _ = session.run_lent(heirloom_runtime::Feeds::new(), &[("x", x)], &Default::default());
}

fn main() {}
