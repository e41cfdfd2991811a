//! How fast products are, beside a pure read of the same bytes: `products [FORMAT…] [--mb MEGABYTES] [--rows ROWS]`.
//!
//! For each format one line for each number of threads: matrix times vector in GB/s of weights (with the share of the
//! pure read's bandwidth, measured in turns with it), and matrix times matrix in GFLOP/s.
#![allow(clippy::print_stdout)]

use std::time::{Duration, Instant};

use heirloom_cpu::ClaimTeam;
use heirloom_cpu::matmul::{Bias, Call, Product};
use heirloom_formats::FORMATS;
use heirloom_runtime::{CancelToken, Team};
use heirloom_simd::{Isa, Kernel, Simd};

struct Read<'a>(&'a [u8]);

impl Kernel for Read<'_> {
    type Output = u64;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> u64 {
        let mut sums = [s.splat(0); 4];
        for chunk in self.0.as_chunks::<64>().0.as_chunks::<4>().0 {
            for (sum, bytes) in sums.iter_mut().zip(chunk) {
                *sum = s.xor(*sum, s.load(bytes));
            }
        }
        let mut out = [0; 64];
        s.store(s.xor(s.xor(sums[0], sums[1]), s.xor(sums[2], sums[3])), &mut out);
        u64::from(out[0])
    }
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

struct Setting<'a> {
    product: &'a Product,
    weight: &'a [u8],
    n: usize,
    k: usize,
    rows: usize,
}

/// The shortest of `times` runs.
fn best(setting: &Setting<'_>, team: &dyn Team, times: usize, mut between: impl FnMut()) -> Duration {
    let &Setting { product, weight, n, k, rows } = setting;
    let x: Vec<f32> = (0..rows * k).map(|i| (i * 7919 % 2003) as f32 / 1001.5 - 1.0).collect();
    let mut out = vec![0.0; rows * n];
    let mut activation_scratch = vec![0; product.activation_bytes(rows, k)];
    let mut scratch = vec![0; product.scratch_bytes(rows, k, team.threads())];
    let cancel = CancelToken::new();
    (0..times)
        .map(|_| {
            between();
            time(|| {
                let activations = product.activations(&x, rows, k, &mut activation_scratch, team);
                let (out, scratch) = (&mut out[..], &mut scratch[..]);
                let (alpha, bias, cancel) = (1.0, Bias::None, &cancel);
                let call = Call { activations, weight, n, alpha, bias, out, scratch, team, cancel };
                product.run(call).expect("nobody cancels");
            })
        })
        .min()
        .expect("at least one run")
}

fn main() {
    let (mut names, mut megabytes, mut rows) = (Vec::new(), 200, 512);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|a| a.parse().ok()).expect("a number");
        match argument.as_str() {
            "--mb" => megabytes = number(),
            "--rows" => rows = number(),
            _ => names.push(argument),
        }
    }
    let isa = Isa::selected().expect("a level of this processor");
    println!("level {}; GB/s (share of the pure read); GFLOP/s at {rows} rows", isa.level());
    let mut bytes = vec![0u8; megabytes << 20];
    let mut state = 1u64;
    for word in bytes.as_chunks_mut::<8>().0 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Bytes below 128 of which no two make a FLOAT16 that is not finite.
        *word = (state >> 1 & 0x3b3b_3b3b_3b3b_3b3b).to_le_bytes();
    }
    for format in FORMATS.iter().filter(|f| names.is_empty() || names.iter().any(|n| *n == f.name)) {
        let product = Product::of_format(isa, format);
        if names.is_empty() && !product.quantizes() {
            continue;
        }
        for threads in [1, 2] {
            let team = ClaimTeam::new(threads);
            let mut line = format!("{:<6} {threads} threads:", format.name);
            for k in [896, 4864, 768].into_iter().filter(|k| k % format.elements == 0).take(2) {
                let row_bytes = product.row_bytes(k);
                let n = bytes.len() / row_bytes;
                let weight = &bytes[..n * row_bytes];
                let setting = Setting { product: &product, weight, n, k, rows: 1 };
                let mut read = Duration::MAX;
                let vector = best(&setting, &team, 5, || {
                    let each = weight.len() / (8 * threads);
                    read = read.min(time(|| {
                        team.run(8 * threads, &|task| {
                            std::hint::black_box(isa.run(Read(&weight[task * each..(task + 1) * each])));
                        });
                    }));
                });
                let speed = |t: Duration| weight.len() as f64 / t.as_secs_f64() / 1e9;
                let (vector, read) = (speed(vector), speed(read));
                let hot = 64 * 1024 / row_bytes;
                let weight = &bytes[..hot * row_bytes];
                let setting = Setting { product: &product, weight, n: hot, k, rows: 1 };
                let hot = weight.len() as f64 / best(&setting, &team, 2000, || {}).as_secs_f64() / 1e9;
                // Few rows of weights for each thread make short runs, of which some are undisturbed.
                let n = 128 * threads;
                let setting = Setting { product: &product, weight: &bytes[..n * row_bytes], n, k, rows };
                let flops = 2.0 * (n * k * rows) as f64;
                let matrix = flops / best(&setting, &team, 30, || {}).as_secs_f64() / 1e9;
                line += &format!(
                    "  k {k}: {vector:5.1} ({:3.0} %), hot {hot:5.1}; {matrix:6.1}",
                    100.0 * vector / read
                );
            }
            println!("{line}");
        }
    }
}
