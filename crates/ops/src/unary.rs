//! Operators whose result is one function of each element, declared by that function.

/// An operator on floats: `v` is an element in the type that it is computed in, which `W` names, and so are the FLOAT
/// attributes, each given with its default.
macro_rules! of_reals {
    ($op:literal, since $since:literal $(, $name:ident = $default:literal)*: $v:ident => $body:expr) => {
        use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

        pub(crate) const SPEC: KernelSpec = KernelSpec {
            domain: "",
            op: $op,
            versions: ($since, super::NEWEST),
            rank: 0,
            accepts: |cx| $crate::attributes::takes(cx, 1, $crate::attributes::is_real),
            build,
        };

        struct Node {
            $($name: f32,)*
        }

        fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
            $crate::attributes::only(cx, &[$(stringify!($name)),*])?;
            Ok(Box::new(Node { $($name: cx.node.attributes.float_or(stringify!($name), $default)?,)* }))
        }

        impl Kernel for Node {
            fn run(&self, cx: &mut RunCx<'_>) -> Result<(), KernelError> {
                #[allow(unused_imports)]
                use $crate::real::{Real, num::Wide};
                $crate::by_type::by_real!(cx.tensor(0)?.dtype(), T => {
                    #[allow(dead_code)]
                    type W = <T as Real>::Wide;
                    $(let $name = <W as Wide>::from_f32(self.$name);)*
                    $crate::elementwise::unary(cx, |v: T| {
                        let $v = v.widen();
                        T::narrow($body)
                    })
                }, _ => Err($crate::elementwise::wrong_type(cx, 0, "floating-point numbers")))
            }
        }
    };
}

/// An operator on all number types, without attributes: `v` is an element in the type that it is computed in.
macro_rules! of_numbers {
    ($op:literal, since $since:literal: $v:ident => $body:expr) => {
        use heirloom_runtime::{BuildCx, BuildError, Kernel, KernelError, KernelSpec, RunCx};

        pub(crate) const SPEC: KernelSpec = KernelSpec {
            domain: "",
            op: $op,
            versions: ($since, super::NEWEST),
            rank: 0,
            accepts: |cx| $crate::attributes::takes(cx, 1, $crate::attributes::is_number),
            build,
        };

        fn build(cx: &BuildCx<'_>) -> Result<Box<dyn Kernel>, BuildError> {
            $crate::attributes::only(cx, &[])?;
            Ok(Box::new($crate::elementwise::Plain(run)))
        }

        fn run(cx: &mut RunCx<'_>) -> Result<(), KernelError> {
            #[allow(unused_imports)]
            use $crate::scalar::{Numeric, Scalar};
            $crate::by_type::by_number!(cx.tensor(0)?.dtype(), T => {
                #[allow(dead_code)]
                type W = <T as Numeric>::Wide;
                $crate::elementwise::unary(cx, |v: T| {
                    let $v = v.up();
                    T::down($body)
                })
            }, _ => Err($crate::elementwise::wrong_type(cx, 0, "numbers")))
        }
    };
}

pub(crate) use of_numbers;
pub(crate) use of_reals;
