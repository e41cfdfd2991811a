#!/usr/bin/env python3
"""Inferred types of the ONNX standard's node cases, beside the outputs that the cases bring.

usage: shapes.py CASES      (a folder with CASE/model.onnx and CASE/test_data_set_0/output_K.pb)

What the models declare of their outputs is left aside. An inferred type that an output does not have is a fault; the table
at the end says of how many outputs everything, the rank or nothing was known, by operator.
"""
import collections
import json
import os
import subprocess
import sys

import onnx

HERE = os.path.dirname(os.path.abspath(__file__))
BINARY = os.environ.get("HEIRLOOM_BIN") or os.path.join(HERE, "..", "..", "target", "release", "heirloom")


def main():
    cases = sys.argv[1]
    faults, refused, table = [], [], collections.defaultdict(lambda: [0, 0, 0])
    for case in sorted(os.listdir(cases)):
        path = os.path.join(cases, case, "model.onnx")
        data = os.path.join(cases, case, "test_data_set_0")
        if not os.path.exists(path):
            continue
        done = subprocess.run([BINARY, "infer", path, "--json", "--ignore-declared"], capture_output=True, text=True)
        if done.returncode not in (0, 1) or not done.stdout:
            refused.append((case, done.stderr.strip()[-160:]))
            continue
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        conflicts = [line["conflict"] for line in lines if "conflict" in line]
        if conflicts:
            faults.append((case, conflicts[0]))
        values = {line["value"]: line for line in lines if line.get("graph") == ""}
        graph = onnx.load(path).graph
        op = graph.node[-1].op_type if len(graph.node) == 1 else "(several)"
        for index, output in enumerate(graph.output):
            file = os.path.join(data, f"output_{index}.pb")
            if not output.type.HasField("tensor_type") or not os.path.exists(file):
                continue
            tensor = onnx.TensorProto()
            with open(file, "rb") as stream:
                tensor.ParseFromString(stream.read())
            line = values[output.name]
            dtype, shape = onnx.TensorProto.DataType.Name(tensor.data_type), list(tensor.dims)
            if line["dtype"] is not None and line["dtype"] != dtype:
                faults.append((case, f"{output.name}: {line['type']}, not {dtype}"))
            elif line["dims"] is not None and (
                len(line["dims"]) != len(shape)
                or any(isinstance(a, int) and a != b for a, b in zip(line["dims"], shape))
            ):
                faults.append((case, f"{output.name}: {line['type']}, not {shape}"))
            known = 0 if line["dims"] is None else 2 if None not in line["dims"] else 1
            table[op][known] += 1
    for op, (none, rank, full) in sorted(table.items()):
        if none or rank:
            print(f"{op:28} nothing {none:4}   rank {rank:4}   all {full:4}")
    totals = [sum(row[at] for row in table.values()) for at in range(3)]
    print(f"{'all':28} nothing {totals[0]:4}   rank {totals[1]:4}   all {totals[2]:4}; not opened {len(refused)}; wrong {len(faults)}")
    for case, why in refused + faults:
        print(f"  {case}: {why}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
