//! Levels and their names.

use heirloom_simd::{Isa, IsaError, Level};

#[test]
fn levels_are_found_by_name_and_the_highest_is_the_default() {
    for isa in Isa::available() {
        let name = isa.level().name().to_ascii_uppercase();
        assert_eq!(Isa::parse(Some(&name)).expect("it is available").level(), isa.level());
    }
    for value in [None, Some("")] {
        assert_eq!(Isa::parse(value).expect("there is always a level").level(), Isa::best().level());
    }
    assert_eq!(Isa::available().next().expect("there is always a level").level(), Level::Portable);
}

#[test]
fn a_level_that_is_unknown_or_missing_is_refused_with_what_there_is() {
    let unknown = Isa::parse(Some("sse9")).expect_err("no level");
    assert_eq!(unknown, IsaError::Unknown { value: "sse9".into() });
    assert!(unknown.to_string().contains("`portable`, `avx2` or `avx512`"), "{unknown}");
    let best = Isa::best().level();
    for asked in Level::ALL.into_iter().filter(|level| Isa::available().all(|isa| isa.level() != *level)) {
        assert_eq!(Isa::new(asked).expect_err("it is missing"), IsaError::Missing { asked, best });
    }
}
