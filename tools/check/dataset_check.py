#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens data sets as docs/datasets.md says and compares them with what headlab simulates.

dataset_check.py HEADLAB [--need-torch]: runs HEADLAB on a small study in a temporary folder. Exit
code 77 where xarray is not installed; the part with PyTorch is left out, and says so, where that is
missing.
"""
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import xarray as xr
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
try:
    import torch
except ImportError:
    torch = None

from commands import WORLD, require

SCENARIO = WORLD.replace("n = 20", "n = 40").replace("orthogonal", "haar").replace(
    '{ law = "normal", sd = 0.5 }',
    '{ law = "heteroscedastic", sd = 0.5, slope = 0.5, direction = [0, 1, 0, 0] }') + """replicates = 10
estimator = "plain"
[sweep]
"data.n" = [25, 40]
"""
REPLICATES = 10


def nw_weights(X, queries, projections, bandwidth):
    """Attention weights [query, head, n] of Gaussian heads, in float64."""
    keys = np.einsum("hdk,nd->hnk", projections, X.astype(np.float64))
    wanted = np.einsum("hdk,qd->qhk", projections, queries)
    r2 = ((wanted[:, :, None, :] - keys[None]) ** 2).sum(axis=-1)
    weights = np.exp(-(r2 - r2.min(axis=-1, keepdims=True)) / (2 * bandwidth**2))
    return weights / weights.sum(axis=-1, keepdims=True)


def check_estimates(shard):
    """The heads' estimates and weights follow from X and Y; a number changed is seen."""
    for r in range(shard.sizes["replicate"]):
        X, Y = shard.X.values[r], shard.Y.values[r]
        weights = nw_weights(X, shard.queries.values, shard.projections.values, 0.8)
        require(np.allclose(shard.attention_weights.values[r], weights, rtol=1e-12, atol=1e-15),
                f"weights of replicate {r} do not follow from X")
        estimates = shard.head_estimates.values[r]
        require(np.allclose(estimates, weights @ Y, rtol=1e-12, atol=1e-14),
                f"estimates of replicate {r} do not follow from X and Y")
        Y = Y.copy()
        Y[weights[0, 0].argmax()] += 1e-6
        require(not np.allclose(estimates, weights @ Y, rtol=1e-12, atol=1e-14),
                "a changed Y was not seen")


def check_against_run(program, scenario, folder):
    """The mean squared error of the estimates is what the reference backend reports."""
    out = subprocess.run([program, "run", str(scenario), "--backend", "reference", "--json", "-",
                          "--replicates", str(REPLICATES), "--quiet"],
                         check=True, capture_output=True, text=True).stdout
    for i, condition in enumerate(json.loads(out)["conditions"]):
        shards = [xr.open_dataset(path)
                  for path in sorted(folder.glob(f"condition_{i:03d}/shard_*.nc"))]
        estimates = np.concatenate([shard.head_estimates.values for shard in shards])
        bias = estimates.mean(axis=0) - shards[0].truth.values[:, None]
        for q, query in enumerate(condition["queries"]):
            require(np.allclose(bias[q], query["head_bias"], rtol=1e-10, atol=1e-13),
                    f"bias of condition {i} differs from the simulation's")
            covariance = np.cov(estimates[:, q].T)
            require(np.allclose(covariance, query["head_covariance"], rtol=1e-10, atol=1e-13),
                    f"covariance of condition {i} differs from the simulation's")
        # The control: two replicates exchanged between estimates of two heads are seen.
        estimates[:2, 0, 0] = estimates[1::-1, 0, 0]
        require(not np.allclose(np.cov(estimates[:, 0].T),
                                condition["queries"][0]["head_covariance"], rtol=1e-10),
                "exchanged replicates were not seen")


def check_manifest(folder):
    manifest = json.loads((folder / "manifest.json").read_text())
    require(manifest["complete"], "the data set is not complete")
    for condition in manifest["conditions"]:
        for shard in condition["shards"]:
            for file in shard["files"]:
                bytes_ = (folder / file["name"]).read_bytes()
                require(len(bytes_) == file["bytes"], f"{file['name']} has another size")
                require(hashlib.sha256(bytes_).hexdigest() == file["sha256"],
                        f"{file['name']} has another SHA-256")
    return manifest


