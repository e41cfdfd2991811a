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

/// One kind of product, with what it needs to run.
struct Setting<'a> {
    product: &'a Product,
    k: usize,
    rows: usize,
    team: &'a dyn Team,
    x: Vec<f32>,
    activations: Vec<u8>,
    scratch: Vec<u8>,
    out: Vec<f32>,
}

impl<'a> Setting<'a> {
    fn new(product: &'a Product, n: usize, k: usize, rows: usize, team: &'a dyn Team) -> Setting<'a> {
        Setting {
            product,
            k,
            rows,
            team,
            x: (0..rows * k).map(|i| (i * 7919 % 2003) as f32 / 1001.5 - 1.0).collect(),
            activations: vec![0; product.activation_bytes(rows, k)],
            scratch: vec![0; product.scratch_bytes(rows, k, team.threads())],
            out: vec![0.0; rows * n],
        }
    }

    fn run(&mut self, weight: &[u8]) -> f64 {
        let start = Instant::now();
        let Setting { product, k, rows, team, .. } = *self;
        let activations = product.activations(&self.x, rows, k, &mut self.activations, team);
        let n = self.out.len() / rows;
        let (out, scratch) = (&mut self.out[..], &mut self.scratch[..]);
        let (alpha, bias, cancel) = (1.0, Bias::None, &CancelToken::new());
        let call = Call { activations, weight, n, alpha, bias, out, scratch, team, cancel };
        product.run(call).expect("nobody cancels");
        start.elapsed().as_secs_f64()
    }
}

/// The time that a tenth of the runs stay below: other programs disturb the rest.
fn quick(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 10]
}

/// The speeds in GB/s of products with a vector, and of a pure read, in turns over windows of `bytes`, which is more
/// than the caches hold.
fn stream(isa: Isa, product: &Product, k: usize, bytes: &[u8], team: &dyn Team) -> (f64, f64) {
    let row_bytes = product.row_bytes(k);
    // About the size of the largest matrices of a layer.
    let n = (3 << 20) / row_bytes;
    let mut setting = Setting::new(product, n, k, 1, team);
    let (mut reads, mut products) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(1500) {
        for (i, window) in bytes.chunks_exact(n * row_bytes).enumerate() {
            if i % 2 == 0 {
                products.push(setting.run(window));
            } else {
                let (start, parts) = (Instant::now(), 4 * team.threads());
                let each = window.len() / parts;
                team.run(parts, &|part| {
                    std::hint::black_box(isa.run(Read(&window[part * each..(part + 1) * each])));
                });
                reads.push(start.elapsed().as_secs_f64());
            }
        }
    }
    let speed = |times: &mut [f64]| (n * row_bytes) as f64 / quick(times) / 1e9;
    (speed(&mut products), speed(&mut reads))
}

/// GFLOP/s of products with `rows` rows.
fn matrix(product: &Product, k: usize, rows: usize, bytes: &[u8], team: &dyn Team) -> f64 {
    // Few rows of weights for each thread make short runs, of which some are undisturbed.
    let n = 128 * team.threads();
    let weight = &bytes[..n * product.row_bytes(k)];
    let mut setting = Setting::new(product, n, k, rows, team);
    let mut times: Vec<f64> = (0..30).map(|_| setting.run(weight)).collect();
    2.0 * (n * k * rows) as f64 / quick(&mut times) / 1e9
}

/// GB/s of a product with a vector of weights in the second-level cache.
fn cached(product: &Product, k: usize, bytes: &[u8], team: &dyn Team) -> f64 {
    let n = team.threads() * 128 * 1024 / product.row_bytes(k);
    let weight = &bytes[..n * product.row_bytes(k)];
    let mut setting = Setting::new(product, n, k, 1, team);
    let mut times: Vec<f64> = (0..4000).map(|_| setting.run(weight)).collect();
    weight.len() as f64 / quick(&mut times) / 1e9
}

fn main() {
    let (mut names, mut rows) = (Vec::new(), 512);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--rows" => rows = arguments.next().and_then(|a| a.parse().ok()).expect("a number of rows"),
            _ => names.push(argument),
        }
    }
    let isa = Isa::selected().expect("a level of this processor");
    let mut bytes = vec![0u8; 200 << 20];
    let mut state = 1u64;
    for word in bytes.as_chunks_mut::<8>().0 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Of these bytes no two make a FLOAT16 that is not finite.
        *word = (state >> 1 & 0x3b3b_3b3b_3b3b_3b3b).to_le_bytes();
    }
    println!("level {}", isa.level());
    println!("format threads     k   GB/s  of a read  cached   GFLOP/s at {rows} rows");
    for format in FORMATS {
        let product = Product::of_format(isa, format);
        let wanted = names.iter().any(|n| n == format.name) || names.is_empty() && product.quantizes();
        for threads in [1, 2] {
            if !wanted {
                continue;
            }
            let team = ClaimTeam::new(threads);
            for k in [896, 4864, 768].into_iter().filter(|k| k % format.elements == 0).take(2) {
                let (vector, read) = stream(isa, &product, k, &bytes, &team);
                let (cached, matrix) =
                    (cached(&product, k, &bytes, &team), matrix(&product, k, rows, &bytes, &team));
                let (name, share) = (format.name, 100.0 * vector / read);
                println!(
                    "{name:<6} {threads:>7} {k:>5} {vector:>6.1} {share:>8.0} % {cached:>7.1} {matrix:>9.1}"
                );
            }
        }
    }
}
