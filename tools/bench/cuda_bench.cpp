// SPDX-License-Identifier: Apache-2.0
// Kernel weights per second of the CUDA backend: of the fused kernel, and of whole jobs (draws,
// projection, sums, moments); and the time of a fit of heads. One weight is one kernel value and
// its share of the sums: replicates x queries x heads x n. Needs only a GPU and its driver, cuBLAS
// and the C library.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/run/simulate.h"
#include "engine/scenario/condition.h"
#include "kernels/cuda/backend.h"
#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/runtime.h"
#include "kernels/cuda/status/status.h"
#include "kernels/learning/fit.h"
#include "kernels/learning/worker.h"
#include "kernels/testing/kernel_choice.h"
#include "kernels/testing/kernel_times.h"
#include "kernels/testing/test_plans.h"
#include "tools/bench/gpu_limits.h"
#include "tools/bench/stack_plan.h"

namespace headlab::bench {
namespace {

constexpr const char* usage =
    "headlab_cuda_bench [--dims 1,2,4] [--only WHAT] [--estimator E] [--repeats N] [--replicates "
    "R]\n"
    "                   [--json FILE]\n"
    "headlab_cuda_bench --list [--json FILE]   starts the devices, and measures nothing\n"
    "  --dims        per-head dimensions, by default 1,2,4,8,16,32,64\n"
    "  --only        kernels (the steps of a batch), jobs (draws to moments, and a fit of heads),\n"
    "                given-x (projection and sums of one estimator, by default the plain one, "
    "whose\n"
    "                sums are those of attention), or stack (attention layers)\n"
    "  --estimator   plain or conditional, by default both\n"
    "  --repeats     measurements per median, by default 21\n"
    "  --replicates  of a whole job, by default 10000\n"
    "  --json        file for the figures too, rewritten after each row\n";

/// Bad command line: exit 2, with the usage.
class Usage : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A file that cannot be written: exit 2.
class Unwritable : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Arguments {
  std::vector<int> dims = {1, 2, 4, 8, 16, 32, 64};
  int repeats = 21;
  std::uint64_t replicates = 10000;
  std::string only;
  std::string estimator;
  bool help = false;
  bool list = false;
  std::string json;
};

int positive(const std::string& text) {
  std::size_t used = 0;
  int value = 0;
  try {
    value = std::stoi(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != text.size() || value < 1) {
    throw Usage("\"" + text + "\" is not a positive integer");
  }
  return value;
}

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string option = argv[i];
    auto value = [&]() -> std::string {
      if (i + 1 == argc) throw Usage(option + " needs a value");
      return argv[++i];
    };
    if (option == "--dims") {
      arguments.dims.clear();
      const std::string list = value() + ",";
      for (std::size_t at = 0, comma; (comma = list.find(',', at)) != std::string::npos;
           at = comma + 1) {
        arguments.dims.push_back(positive(list.substr(at, comma - at)));
      }
    } else if (option == "--repeats") {
      arguments.repeats = positive(value());
    } else if (option == "--replicates") {
      arguments.replicates = static_cast<std::uint64_t>(positive(value()));
    } else if (option == "--only") {
      arguments.only = value();
      const std::array known = {"kernels", "jobs", "given-x", "stack"};
      if (std::ranges::find(known, arguments.only) == known.end()) {
        throw Usage("--only " + arguments.only + ": allowed are kernels, jobs, given-x, stack");
      }
    } else if (option == "--estimator") {
      arguments.estimator = value();
      if (arguments.estimator != "plain" && arguments.estimator != "conditional") {
        throw Usage("--estimator " + arguments.estimator + ": allowed are plain, conditional");
      }
    } else if (option == "--json") {
      arguments.json = value();
      if (arguments.json.empty()) throw Usage("--json needs a file");
    } else if (option == "--list") {
      arguments.list = true;
    } else if (option == "--help") {
      arguments.help = true;
    } else {
      throw Usage(option + ": no such option");
    }
  }
  return arguments;
}

/// Plan with d = 32, or 64 for d_k = 64. The bandwidth grows with sqrt(d_k), so that exponents are
/// equally large for every d_k.
Plan bench_plan(int k, Estimator estimator, MomentMode mode, std::uint64_t n = 4096,
                int queries = 64) {
  Plan plan = test::make_plan(
      {.n = n, .d = std::max(32, k), .heads = 8, .k = k, .queries = queries},
      GaussianKernel{.bandwidth = 0.8 * std::sqrt(static_cast<double>(k))}, estimator, mode);
  plan.regression = ZeroRegression{}.function(plan.table, plan.d);
  plan.noise = NormalNoise{.sd = 1}.sampler(plan.table, plan.d);
  return plan;
}

/// Keeps the workers of one plan on a backend for the next job, with their memory.
class WarmBackend : public Backend {
 public:
  explicit WarmBackend(const Backend& backend) : backend_(backend) {}

