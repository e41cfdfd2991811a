//! Kernels of all families with so much work that they must look several times.

use heirloom_graph::{AttrValue, Attributes};
use heirloom_mem::{Bytes, DType, Element, Tensor};
use heirloom_types::Value;

/// One call.
pub(super) struct Case {
    pub(super) op: &'static str,
    /// What sets it apart from others of the operator.
    pub(super) note: &'static str,
    pub(super) opset: i64,
    pub(super) attributes: Attributes,
    /// Each with whether it is a constant.
    pub(super) inputs: Vec<(Option<Value>, bool)>,
    pub(super) outputs: usize,
    /// The fewest looks that so much work asks for.
    pub(super) looks: usize,
}

/// A name and its cases.
pub(super) type Family = (&'static str, fn() -> Vec<Case>);

pub(super) const FAMILIES: &[Family] = &[
    ("elementwise", elementwise),
    ("movement", movement),
    ("reduction", reduction),
    ("normalization", normalization),
    ("convolution", convolution),
    ("pool", pool),
    ("product", product),
    ("recurrent", recurrent),
    ("gather", gather),
    ("sorting", sorting),
    ("quantization", quantization),
    ("signal", signal),
    ("image", image),
    ("random", random),
];

fn case(op: &'static str, note: &'static str, inputs: Vec<Value>) -> Case {
    let inputs = inputs.into_iter().map(|value| (Some(value), false)).collect();
    Case { op, note, opset: 24, attributes: Attributes::default(), inputs, outputs: 1, looks: 4 }
}

/// What an attribute is made of.
trait Attribute {
    fn attribute(self) -> AttrValue;
}

impl Attribute for i64 {
    fn attribute(self) -> AttrValue {
        AttrValue::Int(self)
    }
}

impl Attribute for f32 {
    fn attribute(self) -> AttrValue {
        AttrValue::Float(self)
    }
}

impl Attribute for &str {
    fn attribute(self) -> AttrValue {
        AttrValue::String(self.as_bytes().into())
    }
}

impl Attribute for &[i64] {
    fn attribute(self) -> AttrValue {
        AttrValue::Ints(self.into())
    }
}

impl Case {
    fn with(mut self, name: &str, value: impl Attribute) -> Case {
        self.attributes.set(name, value.attribute());
        self
    }

    fn constant(mut self, index: usize) -> Case {
        self.inputs[index].1 = true;
        self
    }

    fn absent(mut self, index: usize) -> Case {
        self.inputs.insert(index, (None, false));
        self
    }

    fn opset(mut self, opset: i64) -> Case {
        self.opset = opset;
        self
    }

    fn outputs(mut self, outputs: usize) -> Case {
        self.outputs = outputs;
        self
    }
}

fn filled<T: Element>(shape: &[usize], f: impl Fn(usize) -> T) -> Value {
    let len = shape.iter().product();
    Tensor::from_vec(shape, (0..len).map(f).collect::<Vec<T>>()).unwrap().into()
}

/// Numbers within -1..1, no two neighbours alike.
fn noise(shape: &[usize]) -> Value {
    filled(shape, |i| ((i as u32).wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0)
}

fn indices(shape: &[usize], below: usize) -> Value {
    filled(shape, |i| ((i as u32).wrapping_mul(2_654_435_761) as usize % below) as i64)
}

fn list(values: &[i64]) -> Value {
    filled(&[values.len()], |i| values[i])
}

fn flags(shape: &[usize], f: impl Fn(usize) -> bool) -> Value {
    let bytes = (0..shape.iter().product()).map(|i| u8::from(f(i))).collect::<Vec<u8>>();
    Tensor::new(DType::Bool, shape, Bytes::from_vec(bytes)).unwrap().into()
}

const LONG: usize = 8 << 20;

fn elementwise() -> Vec<Case> {
    let long = || noise(&[LONG]);
    let doubles = || filled(&[LONG / 4], |i| (i % 1000) as f64 / 1000.0);
    vec![
        case("Exp", "", vec![long()]),
        case("Erf", "", vec![long()]),
        case("Tanh", "", vec![long()]),
        case("Sigmoid", "", vec![long()]),
        case("Gelu", "", vec![long()]),
        case("Softplus", "", vec![long()]),
        case("Sin", "of DOUBLE", vec![doubles()]),
        case("Add", "", vec![long(), long()]),
        case("Add", "of a number", vec![long(), noise(&[1])]),
        case("Add", "of a row", vec![noise(&[LONG / 64, 64]), noise(&[64])]),
        case("Add", "of a column", vec![noise(&[LONG / 64, 64]), noise(&[LONG / 64, 1])]),
        case("Pow", "", vec![long(), long()]),
        case("Pow", "of a number", vec![long(), noise(&[1])]),
        case("Div", "of DOUBLE", vec![doubles(), doubles()]),
        case("Less", "", vec![long(), long()]),
        case("Max", "of three", vec![long(), long(), long()]),
        case("Where", "", vec![flags(&[LONG], |i| i % 3 == 0), long(), long()]),
        case("Clip", "", vec![long(), noise(&[]), noise(&[])]),
        case("PRelu", "", vec![long(), noise(&[1])]),
        case("Mod", "", vec![indices(&[LONG], 1000), filled(&[LONG], |i| (i % 7 + 1) as i64)]),
        case("Cast", "to FLOAT16", vec![long()]).with("to", 10),
        case("Cast", "to INT64", vec![long()]).with("to", 7),
        case("Cast", "to BFLOAT16", vec![long()]).with("to", 16),
        case("IsNaN", "", vec![long()]),
        case("Not", "", vec![flags(&[8 * LONG], |i| i % 3 == 0)]),
        case("Round", "", vec![long()]),
        case("Relu", "", vec![long()]),
        case("LeakyRelu", "", vec![long()]),
        case("HardSwish", "", vec![long()]),
        case("Swish", "", vec![long()]),
        case("BitShift", "", vec![filled(&[LONG], |i| i as u32), filled(&[LONG], |i| i as u32 % 9)])
            .with("direction", "LEFT"),
        case("QuickGelu", "", vec![long()]).domain("com.microsoft.QuickGelu"),
        case("BiasGelu", "", vec![noise(&[LONG / 64, 64]), noise(&[64])]).domain("com.microsoft.BiasGelu"),
        case("Dropout", "in training", vec![long(), filled(&[], |_| 0.5f32), flags(&[], |_| true)]),
    ]
}

impl Case {
    /// Another name, in a domain.
    fn domain(mut self, op: &'static str) -> Case {
        self.op = op;
        self.opset = 1;
        self
    }
}

fn movement() -> Vec<Case> {
    let large = || noise(&[64, 512, 512]);
    vec![
        case("Transpose", "of the last axes", vec![large()]).with("perm", &[0, 2, 1][..]),
        case("Transpose", "of rows", vec![large()]).with("perm", &[1, 0, 2][..]),
        case("Transpose", "all axes", vec![large()]).with("perm", &[2, 1, 0][..]),
        case("Concat", "of two", vec![large(), large()]).with("axis", 0),
        case("Concat", "within rows", vec![noise(&[LONG / 4, 4]), noise(&[LONG / 4, 4])]).with("axis", 1),
        case("Slice", "", vec![large(), list(&[1]), list(&[511]), list(&[2])]),
        case("Slice", "backwards", vec![large(), list(&[-1]), list(&[-600]), list(&[2]), list(&[-1])]),
        case("Pad", "", vec![large(), list(&[0, 1, 1, 0, 1, 1])]),
        case("Pad", "reflected", vec![large(), list(&[0, 1, 1, 0, 1, 1])]).with("mode", "reflect"),
        case("Tile", "", vec![noise(&[512, 512]), list(&[32, 2])]),
        case("Expand", "of a number", vec![noise(&[1]), list(&[4 * LONG as i64])]),
        case("Expand", "of a column", vec![noise(&[LONG / 64, 1]), list(&[1, 128])]),
        case("Split", "", vec![large()]).with("axis", 2).with("num_outputs", 2).outputs(2),
        case("ConstantOfShape", "", vec![list(&[8 * LONG as i64])]),
        case("Range", "", vec![filled(&[], |_| 0i64), filled(&[], |_| LONG as i64), filled(&[], |_| 1i64)]),
        case("EyeLike", "", vec![noise(&[4096, 4096])]),
        case("Trilu", "", vec![large()]),
        case("DepthToSpace", "", vec![noise(&[1, 64, 512, 512])]).with("blocksize", 4),
        case("SpaceToDepth", "", vec![noise(&[1, 4, 2048, 2048])]).with("blocksize", 4),
        case("OneHot", "", vec![indices(&[LONG / 64], 100), list(&[128]), noise(&[2])]),
        case("ReverseSequence", "", vec![noise(&[512, 64, 512]), filled(&[64], |i| i as i64 + 400)]),
        case("CenterCropPad", "", vec![large(), list(&[500, 520])]).with("axes", &[1, 2][..]),
        case("Col2Im", "", vec![noise(&[1, 64 * 9, 254 * 254]), list(&[256, 256]), list(&[3, 3])]),
    ]
}

fn reduction() -> Vec<Case> {
    let large = || noise(&[32, 1024, 512]);
    let axes = |axis: i64| list(&[axis]);
    vec![
        case("ReduceSum", "of all", vec![large()]),
        case("ReduceSum", "of rows", vec![large(), axes(2)]),
        case("ReduceSum", "of columns", vec![large(), axes(1)]),
        case("ReduceMean", "of planes", vec![large(), list(&[0, 2])]),
        case("ReduceLogSumExp", "", vec![noise(&[8, 1024, 512]), axes(2)]),
        case("ReduceMax", "", vec![large(), axes(0)]),
        case("ReduceL2", "", vec![large(), axes(2)]),
        case("ReduceMin", "of BOOL", vec![flags(&[64, LONG / 8], |i| i % 3 == 0), axes(1)]),
        case("ArgMax", "of rows", vec![large()]).with("axis", 2),
        case("ArgMax", "of planes", vec![large()]).with("axis", 0),
        case("CumSum", "", vec![large(), filled(&[], |_| 2i64)]),
        case("CumSum", "of planes", vec![large(), filled(&[], |_| 0i64)]),
        case("Einsum", "", vec![noise(&[64, 256, 128]), noise(&[64, 128, 64])])
            .with("equation", "bij,bjk->bik"),
        case("Det", "", vec![noise(&[512, 64, 64])]),
        case("GlobalAveragePool", "", vec![noise(&[1, 64, 512, 512])]),
        case("GlobalMaxPool", "", vec![noise(&[1, 64, 512, 512])]),
        case("GlobalLpPool", "", vec![noise(&[1, 64, 512, 512])]),
    ]
}

fn normalization() -> Vec<Case> {
    let large = || noise(&[32, 512, 512]);
    let images = || noise(&[4, 32, 256, 256]);
    let channels = || noise(&[32]);
    vec![
        case("LayerNormalization", "", vec![large(), noise(&[512]), noise(&[512])]),
        case("RMSNormalization", "", vec![large(), noise(&[512])]),
        case("RMSNormalization", "of two axes", vec![large(), noise(&[512, 512])]).with("axis", 1),
        case("Softmax", "", vec![large()]),
        case("Softmax", "of planes", vec![large()]).with("axis", 0),
        case("LogSoftmax", "", vec![large()]),
        case("Hardmax", "", vec![large()]),
        case("LpNormalization", "", vec![large()]),
        case("BatchNormalization", "", {
            vec![images(), channels(), channels(), channels(), filled(&[32], |i| i as f32 + 1.0)]
        }),
        case("InstanceNormalization", "", vec![images(), channels(), channels()]),
        case("GroupNormalization", "", vec![images(), channels(), channels()]).with("num_groups", 4),
        case("LRN", "", vec![images()]).with("size", 5),
        case("MeanVarianceNormalization", "", vec![images()]),
        case("SkipLayerNormalization", "", vec![large(), large(), noise(&[512])])
            .domain("com.microsoft.SkipLayerNormalization"),
        case(
            "RotaryEmbedding",
            "",
            vec![noise(&[1, 32, 2048, 64]), noise(&[1, 2048, 32]), noise(&[1, 2048, 32])],
        ),
        case("SoftmaxCrossEntropyLoss", "", vec![noise(&[LONG / 64, 64]), indices(&[LONG / 64], 64)]),
        case("NegativeLogLikelihoodLoss", "", vec![noise(&[LONG, 4]), indices(&[LONG], 4)]),
    ]
}

fn convolution() -> Vec<Case> {
    let bytes = |shape: &[usize]| filled(shape, |i| (i % 251) as u8);
    vec![
        case("Conv", "3 by 3", vec![noise(&[1, 64, 128, 128]), noise(&[64, 64, 3, 3])]).constant(1),
        case("Conv", "1 by 1", vec![noise(&[1, 256, 128, 128]), noise(&[256, 256, 1, 1])]).constant(1),
        case("Conv", "depthwise", vec![noise(&[1, 64, 512, 512]), noise(&[64, 1, 3, 3])])
            .with("group", 64)
            .constant(1),
        case("Conv", "of few places", vec![noise(&[1, 2048, 2, 2]), noise(&[2048, 2048, 3, 3])])
            .with("pads", &[1, 1, 1, 1][..])
            .constant(1),
        case("Conv", "of lines", vec![noise(&[1, 256, 20_000]), noise(&[256, 256, 3])]).constant(1),
        case("Conv", "of volumes", vec![noise(&[1, 4, 40, 40, 40]), noise(&[8, 4, 3, 3, 3])]).constant(1),
        case("ConvTranspose", "", vec![noise(&[1, 64, 128, 128]), noise(&[64, 64, 3, 3])]).constant(1),
        case("ConvTranspose", "in groups", vec![noise(&[1, 64, 256, 256]), noise(&[64, 1, 4, 4])])
            .with("group", 64)
            .with("strides", &[2, 2][..])
            .constant(1),
        case("ConvInteger", "", vec![bytes(&[1, 32, 64, 64]), bytes(&[32, 32, 3, 3])]),
        case("QLinearConv", "", {
            let scale = || filled(&[], |_| 0.1f32);
            let zero = || filled(&[], |_| 3u8);
            vec![
                bytes(&[1, 64, 96, 96]),
                scale(),
                zero(),
                bytes(&[64, 64, 3, 3]),
                scale(),
                zero(),
                scale(),
                zero(),
            ]
        })
        .constant(3),
        case("DeformConv", "", {
            vec![noise(&[1, 16, 96, 96]), noise(&[16, 16, 3, 3]), noise(&[1, 18, 94, 94])]
        }),
        case("CausalConvWithState", "", vec![noise(&[1, 512, 16384]), noise(&[512, 1, 4]), noise(&[512])])
            .opset(27)
            .outputs(2),
    ]
}

fn pool() -> Vec<Case> {
    let kernel = |case: Case, list: &[i64]| case.with("kernel_shape", list);
    let images = || noise(&[1, 32, 512, 512]);
    vec![
        kernel(case("MaxPool", "", vec![images()]), &[3, 3]),
        kernel(case("MaxPool", "of one plane", vec![noise(&[1, 1, 2048, 2048])]), &[5, 5]),
        kernel(case("MaxPool", "with indices", vec![images()]), &[2, 2]).outputs(2),
        kernel(case("AveragePool", "", vec![images()]), &[3, 3]),
        kernel(case("AveragePool", "of lines", vec![noise(&[1, 32, LONG / 32])]), &[3]),
        kernel(case("LpPool", "", vec![noise(&[1, 8, 512, 512])]), &[3, 3]),
        kernel(
            case("MaxUnpool", "", vec![noise(&[1, 16, 512, 512]), indices(&[1, 16, 512, 512], 1 << 20)]),
            &[2, 2],
        )
        .with("strides", &[2, 2][..]),
        case(
            "MaxRoiPool",
            "",
            vec![noise(&[1, 64, 256, 256]), filled(&[64, 5], |i| [0.0f32, 1., 2., 250., 240.][i % 5])],
        )
        .with("pooled_shape", &[7, 7][..]),
        case("RoiAlign", "", {
            vec![
                noise(&[1, 64, 256, 256]),
                filled(&[64, 4], |i| [1f32, 2., 250., 240.][i % 4]),
                indices(&[64], 1),
            ]
        })
        .with("output_height", 14)
        .with("output_width", 14)
        .with("sampling_ratio", 4),
    ]
}

fn product() -> Vec<Case> {
    let bytes = |shape: &[usize]| filled(shape, |i| (i % 251) as u8);
    let halves = |shape: &[usize]| filled(shape, |i| half::f16::from_f32((i % 97) as f32 / 97.0));
    vec![
        case("MatMul", "", vec![noise(&[768, 1024]), noise(&[1024, 1024])]),
        case("MatMul", "with a constant", vec![noise(&[768, 1024]), noise(&[1024, 1024])]).constant(1),
        case("MatMul", "of one row", vec![noise(&[1, 4096]), noise(&[4096, 16384])]),
        case("MatMul", "of one row with a constant", vec![noise(&[1, 4096]), noise(&[4096, 16384])])
            .constant(1),
        case("MatMul", "of many small ones", vec![noise(&[512, 64, 128]), noise(&[512, 128, 64])]),
        case("MatMul", "of FLOAT16", vec![halves(&[256, 512]), halves(&[512, 512])]),
        case("MatMul", "of INT64", vec![indices(&[256, 512], 9), indices(&[512, 256], 9)]),
        case("Gemm", "", vec![noise(&[512, 1024]), noise(&[1024, 1024])]).with("transB", 1),
        case("Gemm", "turned and scaled", vec![noise(&[1024, 512]), noise(&[1024, 512])])
            .with("transA", 1)
            .with("alpha", 0.5f32),
        case("MatMulInteger", "", vec![bytes(&[512, 1024]), bytes(&[1024, 1024])]),
        case("MatMulInteger", "with a constant", vec![bytes(&[1024, 1024]), bytes(&[1024, 1024])])
            .constant(1),
        case("QLinearMatMul", "", {
            let scale = || filled(&[], |_| 0.1f32);
            let zero = || filled(&[], |_| 3u8);
            vec![bytes(&[512, 1024]), scale(), zero(), bytes(&[1024, 512]), scale(), zero(), scale(), zero()]
        }),
        case("FusedMatMul", "", vec![noise(&[512, 512]), noise(&[512, 512])])
            .domain("com.microsoft.FusedMatMul"),
        case("Attention", "", {
            vec![noise(&[1, 8, 1024, 64]), noise(&[1, 8, 1024, 64]), noise(&[1, 8, 1024, 64])]
        }),
        case("LinearAttention", "", {
            vec![noise(&[1, 1024, 256]), noise(&[1, 1024, 256]), noise(&[1, 1024, 256])]
        })
        .with("update_rule", "linear")
        .with("q_num_heads", 4)
        .with("kv_num_heads", 4)
        .opset(27)
        .outputs(2),
    ]
}

fn recurrent() -> Vec<Case> {
    let weights = |gates: usize| {
        vec![noise(&[256, 4, 256]), noise(&[1, gates * 256, 256]), noise(&[1, gates * 256, 256])]
    };
    let with = |op, gates| case(op, "", weights(gates)).with("hidden_size", 256).outputs(2);
    vec![
        with("LSTM", 4).constant(1).constant(2),
        with("GRU", 3).constant(1).constant(2),
        with("RNN", 1).constant(1).constant(2),
        with("LSTM", 4),
        with("GRU", 3),
    ]
}

fn gather() -> Vec<Case> {
    vec![
        case("Gather", "", vec![noise(&[32_000, 64]), indices(&[LONG / 32], 32_000)]),
        case("Gather", "of numbers", vec![noise(&[1000]), indices(&[LONG], 1000)]),
        case("GatherElements", "", vec![noise(&[4096, 2048]), indices(&[4096, 2048], 2048)]).with("axis", 1),
        case("GatherND", "", vec![noise(&[1000, 16]), indices(&[LONG / 8, 1], 1000)]),
        case("ScatterElements", "", {
            vec![noise(&[2048, 2048]), indices(&[2048, 2048], 2048), noise(&[2048, 2048])]
        }),
        case(
            "ScatterND",
            "",
            vec![noise(&[LONG / 4, 4]), indices(&[LONG / 4, 1], LONG / 4), noise(&[LONG / 4, 4])],
        ),
        case("TensorScatter", "", {
            vec![noise(&[8, 16, 1024, 64]), noise(&[8, 16, 1000, 64]), filled(&[8], |i| i as i64)]
        }),
        case("Compress", "", vec![noise(&[LONG]), flags(&[LONG], |i| i % 3 != 0)]),
        case("GridSample", "", vec![noise(&[1, 16, 256, 256]), noise(&[1, 256, 256, 2])]),
    ]
}

fn sorting() -> Vec<Case> {
    vec![
        case("TopK", "of rows", vec![noise(&[256, 8192]), list(&[100])]).outputs(2),
        case("TopK", "of one row", vec![noise(&[LONG / 4]), list(&[LONG as i64 / 8])]).outputs(2),
        case("Unique", "", vec![indices(&[LONG / 8], 1000)]),
        case("Unique", "of rows", vec![indices(&[LONG / 64, 4], 10)]).with("axis", 0),
        case("NonZero", "", vec![filled(&[64, LONG / 64], |i| (i % 3) as f32)]),
        case("NonMaxSuppression", "", {
            vec![noise(&[1, 4000, 4]), noise(&[1, 4, 4000]), list(&[2000]), filled(&[1], |_| 0.5f32)]
        }),
    ]
}

fn quantization() -> Vec<Case> {
    let scale = || filled(&[], |_| 0.01f32);
    let zero = || filled(&[], |_| 3u8);
    let bytes = |n: usize| filled(&[n], |i| (i % 251) as u8);
    vec![
        case("QuantizeLinear", "", vec![noise(&[LONG]), scale(), zero()]),
        case(
            "QuantizeLinear",
            "by axis",
            vec![noise(&[LONG / 256, 256]), filled(&[256], |_| 0.1f32), filled(&[256], |_| 3u8)],
        ),
        case("DequantizeLinear", "", vec![bytes(4 * LONG), scale(), zero()]),
        case("DequantizeLinear", "in blocks", {
            vec![filled(&[LONG / 256, 256], |i| (i % 251) as u8), noise(&[LONG / 256, 8])]
        })
        .with("axis", 1)
        .with("block_size", 32),
        case("DynamicQuantizeLinear", "", vec![noise(&[LONG])]).outputs(3),
    ]
}

fn signal() -> Vec<Case> {
    vec![
        case("DFT", "", vec![noise(&[64, 16384, 1]), filled(&[], |_| 16384i64), filled(&[], |_| 1i64)]),
        case(
            "DFT",
            "of odd length",
            vec![noise(&[16, 2003, 1]), filled(&[], |_| 2003i64), filled(&[], |_| 1i64)],
        ),
        case("STFT", "", {
            vec![noise(&[1, 160_000]), filled(&[], |_| 160i64), noise(&[400]), filled(&[], |_| 400i64)]
        }),
        case("MelWeightMatrix", "", {
            let int = |v: i64| filled(&[], move |_| v);
            vec![int(1024), int(8192), int(16000), filled(&[], |_| 0f32), filled(&[], |_| 8000f32)]
        }),
        case("HannWindow", "", vec![filled(&[], |_| LONG as i64)]),
        case("BlackmanWindow", "", vec![filled(&[], |_| LONG as i64)]),
    ]
}

fn image() -> Vec<Case> {
    let sizes = |case: Case, mode: &'static str| case.absent(1).absent(1).with("mode", mode);
    let image = || vec![noise(&[1, 16, 512, 512]), list(&[1, 16, 1024, 1024])];
    vec![
        sizes(case("Resize", "nearest", image()), "nearest"),
        sizes(case("Resize", "linear", image()), "linear"),
        sizes(case("Resize", "cubic", image()), "cubic"),
        case("AffineGrid", "", vec![noise(&[4, 2, 3]), list(&[4, 3, 1024, 512])]),
    ]
}

fn random() -> Vec<Case> {
    vec![
        case("RandomNormalLike", "", vec![noise(&[LONG])]),
        case("RandomUniformLike", "", vec![noise(&[LONG])]),
        case("Bernoulli", "", vec![filled(&[LONG], |i| (i % 10) as f32 / 10.0)]),
        case("Multinomial", "", vec![noise(&[64, 1000])]).with("sample_size", 4000),
    ]
}
