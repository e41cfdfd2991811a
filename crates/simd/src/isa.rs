//! The levels, and which of them this processor has.

use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use crate::{Avx2, Avx512};
use crate::{Kernel, Portable, Simd};

/// An instruction-set level, lowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Plain Rust.
    Portable,
    /// AVX2, FMA and F16C.
    Avx2,
    /// AVX-512 F, BW, DQ, VL and VNNI, and all of [`Level::Avx2`].
    Avx512,
}

impl Level {
    /// All levels, lowest first.
    pub const ALL: [Level; 3] = [Level::Portable, Level::Avx2, Level::Avx512];

    /// The name that `HEIRLOOM_ISA` takes.
    pub fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Avx2 => "avx2",
            Level::Avx512 => "avx512",
        }
    }
}

impl std::fmt::Display for Level {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a level cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IsaError {
    /// `HEIRLOOM_ISA` has a value that names no level.
    Unknown {
        /// The value.
        value: String,
    },
    /// The processor lacks instructions of the level.
    Missing {
        /// The level asked for.
        asked: Level,
        /// The highest level of this processor.
        best: Level,
    },
}

impl std::fmt::Display for IsaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            IsaError::Unknown { value } => {
                write!(
                    f,
                    "`HEIRLOOM_ISA` is `{value}`: set it to `portable`, `avx2` or `avx512`, or unset it"
                )
            }
            IsaError::Missing { asked, best } => {
                write!(
                    f,
                    "this processor lacks instructions of level `{asked}`: its highest level is `{best}`"
                )
            }
        }
    }
}

impl std::error::Error for IsaError {}

/// A level together with the proof that this processor has it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Isa {
    /// Plain Rust.
    Portable(Portable),
    /// AVX2, FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AVX-512 with VNNI.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

impl Isa {
    /// `level` on this processor.
    ///
    /// # Errors
    /// [`IsaError::Missing`].
    pub fn new(level: Level) -> Result<Isa, IsaError> {
        let isa = match level {
            Level::Portable => Some(Isa::Portable(Portable)),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Avx2::detect().map(Isa::Avx2),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Avx512::detect().map(Isa::Avx512),
            #[cfg(not(target_arch = "x86_64"))]
            _ => None,
        };
        isa.ok_or_else(|| IsaError::Missing { asked: level, best: Isa::best().level() })
    }

    /// The levels of this processor, lowest first.
    pub fn available() -> impl Iterator<Item = Isa> {
        Level::ALL.into_iter().filter_map(|level| match level {
            Level::Portable => Some(Isa::Portable(Portable)),
            #[cfg(target_arch = "x86_64")]
            Level::Avx2 => Avx2::detect().map(Isa::Avx2),
            #[cfg(target_arch = "x86_64")]
            Level::Avx512 => Avx512::detect().map(Isa::Avx512),
            #[cfg(not(target_arch = "x86_64"))]
            _ => None,
        })
    }

    /// The highest level of this processor.
    pub fn best() -> Isa {
        Isa::available().last().unwrap_or(Isa::Portable(Portable))
    }

    /// The level that a value of the variable `HEIRLOOM_ISA` asks for; the highest where it is not set.
    ///
    /// # Errors
    /// When the value names no level, or one that this processor lacks.
    pub fn parse(value: Option<&str>) -> Result<Isa, IsaError> {
        let Some(value) = value.filter(|v| !v.is_empty()) else { return Ok(Isa::best()) };
        let level = Level::ALL.into_iter().find(|l| l.name().eq_ignore_ascii_case(value));
        Isa::new(level.ok_or_else(|| IsaError::Unknown { value: value.into() })?)
    }

    /// The level of this process: `HEIRLOOM_ISA` (`portable`, `avx2` or `avx512`) where it is set, else the highest
    /// of this processor. Read once.
    ///
    /// # Errors
    /// As for [`Isa::parse`].
    pub fn selected() -> Result<Isa, IsaError> {
        static SELECTED: OnceLock<Result<Isa, IsaError>> = OnceLock::new();
        SELECTED
            .get_or_init(|| {
                let value = std::env::var_os("HEIRLOOM_ISA");
                Isa::parse(value.as_deref().map(|v| v.to_string_lossy()).as_deref())
            })
            .clone()
    }

    /// The level.
    pub fn level(self) -> Level {
        match self {
            Isa::Portable(_) => Level::Portable,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(_) => Level::Avx2,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(_) => Level::Avx512,
        }
    }

    /// Runs `kernel`, compiled for this level.
    pub fn run<K: Kernel>(self, kernel: K) -> K::Output {
        match self {
            Isa::Portable(simd) => simd.vectorize(kernel),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2(simd) => simd.vectorize(kernel),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512(simd) => simd.vectorize(kernel),
        }
    }
}
