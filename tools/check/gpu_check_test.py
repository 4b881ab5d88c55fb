# SPDX-License-Identifier: Apache-2.0
"""gpu_check_test.py COMPILER: tools/check/gpu-check and tools/bench/report.py --gpu without a GPU.

A source tree of its own has stand-ins for the programs that the stages run, and a driver library made with the
compiler that reports one GPU, or none. Each way to end is tried: all stages pass, a test fails, a stage runs out
of time, a signal, no GPU, figures that are damaged. What is looked for is looked for in a report without it too.
"""
import copy
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from commands import require

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
STAGES = ["agreement", "kernels", "peers", "counters", "sanitizers", "jobs", "stack"]
PROGRAMS = ("cuda_gpu_tests", "headlab_cuda_bench", "headlab")

DRIVER = """
#include <cstdlib>
#include <cstring>
static bool has(const char* what) {
  const char* mode = std::getenv("STUB_GPU");
  return mode && std::strcmp(mode, what) == 0;
}
extern "C" int cuInit(unsigned) { return has("error") ? 100 : 0; }
extern "C" int cuDeviceGetCount(int* count) { *count = has("none") ? 0 : 1; return 0; }
"""

SLOTS = """
toolkit = "13.0"
[[kernel]]
kind = "plain"
form = "dots4"
symbol = "sums_kernelINS0_4Dots"
d_k = [4]
slots = 8.4
[[kernel]]
kind = "conditional"
form = "tensor64"
symbol = "register_pairs_kernelINS0_10TensorDots"
d_k = [64]
slots = 26.0
[[kernel]]
kind = "keep"
form = "select"
symbol = "select_kernel"
"""

class Stand:
    """A source tree with stand-ins, the folder packed from it, and the environment that finds both."""

    def __init__(self, folder, compiler):
        self.folder = folder
        self.tree, self.bin, self.lib = folder / "tree", folder / "bin", folder / "lib"
        build = self.tree / "build" / "cuda"
        for path in (self.tree / "tools" / "check", self.tree / "tools" / "bench", self.tree / "validation" / "testdata",
                     build, self.bin, self.lib):
            path.mkdir(parents=True)
        for name in ("check/gpu-check", "check/gpu-pack.txt", "bench/common.py", "bench/stack.toml"):
            shutil.copy2(ROOT / "tools" / name, self.tree / "tools" / name)
        (self.tree / "tools" / "check" / "slots.toml").write_text(SLOTS)
        (self.tree / "validation" / "testdata" / "known-answers.json").write_text("{}")
        (build / "CMakeCache.txt").write_text("CMAKE_CUDA_ARCHITECTURES:UNINITIALIZED=90-real\n")
        places = [self.bin / name for name in ("nvcc", "git", "cmake", "nvidia-smi", "ncu", "compute-sanitizer", "readelf", "ldd")]
        places += [build / name for name in PROGRAMS]
        for path in [*places, self.tree / "tools" / "bench" / "peers.py"]:
            path.write_text(f"#!{sys.executable}\n" + (HERE / "gpu_stand_in.py").read_text())
            path.chmod(0o755)
        source = folder / "driver.cpp"
        source.write_text(DRIVER)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", self.lib / "libcuda.so.1", source], check=True)
        self.pack = folder / "pack"

    def environment(self, fake, gpu, without=()):
        path = self.bin
        if without:
            path = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            for program in self.bin.iterdir():
                if program.name not in without:
                    (path / program.name).symlink_to(program)
        return {**os.environ, "PATH": f"{path}:/usr/bin:/bin", "LD_LIBRARY_PATH": str(self.lib), "STUB_GPU": gpu, "FAKE": fake}

    def command(self, *arguments, program=None):
        return [sys.executable, "-B", str(program or self.pack / "gpu-check"), *map(str, arguments)]

    def run(self, *arguments, fake="", gpu="one", program=None, without=()):
        return subprocess.run(self.command(*arguments, program=program), cwd=self.folder, capture_output=True, text=True,
                              env=self.environment(fake, gpu, without), check=False)

    def report(self):
        with open(self.folder / "gpu-check.json", encoding="utf-8") as file:
            return json.load(file)

    def checked(self, status, *arguments, **options):
        """The report of a check that has to end with the status, and what it printed."""
        done = self.run(*arguments, **options)
        require(done.returncode == status, f"{arguments} {options}: status {done.returncode}, not {status}\n{done.stdout}{done.stderr}")
        require("Traceback" not in done.stdout + done.stderr, f"{arguments} {options}: a traceback\n{done.stderr}")
        return self.report(), done

    def refused(self, word, *arguments, **options):
        """Exit 2 and one line with the word."""
        done = self.run(*arguments, **options)
        lines = done.stderr.splitlines()
        require(done.returncode == 2 and len(lines) == 1 and word in lines[0] and not done.stdout,
                f"{arguments} {options}: status {done.returncode}, said {done.stdout!r} {done.stderr!r}, not one line with {word!r}")


