//! Weights that end where the mapping ends: behind them lies a page that cannot be read.
#![allow(unsafe_code, clippy::disallowed_methods)]

use std::fs::File;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use heirloom_cpu::matmul::{Bias, Product};
use heirloom_formats::FORMATS;
use heirloom_mem::DType;
use heirloom_runtime::Inline;
use heirloom_simd::Isa;
use memmap2::{MmapOptions, MmapRaw};

use crate::products::{Random, records, run, widths};

/// At least the page size of any processor we know.
const PAGE: usize = 64 * 1024;

/// Files made so far: tests run side by side.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// Bytes in a mapping of a file, ending with its last whole page; the mapping has one page more, and reading there is a
/// bus error.
struct Guarded {
    map: MmapRaw,
    begin: usize,
    len: usize,
}

impl Guarded {
    fn new(bytes: &[u8]) -> Guarded {
        let path = std::env::temp_dir().join(format!(
            "heirloom-guard-{}-{}",
            std::process::id(),
            MADE.fetch_add(1, Relaxed)
        ));
        let mut file = File::options().read(true).write(true).create_new(true).open(&path).expect("a file");
        std::fs::remove_file(&path).expect("it was just made");
        let end = bytes.len().next_multiple_of(PAGE);
        file.write_all(&vec![0xaa; end - bytes.len()]).expect("room");
        file.write_all(bytes).expect("room");
        let map = MmapOptions::new().len(end + PAGE).map_raw(&file).expect("a mapping");
        Guarded { map, begin: end - bytes.len(), len: bytes.len() }
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: these bytes lie within the file, which has no name and so no other writer, and in the mapping, which
        // lives as long as `self`.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().add(self.begin), self.len) }
    }
}

fn check(product: &Product, name: &str, bytes: &[u8], (n, k): (usize, usize), random: &mut Random) {
    let guarded = Guarded::new(bytes);
    for rows in [1, 2, 4, 9] {
        let x = random.floats(rows * k);
        let expected = run(product, &x, rows, bytes, (n, k), (1.0, Bias::None), &Inline);
        let out = run(product, &x, rows, guarded.bytes(), (n, k), (1.0, Bias::None), &Inline);
        assert_eq!(out, expected, "{name} at {}, [{n}, {k}], {rows} rows", product.isa().level());
    }
    let (mut expected, mut out) = (vec![0.0; k], vec![1.0; k]);
    product.decode_row(bytes, n - 1, &mut expected).expect("any bytes are a record");
    product.decode_row(guarded.bytes(), n - 1, &mut out).expect("any bytes are a record");
    assert_eq!(out, expected);
}

#[test]
#[cfg_attr(not(unix), ignore = "needs mappings longer than their file")]
fn nothing_is_read_behind_the_last_weight() {
    let mut random = Random(31);
    for isa in Isa::available() {
        for format in FORMATS {
            let product = Product::of_format(isa, format);
            for k in widths(format).into_iter().filter(|k| *k <= 1024) {
                for n in [1, 3, 17] {
                    let bytes = records(format, n * k, &mut random);
                    check(&product, format.name, &bytes, (n, k), &mut random);
                }
            }
        }
    }
}

#[test]
#[cfg_attr(not(unix), ignore = "needs mappings longer than their file")]
fn nothing_is_read_behind_the_last_float() {
    let mut random = Random(32);
    for isa in Isa::available() {
        for dtype in [DType::Float, DType::Float16, DType::BFloat16] {
            let product = Product::of_dtype(isa, dtype).expect("a float type");
            for k in [1, 3, 7, 8, 9, 15, 16, 17, 31, 33, 100, 257] {
                for n in [1, 3, 17] {
                    let bytes: Vec<u8> = random
                        .floats(n * k)
                        .into_iter()
                        .flat_map(|v| match dtype {
                            DType::Float => v.to_le_bytes().to_vec(),
                            DType::Float16 => half::f16::from_f32(v).to_le_bytes().to_vec(),
                            _ => half::bf16::from_f32(v).to_le_bytes().to_vec(),
                        })
                        .collect();
                    check(&product, dtype.name(), &bytes, (n, k), &mut random);
                }
            }
        }
    }
}
