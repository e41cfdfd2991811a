"""What ONNX Runtime gives for the real models, in the layout of the ONNX standard's test data.

Expected values are made here, on this machine, and never stored in the repository.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
from onnx import numpy_helper

from models import Entry, draw

DTYPES = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(uint8)": np.uint8,
    "tensor(int8)": np.int8,
    "tensor(bool)": np.bool_,
    "tensor(string)": object,
}


def session(path: Path, threads: int = 1, optimize: bool = True, exact: bool = False) -> onnxruntime.InferenceSession:
    """`exact`: sums of 8-bit products that do not saturate, whatever the processor. Without it ONNX Runtime's sums of
    unsigned times signed codes saturate at 16 bits where the processor has AVX2 but no VNNI."""
    options = onnxruntime.SessionOptions()
    if exact:
        options.add_session_config_entry("session.x64quantprecision", "1")
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    level = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = level.ORT_ENABLE_ALL if optimize else level.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def calls(entry: Entry, engine: onnxruntime.InferenceSession, fed: list[dict] | None = None):
    """Runs all calls, the state carried by hand, and yields inputs and outputs of each. `fed`: with these inputs."""
    names = [output.name for output in engine.get_outputs()]
    carried: dict[str, np.ndarray] = {}
    for call in range(entry.steps):
        feeds = fed[call] if fed else {
            port.name: carried[port.name] if port.name in carried else draw(entry, port.name, DTYPES[port.type], call)
            for port in engine.get_inputs()
        }
        outputs = dict(zip(names, engine.run(names, feeds)))
        carried.update({input: outputs[output] for output, input in entry.pairs})
        if call == 0:
            carried.update({input: outputs[output] for output, input in entry.kept})
        yield feeds, outputs


def write_feeds(entry: Entry, into: Path, steps: list[tuple[dict, dict]]) -> None:
    """Writes what each call is fed, without the state that later calls are to carry."""
    state = {pair[1] for pair in entry.state}
    for call, (feeds, _) in enumerate(steps):
        data = into / f"test_data_set_{call}"
        data.mkdir(parents=True, exist_ok=True)
        own = {name: value for name, value in feeds.items() if call == 0 or name not in state}
        for at, (name, value) in enumerate(own.items()):
            proto = numpy_helper.from_array(np.asarray(value), name)
            (data / f"input_{at}.pb").write_bytes(proto.SerializeToString())


def read_outputs(folder: Path, call: int) -> dict[str, np.ndarray]:
    import onnx

    outputs = {}
    for path in sorted((folder / f"test_data_set_{call}").glob("output_*.pb")):
        proto = onnx.TensorProto.FromString(path.read_bytes())
        outputs[proto.name] = numpy_helper.to_array(proto)
    return outputs


def distance(actual: np.ndarray, expected: np.ndarray) -> float:
    """The widest difference over the peak of what is expected; infinite where type, shape or what is finite differ."""
    if actual.dtype.kind in "OUS" or expected.dtype.kind in "OUS":
        same = actual.shape == expected.shape and all(text(a) == text(e) for a, e in zip(actual.flat, expected.flat))
        return 0.0 if same else np.inf
    if actual.shape != expected.shape or actual.dtype != expected.dtype:
        return np.inf
    if not expected.size:
        return 0.0
    a, e = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(e)
    if not np.array_equal(finite, np.isfinite(a)) or not np.array_equal(a[~finite], e[~finite], equal_nan=True):
        return np.inf
    difference = np.abs(np.where(finite, a, 0) - np.where(finite, e, 0)).max()
    return float(difference / max(np.abs(e[finite]).max(initial=0.0), 1e-30)) if difference else 0.0


def text(value) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
