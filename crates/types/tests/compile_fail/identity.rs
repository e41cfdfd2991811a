use heirloom_types::NativeRecord;
use zerocopy::{FromBytes, Immutable, KnownLayout};

#[derive(FromBytes, Immutable, KnownLayout, NativeRecord)]
#[repr(C)]
struct Nameless {
    code: i8,
}

fn main() {}
