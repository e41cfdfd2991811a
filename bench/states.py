#!/usr/bin/env python3
"""Repeated decoding with 1, 4 and 16 states at the same time: latency, memory and counters per token, with decoding, inference
and state management apart, stamped with machine and revision.

usage: states.py [--model qwen] [--states 1,4,16] [--depth 32] [--generate 32] [--json]
"""

from __future__ import annotations

import argparse
import json

import engines
import heirloom_cli


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=heirloom_cli.MODELS, default="qwen")
    parser.add_argument("--states", default="1,4,16")
    parser.add_argument("--depth", type=int, default=32)
    parser.add_argument("--generate", type=int, default=32)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    model = heirloom_cli.overlay(heirloom_cli.gguf_file(args.model))
    options = ["--states", args.states, "--depth", args.depth, "--generate", args.generate]
    if args.json:
        rows = json.loads(heirloom_cli.run("bench", model, *options, "--json"))
        print(json.dumps({"machine": engines.machine(), "model": args.model, "measurements": rows}))
        return
    print(engines.machine())
    print(heirloom_cli.run("bench", model, *options), end="")


if __name__ == "__main__":
    main()