def statuses(report):
    return {name: stage["status"] for name, stage in report["stages"].items()}


def incomplete(report):
    """What a full report of the stand-ins lacks, in words."""
    found = []
    stages = report.get("stages", {})
    if list(stages) != STAGES or not report.get("complete"):
        found.append(f"stages {list(stages)}")
    for name, stage in stages.items():
        if stage["status"] != "passed":
            found.append(f"{name} {stage['status']}: {stage.get('why')}")
        if not stage.get("clocks_seen", {}).get("sm_clock_mhz", {}).get("median") == 1755:
            found.append(f"{name} without clocks")
    if stages.get("agreement", {}).get("accuracy", {}).get("First", {}).get("compared") != "12":
        found.append("errors of the comparisons")
    kernels = [(row["form"], row["compared"], row["fallback_queries"], row["error_over_tolerance"], row["case"])
               for row in stages.get("agreement", {}).get("kernels", [])]
    if kernels != [("dots4", 4, 1, 0.5, "Agreement.First"), ("tensor16", 12, 2, 0.25, "Agreement.First")]:
        found.append(f"kernels that were compared, {kernels}")
    for name, rows in (("kernels", 14), ("jobs", 14), ("peers", 2), ("counters", 6), ("stack", 4)):
        if len(stages.get(name, {}).get("rows", [])) != rows:
            found.append(f"rows of {name}")
    for row in stages.get("counters", {}).get("rows", []):
        if row.get("slots") != 8.4 or row.get("dram_bytes_per_weight") != 0.2 or row.get("pipes", {}).get("xu") != 0.1:
            found.append(f"counters {row}")
        if row.get("d_k") == 4 and (row.get("counted_slots"), row.get("form")) != (8.4, "dots4"):
            found.append(f"slots counted in the machine code, {row}")
    if "tensor" in json.dumps([row.get("pipes") for row in stages.get("counters", {}).get("rows", [])]):
        found.append("a counter that the GPU has not")
    of_driver = {"name": "Stub GPU", "driver": "580.1", "cuda": "13.0", "mig": "Disabled", "ecc": "Enabled", "memory": "81559 MiB",
                 "sm_clock": "345 MHz", "highest_sm_clock": "1980 MHz", "power_limit": "700.00 W",
                 "clocks_lowered_by": ["clocks_event_reason_gpu_idle"]}
    if report.get("machine", {}).get("devices") != [of_driver] or "cublas_of_system" not in report["machine"]:
        found.append(f"the machine: {report.get('machine')}")
    if report.get("properties") != [{"name": "Stub GPU", "multiprocessors": 132}]:
        found.append(f"properties of the GPUs: {report.get('properties')}")
    if [row["form"] for row in report.get("slots", [])] != ["dots4", "tensor64"]:
        found.append("counted slots")
    return found


