//! All formats of the table and all examples of the families, as the conformance tests see them.

use std::sync::Arc;

use heirloom_formats::{FAMILIES, FORMATS};
use heirloom_types::{Codec, StructType};

pub(crate) struct Subject {
    pub(crate) name: String,
    pub(crate) codec: Arc<dyn Codec>,
    pub(crate) declaration: Arc<StructType>,
    /// How much of a normally distributed signal the encoder may lose: RMS error over RMS.
    /// `None` for a table without scale, which fits values of one size alone.
    pub(crate) largest_relative_error: Option<f64>,
}

pub(crate) fn subjects() -> Vec<Subject> {
    let formats = FORMATS.iter().map(|&format| Subject {
        name: format.name.to_owned(),
        codec: Arc::new(format),
        declaration: format.declaration().clone(),
        largest_relative_error: Some(format_error(format.name)),
    });
    let families = FAMILIES.iter().flat_map(|family| {
        let examples = (family.examples)();
        let errors = family_errors(family.name);
        assert_eq!(examples.len(), errors.len(), "an error bound for each example of `{}`", family.name);
        examples.into_iter().zip(errors).enumerate().map(|(i, (shaped, &largest_relative_error))| Subject {
            name: format!("{}[{i}]", family.name),
            declaration: shaped.declaration(shaped.type_id()),
            codec: shaped,
            largest_relative_error,
        })
    });
    formats.chain(families).collect()
}

/// About 5 % above what the encoders do lose. A uniform quantizer of `n` codes over ±3 standard deviations loses
/// `6 / n / √12`.
fn format_error(name: &str) -> f64 {
    match name {
        "f16" => 0.0003,
        "bf16" => 0.0025,
        "q8_0" => 0.006,
        "q6_k" => 0.018,
        "q5_k" => 0.037,
        "q5_1" => 0.04,
        "q5_0" => 0.045,
        "q4_k" => 0.074,
        "q4_1" => 0.083,
        "q4_0" => 0.092,
        "iq4_nl" | "iq4_xs" => 0.08,
        "mxfp4" | "ocp_mxfp4" => 0.13,
        "ocp_mxfp6_e2m3" => 0.03,
        "ocp_mxfp6_e3m2" => 0.06,
        "ocp_mxfp8_e4m3" => 0.034,
        "ocp_mxfp8_e5m2" => 0.06,
        "nf4" => 0.098,
        "q3_k" => 0.153,
        "q2_k" => 0.28,
        "tq1_0" | "tq2_0" => 0.87,
        other => panic!("`{other}` has no error bound: give it one"),
    }
}

fn family_errors(name: &str) -> &'static [Option<f64>] {
    match name {
        "codebook" => &[Some(0.36), None, Some(0.005)],
        "k_means" => &[Some(0.11), Some(0.29), Some(0.0), Some(0.011)],
        "mat_mul_n_bits" => {
            &[Some(0.084), Some(0.082), Some(0.36), Some(0.35), Some(0.005), Some(0.0055), Some(0.069)]
        }
        "mixed_bits" => &[Some(0.19), Some(0.13), Some(0.14)],
        "nvfp4" => &[Some(0.1), Some(0.1)],
        other => panic!("`{other}` has no error bounds: give it one for each example"),
    }
}
