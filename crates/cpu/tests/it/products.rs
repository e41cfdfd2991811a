//! Products against their definition in `f64`, at every level of this processor, for every format.

use heirloom_cpu::ClaimTeam;
use heirloom_cpu::matmul::{Activations, Bias, Call, Product, ProductError};
use heirloom_formats::{FORMATS, Format};
use heirloom_mem::DType;
use heirloom_runtime::{CancelToken, Inline, Team};
use heirloom_simd::{Isa, Level};
use heirloom_types::Codec;

/// A small generator (splitmix64), so that failures repeat.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
    /// Within -1..1.
    pub(crate) fn float(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    }
    pub(crate) fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.float()).collect()
    }
}

/// Where the records of formats whose bytes are not all codes have FLOAT16 values.
pub(crate) fn f16_fields(format: &Format) -> &'static [usize] {
    match format.name {
        "q4_0" | "q5_0" | "q8_0" | "iq4_nl" | "iq4_xs" => &[0],
        "q4_1" | "q5_1" | "q4_k" | "q5_k" => &[0, 2],
        "q2_k" => &[80, 82],
        "q3_k" => &[108],
        "q6_k" => &[208],
        "tq1_0" => &[52],
        "tq2_0" => &[64],
        _ => &[],
    }
}

/// Any bytes, but finite scales; encoded values where the bytes are not mostly codes.
pub(crate) fn records(format: &Format, elements: usize, random: &mut Random) -> Vec<u8> {
    let count = elements / format.elements;
    if f16_fields(format).is_empty() && format.name != "mxfp4" {
        let mut bytes = vec![0; count * format.record_bytes];
        format.encode(&random.floats(elements), &mut bytes).expect("finite values");
        return bytes;
    }
    let mut bytes: Vec<u8> = (0..count * format.record_bytes).map(|_| random.next() as u8).collect();
    for record in bytes.chunks_exact_mut(format.record_bytes) {
        for &at in f16_fields(format) {
            let [low, high] = half::f16::from_f32(random.float() * 0.1).to_le_bytes();
            record[at] = low;
            record[at + 1] = high;
        }
        if format.name == "mxfp4" {
            record[0] = 120 + (random.next() % 8) as u8;
        }
    }
    bytes
}

