//! Vectors of f32 lanes: what attention, norms and activations are written with, once for every level.

mod portable;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

use half::{bf16, f16};

use heirloom_runtime::BuildError;
#[cfg(target_arch = "x86_64")]
use heirloom_simd::{Avx2, Avx512};
use heirloom_simd::{Isa, Portable};

/// The level that kernels are built for: `HEIRLOOM_ISA`, or the best of this processor.
///
/// # Errors
/// When the variable names no level or one that the processor lacks.
pub(crate) fn selected() -> Result<Isa, BuildError> {
    Isa::selected().map_err(|e| BuildError::Unsupported {
        name: "HEIRLOOM_ISA".into(),
        value: std::env::var("HEIRLOOM_ISA").unwrap_or_default(),
        reason: e.to_string(),
    })
}

/// f32 lanes per register of a level.
pub(crate) fn count(isa: Isa) -> usize {
    match isa {
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2(_) => Avx2::N,
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512(_) => Avx512::N,
        _ => Portable::N,
    }
}

/// A level's f32 vectors. A value of an implementing type proves that the processor has the level's instructions;
/// all methods are inlined into drivers that are compiled for them.
pub(crate) trait Lanes: Copy {
    /// A register of `N` lanes.
    type V: Copy;
    /// Lanes per register.
    const N: usize;

    fn splat(self, x: f32) -> Self::V;
    /// The first `N` elements.
    fn load(self, from: &[f32]) -> Self::V;
    /// Writes the first `N` elements.
    fn store(self, to: &mut [f32], v: Self::V);
    fn load_f16(self, from: &[f16]) -> Self::V;
    fn load_bf16(self, from: &[bf16]) -> Self::V;
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// `a * b + c`
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The larger; `b` where either is NaN.
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    /// The smaller; `b` where either is NaN.
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    /// To the nearest whole number.
    fn round(self, a: Self::V) -> Self::V;
    /// `a * 2^n` for whole `n` within -126..=127.
    fn mul_pow2(self, a: Self::V, n: Self::V) -> Self::V;
    /// 0 where `x < bound`, else (where `x` is NaN too) `r`.
    #[inline(always)]
    fn zero_below(self, x: Self::V, bound: Self::V, r: Self::V) -> Self::V {
        self.select_below(x, bound, self.splat(0.0), r)
    }
    /// `below` where `x < bound`, else (where `x` is NaN too) `otherwise`.
    fn select_below(self, x: Self::V, bound: Self::V, below: Self::V, otherwise: Self::V) -> Self::V;
    fn sum(self, a: Self::V) -> f32;
    fn largest(self, a: Self::V) -> f32;
    /// The sums of four registers.
    #[inline(always)]
    fn sum4(self, v: [Self::V; 4]) -> [f32; 4] {
        [self.sum(v[0]), self.sum(v[1]), self.sum(v[2]), self.sum(v[3])]
    }

    /// e^x to within 1 ULP (2 where [`Lanes::fma`] rounds twice); 0 below -86.6, infinite where no `f32` is as large,
    /// NaN of NaN. Cody–Waite reduction to |r| <= ln 2 / 2 and a polynomial `1 + r + r² P(r)` of least maximal error.
    #[inline(always)]
    fn exp(self, x: Self::V) -> Self::V {
        let low = self.splat(-86.6);
        let clamped = self.max(low, self.min(self.splat(89.0), x));
        let n = self.round(self.mul(clamped, self.splat(std::f32::consts::LOG2_E)));
        // ln 2 in two parts: the first has few enough bits that n times it is exact.
        let r = self.fma(n, self.splat(-0.693_359_4), clamped);
        let r = self.fma(n, self.splat(2.121_944_4e-4), r);
        let mut p = self.splat(0.001_395_048);
        p = self.fma(p, r, self.splat(0.008_368_889));
        p = self.fma(p, r, self.splat(0.041_666_206));
        p = self.fma(p, r, self.splat(0.166_665_18));
        p = self.fma(p, r, self.splat(0.5));
        p = self.fma(p, r, self.splat(1.0));
        p = self.fma(p, r, self.splat(1.0));
        // Doubled before, since 2^128 is no number.
        let scaled = self.mul_pow2(self.add(p, p), self.sub(n, self.splat(1.0)));
        self.select_below(x, low, self.splat(0.0), scaled)
    }
}

/// Compiles a function over [`Lanes`] once for each level and picks one at run time:
/// `fn name(s, x: &[f32], …) { … }` becomes `fn name(isa: Isa, x: &[f32], …)`; in its body `S` is the level's
/// type and `s` its token.
macro_rules! for_level {
    ($(#[$doc:meta])* fn $name:ident($s:ident $(, $arg:ident : $ty:ty)* $(,)?) $body:block) => {
        $(#[$doc])*
        pub(crate) fn $name(isa: ::heirloom_simd::Isa, $($arg: $ty),*) {
            #[inline(always)]
            fn body<S: $crate::lanes::Lanes>($s: S $(, $arg: $ty)*) $body
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma,f16c")]
            fn avx2(s: ::heirloom_simd::Avx2 $(, $arg: $ty)*) {
                body(s $(, $arg)*);
            }
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]
            fn avx512(s: ::heirloom_simd::Avx512 $(, $arg: $ty)*) {
                body(s $(, $arg)*);
            }
            match isa {
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the token proves the features.
                ::heirloom_simd::Isa::Avx2(s) => unsafe { avx2(s $(, $arg)*) },
                #[cfg(target_arch = "x86_64")]
                // SAFETY: the token proves the features.
                ::heirloom_simd::Isa::Avx512(s) => unsafe { avx512(s $(, $arg)*) },
                _ => body(::heirloom_simd::Portable $(, $arg)*),
            }
        }
    };
}
pub(crate) use for_level;

/// An element type of caches and activations that lanes load and store.
pub(crate) trait LaneElement: heirloom_mem::Element {
    fn load<S: Lanes>(s: S, from: &[Self]) -> S::V;
    fn to_f32(self) -> f32;
    fn from_f32(x: f32) -> Self;
}

impl LaneElement for f32 {
    #[inline(always)]
    fn load<S: Lanes>(s: S, from: &[f32]) -> S::V {
        s.load(from)
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self
    }
    #[inline(always)]
    fn from_f32(x: f32) -> f32 {
        x
    }
}

impl LaneElement for f16 {
    #[inline(always)]
    fn load<S: Lanes>(s: S, from: &[f16]) -> S::V {
        s.load_f16(from)
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self.to_f32()
    }
    #[inline(always)]
    fn from_f32(x: f32) -> f16 {
        f16::from_f32(x)
    }
}

impl LaneElement for bf16 {
    #[inline(always)]
    fn load<S: Lanes>(s: S, from: &[bf16]) -> S::V {
        s.load_bf16(from)
    }
    #[inline(always)]
    fn to_f32(self) -> f32 {
        self.to_f32()
    }
    #[inline(always)]
    fn from_f32(x: f32) -> bf16 {
        bf16::from_f32(x)
    }
}
