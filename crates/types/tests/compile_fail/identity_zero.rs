use heirloom_types::NativeRecord;
use zerocopy::{FromBytes, Immutable, KnownLayout};

#[derive(FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = 0)]
#[repr(C)]
struct Zero {
    code: i8,
}

fn main() {}