def check_npy(netcdf, npy):
    """Memory maps of the NPY files have the bits of the NetCDF files."""
    for i in range(2):
        for s in range(3):
            shard = xr.open_dataset(netcdf / f"condition_{i:03d}/shard_{s:03d}.nc")
            folder = npy / f"condition_{i:03d}/shard_{s:03d}"
            names = {path.stem for path in folder.iterdir()}
            require(names == set(shard.variables), f"variables are {names}")
            for name in names:
                array = np.load(folder / f"{name}.npy", mmap_mode="r")
                require(isinstance(array, np.memmap), f"{name} is not mapped")
                require(array.dtype == shard[name].dtype and array.shape == shard[name].shape,
                        f"{name} has another type or shape")
                require(array.tobytes() == shard[name].values.tobytes(), f"{name} differs")


def check_torch(folder, manifest):
    # The files as docs/datasets.md says.
    class TrainingSets(torch.utils.data.Dataset):
        def __init__(self, folder, condition=0):
            folder = pathlib.Path(folder)
            manifest = json.loads((folder / "manifest.json").read_text())
            shards = manifest["conditions"][condition]["shards"]
            self.first = [shard["first_replicate"] for shard in shards]
            self.count = sum(shard["replicates"] for shard in shards)
            self.x = [np.load(folder / s["path"] / "X.npy", mmap_mode="r") for s in shards]
            self.y = [np.load(folder / s["path"] / "Y.npy", mmap_mode="r") for s in shards]

        def __len__(self):
            return self.count

        def __getitem__(self, replicate):
            shard = int(np.searchsorted(self.first, replicate, side="right")) - 1
            i = replicate - self.first[shard]
            x = torch.from_numpy(self.x[shard][i].copy())
            y = torch.from_numpy(self.y[shard][i].astype(np.float32))
            return x, y

    sets = TrainingSets(folder, condition=1)
    require(len(sets) == REPLICATES, f"PyTorch sees {len(sets)} training sets")
    x, y = next(iter(torch.utils.data.DataLoader(sets, batch_size=REPLICATES)))
    require(x.shape == (REPLICATES, 40, 4) and y.shape == (REPLICATES, 40), "shapes differ")
    expected = np.concatenate([np.load(folder / s["path"] / "X.npy")
                               for s in manifest["conditions"][1]["shards"]])
    require(x.numpy().tobytes() == expected.tobytes(), "PyTorch sees other numbers")


def main(program, need_torch):
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        scenario = folder / "study.toml"
        scenario.write_text(SCENARIO)
        for format_ in ["netcdf", "npy"]:
            subprocess.run([program, "dataset", str(scenario), "--replicates", str(REPLICATES),
                            "--shards", "3", "--estimates", "--weights", "--format", format_,
                            "--out", str(folder / format_), "--quiet"], check=True)
            manifest = check_manifest(folder / format_)
        for path in sorted((folder / "netcdf").glob("*/*.nc")):
            check_estimates(xr.open_dataset(path))
        # All shards of a condition at once.
        whole = xr.concat([xr.open_dataset(path) for path in
                           sorted((folder / "netcdf/condition_001").glob("shard_*.nc"))],
                          dim="replicate", data_vars="minimal")
        require(dict(whole.sizes) == dict(replicate=10, head=2, d=4, k=2, query=2, n=40),
                f"dimensions are {dict(whole.sizes)}")
        require(list(whole.replicate.values) == list(range(REPLICATES)), "replicates differ")
        check_against_run(program, scenario, folder / "netcdf")
        check_npy(folder / "netcdf", folder / "npy")
        if torch is not None:
            check_torch(folder / "npy", manifest)
        else:
            require(not need_torch, "PyTorch is not installed")
            print("PyTorch is not installed: its part is left out")
    print("data sets open in xarray and NumPy, and hold what headlab simulates")


if __name__ == "__main__":
    main(sys.argv[1], "--need-torch" in sys.argv[2:])
