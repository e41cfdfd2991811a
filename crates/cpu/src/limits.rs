//! What this processor and its memory can do at most, measured: the rates that those of kernels are compared with.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use heirloom_runtime::Team;
use heirloom_simd::{Isa, Kernel, Simd, prefetch};

/// Bytes of one stream between two looks at the other.
const RUN: usize = 4096;
const LINE: usize = 64;

/// Reads all of `payloads` once, each thread its own contiguous share of each as `streams` (1 or 2) streams side by side,
/// as products read weights. Gives the exclusive or of all their 64-bit words, of a last part of one too, so that nothing
/// is left out.
pub fn read(isa: Isa, payloads: &[&[u8]], streams: usize, team: &dyn Team) -> u64 {
    let threads = team.threads();
    let digest = AtomicU64::new(0);
    team.run(threads, &|worker| {
        for bytes in payloads {
            let share = bytes.len().div_ceil(threads).next_multiple_of(2 * RUN);
            let from = (worker * share).min(bytes.len());
            let bytes = &bytes[from..bytes.len().min(from + share)];
            let of_share = match streams {
                2 => isa.run(Read::<2> { bytes }),
                _ => isa.run(Read::<1> { bytes }),
            };
            digest.fetch_xor(of_share, Relaxed);
        }
    });
    digest.into_inner()
}

struct Read<'a, const STREAMS: usize> {
    bytes: &'a [u8],
}

impl<const STREAMS: usize> Kernel for Read<'_, STREAMS> {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> u64 {
        let mut sums = [s.splat(0); STREAMS];
        let groups = self.bytes.chunks_exact(STREAMS * RUN);
        let rest = groups.remainder();
        for group in groups {
            let mut at = 0;
            while at < RUN {
                for stream in 0..STREAMS {
                    if S::FAR > 0 {
                        prefetch::<true>(group, S::FAR + STREAMS * at + stream * LINE);
                    }
                    let line = group[stream * RUN + at..].first_chunk().expect("a line of the run");
                    sums[stream] = s.xor(sums[stream], s.load(line));
                }
                at += LINE;
            }
        }
        let mut digest = 0;
        for sum in sums {
            let mut line = [0; LINE];
            s.store(sum, &mut line);
            digest ^= words(&line);
        }
        digest ^ words(rest)
    }
}

/// The exclusive or of 64-bit words; zeros complete the last.
#[inline(always)]
fn words(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let last = rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
    words.iter().fold(last, |digest, word| digest ^ u64::from_le_bytes(*word))
}

/// Runs fused multiply-adds of FLOAT on registers alone, on each thread of `team`; gives how many operations that were
/// (two for each multiply-add).
pub fn float_operations(isa: Isa, rounds: usize, team: &dyn Team) -> u64 {
    on_each(team, || isa.run(FloatOperations { rounds }))
}

/// Multiplies 8-bit codes with 8-bit activations that lie in the nearest cache, as products of matrices do, on each
/// thread of `team`; gives how many operations that were (two for each product that is added).
pub fn integer_operations(isa: Isa, rounds: usize, team: &dyn Team) -> u64 {
    on_each(team, || isa.run(IntegerOperations { rounds }))
}

fn on_each(team: &dyn Team, work: impl Fn() -> u64 + Sync) -> u64 {
    let sum = AtomicU64::new(0);
    team.run(team.threads(), &|_| {
        sum.fetch_add(work(), Relaxed);
    });
    sum.into_inner()
}

/// Registers that are added to by turns: enough to hide how long one addition takes.
const CHAINS: usize = 12;

struct FloatOperations {
    rounds: usize,
}

impl Kernel for FloatOperations {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> u64 {
        let mut sums = [s.splat_f32x16(1.0); CHAINS];
        // Unknown to the compiler, and a fixed point of x * a + b for x = 1.
        let (a, b) = std::hint::black_box((0.5f32, 0.5f32));
        let (a, b) = (s.splat_f32x16(a), s.splat_f32x16(b));
        for _ in 0..self.rounds {
            for sum in &mut sums {
                *sum = s.fma_f32x16(*sum, a, b);
            }
        }
        let mut lanes = [0.0; 16];
        for sum in sums {
            s.store_f32x16(sum, &mut lanes);
            std::hint::black_box(&lanes);
        }
        (self.rounds * CHAINS * 16 * 2) as u64
    }
}

struct IntegerOperations {
    rounds: usize,
}

impl Kernel for IntegerOperations {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> u64 {
        const ROWS: usize = 8;
        let codes = std::hint::black_box([[3u8; 64]; 4]);
        let x = std::hint::black_box([[1u8; 16]; ROWS]);
        let rows: [&[u8; 16]; ROWS] = std::array::from_fn(|row| &x[row]);
        let mut sums = [s.start(&[0, 0], 0); ROWS];
        for _ in 0..self.rounds {
            s.add_products(&mut sums, &codes, rows);
        }
        for sum in sums {
            std::hint::black_box(s.to_f32x16(s.widen(sum)));
        }
        // Of each row's activations, 16 codes of 16 rows of weights.
        (self.rounds * ROWS * 16 * 16 * 2) as u64
    }
}

#[cfg(test)]
mod tests {
    use heirloom_simd::Isa;

    use super::{float_operations, integer_operations, read};
    use crate::ClaimTeam;

    #[test]
    fn reading_touches_every_byte_at_any_address_and_length_with_any_number_of_streams_and_threads() {
        let data: Vec<u8> = (0..70_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        for isa in Isa::available() {
            for threads in [1, 3] {
                let team = ClaimTeam::new(threads);
                for (from, to) in [(0, 70_000), (1, 69_999), (0, 8192), (5, 5), (3, 10)] {
                    let payloads = [&data[from..to], &data[..9000]];
                    let mut expected = [0u8; 8];
                    for bytes in payloads {
                        for (i, byte) in bytes.iter().enumerate() {
                            expected[i % 8] ^= byte;
                        }
                    }
                    for streams in [1, 2] {
                        assert_eq!(
                            read(isa, &payloads, streams, &team),
                            u64::from_le_bytes(expected),
                            "{from}..{to}, {streams} streams, {threads} threads, {}",
                            isa.level()
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn operations_are_counted_for_each_thread() {
        for isa in Isa::available() {
            assert_eq!(float_operations(isa, 10, &ClaimTeam::new(2)), 2 * 10 * 12 * 16 * 2);
            assert_eq!(integer_operations(isa, 10, &ClaimTeam::new(1)), 10 * 8 * 16 * 16 * 2);
        }
    }
}
