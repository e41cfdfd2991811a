//! Instruction-set tokens and safe register operations.
//!
//! A value of [`Portable`], [`Avx2`] or [`Avx512`] proves that the processor has the level's instructions; the
//! methods of [`Simd`] are therefore safe. Code that is generic over [`Simd`] runs at full speed when it is called
//! through [`Simd::vectorize`], which compiles it for the level.

mod isa;
mod portable;
mod simd;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use isa::{Isa, IsaError, Level};
pub use portable::Portable;
pub use simd::{
    BLOCK, BLOCKS, COARSE, HalfActivations, Kernel, LANE_OF_BLOCK, STEP, Simd, prefetch, prefetch_address,
};
#[cfg(target_arch = "x86_64")]
pub use x86::{Avx2, Avx512};