/// What a product does, once.
pub(crate) fn run(
    product: &Product,
    x: &[f32],
    rows: usize,
    weight: &[u8],
    (n, k): (usize, usize),
    (alpha, bias): (f32, Bias<'_>),
    team: &dyn Team,
) -> Vec<f32> {
    let mut activation_scratch = vec![0xaa; product.activation_bytes(rows, k)];
    let mut scratch = vec![0xaa; product.scratch_bytes(rows, k, team.threads())];
    let mut out = vec![f32::NAN; rows * n];
    let activations = product.activations(x, rows, k, &mut activation_scratch, team);
    let cancel = CancelToken::new();
    let (out_slice, scratch) = (&mut out[..], &mut scratch[..]);
    product
        .run(Call { activations, weight, n, alpha, bias, out: out_slice, scratch, team, cancel: &cancel })
        .expect("nobody cancels and any bytes are a record");
    out
}

/// How far a product may be from the exact one: half a quantization step of every activation, and rounding.
struct Bound {
    exact: f64,
    bound: f64,
}

fn bound(x: &[f32], w: &[f32], quantized: bool) -> Bound {
    let (mut exact, mut step_error, mut size) = (0.0, 0.0, 0.0);
    for (x, w) in x.chunks(32).zip(w.chunks(32)) {
        let largest = x.iter().fold(0.0f32, |m, x| m.max(x.abs()));
        let widest = w.iter().fold(0.0f32, |m, w| m.max(w.abs()));
        let weights: f64 = w.iter().map(|w| f64::from(w.abs())).sum();
        exact += x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum::<f64>();
        step_error += f64::from(largest) / 8128.0 * 0.5001 * weights;
        // Codes before offset or minimum are at most a few times as large as the widest weight of a random block.
        size += 32.0 * f64::from(largest) * 4.0 * f64::from(widest);
    }
    // f32 sums of at most k terms, made in eight parts.
    let rounding = size * f64::from(f32::EPSILON) * 4.0 + 1e-7;
    Bound { exact, bound: rounding + if quantized { step_error } else { 0.0 } }
}

fn check(product: &Product, format: &str, x: &[f32], rows: usize, w: &[f32], k: usize, out: &[f32]) {
    let n = w.len() / k;
    for m in 0..rows {
        for j in 0..n {
            let Bound { exact, bound } =
                bound(&x[m * k..(m + 1) * k], &w[j * k..(j + 1) * k], product.quantizes());
            let y = f64::from(out[m * n + j]);
            assert!(
                (y - exact).abs() <= bound,
                "{format} at {:?}, k {k}, row {m} of {rows}, column {j}: {y} is not within {bound} of {exact}",
                product.isa().level(),
            );
        }
    }
}

pub(crate) fn decoded(format: &Format, bytes: &[u8]) -> Vec<f32> {
    let mut values = vec![0.0; bytes.len() / format.record_bytes * format.elements];
    format.decode(bytes, &mut values).expect("whole records");
    values
}

/// Widths to try: whole steps, halves of steps, and odd tails, as far as the records allow.
pub(crate) fn widths(format: &Format) -> Vec<usize> {
    let all = [32, 64, 96, 128, 160, 224, 256, 288, 416, 576, 896, 1024, 1536, 4864];
    all.into_iter().filter(|k| k % format.elements == 0).collect()
}

#[test]
fn products_are_within_half_a_quantization_step_of_the_decoded_weights() {
    let mut random = Random(1);
    for isa in Isa::available() {
        for format in FORMATS {
            let product = Product::of_format(isa, format);
            for k in widths(format) {
                let n = if k > 1024 { 5 } else { 37 };
                let bytes = records(format, n * k, &mut random);
                let w = decoded(format, &bytes);
                for rows in [1, 2, 3, 4, 5, 8, 17] {
                    let x = random.floats(rows * k);
                    let out = run(&product, &x, rows, &bytes, (n, k), (1.0, Bias::None), &Inline);
                    check(&product, format.name, &x, rows, &w, k, &out);
                }
            }
        }
    }
}

#[test]
fn the_portable_level_is_exact_to_rounding() {
    let mut random = Random(2);
    let isa = Isa::new(Level::Portable).expect("every processor has it");
    for format in FORMATS {
        let product = Product::of_format(isa, format);
        assert!(!product.quantizes());
        let (n, k, rows) = (9, 512, 6);
        let bytes = records(format, n * k, &mut random);
        let w = decoded(format, &bytes);
        let x = random.floats(rows * k);
        let out = run(&product, &x, rows, &bytes, (n, k), (1.0, Bias::None), &Inline);
        for m in 0..rows {
            for j in 0..n {
                let terms = (0..k).map(|i| f64::from(x[m * k + i]) * f64::from(w[j * k + i]));
                let (exact, size) = terms.fold((0.0, 0.0), |(e, s), t| (e + t, s + t.abs()));
                assert!((f64::from(out[m * n + j]) - exact).abs() <= 1e-6 * size, "{}", format.name);
            }
        }
    }
}

// Decoding must give the same numbers as prefill, and one thread the same as several.
#[test]
fn a_row_has_the_same_bits_whatever_the_number_of_rows_and_threads() {
    let mut random = Random(3);
    let team = ClaimTeam::new(3);
    for isa in Isa::available() {
        for format in FORMATS {
            let product = Product::of_format(isa, format);
            if !product.quantizes() {
                continue;
            }
            for k in [256, 768, 4864, 896, 576, 32] {
                if k % format.elements != 0 {
                    continue;
                }
                let (n, rows) = (67, 41);
                let bytes = records(format, n * k, &mut random);
                let x = random.floats(rows * k);
                let bias = random.floats(n);
                let how = (0.75, Bias::Row(&bias));
                let all = run(&product, &x, rows, &bytes, (n, k), how, &team);
                for m in [0, 1, 7, rows - 1] {
                    let one = run(&product, &x[m * k..(m + 1) * k], 1, &bytes, (n, k), how, &Inline);
                    assert_eq!(one, all[m * n..(m + 1) * n], "{} at {:?}, k {k}", format.name, isa.level());
                }
                for few in 2..=5 {
                    let some = run(&product, &x[..few * k], few, &bytes, (n, k), how, &Inline);
                    assert_eq!(some, all[..few * n], "{} at {:?}, {few} rows", format.name, isa.level());
                }
            }
        }
    }
}

#[test]
fn extreme_codes_and_activations_do_not_saturate() {
    for isa in Isa::available() {
        for format in FORMATS {
            let product = Product::of_format(isa, format);
            if f16_fields(format).is_empty() {
                continue;
            }
            for byte in [0x00, 0xff, 0x80, 0x7f] {
                for sign in [1.0, -1.0] {
                    let (n, k) = (17, 1536);
                    let mut bytes = vec![byte; n * k / format.elements * format.record_bytes];
                    for record in bytes.chunks_exact_mut(format.record_bytes) {
                        for &at in f16_fields(format) {
                            // 1.0
                            record[at] = 0;
                            record[at + 1] = 0x3c;
                        }
                    }
                    let w = decoded(format, &bytes);
                    for rows in [1, 6] {
                        let x = vec![sign * 3.0; rows * k];
                        let out = run(&product, &x, rows, &bytes, (n, k), (1.0, Bias::None), &Inline);
                        let exact: f64 = w[..k].iter().map(|w| f64::from(*w) * f64::from(sign) * 3.0).sum();
                        let size: f64 = w[..k].iter().map(|w| f64::from(w.abs()) * 3.0).sum::<f64>() + 500.0;
                        for y in out {
                            assert!(
                                (f64::from(y) - exact).abs() <= 1e-5 * size,
                                "{} of {byte:#x} at {:?}: {y} for {exact}",
                                format.name,
                                isa.level()
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn weights_may_begin_at_any_byte() {
    let mut random = Random(4);
    for isa in Isa::available() {
        for format in FORMATS {
            let product = Product::of_format(isa, format);
            let (n, k) = (5, 768);
            let bytes = records(format, n * k, &mut random);
            let x = random.floats(6 * k);
            for rows in [1, 6] {
                let x = &x[..rows * k];
                let expected = run(&product, x, rows, &bytes, (n, k), (1.0, Bias::None), &Inline);
                for shift in [1, 2, 3, 13, 63] {
                    let mut shifted = vec![0; shift];
                    shifted.extend(&bytes);
                    let out = run(&product, x, rows, &shifted[shift..], (n, k), (1.0, Bias::None), &Inline);
                    assert_eq!(out, expected, "{} at {:?}", format.name, isa.level());
                }
            }
        }
    }
}

#[test]
fn float_weights_are_multiplied_in_floats() {
    let mut random = Random(5);
    for isa in Isa::available() {
        for dtype in [DType::Float, DType::Float16, DType::BFloat16] {
            let product = Product::of_dtype(isa, dtype).expect("a float type");
            for k in [1, 7, 8, 16, 31, 32, 100, 257, 896] {
                let n = 19;
                let values = random.floats(n * k);
                let (mut bytes, mut w) = (Vec::new(), Vec::new());
                for v in values {
                    match dtype {
                        DType::Float => {
                            bytes.extend(v.to_le_bytes());
                            w.push(v);
                        }
                        DType::Float16 => {
                            bytes.extend(half::f16::from_f32(v).to_le_bytes());
                            w.push(half::f16::from_f32(v).to_f32());
                        }
                        _ => {
                            bytes.extend(half::bf16::from_f32(v).to_le_bytes());
                            w.push(half::bf16::from_f32(v).to_f32());
                        }
                    }
                }
                for rows in [1, 2, 3, 4, 5, 13, 25] {
                    let x = random.floats(rows * k);
                    let out = run(&product, &x, rows, &bytes, (n, k), (1.0, Bias::None), &Inline);
                    check(&product, "float", &x, rows, &w, k, &out);
                }
                let mut row = vec![0.0; k];
                product.decode_row(&bytes, 3, &mut row).expect("floats");
                assert_eq!(row, w[3 * k..4 * k]);
            }
        }
    }
    assert!(Product::of_dtype(Isa::best(), DType::Int64).is_none());
}

#[test]
fn alpha_and_bias_are_applied() {
    let mut random = Random(6);
    let format = heirloom_formats::by_name("q8_0").expect("in the table");
    for isa in Isa::available() {
        let product = Product::of_format(isa, format);
        let (n, k) = (23, 64);
        let bytes = records(format, n * k, &mut random);
        for rows in [3, 9] {
            let x = random.floats(rows * k);
            let (row, full) = (random.floats(n), random.floats(rows * n));
            let plain = run(&product, &x, rows, &bytes, (n, k), (1.0, Bias::None), &Inline);
            let scaled = run(&product, &x, rows, &bytes, (n, k), (0.5, Bias::None), &Inline);
            let with_row = run(&product, &x, rows, &bytes, (n, k), (2.0, Bias::Row(&row)), &Inline);
            let with_full = run(&product, &x, rows, &bytes, (n, k), (2.0, Bias::Full(&full)), &Inline);
            for i in 0..rows * n {
                assert_eq!(scaled[i], 0.5 * plain[i]);
                assert_eq!(with_row[i], 2.0 * plain[i] + row[i % n]);
                assert_eq!(with_full[i], 2.0 * plain[i] + full[i]);
            }
        }
    }
}

#[test]
fn one_quantization_serves_products_of_different_formats() {
    let mut random = Random(7);
    let (n, k) = (12, 512);
    let x = random.floats(k);
    for isa in Isa::available().filter(|isa| isa.level() != Level::Portable) {
        let mut scratch = vec![0; Activations::quantized_bytes(1, k)];
        let activations = Activations::quantized(isa, &x, 1, k, &mut scratch, &Inline);
        for name in ["q4_0", "q6_k", "q8_0", "q5_k"] {
            let format = heirloom_formats::by_name(name).expect("in the table");
            let product = Product::of_format(isa, format);
            let weight = records(format, n * k, &mut random);
            let expected = run(&product, &x, 1, &weight, (n, k), (1.0, Bias::None), &Inline);
            let mut out = vec![0.0; n];
            let call = Call {
                activations,
                weight: &weight,
                n,
                alpha: 1.0,
                bias: Bias::None,
                out: &mut out,
                scratch: &mut [],
                team: &Inline,
                cancel: &CancelToken::new(),
            };
            product.run(call).expect("nobody cancels");
            assert_eq!(out, expected, "{name}");
        }
    }
}

#[test]
fn activations_that_are_not_finite_give_nan_in_their_row_alone() {
    let mut random = Random(8);
    let format = heirloom_formats::by_name("q4_0").expect("in the table");
    for isa in Isa::available() {
        let product = Product::of_format(isa, format);
        let (n, k) = (20, 256);
        let bytes = records(format, n * k, &mut random);
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = random.floats(7 * k);
            x[2 * k + 100] = bad;
            let out = run(&product, &x, 7, &bytes, (n, k), (1.0, Bias::None), &Inline);
            for (i, y) in out.iter().enumerate() {
                assert_eq!(y.is_finite(), i / n != 2, "row {}: {y}", i / n);
            }
        }
    }
}

#[test]
fn a_cancelled_product_says_so() {
    let mut random = Random(9);
    let format = heirloom_formats::by_name("q4_0").expect("in the table");
    let cancel = CancelToken::new();
    cancel.cancel();
    for isa in Isa::available() {
        let product = Product::of_format(isa, format);
        let (n, k) = (64, 256);
        let weight = records(format, n * k, &mut random);
        for rows in [1, 9] {
            let x = random.floats(rows * k);
            let mut activation_scratch = vec![0; product.activation_bytes(rows, k)];
            let mut scratch = vec![0; product.scratch_bytes(rows, k, 1)];
            let result = product.run(Call {
                activations: product.activations(&x, rows, k, &mut activation_scratch, &Inline),
                weight: &weight,
                n,
                alpha: 1.0,
                bias: Bias::None,
                out: &mut vec![0.0; rows * n],
                scratch: &mut scratch,
                team: &Inline,
                cancel: &cancel,
            });
            assert!(matches!(result, Err(ProductError::Cancelled(_))), "{result:?}");
        }
    }
}
