#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares random layouts of shards with one run, bit by bit, under SIGKILL and on a full disk.

shards_check.py HEADLAB [--layouts N] [--kills N] [--seed S] [--seconds T] [--only KIND]: cuts N random scenarios
(200; R from 1 to 1e5, sweeps, learned heads, optimal weights, draws, stacks) into shards of one or two cuts, runs
them in random order on 1 to 3 threads, kills N processes (200) by SIGKILL at random moments, merges included, and
resumes them. Every node, extreme and figure of the merged results has to have the bits of one run, and no file may be
half written. Nodes that are doubled, lost or swapped in a copy of a shard have to be refused or to differ. Last, a
merge fills a disk of 1 MB up (left out, with a line, where none can be mounted): exit code 1, one line, all files as
before. No layout is begun after T seconds. Prints what it counted; exit code 1 where a promise is broken, 77 where
netCDF4 is not installed.
"""
import argparse
import collections
import hashlib
import itertools
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

try:
    import netCDF4
    import numpy as np
except ImportError as missing:
    print(f"shards_check: skipped: {missing}")
    sys.exit(77)

REGRESSION = """[scenario]
name = "shards"
[data]
n = 8
design = { law = "normal", dim = 3 }
regression = { law = "linear", coefficients = [1, 0, 0] }
noise = { law = "normal", sd = 0.5 }
[heads]
count = 2
dim = 1
subspaces = SUBSPACES
kernel = { law = "gaussian", bandwidth = 0.8 }
weights = WEIGHTS
[queries]
law = "points"
points = [[0, 0, 0], [0.5, 0, 0]]
"""
DEPTH = """[scenario]
name = "shards of stacks"
[tokens]
n = 5
design = { law = "normal", dim = 4 }
[heads]
count = 2
dim = 2
kernel = { law = "softmax", temperature = 1.4 }
maps = { law = "gaussian", query_key = 1.0, value = 1.0 }
[layers]
count = 3
"""
# kind: (subspaces, weights, most replicates); none for stacks
KINDS = {
    "plain": ('{ law = "haar" }', '{ law = "uniform" }', 100000),
    "long runs": ('{ law = "haar" }', '{ law = "uniform" }', 100000),
    "sweep": ('{ law = "orthogonal" }', '{ law = "uniform" }', 20000),
    "replicates swept": ('{ law = "haar" }', '{ law = "uniform" }', 20000),
    "draws": ('{ law = "haar", redraw = true }', '{ law = "uniform" }', 20000),
    "optimal weights": ('{ law = "haar" }', '{ law = "optimal", replicates = 104 }', 20000),
    "learned heads": ('{ law = "learned", steps = 3, batch = 4 }', '{ law = "uniform" }', 300),
    "heads learned once": ('{ law = "learned", fit = "once", points = 400, batch = 16, steps = 40 }',
                           '{ law = "uniform" }', 20000),
    "stacks": (None, None, 20000),
}
CORNERS = (1, 2, 7, 8, 9, 255, 256, 257, 2047, 2049)
NOT_COMPARED = {"seconds", "learned_seconds", "weights_per_second"}
FULL_DISK = REGRESSION.replace("count = 2", "count = 8").replace("points = [[0, 0, 0], [0.5, 0, 0]]", "points = " + str(
    [[i / 20, 0, 0] for i in range(20)])).replace("SUBSPACES", '{ law = "haar" }').replace(
    "WEIGHTS", '{ law = "uniform" }') + "[run]\nseed = 7\nreplicates = 4001\n"


def scenario_text(kind, seed, replicates, rng):
    subspaces, weights, _ = KINDS[kind]
    text = DEPTH if subspaces is None else REGRESSION.replace("SUBSPACES", subspaces).replace("WEIGHTS", weights)
    if kind == "long runs":
        text = text.replace("n = 8\n", "n = 10000\n")
    text += f"[run]\nseed = {seed}\nreplicates = {replicates}\n"
    if kind == "sweep" or (kind in ("heads learned once", "optimal weights") and rng.random() < 0.5):
        text += f'[sweep]\n"data.n" = {rng.sample(range(3, 30), rng.randint(2, 4))}\n'
        if kind == "sweep" and rng.random() < 0.5:
            text += '"heads.kernel.bandwidth" = [0.3, 0.7, 1.1]\n'
    elif kind == "replicates swept":
        text += f'[sweep]\n"run.replicates" = {rng.sample([1, 8, 77, 300, 1001, 2064], 3)}\n'
    elif kind == "stacks" and rng.random() < 0.5:
        text += '[sweep]\n"tokens.n" = [3, 6]\n'
    return text


def random_replicates(most, rng):
    if rng.random() < 0.25:
        return min(most, rng.choice(CORNERS))
    count = round(most ** rng.random())
    return min(most, count | 1 if rng.random() < 0.5 else count)


def contents(path):
    """{name: bytes} of all variables that have to have the same bits."""
    found = {}

    def add(group, prefix):
        for name, variable in group.variables.items():
            if name not in NOT_COMPARED:
                values = np.asarray(variable[...])
                text = values.dtype == object
                found[prefix + name] = (values.shape, repr(values.tolist()).encode() if text else values.tobytes())
        for name, inner in group.groups.items():
            add(inner, f"{prefix}{name}/")

    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        add(file, "")
    if not any(name.split("/")[-2:-1] == ["nodes"] for name in found):
        raise ValueError(f"{path.name}: has no nodes")
    return found


def difference(one, other):
    """The first variable that differs; nothing where none does."""
    for name in sorted(one.keys() | other.keys()):
        if one.get(name) != other.get(name):
            return name
    return None


def copy_with_nodes(source, target, chosen):
    """Copies a file; `chosen` maps the number of nodes of each group `nodes` to the nodes the copy has."""
    def copy(inner, outer, in_nodes):
        outer.setncatts({name: inner.getncattr(name) for name in inner.ncattrs()})
        order = None
        for name, dimension in inner.dimensions.items():
            size = len(dimension)
            if in_nodes and name == "node":
                order = chosen(inner)
                size = len(order)
            outer.createDimension(name, size)
        for name, variable in inner.variables.items():
            made = outer.createVariable(name, variable.dtype, variable.dimensions)
            made.setncatts({a: variable.getncattr(a) for a in variable.ncattrs() if a != "_FillValue"})
            values = variable[...]
            made[...] = values[order] if order is not None and variable.dimensions[0] == "node" else values
        for name, group in inner.groups.items():
            copy(group, outer.createGroup(name), name == "nodes")

    with netCDF4.Dataset(source) as inner, netCDF4.Dataset(target, "w") as outer:
        inner.set_auto_mask(False)
        copy(inner, outer, False)


def default_signals():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Broken(Exception):
    pass


class Check:
    def __init__(self, headlab, folder, seed):
        self.headlab, self.folder, self.random = headlab, folder, random.Random(seed)
        self.counts = collections.Counter()
        self.kinds = collections.Counter()

    def run(self, arguments, expected=0):
        done = subprocess.run([self.headlab, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True,
                              preexec_fn=default_signals, timeout=300)
        if expected is not None and done.returncode != expected:
            raise Broken(f"headlab {' '.join(map(str, arguments))}: exit code {done.returncode}: {done.stderr}")
        return done

    def kill(self, arguments, span):
        """Starts a command and kills it after a random time, unless it ended before."""
        process = subprocess.Popen([self.headlab, *map(str, arguments)], cwd=self.folder, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, preexec_fn=default_signals)
        time.sleep(self.random.uniform(0, span))
        process.kill()
        if process.wait() == -signal.SIGKILL:
            self.counts["kills"] += 1
        else:
            self.counts["ended before the kill"] += 1

    def require_readable(self, folder):
        for path in folder.glob("[!.]*.nc"):
            try:
                netCDF4.Dataset(path).close()
            except OSError as error:
                raise Broken(f"{path.name}: is half written: {error}") from error

    def simulate(self, shard, shards, out, kills, span):
        command = ["run", "s.toml", "--shard", f"{shard}/{shards}", "--out", out, "--resume", "--quiet",
                   "--threads", self.random.randint(1, 3), "--checkpoint", "0.01"]
        for _ in range(kills):
            self.kill(command, span)
            self.require_readable(self.folder / out)
            path = self.folder / out / f"shard_{shard}_of_{shards}.nc"
            if path.exists():
                with netCDF4.Dataset(path) as file:
                    self.counts["resumed from a checkpoint"] += not file.complete
        self.run(command)
        self.counts["shards"] += 1

    def layout(self, kind, kills):
        rng = self.random
        for name in ("one", "a", "b", "merged"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        replicates = random_replicates(KINDS[kind][2], rng)
        # Something to kill.
        if kills and rng.random() < 0.7:
            replicates = max(replicates, KINDS[kind][2] // 2 + 1)
        if kind == "draws":
            replicates = -(-replicates // 8) * 8
        (self.folder / "s.toml").write_text(scenario_text(kind, rng.randint(1, 10**6), replicates, rng))
        start = time.monotonic()
        self.run(["run", "s.toml", "--out", "one", "--quiet", "--threads", 1])
        took = time.monotonic() - start
        shards = rng.choice((1, 2, 2, 3, 4, 5, 6, 7, 11))
        finer = rng.choice((0, 0, 2, 3))
        tasks = []
        for shard in range(1, shards + 1):
            if finer and rng.random() < 0.5:
                tasks += [((shard - 1) * finer + i, shards * finer, "b") for i in range(1, finer + 1)]
            else:
                tasks.append((shard, shards, "a"))
        rng.shuffle(tasks)
        of_merge = rng.randint(0, kills) if rng.random() < 0.3 else 0
        killed = collections.Counter(rng.choices(range(len(tasks)), k=kills - of_merge))
        for i, (shard, of, out) in enumerate(tasks):
            self.simulate(shard, of, out, killed[i], 0.02 + took / len(tasks))
        folders = [name for name in ("a", "b") if (self.folder / name).exists()]
        merge = ["merge", *folders, "--out", "merged", "--quiet", "--threads", rng.randint(1, 3), "--overwrite"]
        for _ in range(of_merge):
            self.kill(merge, 0.1)
            self.counts["merges killed"] += 1
            self.require_readable(self.folder / "merged")
        self.run(merge)
        self.kinds[kind] += 1
        self.counts["two cuts"] += len(folders) == 2
        self.counts["R < 256"] += replicates < 256
        self.counts["odd R"] += replicates % 2
        other = difference(contents(self.folder / "one/results.nc"), contents(self.folder / "merged/results.nc"))
        if other:
            raise Broken(f"{other} has other bits than in one run")
        stay = [p.name for name in (*folders, "merged") for p in (self.folder / name).iterdir() if ".tmp-" in p.name]
        self.counts["temporary files that stayed"] += len(stay)

    def faults(self):
        """Each planted fault is refused or differs; a copy without one does not."""
        for name in ("one", "a", "b", "merged"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        (self.folder / "s.toml").write_text(scenario_text("plain", 7, 2111, self.random))
        self.run(["run", "s.toml", "--out", "one", "--quiet"])
        for shard in (1, 2, 3):
            self.run(["run", "s.toml", "--shard", f"{shard}/3", "--out", "a", "--quiet"])
        one = contents(self.folder / "one/results.nc")

        def equal_pair(nodes):
            counts = nodes.variables["count"][...].tolist()
            return next((i, i + 1) for i in range(len(counts) - 1) if counts[i] == counts[i + 1])

        def swapped(nodes):
            order = list(range(len(nodes.dimensions["node"])))
            i, j = equal_pair(nodes)
            order[i], order[j] = j, i
            return order

        faults = {
            "none": lambda nodes: list(range(len(nodes.dimensions["node"]))),
            "doubled": lambda nodes: [0, *range(len(nodes.dimensions["node"]))],
            "doubled for another": lambda nodes: [0, 0, *range(2, len(nodes.dimensions["node"]))],
            "lost, the first": lambda nodes: list(range(1, len(nodes.dimensions["node"]))),
            "lost, the last": lambda nodes: list(range(len(nodes.dimensions["node"]) - 1)),
            "swapped": swapped,
        }
        for name, chosen in faults.items():
            shutil.rmtree(self.folder / "b", ignore_errors=True)
            shutil.copytree(self.folder / "a", self.folder / "b")
            copy_with_nodes(self.folder / "a/shard_2_of_3.nc", self.folder / "b/shard_2_of_3.nc", chosen)
            done = self.run(["merge", "b", "--out", "merged", "--quiet", "--overwrite"], None)
            same = done.returncode == 0 and not difference(one, contents(self.folder / "merged/results.nc"))
            if same != (name == "none"):
                raise Broken(f"a shard with the fault '{name}' " + ("passes" if same else f"fails: {done.stderr}"))
            if done.returncode not in (0, 2) or (done.returncode == 2 and done.stderr.count("\n") != 1):
                raise Broken(f"a shard with the fault '{name}': exit code {done.returncode}: {done.stderr}")
            print(f"fault {name}: {done.stderr.strip() if done.returncode else 'same bits' if same else 'differs'}")
            # The comparison finds it by itself.
            copy_with_nodes(self.folder / "one/results.nc", self.folder / "faulty.nc", chosen)
            if (difference(one, contents(self.folder / "faulty.nc")) is None) != (name == "none"):
                raise Broken(f"the comparison does not find the fault '{name}'")
        shutil.rmtree(self.folder / "b")
        (self.folder / "b").mkdir()
        shutil.copy(self.folder / "a/shard_2_of_3.nc", self.folder / "b")
        print("fault doubled shard:", self.run(["merge", "a", "b", "--out", "merged", "--overwrite"], 2).stderr.strip())

    def full_disk(self):
        """Returns whether it could be tried."""
        disk = self.folder / "disk"
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o"]
        if subprocess.run([*mount, "size=1m", "headlab", disk], capture_output=True).returncode != 0:
            return False
        try:
            shutil.rmtree(self.folder / "a", ignore_errors=True)
            (self.folder / "s.toml").write_text(FULL_DISK)
            self.run(["run", "s.toml", "--out", "large", "--quiet"])
            for shard in (1, 2):
                self.run(["run", "s.toml", "--shard", f"{shard}/2", "--out", "a", "--quiet"])
            shards = hashes(self.folder / "a")
            for earlier in (False, True):
                merged = disk / "merged"
                shutil.rmtree(merged, ignore_errors=True)
                if earlier:
                    shutil.copytree(self.folder / "one", merged)
                (disk / "filler").write_bytes(bytes(600000))
                before = hashes(merged)
                for command in (["merge", "a", "--out", merged, "--quiet", "--overwrite"],
                                ["run", "s.toml", "--shard", "1/2", "--out", merged, "--quiet", "--overwrite"]):
                    done = self.run(command, 1)
                    if done.stderr.count("\n") != 1 or "No space left" not in done.stderr:
                        raise Broken(f"full disk: not one line that names it: {done.stderr}")
                    print("full disk:", done.stderr.strip().replace(str(disk), "DISK"))
                    after = hashes(merged)
                    after.pop(".headlab-lock-shard_1_of_2.nc", None)
                    new = {name: text for name, text in after.items() if before.get(name) != text}
                    if set(before) - set(after) or set(new) - (set() if earlier else {"summary.json"}):
                        raise Broken(f"full disk: {sorted(new) or 'an earlier file is gone'}")
                    if hashes(self.folder / "a") != shards:
                        raise Broken("full disk: shards were changed")
            # With room, the same command ends.
            subprocess.run([*mount, "remount,size=16m", "headlab", disk], check=True)
            self.run(["merge", "a", "--out", disk / "merged", "--quiet", "--overwrite"])
            if difference(contents(self.folder / "large/results.nc"), contents(disk / "merged/results.nc")):
                raise Broken("full disk: other bits once there is room")
        finally:
            subprocess.run(["umount", disk], check=False)
        return True


def hashes(folder):
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*")
            if path.is_file() and path.name != ".headlab-lock"} if folder.exists() else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("headlab")
    parser.add_argument("--layouts", type=int, default=200)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=KINDS, help="a kind of scenario")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no layout after this time")
    arguments = parser.parse_args()
    broken = []
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="headlab-shards-") as name:
        check = Check(str(pathlib.Path(arguments.headlab).resolve()), pathlib.Path(name), arguments.seed)
        kinds = itertools.cycle([arguments.only] if arguments.only else KINDS)
        for i in range(arguments.layouts):
            if time.monotonic() - start > arguments.seconds:
                break
            kind = next(kinds)
            # Kills that came too late are tried again in the layouts left.
            wanted = arguments.kills - check.counts["kills"]
            kills = -(-wanted * 5 // (4 * (arguments.layouts - i))) if wanted > 0 else 0
            try:
                check.layout(kind, kills)
            except (Broken, ValueError, OSError, subprocess.TimeoutExpired) as error:
                broken.append(f"layout {i}, {kind}: {error}")
                print("shards_check:", broken[-1], file=sys.stderr, flush=True)
        try:
            check.faults()
            if not check.full_disk():
                print("full disk: left out: no file system can be mounted here")
        except (Broken, OSError, subprocess.SubprocessError) as error:
            broken.append(str(error))
            print("shards_check:", error, file=sys.stderr)
    counts = "; ".join(f"{name}: {count}" for name, count in sorted(check.counts.items()))
    print(f"layouts: {check.kinds.total()} of {arguments.layouts}; {counts}")
    print("of: " + "; ".join(f"{k}: {n}" for k, n in sorted(check.kinds.items())))
    print(f"shards_check: {len(broken)} broken promises, {time.monotonic() - start:.0f} s")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
