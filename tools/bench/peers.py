#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""headlab and attention libraries, on the same device in the same run.

tools/bench/peers.py [--device cuda|cpu] [--threads 1,2] [--dims 1,2,4] [--quick] [--rounds N]
                     [--seconds S] [--processor-time] [--json FILE]

The same work for all: training points X [R][n][d] and Y [R][n] are given; keys are projected for each
head, every query gets its Nadaraya-Watson mean with the Gaussian kernel. n = 4096, d = 32 (64 for
d_k = 64), H = 8, 64 queries. On a GPU headlab's part is the projection and the fused kernel of the
plain estimator (headlab_cuda_bench --only given-x), on a CPU the same (headlab_bench, cpu_given_x); a
second table for the CPU is of whole jobs, where everyone draws X and Y as well (headlab run). Everyone
takes turns, `rounds` times; figures are medians. A peer's error is its largest one against float64,
relative to the largest mean. On a CPU all are bound to as many processors as there are threads, and a
peer has tried several chunk sizes and layouts before, of which it takes the fastest.

The Gaussian kernel is a dot product in d_k + 1 dimensions, exp(q.k / b^2 - |k|^2 / (2 b^2)) up to a
factor that cancels, padded to a multiple of 8 as the fused attention kernels want it.

Exit status: 0 measured, 1 a program of headlab's failed, 2 nothing to measure with.
"""
import argparse
import math
import os
import statistics
import sys
import tempfile
import time

from common import Failed, Stop, ended, figures, find_program, integers, number, run_program, write_json

N, HEADS, QUERIES = 4096, 8, 64


class Work:
    """One d_k: data on the device, and the mean in float64 of the first replicate."""

    def __init__(self, torch, device, k, replicates):
        self.torch, self.device, self.k, self.replicates = torch, device, k, replicates
        d = max(32, k)
        self.bandwidth = 0.8 * math.sqrt(k)
        generator = torch.Generator().manual_seed(1)

        def normal(*shape):
            return torch.randn(*shape, generator=generator)
        self.x = normal(replicates, N, d).to(device)
        self.y = normal(replicates, N).to(device)
        frames = torch.linalg.qr(normal(HEADS, d, k))[0]
        self.projection = frames.permute(1, 0, 2).reshape(d, HEADS * k).contiguous().to(device)
        queries = torch.einsum("qd,hdk->hqk", 0.7 * normal(QUERIES, d), frames)
        self.queries = queries.contiguous().to(device)
        self.weights = replicates * N * HEADS * QUERIES
        keys = torch.einsum("nd,hdk->hnk", self.x[0].cpu().double(), frames.double())
        square = ((queries.double()[:, :, None, :] - keys[:, None, :, :]) ** 2).sum(-1)
        self.exact = torch.softmax(-square / (2 * self.bandwidth ** 2), -1) @ self.y[0].cpu().double()

    def keys(self):
        """[R][H][n][d_k]"""
        return (self.x @ self.projection).view(self.replicates, N, HEADS, self.k).transpose(1, 2)

    def error(self, means):
        got = means[0].reshape(HEADS, QUERIES).cpu().double()
        value = (got - self.exact).abs().max() / self.exact.abs().max()
        return float(value) if bool(self.torch.isfinite(got).all()) else math.inf


def attention(work, dtype):
    torch, k = work.torch, work.k
    width = (k + 1 + 7) // 8 * 8
    scale = 1 / work.bandwidth ** 2
    query = torch.zeros(work.replicates, HEADS, QUERIES, width, device=work.device, dtype=dtype)
    query[..., :k] = (work.queries * scale).to(dtype)
    query[..., k] = 1
    # The product leaves room for the norm and the padding: keys are not copied.
    projection = torch.zeros(work.x.shape[-1], HEADS, width, device=work.device, dtype=dtype)
    projection[..., :k] = work.projection.view(-1, HEADS, k)
    projection = projection.view(-1, HEADS * width)

    def run():
        keys = (work.x.to(dtype) @ projection).view(work.replicates, N, HEADS, width)
        keys[..., k] = keys[..., :k].square().sum(-1) * (-scale / 2)
        # As wide as the keys, which the fused kernels ask for.
        value = torch.zeros(work.replicates, 1, N, width, device=work.device, dtype=dtype)
        value[:, 0, :, 0] = work.y
        out = torch.nn.functional.scaled_dot_product_attention(
            query, keys.transpose(1, 2), value.expand(-1, HEADS, -1, -1), scale=1.0)
        return out[..., 0].float()
    return run


def plain_matmul(work):
    torch = work.torch
    scale = 1 / work.bandwidth ** 2
    query = (work.queries * scale).unsqueeze(0)

    def run():
        keys = work.keys()
        norms = (keys * keys).sum(-1) * (-scale / 2)
        weights = torch.softmax(query @ keys.transpose(-1, -2) + norms.unsqueeze(-2), -1)
        return (weights @ work.y[:, None, :, None]).squeeze(-1)
    return run


def plain_cdist(work):
    torch = work.torch
    scale = -1 / (2 * work.bandwidth ** 2)
    query = work.queries.unsqueeze(0).expand(work.replicates, -1, -1, -1).contiguous()

    def run():
        distance = torch.cdist(query, work.keys().contiguous())
        weights = torch.softmax(distance * distance * scale, -1)
        return (weights @ work.y[:, None, :, None]).squeeze(-1)
    return run


def keops(work):
    from pykeops.torch import LazyTensor  # pylint: disable=import-error,import-outside-toplevel
    root = math.sqrt(0.5) / work.bandwidth
    query = LazyTensor((work.queries * root)[None, :, :, None, :].contiguous())

    def run():
        keys = LazyTensor((work.keys() * root)[:, :, None, :, :].contiguous())
        value = LazyTensor(work.y[:, None, None, :, None].contiguous())
        return (-((query - keys) ** 2).sum(-1)).sumsoftmaxweight(value, dim=3)
    return run


def all_peers(torch):
    """Name, float32 exponents or not, and what makes it from the work."""
    peers = [("attention float32", True, lambda w: attention(w, torch.float32)),
             ("attention float16", False, lambda w: attention(w, torch.float16)),
             ("attention bfloat16", False, lambda w: attention(w, torch.bfloat16)),
             ("torch matmul softmax", True, plain_matmul), ("torch cdist", True, plain_cdist)]
    try:
        import pykeops  # pylint: disable=import-outside-toplevel,unused-import
        peers.append(("KeOps", True, keops))
    except ImportError:
        pass
    return peers


def timed(torch, run, seconds):
    """Median seconds of a call, of as many as fit in the time, after two warm ones."""
    for _ in range(2):
        run()
    torch.cuda.synchronize()
    samples, begin = [], time.perf_counter()
    while len(samples) < 3 or (time.perf_counter() - begin < seconds and len(samples) < 50):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        run()
        end.record()
        end.synchronize()
        samples.append(start.elapsed_time(end) * 1e-3)
    return statistics.median(samples)


def headlab_cuda(program, dims, scratch):
    """Weights a second from given X, by d_k."""
    file = os.path.join(scratch, "given-x.json")
    run_program(program, "--only", "given-x", "--dims", ",".join(map(str, dims)), "--repeats", "11", "--json", file)
    rates = figures(program, file, lambda report: {row["d_k"]: row["given_x"] for row in report["rows"]})
    if set(rates) != set(dims):
        raise Failed(f"{program}: no figures of it for every d_k")
    return rates


def measure(arguments, torch):
    device, dims = "cuda", arguments.dims
    begin = time.monotonic()
    program = find_program(arguments.bench, "headlab_cuda_bench", (".", "build/cuda"), "see docs/gpu.md")
    name = torch.cuda.get_device_name()
    # Full float32, which is the default for products.
    torch.backends.cuda.matmul.allow_tf32 = False
    peers = all_peers(torch)
    ours = {k: [] for k in dims}
    rates = {k: {peer[0]: [] for peer in peers} for k in dims}
    errors = {k: {} for k in dims}
    trouble = {}
    rounds = 0
    with tempfile.TemporaryDirectory(prefix="peers.") as scratch, torch.no_grad():
        for _ in range(arguments.rounds):
            started = time.monotonic()
            found = headlab_cuda(program, dims, scratch)
            for k in dims:
                ours[k].append(found[k])
                work = Work(torch, device, k, arguments.replicates or 128)
                for peer, _exact, make in peers:
                    if (k, peer) in trouble:
                        continue
                    try:
                        run = make(work)
                        errors[k][peer] = work.error(run())
                        rates[k][peer].append(work.weights / timed(torch, run, arguments.each))
                    except Exception as error:  # a peer that cannot do a shape is left out and named
                        trouble[k, peer] = f"{type(error).__name__}: {str(error).splitlines()[0][:160]}" if str(error) else type(error).__name__
                del work
            rounds += 1
            # Another round only if it fits.
            if time.monotonic() - begin + 1.2 * (time.monotonic() - started) > arguments.seconds:
                break
    report = {"device": name, "torch": torch.__version__, "rounds": rounds,
              "headlab_work": "projection and sums from given X",
              "rows": [], "left_out": [f"d_k {k}, {peer}: {why}" for (k, peer), why in trouble.items()]}
    for k in dims:
        mine = statistics.median(ours[k])
        row = {"d_k": k, "headlab": mine, "peers": []}
        for peer, exact, _make in peers:
            if rates[k][peer]:
                rate = statistics.median(rates[k][peer])
                row["peers"].append({"name": peer, "float32_exponents": exact, "rate": rate,
                                     "headlab_times": mine / rate, "relative_error": errors[k][peer]})
        best = [p["headlab_times"] for p in row["peers"] if p["float32_exponents"]]
        row["times_best_float32_peer"] = min(best) if best else None
        report["rows"].append(row)
    return report


def table_of(report):
    """One line for each d_k and peer."""
    lines = [f"given X, {report['device']}, PyTorch {report['torch']}, {report['rounds']} rounds; headlab: {report['headlab_work']}",
             f"{'d_k':>4} {'':24} {'1e9/s':>10} {'headlab is':>11} {'error':>8}"]
    for row in report["rows"]:
        lines.append(f"{row['d_k']:4d} {'headlab':24} {row['headlab'] / 1e9:10.3f}")
        for peer in row["peers"]:
            lower = "" if peer["float32_exponents"] else " (less accurate)"
            lines.append(f"{'':4} {peer['name']:24} {peer['rate'] / 1e9:10.3f} {peer['headlab_times']:9.2f} x {peer['relative_error']:8.0e}{lower}")
    return lines + ["left out: " + why for why in report["left_out"]]


def measure_gpu(arguments):
    # gpu-check tells by the word PyTorch that there is nothing to compare with.
    try:
        import torch  # pylint: disable=import-outside-toplevel
    except (ImportError, OSError) as error:
        raise Stop(f"PyTorch is not installed for {sys.executable} ({' '.join(str(error).split())})") from error
    if not torch.cuda.is_available():
        raise Stop(f"PyTorch {torch.__version__} finds no GPU: it has none, or was built without CUDA")
    report = measure(arguments, torch)
    report["table"] = table_of(report)
    return report


def device_here():
    try:
        import torch  # pylint: disable=import-outside-toplevel
    except (ImportError, OSError):
        return "cpu"
    return "cuda" if torch.cuda.is_available() else "cpu"


def measure_all(arguments):
    if arguments.json is not None:
        write_json(arguments.json, None)  # only whether it could be
    if (arguments.device or device_here()) == "cuda":
        report = measure_gpu(arguments)
    else:
        import cpu_peers  # pylint: disable=import-outside-toplevel
        report = cpu_peers.measure(arguments)
    print("\n".join(report["table"]))
    if arguments.json is not None:
        write_json(arguments.json, report)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cuda", "cpu"), help="by default cuda where PyTorch finds a GPU")
    parser.add_argument("--threads", type=integers, default="1,2", help="on a CPU, by default %(default)s")
    parser.add_argument("--dims", type=integers, help="by default 1,2,4,8,16,32,64")
    parser.add_argument("--quick", action="store_true", help="d_k 2,4,8 and 2 rounds: less than 3 minutes on a CPU")
    parser.add_argument("--processor-time", action="store_true", help="on a CPU that others use too: rates from given X by the "
                        "least processor time, of one thread")
    parser.add_argument("--rounds", type=number(int, 1), help="at most, by default 5")
    parser.add_argument("--seconds", type=number(float, 0), default=600, help="no new round that would end later")
    parser.add_argument("--each", type=number(float, 0), default=0.2, help="seconds for a peer in a round")
    parser.add_argument("--replicates", type=number(int, 0), default=0, help="of a call: 128 on a GPU, 4 on a CPU")
    parser.add_argument("--bench", help="headlab_cuda_bench of build/cuda, on a CPU headlab_bench of build/release")
    parser.add_argument("--headlab", help="headlab, by default that of build/release")
    parser.add_argument("--json", help="where the figures are written as well")
    arguments = parser.parse_args()
    arguments.dims = arguments.dims or ([2, 4, 8] if arguments.quick else [1, 2, 4, 8, 16, 32, 64])
    arguments.rounds = arguments.rounds or (2 if arguments.quick else 5)
    return ended("peers.py", measure_all, arguments)


if __name__ == "__main__":
    sys.exit(main())
