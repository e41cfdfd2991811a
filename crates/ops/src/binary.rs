//! Operators on pairs of elements, broadcast, declared by their function.

/// A comparison of two numbers.
macro_rules! comparison {
    ($op:literal, since $since:literal: $a:ident, $b:ident => $body:expr) => {
        use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

        pub(crate) const SPEC: KernelSpec = KernelSpec {
            domain: "",
            op: $op,
            versions: ($since, super::NEWEST),
            rank: 0,
            accepts: |cx| $crate::attributes::takes(cx, 2, $crate::attributes::is_number),
            build,
        };

        fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
            $crate::attributes::only(cx, &[])?;
            Ok(Box::new($crate::elementwise::Plain(run)))
        }

        fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
            let dtype = $crate::elementwise::common_type(cx, 2)?;
            $crate::by_type::by_number!(dtype, T => {
                $crate::elementwise::compare_numbers(cx, |$a: T, $b: T| $body)
            }, _ => Err($crate::elementwise::wrong_type(cx, 0, "numbers")))
        }
    };
}

/// A connective of two BOOL tensors; elements are 0 and 1.
macro_rules! logic {
    ($op:literal, since $since:literal: $a:ident, $b:ident => $body:expr) => {
        use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

        pub(crate) const SPEC: KernelSpec = KernelSpec {
            domain: "",
            op: $op,
            versions: ($since, super::NEWEST),
            rank: 0,
            accepts: |cx| $crate::attributes::takes(cx, 2, |dtype| dtype == ::heirloom_mem::DType::Bool),
            build,
        };

        fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
            $crate::attributes::only(cx, &[])?;
            Ok(Box::new($crate::elementwise::Plain(run)))
        }

        fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
            $crate::elementwise::common_type(cx, 2)?;
            $crate::elementwise::compare(
                cx,
                |tensor| $crate::elementwise::bools(tensor, 0),
                |a: u8, b: u8| {
                    let ($a, $b) = (a != 0, b != 0);
                    $body
                },
            )
        }
    };
}

/// An operation on the bits of two integers.
macro_rules! bits {
    ($op:literal, since $since:literal: $a:ident, $b:ident => $body:expr) => {
        use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

        pub(crate) const SPEC: KernelSpec = KernelSpec {
            domain: "",
            op: $op,
            versions: ($since, super::NEWEST),
            rank: 0,
            accepts: |cx| $crate::attributes::takes(cx, 2, $crate::attributes::is_integer),
            build,
        };

        fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
            $crate::attributes::only(cx, &[])?;
            Ok(Box::new($crate::elementwise::Plain(run)))
        }

        fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
            let dtype = $crate::elementwise::common_type(cx, 2)?;
            $crate::by_type::by_type!(dtype, [i64, i32, i16, i8, u64, u32, u16, u8], T => {
                $crate::elementwise::binary(cx, |$a: T, $b: T| $body)
            }, _ => Err($crate::elementwise::wrong_type(cx, 0, "integers")))
        }
    };
}

pub(crate) use bits;
pub(crate) use comparison;
pub(crate) use logic;
