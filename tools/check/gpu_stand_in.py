# SPDX-License-Identifier: Apache-2.0
"""Stands in for each of the programs that tools/check/gpu-check runs, by the name it has; the variable FAKE has words
NAME=MODE. gpu_check_test.py copies it into a source tree of its own."""
import json, os, signal, sys, time
name = os.path.basename(sys.argv[0])
arguments = sys.argv[1:]
modes = dict(word.split("=") for word in os.environ.get("FAKE", "").split())
def value(option, default=None):
    return arguments[arguments.index(option) + 1] if option in arguments else default
def write(path, report):
    with open(path, "w") as file:
        file.write(report if isinstance(report, str) else json.dumps(report))
def obey(mode):
    if mode == "sleep":
        time.sleep(60)
    elif mode == "fail":
        print(f"{name}: something broke")
        sys.exit(1)
if name == "nvcc":
    print("release 13.0")
elif name == "git":
    if "git" not in modes:
        sys.exit(1)
    if "ls-files" in arguments:
        print("tools/check/slots.toml\0validation/testdata/known-answers.json", end="\0")
    elif "rev-parse" in arguments:
        print("0123abc")
    elif "status" in arguments and modes["git"] == "dirty":
        print(" M tools/check/slots.toml")
elif name == "readelf":
    program, more = modes.get("needs", ":").split(":")
    for library in ("libm.so.6", "libc.so.6", "ld-linux-x86-64.so.2", more):
        if library and (library != more or os.path.basename(arguments[1]) == program):
            print(f" 0x0000000000000001 (NEEDED)             Shared library: [{library}]")
elif name == "ldd":
    print("\tlinux-vdso.so.1 (0x00007ffc)\n\tlibc.so.6 => /lib/libc.so.6 (0x00007f)")
    if modes.get("ldd") == "missing":
        print("\tlibnetcdf.so.19 => not found")
    elif "ldd" in modes:
        print(f"\tlibnetcdf.so.19 => {modes['ldd']} (0x00007f)")
elif name == "cmake":
    print("built:", *arguments[arguments.index("--target") + 1:], file=sys.stderr)
    obey(modes.get(name))
elif name == "nvidia-smi":
    if "-l" in arguments:
        if modes.get("smi") == "late":
            time.sleep(60)
        while True:
            print("1755, 2619, 41, 300.5", flush=True)
            time.sleep(0.05)
    if modes.get("smi") == "cut":
        print("<nvidia_smi_log><gpu>")
        sys.exit(0)
    print("<?xml version='1.0' ?><nvidia_smi_log><driver_version>580.1</driver_version><cuda_version>13.0</cuda_version><gpu>"
          "<product_name>Stub GPU</product_name><mig_mode><current_mig>Disabled</current_mig></mig_mode>"
          "<ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode><fb_memory_usage><total>81559 MiB</total></fb_memory_usage>"
          "<clocks><sm_clock>345 MHz</sm_clock></clocks><max_clocks><sm_clock>1980 MHz</sm_clock></max_clocks>"
          "<gpu_power_readings><power_draw>N/A</power_draw><current_power_limit>700.00 W</current_power_limit></gpu_power_readings>"
          "<clocks_event_reasons><clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>"
          "<clocks_event_reason_sw_power_cap>Not Active</clocks_event_reason_sw_power_cap></clocks_event_reasons>"
          "</gpu></nvidia_smi_log>")
