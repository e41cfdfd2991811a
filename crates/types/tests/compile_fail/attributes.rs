use heirloom_types::NativeRecord;
use zerocopy::{FromBytes, Immutable, KnownLayout};

#[derive(FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = 1, size = 3)]
#[repr(C)]
struct Unknown {
    code: i8,
}

#[derive(FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = 1, array(Int4, 2))]
#[repr(C)]
struct Misplaced {
    code: i8,
}

#[derive(FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = 1)]
#[repr(C)]
struct Twice {
    #[record(array(Int4, 2), tensor(Int4, [2]))]
    code: i8,
}

#[derive(FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = 1)]
#[repr(C)]
struct Parameters<const N: usize> {
    codes: [u8; N],
}

#[derive(FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = 1)]
#[repr(C)]
struct Tuple(u8);

fn main() {}