  std::string name() const override { return backend_.name(); }
  std::string simd() const override { return backend_.simd(); }
  std::string device() const override { return backend_.device(); }
  int workers(int threads) const override { return backend_.workers(threads); }
  double block_work() const override { return backend_.block_work(); }
  std::uint64_t worker_bytes(Plans plans) const override { return backend_.worker_bytes(plans); }
  std::unique_ptr<Worker> worker(Plans plans) const override {
    std::unique_ptr<Worker> one;
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        one = std::move(idle_.back());
        idle_.pop_back();
      }
    }
    if (!one) one = backend_.worker(plans);
    return std::make_unique<Lent>(*this, std::move(one));
  }

 private:
  class Lent : public Worker {
   public:
    Lent(const WarmBackend& owner, std::unique_ptr<Worker> worker)
        : owner_(owner), worker_(std::move(worker)) {}
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() override {
      const std::lock_guard lock(owner_.mutex_);
      owner_.idle_.push_back(std::move(worker_));
    }
    void run(const Block& block, std::span<Moments> out) override { worker_->run(block, out); }

   private:
    const WarmBackend& owner_;
    std::unique_ptr<Worker> worker_;
  };

  const Backend& backend_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Worker>> idle_;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Job {
  double warm = 0;   ///< median [s]
  double first = 0;  ///< the first one, with its allocations [s]
};

/// Whole jobs of one plan: up to `repeats`, and none after two seconds.
Job time_jobs(const Backend& device, const Plan& plan, std::uint64_t replicates, int repeats) {
  using Clock = std::chrono::steady_clock;
  const WarmBackend backend(device);
  const auto start = Clock::now();
  Job job;
  std::vector<double> seconds;
  while (static_cast<int>(seconds.size()) <= repeats &&
         (seconds.size() < 4 || Clock::now() - start < std::chrono::seconds(2))) {
    const auto before = Clock::now();
    if (simulate(plan, backend, 0, replicates).count() != replicates) {
      throw std::logic_error("a job lost replicates");
    }
    seconds.push_back(std::chrono::duration<double>(Clock::now() - before).count());
  }
  job.first = seconds.front();
  seconds.erase(seconds.begin());
  job.warm = median(std::move(seconds));
  return job;
}

/// Kernel weights of a job.
double job_weights(const Plan& plan, std::uint64_t replicates) {
  return static_cast<double>(replicates) * static_cast<double>(plan.n) * plan.heads * plan.queries;
}

/// Jobs of other sizes: many queries, for which draws and projections weigh little, and small
/// training sets with one query, for which they are most of the work.
nlohmann::ordered_json time_shapes(const Backend& backend, int repeats) {
  struct Size {
    std::uint64_t n;
    int queries;
    Estimator estimator;
    std::uint64_t replicates;
  };
  constexpr int k = 4;
  nlohmann::ordered_json shapes = nlohmann::ordered_json::array();
  for (const Size& size :
       {Size{4096, 1024, Estimator::plain, 10000}, Size{4096, 1024, Estimator::conditional, 10000},
        Size{500, 1, Estimator::plain, 1000000}}) {
    const Plan plan = bench_plan(k, size.estimator, MomentMode::pairwise, size.n, size.queries);
    const Job job = time_jobs(backend, plan, size.replicates, repeats);
    const char* estimator = size.estimator == Estimator::plain ? "plain" : "conditional";
    const double rate = job_weights(plan, size.replicates) / job.warm;
    shapes.push_back({{"n", size.n},
                      {"queries", size.queries},
                      {"d_k", k},
                      {"estimator", estimator},
                      {"replicates", size.replicates},
                      {"job", rate},
                      {"job_seconds", job.warm},
                      {"first_job_seconds", job.first}});
    std::printf("n %llu, H 8, d_k %d, %d queries, %s, %llu replicates: %.3f s, %.3f\n",
                static_cast<unsigned long long>(size.n), k, size.queries, estimator,
                static_cast<unsigned long long>(size.replicates), job.warm, rate / 1e12);
  }
  return shapes;
}