def check_pack(stand):
    tree = stand.tree / "tools" / "check" / "gpu-check"
    for arguments, names in (([], PROGRAMS), (["--without-headlab"], PROGRAMS[:2])):
        done = stand.run("--pack", stand.pack, *arguments, program=tree)
        require(done.returncode == 0 and f"built: {' '.join(names)}\n" in done.stderr, f"--pack {arguments}: {done.stdout}{done.stderr}")
        for name in PROGRAMS:
            require((stand.pack / (name + ".gz")).exists() == (name in names), f"--pack {arguments}: {name}")
        done = stand.run("--stages", "agreement")
        require(done.returncode == 0, f"--pack {arguments}: does not run: {done}")
        require((stand.pack / "headlab").exists() == ("headlab" in names), "a program of an older folder stays")
        (stand.folder / "gpu-check.json").unlink()
    library = stand.folder / "libnetcdf.so"
    library.write_text("a library GLIBC_2.36\0")
    # headlab alone may need what the folder carries.
    for fake, word in ((f"ldd={library} needs=cuda_gpu_tests:libnetcdf.so.19", "cuda_gpu_tests needs libnetcdf.so.19"),
                       (f"ldd={library} needs=headlab:libhwy.so.1", "headlab needs libhwy.so.1"),
                       (f"ldd={library} needs=libnetcdf.so:libhdf5.so.3", "libnetcdf.so needs libhdf5.so.3"),
                       ("ldd=missing", "libnetcdf.so.19 is not found here")):
        done = stand.run("--pack", stand.folder / "failing", program=tree, fake=fake)
        require(done.returncode == 2 and word in done.stderr and not (stand.folder / "failing").exists(), f"--pack, {fake}: {done}")
    done = stand.run("--pack", stand.pack, program=tree, fake=f"ldd={library} needs=headlab:libnetcdf.so.19 git=clean")
    require(done.returncode == 0, f"--pack a second time: {done}")
    manifest = json.loads((stand.pack / "manifest.json").read_text())
    system = ["libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2"]
    require(manifest["needs"]["headlab"] == {"libraries": [*system, "libnetcdf.so.19"], "glibc": "2.36", "carries": ["libnetcdf.so.19"]}
            and manifest["needs"]["cuda_gpu_tests"]["carries"] == [], f"what the programs need: {manifest['needs']}")
    before = manifest["tree"]
    require((before["files"], before["commit"], before["dirty"]) == (2, "0123abc", False) and len(before["sha256"]) == 64, f"{before}")
    readme = (stand.pack / "README").read_text()
    require(len(readme.splitlines()) == 10 and "capability 90-real." in readme and "{" not in readme, f"README: {readme}")
    report, _ = stand.checked(0, "--stages", "jobs")
    require(report["tree"] == before and report["stages"]["jobs"]["headlab_doctor"][-1] == f"libraries: {stand.pack / 'lib'}"
            and (stand.pack / "lib" / "libnetcdf.so.19").read_bytes() == library.read_bytes(), f"libraries of headlab: {report['stages']['jobs']}")
    (stand.folder / "gpu-check.json").unlink()
    # Another content, another digest; and what a tree without git is.
    slots = stand.tree / "tools" / "check" / "slots.toml"
    slots.write_text(SLOTS + "\n")
    require(stand.run("--pack", stand.pack, program=tree, fake="git=dirty").returncode == 0, "--pack a third time")
    after = json.loads((stand.pack / "manifest.json").read_text())["tree"]
    require(after["sha256"] != before["sha256"] and after["dirty"], f"the digest of another tree: {after}")
    require(not (stand.pack / "lib").exists() and not (stand.pack / "headlab-libraries.tar.gz").stat().st_size > 1000, "libraries of an older folder stay")
    slots.write_text(SLOTS)
    require(stand.run("--pack", stand.pack, program=tree).returncode == 0, "--pack without git")
    require(json.loads((stand.pack / "manifest.json").read_text())["tree"].startswith("not known"), "a tree without git")
    packed = stand.pack / "headlab.gz"
    kept = packed.read_bytes()
    for damaged in (b"no archive", kept[:-40], kept[:40] + b"x" * 40 + kept[80:]):
        packed.write_bytes(damaged)
        stand.refused("cannot be unpacked")
        require(not list(stand.pack.glob("headlab")) + list(stand.pack.glob("*.part")), "a damaged program is left")
    packed.write_bytes(kept)
    stand.refused("not made by --pack", "--pack", stand.tree, program=tree)
    stand.refused("--pack needs the source tree", "--pack", stand.folder / "other")
    done = stand.run("--pack", stand.folder / "failing", program=tree, fake="cmake=fail")
    require(done.returncode == 2 and "failed (see above)" in done.stderr and not (stand.folder / "failing").exists(), f"{done}")


