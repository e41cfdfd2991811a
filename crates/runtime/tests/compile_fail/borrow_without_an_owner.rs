use heirloom_mem::Bytes;

fn returned() -> Bytes {
    let data = vec![0u8; 4];
    Bytes::from_owner(&data[..])
}

fn kept(data: &[u8]) -> Bytes {
    Bytes::from_owner(data)
}

fn main() {}