/// A sweep of small conditions, each with workers of its own as a run has them.
nlohmann::ordered_json time_sweep(const Backend& backend) {
  constexpr int conditions = 100;
  constexpr std::uint64_t n = 128, replicates = 64;
  constexpr int queries = 8;
  const auto before = std::chrono::steady_clock::now();
  for (int i = 0; i < conditions; ++i) {
    Plan plan = bench_plan(4, Estimator::conditional, MomentMode::pairwise, n, queries);
    plan.seed += static_cast<std::uint64_t>(i);
    simulate(plan, backend, 0, replicates);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  std::printf("a sweep of %d conditions, n %llu, %d queries, %llu replicates: %.3f s\n", conditions,
              static_cast<unsigned long long>(n), queries,
              static_cast<unsigned long long>(replicates), seconds);
  return {{"conditions", conditions},
          {"n", n},
          {"queries", queries},
          {"replicates", replicates},
          {"seconds", seconds}};
}

/// Replicates a second of a stack of attention layers: more of them until a job takes a quarter of
/// a second, then the median of some.
nlohmann::ordered_json time_stack(const Backend& backend, int repeats) {
  using Clock = std::chrono::steady_clock;
  const Plan plan = stack_plan();
  const WarmBackend warm(backend);
  const auto seconds_of = [&](std::uint64_t replicates) {
    const auto before = Clock::now();
    if (simulate(plan, warm, 0, replicates).count() != replicates) {
      throw std::logic_error("a job lost replicates");
    }
    return std::chrono::duration<double>(Clock::now() - before).count();
  };
  std::uint64_t replicates = 256;
  constexpr std::uint64_t most = std::uint64_t{1} << 20;
  while (seconds_of(replicates) < 0.25 && replicates < most) replicates *= 2;
  const auto start = Clock::now();
  std::vector<double> seconds;
  while (static_cast<int>(seconds.size()) < repeats &&
         (seconds.size() < 3 || Clock::now() - start < std::chrono::seconds(2))) {
    seconds.push_back(seconds_of(replicates));
  }
  const double rate = static_cast<double>(replicates) / median(seconds);
  std::printf("%llu replicates, %.0f a second\n", static_cast<unsigned long long>(replicates),
              rate);
  return {{"backend", backend.name()},
          {"simd", backend.simd()},
          {"replicates", replicates},
          {"replicates_per_second", rate}};
}

/// A fit of heads with a warm device.
struct LearnedHeads {
  static constexpr test::Shape shape = {.n = 10000, .d = 32, .heads = 8, .k = 4, .queries = 1};
  static constexpr std::uint64_t steps = 1000;
  static constexpr int batch = 256;

  /// Wall time of all steps, from the training set on the host to the heads there [s].
  static double seconds(const Backend& backend) {
    const Plan plan = test::make_plan(shape, GaussianKernel{.bandwidth = 1.6});
    const FitPoints points = fit_points(plan, 0);
    Learning learning;
    learning.start = {.heads = shape.heads,
                      .d = shape.d,
                      .k = shape.k,
                      .keys = plan.projections,
                      .queries = {},
                      .weights = plan.head_weights};
    learning.batch = batch;
    learning.held_out = 0;
    const auto gradients = backend.head_gradients(*plan.kernel, 1);
    learning.steps = 1;
    fit_heads(learning, 0, points, *gradients);
    learning.steps = steps;
    const auto before = std::chrono::steady_clock::now();
    fit_heads(learning, 0, points, *gradients);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  }
};

/// Throws for a target that renaming would destroy: a device, a link, a folder.
void check_target(const std::string& file) {
  std::error_code ignored;
  const auto status = std::filesystem::symlink_status(file, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw Unwritable("--json " + file + ": exists and is not a regular file");
  }
}

/// Rewrites the file atomically.
void write_json(const std::string& file, const nlohmann::ordered_json& report) {
  if (file.empty()) return;
  check_target(file);
  const std::string scratch = file + ".part";
  std::ofstream out(scratch);
  if (!out) throw Unwritable("--json " + file + ": cannot be written");
  out << report.dump(1) << '\n';
  out.close();
  if (!out || std::rename(scratch.c_str(), file.c_str()) != 0) {
    std::remove(scratch.c_str());
    throw Unwritable("--json " + file + ": cannot be written");
  }
}

int run(const Arguments& arguments) {
  if (arguments.help) {
    std::cout << usage;
    return 0;
  }
  check_target(arguments.json);
  const std::vector<cuda::GpuStatus> devices = cuda::usable_devices();
  const cuda::GpuStatus& device = devices.front();
  const double clock = cuda::highest_clock(device.number);
  const Gpu gpu = {.rates = rates_of(device.name, device.capability.major, device.capability.minor),
                   .multiprocessors = static_cast<double>(device.multiprocessors),
                   .clock = clock};
  nlohmann::ordered_json report = {
      {"device", device.name},
      {"devices", devices.size()},
      {"capability", 10 * device.capability.major + device.capability.minor},
      {"multiprocessors", device.multiprocessors},
      {"highest_clock_hz", clock},
      {"build", cuda::build_text()},
      {"n", 4096},
      {"heads", 8},
      {"queries", 64},
      {"replicates", arguments.replicates},
      {"repeats", arguments.repeats},
      {"rows", nlohmann::ordered_json::array()}};
  std::printf("%zu x %s, %d multiprocessors at %.0f MHz at most; %s\n", devices.size(),
              device.name.c_str(), device.multiprocessors, clock / 1e6, cuda::build_text().c_str());
  if (arguments.list) {
    report.erase("rows");
    // Fails here for a driver that is too old, a missing cuBLAS, a device in use.
    for (const cuda::GpuStatus& one : devices) {
      cuda::use_device(one.number);
      const cuda::Stream stream;
      report["properties"].push_back(
          {{"name", one.name},
           {"capability", 10 * one.capability.major + one.capability.minor},
           {"multiprocessors", one.multiprocessors},
           {"highest_clock_hz", cuda::highest_clock(one.number)},
           {"memory_bytes", one.memory},
           {"free_bytes", cuda::free_memory()},
           {"shared_bytes_of_block", one.shared_memory}});
    }
    write_json(arguments.json, report);
    return 0;
  }
  const std::unique_ptr<Backend> backend = cuda::make_cuda_backend();
  if (arguments.only == "stack") {
    report["stack"] = {{"n", stack_tokens},
                       {"d", stack_tokens},
                       {"heads", stack_heads},
                       {"d_k", stack_rank},
                       {"layers", stack_layers}};
    std::printf("stack: n = d = %d, H %d, d_k %d, %d layers, with metrics\n", stack_tokens,
                stack_heads, stack_rank, stack_layers);
    report["rows"].push_back(time_stack(*backend, arguments.repeats));
    write_json(arguments.json, report);
    return 0;
  }
  const bool jobs = arguments.only.empty() || arguments.only == "jobs";
  if (jobs) {
    using Fit = LearnedHeads;
    const double seconds = Fit::seconds(*backend);
    report["fit"] = {{"n", Fit::shape.n},   {"d", Fit::shape.d},   {"heads", Fit::shape.heads},
                     {"d_k", Fit::shape.k}, {"batch", Fit::batch}, {"steps", Fit::steps},
                     {"seconds", seconds}};
    std::printf("learned heads: n %llu, d %d, H %d, d_k %d, %llu steps of %d queries in %.3f s\n",
                static_cast<unsigned long long>(Fit::shape.n), Fit::shape.d, Fit::shape.heads,
                Fit::shape.k, static_cast<unsigned long long>(Fit::steps), Fit::batch, seconds);
  }
  write_json(arguments.json, report);
  const std::string plain = "plain";
  std::printf("n 4096, H 8, 64 queries, %llu replicates; 1e12 weights/s\n",
              static_cast<unsigned long long>(arguments.replicates));
  std::printf("%4s %-12s %-10s %7s %4s %7s %4s %7s  %-16s %s\n", "d_k", "estimator", "moments",
              "fused", "%", "job", "%", "limit", "binds",
              "us of a batch: draw, projection, fused, collect, fallback, statistics");
  for (const int k : arguments.dims) {
    for (const Estimator estimator : {Estimator::plain, Estimator::conditional}) {
      const std::string name = estimator == Estimator::plain ? "plain" : "conditional";
      const bool given_x = arguments.only == "given-x";
      const std::string& wanted =
          given_x && arguments.estimator.empty() ? plain : arguments.estimator;
      if (!wanted.empty() && wanted != name) continue;
      for (const MomentMode mode : {MomentMode::pairwise, MomentMode::aggregate}) {
        if (given_x && mode != MomentMode::pairwise) continue;
        const Plan plan = bench_plan(k, estimator, mode);
        const WorkSize sizes = {.k = k, .d = plan.d, .heads = plan.heads, .queries = plan.queries};
        const Limit limit = limit_of(gpu, sizes, estimator, mode, fused_bytes(sizes));
        const Limit job_limit = limit_of(gpu, sizes, estimator, mode, job_bytes(sizes));
        nlohmann::ordered_json row = {
            {"d_k", k},
            {"estimator", name},
            {"moments", mode == MomentMode::pairwise ? "pairwise" : "aggregate"},
            {"limit", limit.weights_per_second},
            {"binds", limit.binds},
            {"job_limit", job_limit.weights_per_second},
            {"job_binds", job_limit.binds},
            {"form", cuda::form_of(cuda::plan_launch(plan).microkernel)}};
        cuda::KernelTimes times;
        double fused = NAN, fused_percent = NAN, job_rate = NAN, job_percent = NAN;
        if (arguments.only != "jobs") {
          times = cuda::time_kernels(plan, device.number, {}, arguments.repeats);
          fused = times.weights / times.weigh;
          fused_percent = 100 * fused / limit.weights_per_second;
          row["fused"] = fused;
          row["fused_percent"] = fused_percent;
          row["given_x"] = times.weights / (times.project + times.weigh);
          row["batch_replicates"] = times.replicates;
          row["batch_weights"] = times.weights;
          row["draw_seconds"] = times.draw;
          row["project_seconds"] = times.project;
          row["weigh_seconds"] = times.weigh;
          row["collect_seconds"] = times.collect;
          row["fallback_seconds"] = times.fallback;
          row["moments_seconds"] = times.moments;
          if (cuda::plan_launch(plan).projects) {
            const cuda::KernelTimes read = cuda::time_kernels(
                plan, device.number, {.limits = {.stores_keys = true}}, arguments.repeats);
            row["read_seconds"] = (read.project + read.weigh) /
                                  static_cast<double>(read.replicates) *
                                  static_cast<double>(times.replicates);
          }
        }
        if (jobs) {
          const Job job = time_jobs(*backend, plan, arguments.replicates, arguments.repeats);
          job_rate = job_weights(plan, arguments.replicates) / job.warm;
          // A whole job runs on every device of the machine.
          job_percent =
              100 * job_rate / (job_limit.weights_per_second * static_cast<double>(devices.size()));
          row["job"] = job_rate;
          row["job_percent"] = job_percent;
          row["job_seconds"] = job.warm;
          row["first_job_seconds"] = job.first;
        }
        std::printf(
            "%4d %-12s %-10s %7.3f %4.0f %7.3f %4.0f %7.3f  %-16s %.1f %.1f %.1f %.1f %.1f %.1f\n",
            k, name.c_str(), row["moments"].get<std::string>().c_str(), fused / 1e12, fused_percent,
            job_rate / 1e12, job_percent, limit.weights_per_second / 1e12, limit.binds.c_str(),
            1e6 * times.draw, 1e6 * times.project, 1e6 * times.weigh, 1e6 * times.collect,
            1e6 * times.fallback, 1e6 * times.moments);
        std::fflush(stdout);
        report["rows"].push_back(std::move(row));
        write_json(arguments.json, report);
      }
    }
  }
  if (jobs && arguments.estimator.empty()) {
    report["shapes"] = time_shapes(*backend, arguments.repeats);
    report["sweep"] = time_sweep(*backend);
    write_json(arguments.json, report);
  }
  return 0;
}

}  // namespace
}  // namespace headlab::bench

int main(int argc, char** argv) {
  try {
    return headlab::bench::run(headlab::bench::parse(argc, argv));
  } catch (const headlab::bench::Usage& error) {
    std::cerr << "headlab_cuda_bench: " << error.what() << '\n' << headlab::bench::usage;
    return 2;
  } catch (const headlab::bench::Unwritable& error) {
    std::cerr << "headlab_cuda_bench: " << error.what() << '\n';
    return 2;
  } catch (const headlab::cuda::Unavailable& missing) {
    std::cerr << "headlab_cuda_bench: " << missing.what() << " (" << headlab::cuda::build_text()
              << ")\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "headlab_cuda_bench: " << error.what() << '\n';
    return 1;
  }
}
