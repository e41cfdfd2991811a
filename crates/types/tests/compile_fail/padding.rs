use heirloom_types::NativeRecord;
use zerocopy::{FromBytes, Immutable, KnownLayout};

#[derive(FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = 1)]
#[repr(C)]
struct Padded {
    code: i8,
    scale: f32,
}

fn main() {}
