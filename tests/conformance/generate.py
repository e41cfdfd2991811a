"""Lays out the ONNX standard's backend suite as folders that `cargo xtask test --only conformance` runs.

usage: generate.py OUT [--wheels 1.7.0,1.10.2,…]

OUT/VERSION/KIND/CASE holds model.onnx, tolerance.txt (relative and absolute) and data_K/{input,output}_I.pb. VERSION is
that of the installed onnx package, whose node cases are Python code that is run here with fixed seeds; the other versions
are wheels that ship their cases as files, and pip fetches them. A version that is there already is left alone.
"""

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import zipfile

import numpy as np

# Cases draw their inputs while they are imported.
random.seed(0)
np.random.seed(0)

import onnx  # noqa: E402
from onnx import numpy_helper  # noqa: E402

RELATIVE, ABSOLUTE = 1e-3, 1e-7


def message(value, info):
    """The protobuf message of one input or output."""
    kind = info.type.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, info.name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, info.name)
    if kind == "map_type":
        return numpy_helper.from_dict(value, info.name)
    if isinstance(value, onnx.TensorProto):
        return value
    return numpy_helper.from_array(np.asarray(value), info.name)


def write_model(folder, model, relative, absolute):
    """A case without its data."""
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model)
    (folder / "tolerance.txt").write_text(f"{relative} {absolute}\n")


def write_case(folder, model, data_sets, relative, absolute):
    """One case from what the package holds in memory."""
    write_model(folder, model.SerializeToString(deterministic=True), relative, absolute)
    for number, (inputs, outputs) in enumerate(data_sets):
        data = folder / f"data_{number}"
        data.mkdir()
        for name, values, infos in (("input", inputs, model.graph.input), ("output", outputs, model.graph.output)):
            for index, value in enumerate(values):
                content = message(value, infos[index]).SerializeToString(deterministic=True)
                (data / f"{name}_{index}.pb").write_bytes(content)


def copy_case(source, folder):
    """One case that is laid out as files."""
    settings = source / "data.json"
    settings = json.loads(settings.read_text()) if settings.exists() else {}
    tolerance = settings.get("rtol", RELATIVE), settings.get("atol", ABSOLUTE)
    write_model(folder, (source / "model.onnx").read_bytes(), *tolerance)
    for data in sorted(source.glob("test_data_set_*")):
        shutil.copytree(data, folder / data.name.replace("test_data_set", "data"))


def copy_kinds(data, out):
    """The kinds of cases whose models lie beside their data."""
    for kind in sorted(data.iterdir()):
        if kind.is_dir() and kind.name not in ("light", "real"):
            for case in sorted(kind.iterdir()):
                if (case / "model.onnx").exists() and not (out / kind.name / case.name).exists():
                    copy_case(case, out / kind.name / case.name)


def write_light(data, out):
    """Large topologies with constant weights; the input counts up from 0 to 1."""
    for file in sorted((data / "light").glob("light_*.onnx")):
        model = onnx.load(file)
        weights = {weight.name for weight in model.graph.initializer}
        (info,) = [info for info in model.graph.input if info.name not in weights]
        shape = [dim.dim_value or 1 for dim in info.type.tensor_type.shape.dim]
        count = int(np.prod(shape))
        image = (np.arange(count).reshape(shape) / count).astype(np.float32)
        relative = 2e-3 if "densenet" in file.name else RELATIVE
        folder = out / "light" / ("test_" + file.stem.removeprefix("light_"))
        write_model(folder, file.read_bytes(), relative, ABSOLUTE)
        (folder / "data_0").mkdir()
        (folder / "data_0" / "input_0.pb").write_bytes(numpy_helper.from_array(image, info.name).SerializeToString())
        shutil.copyfile(file.with_name(file.stem + "_output_0.pb"), folder / "data_0" / "output_0.pb")


def installed(out):
    """All cases of the installed package."""
    from onnx.backend.test.case import model as models
    from onnx.backend.test.loader import load_model_tests

    for case in load_model_tests(kind="node"):
        write_case(out / "node" / case.name, case.model, case.data_sets, case.rtol, case.atol)
    for case in models.collect_testcases():
        if case.kind == "simple":
            write_case(out / "simple" / case.name, case.model, case.data_sets, case.rtol, case.atol)
    data = pathlib.Path(onnx.__file__).parent / "backend" / "test" / "data"
    copy_kinds(data, out)
    write_light(data, out)


def wheel(version, out):
    """All cases that an older version ships as files."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = ["--no-deps", "--only-binary", ":all:", "--python-version", "3.8", "--dest", folder]
        pip = [sys.executable, "-m", "pip", "download", "--quiet", f"onnx=={version}", *wanted]
        subprocess.run(pip, check=True)
        (file,) = pathlib.Path(folder).glob("*.whl")
        with zipfile.ZipFile(file) as archive:
            names = [name for name in archive.namelist() if name.startswith("onnx/backend/test/data/")]
            archive.extractall(folder, names)
        copy_kinds(pathlib.Path(folder) / "onnx/backend/test/data", out)


def once(out, make):
    """Makes the folder `out`, whole or not at all."""
    if out.exists():
        return
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    make(partial)
    partial.rename(out)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("--wheels", default="", help="older versions, separated by commas")
    options = arguments.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    once(options.out / onnx.__version__, installed)
    for version in filter(None, options.wheels.split(",")):
        once(options.out / version, lambda folder, version=version: wheel(version, folder))


if __name__ == "__main__":
    main()