def wrong_limits(limits, parts, total, page):
    """What the time limits of gpu-check have against them, in words."""
    found = [] if list(limits) == STAGES and sum(parts.values(), ()) == tuple(STAGES) else [f"stages {list(limits)}, {parts}"]
    found += [f"part {part} takes too long" for part, names in parts.items() if sum(limits[name] for name in names) > 250]
    if sum(limits.values()) > total:
        found.append("all take too long")
    for name, seconds in limits.items():
        row = next((line for line in page.splitlines() if line.startswith(f"| `{name}` |")), "")
        if f"| {seconds} s" not in row:
            found.append(f"docs/gpu.md has another limit of {name}")
    return found


def check_limits():
    loader = importlib.machinery.SourceFileLoader("gpu_check", str(HERE / "gpu-check"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
    loader.exec_module(module)
    page = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    found = wrong_limits(module.LIMITS, module.PARTS, module.TOTAL, page)
    require(not found, f"{found}")
    longer = {name: seconds + 20 for name, seconds in module.LIMITS.items()}
    require(len(wrong_limits(longer, module.PARTS, module.TOTAL, page)) == 4 + len(STAGES), "limits that are too long")
    require(wrong_limits(module.LIMITS, {"1": ("agreement",)}, module.TOTAL, page), "a stage of no part")


def check_no_gpu(stand):
    for program in (None, stand.tree / "tools" / "check" / "gpu-check"):
        stand.refused("cuInit gives error 100", gpu="error", program=program)
        stand.refused("shows no GPU", gpu="none", program=program)
    library = stand.lib / "libcuda.so.1"
    kept = library.read_bytes()
    library.write_text("no library")
    stand.refused("libcuda.so.1 cannot be loaded")
    library.write_bytes(kept)
    require(not (stand.folder / "gpu-check.json").exists(), "a report without a GPU")
    stand.refused("the driver is too old", fake="list=fail")
    stand.refused("no such stage", "--stages", "kernels,speed")
    stand.refused("--time-factor 0", "--time-factor", "0")
    stand.refused("not a regular file", "--out", stand.folder)


def check_stages(stand):
    full, done = stand.checked(0)
    require(not incomplete(full), f"a full report lacks {incomplete(full)}")
    require("8.4 issue slots a weight, 8.4 counted" in done.stdout and "a line of the peers" in done.stdout, done.stdout)
    # The control: what is looked for is missed.
    for path in (("complete",), ("stages", "jobs", "rows"), ("stages", "counters", "rows"), ("slots",), ("stages", "agreement", "accuracy"), ("stages", "agreement", "kernels"),
                 ("stages", "kernels", "clocks_seen"), ("machine", "devices"), ("properties",), ("stages", "stack", "rows")):
        poorer = copy.deepcopy(full)
        entry = poorer
        for name in path[:-1]:
            entry = entry[name]
        del entry[path[-1]]
        require(incomplete(poorer), f"not missed: {path}")
    wrong = copy.deepcopy(full)
    wrong["stages"]["counters"]["rows"][0]["slots"] = 16.8
    require(incomplete(wrong), "wrong slots are not seen")

    everything = dict.fromkeys(STAGES, "passed")
    for fake, stage, status, word in (
            ("tests=fail", "agreement", "failed", None), ("kernels=fail", "kernels", "failed", "something broke"),
            ("kernels=cut", "counters", "failed", "no figures in"), ("jobs=cut", "jobs", "failed", "no figures in jobs.json"),
            ("jobs=list", "jobs", "failed", "no figures in jobs.json"), ("jobs=lacks", "jobs", "failed", "row 3 has no usable job"),
            ("jobs=nan", "jobs", "failed", "row 0 has no usable limit"), ("jobs=fit", "jobs", "failed", "fit has no usable n"),
            ("stack=lacks", "stack", "failed", "row 0 has no usable replicates_per_second"),
            ("sanitizer=racecheck", "sanitizers", "failed", None), ("ncu=broken", "counters", "failed", "==ERROR== The application")):
        report, _ = stand.checked(1, fake=fake)
        found = statuses(report)
        # Kernels are measured by the stage of counters too.
        others = {name for name in STAGES if name != stage and not ("kernels" in fake and name in ("kernels", "counters"))}
        require(found[stage] == status and all(found[name] == "passed" for name in others), f"{fake}: {found}")
        require(word is None or word in report["stages"][stage]["why"], f"{fake}: {report['stages'][stage]}")
    rates = [(row["backend"], row.get("run"), row.get("threads"), row["replicates_per_second"]) for row in full["stages"]["stack"]["rows"]]
    cores = len(os.sched_getaffinity(0))
    require(rates == [("cuda", None, None, 150000.0), ("cuda", True, None, 65536.0), ("cpu", True, 1, 256.0),
                      ("cpu", True, cores, 256.0 * cores * cores)], f"rates of stacks: {rates}")
    report, done = stand.checked(0, "--stages", "stack", fake="run=fail")
    require(len(report["stages"]["stack"]["rows"]) == 1 and len(report["stages"]["stack"]["left_out"]) == 3
            and "left out: headlab on cpu: headlab: something broke" in done.stdout, f"headlab that fails: {report['stages']['stack']}")
    report, _ = stand.checked(0, "--stages", "agreement", fake="smi=cut")
    require(report["machine"]["devices"].startswith("nvidia-smi not available"), f"nvidia-smi that is cut: {report['machine']}")
    logs = stand.folder / "logs"
    report, done = stand.checked(1, "--logs", logs, "--stages", "agreement", fake="tests=fail")
    tests = report["stages"]["agreement"]
    require(tests["failed"] == ["Agreement.Second"], "the failing case")
    require(tests["kernels"][1]["error_over_tolerance"] == 1.5 and tests["kernels"][1]["case"] == "Agreement.Second", "the kernel that is wrong")
    # What did not pass is run again alone, and its first lines are shown.
    require({name: entry["status"] for name, entry in tests["alone"].items()} == {"Agreement.Second": "failed", "Agreement.Third": "passed"},
            f"cases alone: {tests['alone']}")
    require(tests["alone"]["Agreement.Second"]["output"][:2] == ["test.cpp:7: Failure", "largest error over tolerance 3.5"]
            and len(tests["alone"]["Agreement.Second"]["output"]) == 25 and "over tolerance 3.5" in done.stdout, "the first lines")
    require(any("largest error over tolerance 3.5" in file.read_text() for file in logs.iterdir()), "whole output in --logs")
    report, _ = stand.checked(1, fake="tests=crash")
    found = statuses(report)
    require(found.pop("agreement") == "failed" and set(found.values()) == {"skipped"}, f"nothing passed: {found}")
    require(report["stages"]["agreement"]["alone"]["Agreement.Third"]["status"] == "passed", "a crash hides the cases behind it")

    # In three calls, which add to one report.
    (stand.folder / "gpu-check.json").unlink()
    of_parts = stand.folder / "parts"
    kept = {}
    for part in "123":
        report, _ = stand.checked(0, "--part", part, "--logs", of_parts)
        require(all((of_parts / name).read_text() == text for name, text in kept.items()), f"part {part} replaced logs of those before")
        more = {file.name: file.read_text() for file in of_parts.iterdir()}
        require(len(more) > len(kept), f"no log of part {part}")
        kept = more
    require(sorted(statuses(report)) == sorted(STAGES) and set(statuses(report).values()) == {"passed"}, f"parts: {statuses(report)}")
    stand.refused("no such part", "--part", "4")
    stand.refused("give one of them", "--part", "1", "--stages", "jobs")

    for fake, without, stage, word in (("peers=missing", (), "peers", "PyTorch is not installed"),
                                       ("ncu=permission", (), "counters", "no permission"),
                                       ("", ("compute-sanitizer",), "sanitizers", "compute-sanitizer not found")):
        if without and any(pathlib.Path("/usr/local").glob(f"cuda*/bin/{without[0]}")):
            continue
        report, _ = stand.checked(0, fake=fake, without=without)
        require(statuses(report) == {**everything, stage: "skipped"} and word in report["stages"][stage]["why"], f"{fake}: {report['stages'][stage]}")
    report, _ = stand.checked(0, "--stages", "counters", fake="ncu=unknown")
    require(all(row["slots"] == 8.4 and not row["pipes"] for row in report["stages"]["counters"]["rows"]), "an unknown counter")
    done = stand.run("--stages", "counters", fake="ncu=permission")
    require(done.returncode == 2 and "every stage was skipped" in done.stderr, f"nothing was checked: {done}")


def check_cublas(stand):
    """conda's cuBLAS, PyTorch's own and that of the wheels are found, and other folders are not."""
    places = [stand.folder / "conda" / "lib", stand.folder / "site" / "torch" / "lib", stand.folder / "site" / "nvidia" / "cublas" / "lib"]
    for place in places:
        place.mkdir(parents=True)
        (place / "libcublas.so.12").write_text("")
    empty = stand.folder / "site" / "nvidia" / "cudnn" / "lib"
    empty.mkdir(parents=True)
    os.environ.update(CONDA_PREFIX=str(stand.folder / "conda"), PYTHONPATH=str(stand.folder / "site"))
    report, _ = stand.checked(0, "--stages", "agreement")
    del os.environ["CONDA_PREFIX"], os.environ["PYTHONPATH"]
    found = report["machine"]["cublas_folders"]
    require(all(str(place) in found for place in places) and str(empty) not in found, f"folders of cuBLAS: {found}")


def check_time(stand):
    """A stage that runs out of time does not cost the others theirs."""
    report, _ = stand.checked(1, "--stages", "agreement,kernels,jobs", "--time-factor", "0.05", fake="tests=sleep")
    require(statuses(report) == {"agreement": "out of time", "kernels": "passed", "jobs": "passed"}, f"{statuses(report)}")
    require(report["stages"]["agreement"]["unfinished"] == ["Agreement.Second"], "the case that did not end")
    report, _ = stand.checked(1, "--stages", "peers", "--time-factor", "0.05", fake="peers=late")
    late = report["stages"]["peers"]
    require(late["status"] == "out of time" and len(late["rows"]) == 2, f"figures of a stage that ran out of time: {late}")


def left_running(stand):
    """Programs of the stand-ins that still run."""
    found = []
    for place in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        found += [word for word in words[:2] if word.startswith(str(stand.bin))]
    return found


def check_signals(stand):
    for number in (signal.SIGINT, signal.SIGTERM):
        (stand.folder / "gpu-check.json").unlink(missing_ok=True)
        process = subprocess.Popen(stand.command(), cwd=stand.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=stand.environment("jobs=sleep", "one"))
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                if "kernels" in stand.report()["stages"]:
                    break
            except (OSError, ValueError):
                pass
            time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate(timeout=30)
        require(process.returncode == 128 + number and said == f"gpu-check: stopped by {number.name}\n", f"{number.name}: {process.returncode} {said!r}")
        report = stand.report()
        require("jobs" not in statuses(report) and statuses(report)["kernels"] == "passed" and not report["complete"], f"{number.name}: {statuses(report)}")
        require(not left_running(stand), f"{number.name}: {left_running(stand)} is left")
    # A stage that has ended waits for the first sample of the clocks.
    process = subprocess.Popen(stand.command("--stages", "agreement"), cwd=stand.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                               env=stand.environment("smi=late", "one"))
    time.sleep(3)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=30)
    require(not left_running(stand), f"{left_running(stand)} is left where clocks were waited for")


SIGNAL_AT_BEGIN = """
import os, signal, subprocess, sys
source = open(sys.argv[1], encoding="utf-8").read()
names = {"__name__": "gpu_check", "__file__": sys.argv[1]}
exec(compile(source, sys.argv[1], "exec"), names)
signal.signal(signal.SIGTERM, names["stop"])
class Begun(subprocess.Popen):
    def __init__(self, *command, **options):
        super().__init__(*command, **options)
        os.kill(os.getpid(), signal.SIGTERM)
begun = []
subprocess.Popen = lambda *command, **options: begun.append(Begun(*command, **options)) or begun[-1]
try:
    names["run_group"](["nvidia-smi", "-l"]) if sys.argv[2] == "run_group" else names["Clocks"]().__enter__()
except KeyboardInterrupt:
    pass
"""


def check_signal_at_begin(stand):
    """A program is known to what ends it before a signal is heard."""
    for what in ("run_group", "Clocks"):
        subprocess.run([sys.executable, "-c", SIGNAL_AT_BEGIN, str(ROOT / "tools/check/gpu-check"), what], cwd=stand.folder,
                       env=stand.environment("smi=late", "one"), check=True, stdout=subprocess.DEVNULL)
        require(not left_running(stand), f"{what}: {left_running(stand)} is left")


def write_tables(stand, page, *reports):
    """Runs tools/bench/report.py: its status, what it said, and the page."""
    target = stand.folder / "gpu.md"
    files = [stand.folder / f"report{number}.json" for number in range(len(reports))]
    for file, report in zip(files, reports):
        file.write_text(report if isinstance(report, str) else json.dumps(report))
    target.write_text(page)
    done = subprocess.run([sys.executable, "-B", str(ROOT / "tools" / "bench" / "report.py"), "--gpu", *map(str, files), "--page", str(target)],
                          capture_output=True, text=True, check=False)
    return done.returncode, done.stderr, target.read_text()


def check_tables(stand):
    page = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
    require("<!-- figures: gpu -->\n**Results: not yet measured.**" in page, "docs/gpu.md has figures, or no place for them")
    full, _ = stand.checked(0)
    status, said, text = write_tables(stand, page, full)
    require(status == 0 and "not yet measured.**" not in text and text.startswith(page.split("<!-- figures")[0]), f"{status} {said}")
    # 132 multiprocessors at 1.98 GHz with 8.4 of 128 slots, next to what the stand-in measured.
    for line in ("| 4 | plain | pairwise | dots4 | 3.98 | 2.00 | 50 | 1.50 | 38 | 4.00 | exp | 100.0 | 100.0 | 300.0 | 5.0 | 2.0 | 10.0 |",
                 "| 64 | conditional | pairwise | tensor64 | 1.29 | 2.00 | 50 |", "| 2 | plain | pairwise | dots2 | - | 2.00 |",
                 "| plain | 4 | dots4 | 8.4 | 8.4 | 0.2 | xu 10, fma 10, alu 10, lsu 10 |", "| plain | 8 | - | - | 8.4 | 0.2 |",
                 "| 500 | 1 | 4 | plain | 1000000 | 0.140 | 0.030 |",
                 "| plain | 4 | 2.00 | attention float32 (took efficient) | 0.4000 | 5.0 | 1e-06 |",
                 "| conditional | 4 | 1.00 | torch softmax, W W' | 0.1000 | 10.0 | 1e-06 |", "| cpu | 1 | a whole run | 256 | 585.9 |",
                 "- left out: KeOps: not installed", "A sweep of 100 small conditions", "| First | largest_relative_error 1e-7",
                 "| tensor16 | projected | heads | values | 12 | 60 | 0 | 2 | 0.25 | 2.5e-07 | Agreement.First |",
                 "| `counters` | passed |", "| 1755 (1755 to 1755) |", "Learned heads: 1000 steps"):
        require(line in text, f"the page lacks {line!r}")
    partial, _ = stand.checked(1, fake="kernels=fail peers=missing ncu=permission")
    status, said, text = write_tables(stand, page, partial)
    require(status == 0 and "| 4 | plain | pairwise | dots4 | 3.98 | - | - | 1.50 |" in text and "Counters of" not in text, f"a partial report: {said}")
    # The reports of parts, each of its own, make the same page; those of two builds do not.
    parts = [dict(full, stages={name: full["stages"][name] for name in names})
             for names in (STAGES[:1], STAGES[1:4], STAGES[4:])]
    _, _, whole = write_tables(stand, page, full)
    status, said, text = write_tables(stand, page, *parts)
    require(status == 0 and text == whole, f"reports of parts: {said}")
    require(write_tables(stand, page, *parts[:2])[2] != whole, "a part that lacks is not seen")
    status, said, text = write_tables(stand, page, parts[0], dict(parts[1], commit="another"))
    require(status == 2 and "of commit another" in said and text == page, f"reports of two builds: {status} {said}")
    damaged = copy.deepcopy(full)
    del damaged["stages"]["kernels"]["rows"][0]["limit"]
    for report, word in (("{", "no report of gpu-check"), ([1], "not a report of gpu-check"), ({"format": 1}, "not a report"), (damaged, "damaged")):
        status, said, text = write_tables(stand, page, report)
        require(status == 2 and word in said and said.count("\n") == 1 and text == page, f"{report}: {status} {said}")


def main(compiler):
    # In a shell's background an interrupt is ignored, and gpu-check would keep to that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="gpu_check_test.") as name:
        stand = Stand(pathlib.Path(name), compiler)
        check_limits()
        check_pack(stand)
        check_no_gpu(stand)
        check_stages(stand)
        check_cublas(stand)
        check_time(stand)
        check_signals(stand)
        check_signal_at_begin(stand)
        check_tables(stand)
    print("gpu-check ends as it says, with the report so far")


if __name__ == "__main__":
    main(sys.argv[1])
