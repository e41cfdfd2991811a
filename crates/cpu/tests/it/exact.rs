//! Products with quantized activations against exact integers.

use heirloom_cpu::matmul::{Bias, Product};
use heirloom_formats::{FORMATS, Format};
use heirloom_runtime::Inline;
use heirloom_simd::{Isa, Level};

use crate::products::{Random, decoded, f16_fields, records, run, widths};

/// The largest code of an activation: a block whose largest magnitude it is gets the scale 1.
const LARGEST: f32 = 8128.0;

fn quantizing(format: &'static Format) -> Vec<Product> {
    let products = Isa::available().map(|isa| Product::of_format(isa, format));
    products.filter(Product::quantizes).collect()
}

/// Whole activations, each block's largest where the weight is smallest, so that no sum exceeds what `f32` holds exactly.
fn whole_activations(w: &[f32], random: &mut Random) -> Vec<f32> {
    let blocks = w.len() / 32;
    let mut x = Vec::new();
    for w in w.chunks_exact(32) {
        let smallest = (0..32).min_by(|a, b| w[*a].abs().total_cmp(&w[*b].abs())).expect("32 weights");
        let widest = w.iter().fold(1.0f32, |m, w| m.max(w.abs()));
        let most = ((1u32 << 21) as f32 / (32.0 * blocks as f32 * widest)).clamp(1.0, LARGEST) as i64;
        for i in 0..32 {
            let any = (random.next() % (2 * most as u64 + 1)) as i64 - most;
            x.push(if i == smallest { LARGEST } else { any as f32 });
        }
    }
    x
}

#[test]
fn whole_weights_times_whole_activations_are_exact() {
    let mut random = Random(21);
    let mut checked = 0;
    for format in FORMATS {
        for product in quantizing(format) {
            for k in [32, 64, 96, 128, 160, 224, 256, 288, 512] {
                if k % format.elements != 0 {
                    continue;
                }
                let mut row = records(format, k, &mut random);
                for record in row.chunks_exact_mut(format.record_bytes) {
                    for &at in f16_fields(format) {
                        // 1.0: all weights are whole.
                        record[at] = 0;
                        record[at + 1] = 0x3c;
                    }
                }
                let w = decoded(format, &row);
                assert!(w.iter().all(|w| w.fract() == 0.0));
                // 19 rows of weights: a whole panel, and some of another.
                let n = 19;
                let bytes = row.repeat(n);
                for rows in [1, 2, 5, 9, 12] {
                    let x: Vec<f32> = (0..rows).flat_map(|_| whole_activations(&w, &mut random)).collect();
                    let out = run(&product, &x, rows, &bytes, (n, k), (1.0, Bias::None), &Inline);
                    for (x, out) in x.chunks_exact(k).zip(out.chunks_exact(n)) {
                        let terms = x.iter().zip(&w).map(|(x, w)| *x as i64 * *w as i64);
                        let (sum, size) = terms.fold((0, 0), |(s, z), t| (s + t, z + t.abs()));
                        if size < 1 << 23 {
                            let level = product.isa().level();
                            assert_eq!(
                                out, [sum as f32; 19],
                                "{} at {level}, k {k}, {rows} rows",
                                format.name
                            );
                            checked += 1;
                        }
                    }
                }
            }
        }
    }
    let levels = Isa::available().filter(|isa| isa.level() != Level::Portable).count();
    assert!(checked >= levels * 500, "only {checked} rows had sums that are exact in f32");
}

#[test]
fn activations_that_codes_hold_exactly_lose_nothing() {
    let mut random = Random(22);
    for format in FORMATS {
        for product in quantizing(format) {
            for k in widths(format).into_iter().filter(|k| *k <= 1024) {
                let n = 19;
                let bytes = records(format, n * k, &mut random);
                let w = decoded(format, &bytes);
                for rows in [1, 3, 10] {
                    let mut x: Vec<f32> =
                        (0..rows * k).map(|_| (random.next() % 16257) as f32 - LARGEST).collect();
                    for block in x.chunks_exact_mut(32) {
                        block[random.next() as usize % 32] =
                            if random.next().is_multiple_of(2) { LARGEST } else { -LARGEST };
                        let scale = (2.0f32).powi((random.next() % 12) as i32 - 6);
                        block.iter_mut().for_each(|x| *x *= scale);
                    }
                    let out = run(&product, &x, rows, &bytes, (n, k), (1.0, Bias::None), &Inline);
                    for (at, y) in out.into_iter().enumerate() {
                        let (x, w) = (&x[at / n * k..][..k], &w[at % n * k..][..k]);
                        let exact: f64 = x.iter().zip(w).map(|(x, w)| f64::from(*x) * f64::from(*w)).sum();
                        // Roundings of each block's sum and of each addition; minima and codes may cancel.
                        let size: f64 = x
                            .chunks_exact(32)
                            .zip(w.chunks_exact(32))
                            .map(|(x, w)| {
                                let widest = w.iter().fold(0.0f32, |m, w| m.max(w.abs()));
                                x.iter().map(|x| f64::from(x.abs())).sum::<f64>() * 4.0 * f64::from(widest)
                            })
                            .sum();
                        let bound = size * f64::from(f32::EPSILON) * 2.0;
                        assert!(
                            (f64::from(y) - exact).abs() <= bound,
                            "{} at {}, k {k}, {rows} rows: {y} is not within {bound} of {exact}",
                            format.name,
                            product.isa().level(),
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn all_levels_with_quantized_activations_give_the_same_bits() {
    let mut random = Random(23);
    for format in FORMATS {
        let products = quantizing(format);
        let Some((first, others)) = products.split_first() else { continue };
        for k in widths(format) {
            let n = if k > 1024 { 5 } else { 37 };
            let bytes = records(format, n * k, &mut random);
            for rows in [1, 2, 4, 9, 17] {
                let x = random.floats(rows * k);
                let expected = run(first, &x, rows, &bytes, (n, k), (1.0, Bias::None), &Inline);
                for other in others {
                    let out = run(other, &x, rows, &bytes, (n, k), (1.0, Bias::None), &Inline);
                    let level = other.isa().level();
                    assert_eq!(out, expected, "{} at {level}, k {k}, {rows} rows", format.name);
                }
            }
        }
    }
}
