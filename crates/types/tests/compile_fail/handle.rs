use heirloom_types::NativeRecord;
use zerocopy::{FromBytes, Immutable, KnownLayout};

// Records hold nothing that means something in one process alone: addresses and their widths have no declared type.
#[derive(FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = 1)]
#[repr(C)]
struct Handle {
    address: usize,
}

fn main() {}