elif name == "cuda_gpu_tests":
    if "--gtest_list_tests" in arguments:
        print("Agreement.\n  First\n  Second\n  Third  # GetParam() = 1")
        sys.exit(0)
    alone = [argument.split("=")[1] for argument in arguments if argument.startswith("--gtest_filter=Agreement.")
             and ":" not in argument]
    if alone:
        name = alone[0]
        print(f"[ RUN      ] {name}")
        if name.endswith("Second"):
            print("test.cpp:7: Failure\nlargest error over tolerance 3.5")
            print("\n".join("noise" for _ in range(60)))
            print(f"[  FAILED  ] {name} (3 ms)")
            sys.exit(1)
        print(f"[       OK ] {name} (3 ms)")
        sys.exit(0)
    if modes.get("tests") == "crash":
        print("[ RUN      ] Agreement.First", flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    failing = modes.get("tests") == "fail"
    def compared(kernel, count, error):
        form, keys, sums = kernel
        print("[ COMPARED ] " + json.dumps({"form": form, "keys": keys, "sums": sums, "passes": "values", "compared": count,
                                            "queries": 5 * count, "unbounded_queries": 0, "fallback_queries": 1, "error_over_tolerance": error, "relative_error": error / 1e6}))
    tensor, dots = ("tensor16", "projected", "heads"), ("dots4", "read", "pairs of 8 in registers")
    print("[ RUN      ] Agreement.First")
    compared(tensor, 7, 0.25)
    compared(dots, 4, 0.5)
    print("[       OK ] Agreement.First (3 ms)", flush=True)
    print("[ RUN      ] Agreement.Second", flush=True)
    if modes.get("tests") == "sleep":
        time.sleep(60)
    compared(tensor, 5, 1.5 if failing else 0.125)
    print('[ COMPARED ] {"form": "dots4", "keys"')
    print("[  FAILED  ] Agreement.Second (3 ms)" if failing else "[       OK ] Agreement.Second (3 ms)")
    for argument in arguments:
        if argument.startswith("--gtest_output=json:"):
            cases = [{"name": "First", "largest_relative_error": "1e-7", "compared": "12"}]
            write(argument.split(":", 1)[1], {"testsuites": [{"testsuite": cases}]})
    sys.exit(1 if failing else 0)
elif name == "headlab_cuda_bench":
    if arguments[0] == "--list":
        if modes.get("list") == "fail":
            print("headlab_cuda_bench: the driver is too old")
            sys.exit(2)
        write(value("--json"), {"properties": [{"name": "Stub GPU", "multiprocessors": 132}]})
        print("1 x Stub GPU, 132 multiprocessors at 1980 MHz at most; CUDA 13.0")
        sys.exit(0)
    only = value("--only")
    obey(modes.get(only))
    mode = modes.get(only)
    rows = []
    for k in map(int, value("--dims", "1,2,4,8,16,32,64").split(",")):
        for estimator in ("plain", "conditional"):
            if value("--estimator", estimator) != estimator:
                continue
            row = {"d_k": k, "estimator": estimator, "moments": "pairwise", "limit": 4e12, "binds": "exp",
                   "form": f"dots{k}" if k <= 4 else f"tensor{k}"}
            if only == "kernels":
                row.update(fused=2e12, fused_percent=50.0, batch_replicates=256, batch_weights=5e8, draw_seconds=1e-4,
                           project_seconds=1e-4, weigh_seconds=3e-4, moments_seconds=1e-5, collect_seconds=5e-6,
                           fallback_seconds=2e-6)
            else:
                row.update(job=1.5e12, job_percent=37.5, job_seconds=2.0, first_job_seconds=2.5)
            rows.append(row)
    report = {"device": "Stub GPU", "devices": 1, "capability": 90, "multiprocessors": 132, "highest_clock_hz": 1.98e9,
              "n": 4096, "heads": 8, "queries": 64, "replicates": 10000, "rows": rows}
    if only == "stack":
        report["stack"] = {"n": 32, "d": 32, "heads": 4, "d_k": 8, "layers": 8}
        report["rows"] = rows = [{"backend": "cuda", "simd": "sm_90", "replicates": 65536, "replicates_per_second": 150000.0}]
        if mode == "lacks":
            del rows[0]["replicates_per_second"]
    elif only == "jobs":
        report["fit"] = {"n": 10000, "d": 32, "heads": 8, "d_k": 4, "batch": 256, "steps": 1000, "seconds": 0.5}
        report["shapes"] = [{"n": 500, "queries": 1, "d_k": 4, "estimator": "plain", "replicates": 1000000,
                             "job": 3e10, "job_seconds": 0.14}]
        report["sweep"] = {"conditions": 100, "n": 64, "queries": 4, "replicates": 64, "seconds": 0.2}
    if mode == "lacks" and only != "stack":
        del rows[3]["fused" if only == "kernels" else "job"]
    elif mode == "nan":
        rows[0]["limit"] = float("nan")
    elif mode == "fit":
        report["fit"] = {"n": "many"}
    write(value("--json"), {"cut": '{"rows": [{"d_', "list": "[1, 2]"}.get(mode, report))
elif name == "headlab" and arguments[0] == "run":
    if modes.get("run") == "fail":
        print("headlab: something broke")
        sys.exit(1)
    with open(arguments[1]) as file:
        known = "[layers]" in file.read()
    print("headlab: a note")
    write(value("--json"), {"conditions": [{"seconds": {"cuda": 0.25, "cpu": 4.0 / int(value("--threads", 1))}[value("--backend")]}] * known})
elif name == "headlab":
    print("cuda: Stub GPU")
    print("libraries:", os.environ.get("LD_LIBRARY_PATH", "").split(":")[0])
elif name == "peers.py":
    if modes.get("peers") == "missing":
        print("peers.py: PyTorch is not installed for this Python", file=sys.stderr)
        sys.exit(2)
    obey(modes.get("peers"))
    peer = {"name": "attention float32", "float32_exponents": True, "rate": 4e11, "headlab_times": 5.0,
            "relative_error": 1e-6, "backend": ["efficient"]}
    both = {"name": "torch softmax, W W'", "float32_exponents": True, "rate": 1e11, "headlab_times": 10.0, "relative_error": 1e-6}
    write(value("--json"), {"device": "Stub GPU", "torch": "2.9", "rounds": 3, "headlab_work": "projection and sums",
                            "rows": [{"d_k": 4, "estimator": "plain", "headlab": 2e12, "peers": [peer], "times_best_float32_peer": 5.0},
                                     {"d_k": 4, "estimator": "conditional", "headlab": 1e12, "peers": [both], "times_best_float32_peer": 10.0}],
                            "left_out": ["KeOps: not installed"], "table": ["a line of the peers"]})
    if modes.get("peers") == "late":
        time.sleep(60)
elif name == "compute-sanitizer":
    print("[ RUN      ] Agreement.First\n[       OK ] Agreement.First (3 ms)")
    print(f"========= {'RACECHECK' if value('--tool') == 'racecheck' else 'ERROR'} SUMMARY: 0 errors")
    sys.exit(9 if modes.get("sanitizer") == value("--tool") else 0)
elif name == "ncu":
    mode = modes.get("ncu")
    if mode == "permission":
        print("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters")
        sys.exit(1)
    metrics = value("--metrics").split(",")
    if mode == "unknown" and len(metrics) > 2:
        print("==ERROR== Failed to find metric sm__inst_executed_pipe_tensor.sum")
        sys.exit(9)
    if mode == "broken":
        print("==ERROR== The application returned an error code")
        sys.exit(1)
    start = next(n for n, argument in enumerate(arguments) if argument.endswith("headlab_cuda_bench"))
    os.spawnv(os.P_WAIT, arguments[start], arguments[start:])
    # 8.4 slots a weight are 1.3125e8 warp instructions for 5e8 weights.
    values = {metric: "131,250,000" if "inst_issued" in metric else "100,000,000" if "dram" in metric else
              "n/a" if "tensor" in metric else "13,125,000" for metric in metrics}
    kernel = "_Z11sums_kernelINS0_4DotsILi4ELi8ELi4ELb0EEELb0EEvNS_" if value("--dims") == "4" else "_Z11sums_kernelother"
    print("==PROF== Profiling")
    print(",".join(f'"{cell}"' for cell in ["ID", "Process ID", "Kernel Name", *metrics]))
    print(",".join(f'"{cell}"' for cell in ["", "", "", *("inst" for _ in metrics)]))
    print(",".join(f'"{cell}"' for cell in ["0", "17", kernel, *values.values()]))
else:
    sys.exit(f"{name}: no such stand-in")
