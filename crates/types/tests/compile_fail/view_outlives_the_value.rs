use heirloom_types::{EncodedValue, NativeRecord};
use zerocopy::{FromBytes, Immutable, KnownLayout};

#[derive(FromBytes, Immutable, KnownLayout, NativeRecord)]
#[record(type_id = 1)]
#[repr(C)]
struct Code {
    code: i8,
}

fn kept(value: EncodedValue) -> &'static [Code] {
    value.view::<Code>().unwrap()
}

fn written(value: &EncodedValue) {
    value.view::<Code>().unwrap()[0].code = 1;
    value.payload[0] = 1;
}

fn main() {}
