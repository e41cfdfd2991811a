use heirloom_types::NativeRecord;
use zerocopy::{FromBytes, Immutable, KnownLayout};

#[derive(FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = 1)]
struct AnyOrder {
    code: i8,
}

fn main() {}
