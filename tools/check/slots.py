# SPDX-License-Identifier: Apache-2.0
"""slots.py TABLE OBJECT...: counts the machine code of GPU kernels and compares it with the rows of a table.

Counted for each row (tools/check/slots.toml explains its keys): issue slots, instructions of the special
function unit and shared-memory instructions of a tile per weight and lane, registers, spills and thread blocks
on a multiprocessor. Fails where a kernel is more expensive than its row, and where a kernel loads from global memory
in order with writes (LDG.STRONG), which slows loads and is needless: no other thread writes what these kernels read.
Exits with 77 where there is no disassembler, or where another compiler than the table's made the objects.

  --toolkit VERSION  CUDA version of the compiler
  --tools FOLDER     where tools/test keeps cuobjdump and nvdisasm; the toolkit's are found through PATH
  --page FILE        fails where the page does not show the table; nothing is counted
  --print            prints the page's table
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tomllib

import sass

GPU = "sm_90"
CLOCKS = 132 * 1.98e9  # of the multiprocessors of an H100, a second
EXPONENTIALS, SLOTS, TENSOR = 16, 128, 0.63 * 1892  # of a multiprocessor in a clock
MEMORY = 0.9 * 3.35e12  # bytes a second
SKIPPED = 77
# Instructions that the way of a law has and the ways of others lack, or that it is the cheapest way with.
LAWS = {"gaussian": ["^MUFU.EX2"], "softmax": ["^MUFU.EX2"], "laplace": ["^MUFU.SQRT", "^MUFU.EX2"],
        "triangular": ["^MUFU.SQRT", "^FMNMX"], "epanechnikov": ["^FMNMX"]}
DEFAULTS = {"law": "gaussian", "unit": 1}


def disassembler(folder):
    """cuobjdump, and the folders that it finds nvdisasm in; None where either is missing."""
    folders = glob.glob(f"{folder}/lib/python*/site-packages/nvidia/cu*/bin") if folder else []
    path = os.pathsep.join(folders + [os.environ.get("PATH", ""), "/usr/local/cuda/bin"])
    program = shutil.which("cuobjdump", path=path)
    return (program, path) if program and shutil.which("nvdisasm", path=path) else None


def dump(found, option, object_file):
    command = [found[0], option, "-arch", GPU, object_file]
    run = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": found[1]})
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}: {run.stderr.strip()}")
    return run.stdout


def resources(text):
    """{kernel: (registers, bytes of stack)} of `cuobjdump -res-usage`."""
    pattern = r"Function (\S+):\s+REG:(\d+) STACK:(\d+)"
    return {name: (int(registers), int(stack)) for name, registers, stack in re.findall(pattern, text)}


def blocks_on_multiprocessor(registers, threads, shared_bytes):
    """Registers are given to warps by 256; a block takes 1 KiB of shared memory more than it asks for."""
    of_warp = (registers * 32 + 255) // 256 * 256
    by_registers = 65536 // of_warp // (threads // 32)
    return min(by_registers, 228 * 1024 // (shared_bytes + 1024), 2048 // threads, 32)


def count_tile(row, code):
    """(slots, shared-memory instructions, those of the special function unit) a weight and lane, and
    instructions of the tile loop. Raises ValueError where the code is not what the row says."""
    flow = sass.Flow(code)
    tiles = flow.tile_loops()
    if len(tiles) != 1:
        raise ValueError(f"{len(tiles)} tile loops")
    tile = tiles[0]
    kinds = {loop.header: flow.kind(loop) for loop in tile.inner}
    work = {}
    exponentials = 0
    for loop in tile.inner:
        kind = kinds[loop.header]
        if not any(stage.get(kind) for stage in row["stages"]):
            continue
        if kind in work:
            raise ValueError(f"more than one loop of the kind {kind}")
        products = row.get({"pairs": "products", "project": "project_products"}.get(kind))
        loads = row.get({"norm": "loads", "split": "loads", "pairs": "pair_loads"}.get(kind))
        counted, loads = ("HMMA", products) if products else ("LDS", loads)
        passed = LAWS[row.get("law", DEFAULTS["law"])] if kind == "weigh" else ()
        work[kind] = flow.ways(loop, {}, passed, loads, dearest=kind == "copy", counted=counted)
        if work[kind] is None:
            raise ValueError(f"no way through the loop of the kind {kind}")
        if kind == "weigh":
            exponentials = flow.ops(loop, "MUFU.EX2")
    spent, steps = (0, 0, 0), 0
    for stage in row["stages"]:
        run = {kind: stage[kind] for kind in sass.KINDS if stage.get(kind)}
        own = flow.ways(tile, kinds, [*run, *stage.get("passes", [])])
        if own is None:
            raise ValueError(f"no way through the tile loop with {', '.join(run)}")
        for kind, n in run.items():
            own = sass.add(own, [n * cost for cost in work[kind]])
        times = stage.get("times", 1)
        spent = sass.add(spent, [times * cost for cost in own])
        steps += times * stage["weigh"]
    if steps * exponentials != row["weights"]:
        raise ValueError(f"{steps:g} steps of {exponentials} EX2 are not {row['weights']} weights of a lane")
    return *(cost / row["weights"] for cost in spent), len(flow.instructions(tile))


def count(row, code, registers, stack):
    """What a row says of a kernel, counted."""
    spills = sum(i.base in ("LDL", "STL") for i in code)
    counted = {"registers": registers, "spills": max(spills, stack),
               "blocks": blocks_on_multiprocessor(registers, row["threads"], row["shared_bytes"])}
    if "stages" in row:
        slots, memory, unit, length = count_tile(row, code)
        counted |= {"slots": round(slots, 1), "shared": round(memory, 2), "unit": round(unit, 1), "code": length}
    return counted


def ordered_loads(code):
    """Loads of global memory that are volatile, relaxed or stronger: the read-only path does not serve them."""
    return sum(i.base == "LDG" and ".STRONG" in i.opcode for i in code)


def compare(row, counted):
    """Lines that say what is more expensive than the row, and what is cheaper."""
    dearer, cheaper = [], []
    for key, value in counted.items():
        allowed = row.get(key, DEFAULTS.get(key, 0))
        worse = value < allowed if key == "blocks" else value > allowed
        line = f"{title(row)}: {value} {UNITS[key]}, {allowed} in its row"
        if worse:
            dearer.append(line)
        elif value != allowed:
            cheaper.append(line)
    return dearer, cheaper


UNITS = {"slots": "slots a weight", "shared": "shared-memory instructions a weight",
         "unit": "instructions of the special function unit a weight", "registers": "registers", "code": "instructions of the tile loop", "spills": "spills", "blocks": "thread blocks on a multiprocessor"}


def title(row):
    law = f", {row['law']}" if "law" in row else ""
    heads = f", H = {row['heads']}" if "heads" in row else ""
    return f"{row['kind']}, {form(row)}{law}{heads}"


def form(row):
    return row["form"] + (f", keys {row['keys']}" if "keys" in row else "")


def limit(row, d_k, queries):
    """Weights a second at most, by the formula of tools/bench/gpu_limits.h for 8 heads. Keys that are read
    have the limit of those that are projected as they are weighed."""
    tensor = d_k > 4
    padded = next(p for p in (8, 16, 32, 64) if d_k <= p) if tensor else d_k
    pairs = 4.5 if row["kind"] == "conditional" else 0
    products = 3 * -(-padded // 16) / 4 if tensor else d_k
    rate = min(EXPONENTIALS, SLOTS / (products + 3 + pairs))
    read = 4 * (padded + 1 / 8)
    if tensor:
        d = 64 if d_k > 32 else 32
        rate = min(rate, TENSOR / (3 * (padded + d * max(padded, 16) / queries)))
        read = 4 * (d + 1) / 8
    return min(CLOCKS * rate, MEMORY * queries / read)


def predicted(slots, unit):
    """Weights a second where every slot is used, or every one of the special function unit, and nothing waits."""
    return CLOCKS * min(EXPONENTIALS / max(unit, 1e-9), SLOTS / slots)


def page_table(rows):
    lines = ["| kind | law | d_k | form | slots a weight | goal | shared-memory instructions a weight | registers "
             "| warps | predicted [10^12/s] | predicted at the goal | limit, Q = 64 | limit, Q = 1024 |",
             "|---|---|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        warps = row["blocks"] * row["threads"] // 32
        if "stages" not in row:
            lines.append(f"| {row['kind']} | any | any | {row['form']} | - | - | - | {row['registers']} | {warps} "
                         "| - | - | - | - |")
            continue
        law, unit = (row.get(key, default) for key, default in DEFAULTS.items())
        for d_k, goal in zip(row["d_k"], row.get("goal", [None] * len(row["d_k"]))):
            at_goal = f"{predicted(goal, unit) / 1e12:.2f}" if goal else "-"
            limited = law in ("gaussian", "softmax") and row["kind"] in ("plain", "conditional") and \
                row.get("heads", 8) == 8
            most = [f"{limit(row, d_k, queries) / 1e12:.2f}" if limited else "-" for queries in (64, 1024)]
            kind = row["kind"] + (f", H = {row['heads']}" if "heads" in row else "")
            lines.append(f"| {kind} | {law} | {d_k} | {form(row)} | {row['slots']} | {goal or '-'} "
                         f"| {row['shared']} | {row['registers']} | {warps} "
                         f"| {predicted(row['slots'], unit) / 1e12:.2f} | {at_goal} "
                         f"| {most[0]} | {most[1]} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("objects", nargs="*")
    parser.add_argument("--toolkit")
    parser.add_argument("--tools")
    parser.add_argument("--page")
    parser.add_argument("--print", action="store_true")
    options = parser.parse_args()
    with open(options.table, "rb") as file:
        table = tomllib.load(file)
    rows = table["kernel"]
    if options.print:
        print(page_table(rows))
        return
    if options.page:
        with open(options.page, encoding="utf-8") as file:
            if page_table(rows) not in file.read():
                sys.exit(f"{options.page}: lacks the table of {options.table}; print it with --print")
        return
    if options.toolkit and options.toolkit != table["toolkit"]:
        print(f"skipped: the table is of CUDA {table['toolkit']}, this build of {options.toolkit}")
        sys.exit(SKIPPED)
    found = disassembler(options.tools)
    if not found:
        print("skipped: cuobjdump and nvdisasm not found")
        sys.exit(SKIPPED)
    code, used = {}, {}
    for object_file in options.objects:
        code |= sass.functions(dump(found, "-sass", object_file))
        used |= resources(dump(found, "-res-usage", object_file))
    failures = [f"{name}: {ordered_loads(instructions)} loads of global memory that are ordered with writes"
                for name, instructions in code.items() if ordered_loads(instructions)]
    for row in rows:
        names = [name for name in code if row["symbol"] in name]
        if len(names) != 1:
            failures.append(f"{title(row)}: {len(names)} kernels with {row['symbol']} in their name for {GPU}")
            continue
        try:
            counted = count(row, code[names[0]], *used[names[0]])
        except ValueError as error:
            failures.append(f"{title(row)}: {error}")
            continue
        print(f"{title(row)}: " + ", ".join(f"{value} {UNITS[key]}" for key, value in counted.items()))
        dearer, cheaper = compare(row, counted)
        failures += dearer
        for line in cheaper:
            print(f"  cheaper now: {line}")
    if failures:
        sys.exit("more expensive than the table, or not as it says:\n" + "\n".join(failures))
    print(f"{len(rows)} kernels, none more expensive than its row")


if __name__ == "__main__":
    main()
