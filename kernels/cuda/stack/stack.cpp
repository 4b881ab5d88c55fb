// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/stack/stack.h"

#include <cmath>
#include <utility>
#include <variant>

#include "kernels/cuda/sizes.h"
#include "kernels/design_point.h"
#include "kernels/plan.h"
#include "kernels/replicate_worker.h"
#include "kernels/stack/maps.h"
#include "kernels/stack/metrics.h"
#include "kernels/stack/ranks.h"
#include "kernels/stack/stack.h"
#include "kernels/statistics/stopping.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {
namespace {

/// Of a batch: more thread blocks than a large device has room for, in no more memory than this.
/// Not timed on a GPU yet.
constexpr std::uint64_t batch_replicates = 4096;
constexpr std::uint64_t batch_bytes = std::uint64_t{1} << 30;
/// Memory that a smaller batch leaves for what the driver loads at first use, besides the local
/// memory of the kernel, which every batch leaves [bytes].
constexpr std::uint64_t left_free = 256 << 20;

StackShape shape_of(const Plan& plan) {
  const Stack& stack = *plan.stack;
  StackShape s;
  s.n = count_of("tokens", {plan.n});
  s.d = plan.d;
  s.layers = stack.layers;
  s.heads = stack.heads;
  s.kernel = stack.kernel;
  if (const auto* maps = std::get_if<GaussianMaps>(&stack.maps)) {
    s.gaussian = true;
    s.samples = maps->samples;
    s.k = maps->k;
    s.value_dim = maps->value_dim;
  }
  s.averaged = stack.averaged;
  s.alternating = stack.alternating;
  s.causal = stack.causal;
  s.shared_weights = stack.shared_weights;
  s.norm = stack.norm.kind;
  s.place = stack.norm.place;
  s.memory = stack.memory;
  s.records = stack.spectra;
  if (!stack.mlp) return s;
  s.mlp = true;
  const auto* drawn = std::get_if<GaussianMlp>(&*stack.mlp);
  s.mlp_drawn = drawn != nullptr;
  s.width =
      drawn != nullptr ? drawn->width : static_cast<int>(std::get<Mlp>(*stack.mlp).input.cols());
  return s;
}

std::uint64_t rows_of(const StackShape& s) {
  return static_cast<std::uint64_t>(s.layers) + 1;
}
std::uint64_t points_of(const StackShape& s) {
  return static_cast<std::uint64_t>(s.n) * static_cast<std::uint64_t>(point_buffer(s.d));
}
std::uint64_t records_of(const StackShape& s) {
  return s.records ? rows_of(s) * static_cast<std::uint64_t>(s.record()) : 0;
}
/// Of one replicate, on the device.
std::uint64_t bytes_of(const StackShape& s) {
  const auto room = static_cast<std::uint64_t>(StackRoom(s, nullptr).size);
  return sizeof(double) * (room + records_of(s)) + sizeof(float) * points_of(s) +
         sizeof(LayerMetrics) * rows_of(s);
}
std::uint64_t good_replicates(const StackShape& s) {
  return std::clamp<std::uint64_t>(batch_bytes / bytes_of(s), 1, batch_replicates);
}

/// Appends a matrix row by row, over a divisor.
void append(std::vector<double>& numbers, const RowMatrix& matrix, double divisor = 1) {
  for (const double x : std::span(matrix.data(), static_cast<std::size_t>(matrix.size()))) {
    numbers.push_back(x / divisor);
  }
}

}  // namespace

StackBatch::StackBatch(const Plan& plan, int device, const Options& options, const Note& note,
                       std::shared_ptr<StreamPool> streams)
    : plan_(plan),
      device_(device),
      streams_(std::move(streams)),
      stream_((use_device(device), streams_->release_idle(device), streams_->take(device))) {
  const Stack& stack = *plan.stack;
  a_.shape = shape_of(plan);
  a_.seed = plan.seed;
  a_.temperature = stack.temperature;
  a_.skip = stack.skip;
  a_.branch = stack.branch;
  a_.epsilon = stack.norm.epsilon;
  a_.logit_sd = stack.logit_sd * std::sqrt(1 - stack.logit_correlation);
  a_.shared_logit_sd = stack.logit_sd * std::sqrt(stack.logit_correlation);
  a_.design = DeviceVariant<DesignSampler::variant>(*plan.design);
  a_.design_seed = plan.fixed_design_seed.value_or(plan.seed);
  a_.fixed_design = plan.fixed_design_seed.has_value();
  a_.design_purpose = plan.streams.design;
  a_.choice_purpose = plan.streams.design_choice;

  const auto upload = [&](const std::vector<double>& numbers) -> const double* {
    if (numbers.empty()) return nullptr;
    numbers_.emplace_back(*stream_, numbers);
    stream_->synchronise();
    return numbers_.back().data();
  };
  const auto upload_all = [&](const Matrices& matrices, double divisor = 1) {
    std::vector<double> numbers;
    for (const auto& matrix : matrices) append(numbers, matrix, divisor);
    return upload(numbers);
  };
  a_.given_tokens = upload_all({stack.tokens});
  a_.fixed = upload_all(stack.fixed);
  a_.gain = upload_all({stack.norm.gain});
  a_.bias = upload_all({stack.norm.bias});
  if (const auto* maps = std::get_if<ExplicitMaps>(&stack.maps)) {
    a_.query = upload_all(maps->query_key, stack.temperature);
    a_.value = upload_all(maps->value);
  } else {
    const MapScales scales = map_scales(stack, plan.d);
    a_.query_key_sd = scales.query_key;
    a_.value_sd = scales.value;
    a_.output_sd = scales.output;
  }
  if (a_.shape.mlp_drawn) {
    const MlpScales scales = mlp_scales(std::get<GaussianMlp>(*stack.mlp), plan.d);
    a_.input_sd = scales.input;
    a_.bias_sd = scales.bias;
    a_.mlp_output_sd = scales.output;
  } else if (stack.mlp) {
    const Mlp& mlp = std::get<Mlp>(*stack.mlp);
    a_.input = upload_all({mlp.input});
    a_.mlp_bias = upload_all({mlp.bias});
    a_.mlp_output = upload_all({mlp.output});
  }
  const std::span<const float> file_rows = plan.table.rows().numbers();
  design_table_ = Constant<float>(
      *stream_, file_rows.empty() ? std::span(plan.table.rounded(), plan.table.size()) : file_rows);
  a_.design_table = design_table_.data();
  stream_->synchronise();

  const std::string name = "cuda device " + std::to_string(device_);
  const auto wanted = options.batch_replicates > 0
                          ? options.batch_replicates
                          : static_cast<std::int64_t>(good_replicates(a_.shape));
  count_of("numbers of a replicate",
           {static_cast<std::uint64_t>(StackRoom(a_.shape, nullptr).size)});
  const std::uint64_t local = stack_local_memory();
  // The smallest batch is tried however little it leaves for the driver.
  const auto fits = [&] {
    if (!allocate(replicates_)) return false;
    const bool tried = replicates_ == wanted || replicates_ == 1;
    return free_memory() >= local + (tried ? 0 : left_free);
  };
  replicates_ = wanted;
  while (replicates_ > 0 && !fits()) replicates_ /= 2;
  if (replicates_ == 0) {
    allocate(0);  // for what is free
    throw DeviceError(name + ": out of memory: " + mebibytes(bytes_of(a_.shape)) +
                      " needed for one replicate and " + mebibytes(local) +
                      " for the local memory of all threads, " + mebibytes(free_memory()) +
                      " free - lower tokens.n or heads.count, or use --backend cpu");
  }
  if (replicates_ < wanted) {
    note(name + ": out of memory for batches of " + std::to_string(wanted) +
         " replicates, continues with " + std::to_string(replicates_) + " (same results)");
  }
}

bool StackBatch::allocate(std::int64_t replicates) {
  // What there was first, so that both are never needed together.
  for (Memory* memory : {&points_, &room_, &of_metrics_, &of_records_}) *memory = Memory();
  const auto count = static_cast<std::uint64_t>(replicates);
  const StackShape& s = a_.shape;
  a_.room_size = StackRoom(s, nullptr).size;
  points_ = Memory(a_.given_tokens == nullptr ? count * points_of(s) * sizeof(float) : 0);
  room_ = Memory(count * static_cast<std::uint64_t>(a_.room_size) * sizeof(double));
  of_metrics_ = Memory(count * rows_of(s) * sizeof(LayerMetrics));
  of_records_ = Memory(count * records_of(s) * sizeof(double));
  a_.points = points_.as<float>();
  a_.room = room_.as<double>();
  a_.metrics = of_metrics_.as<LayerMetrics>();
  a_.records = of_records_.as<double>();
  return (a_.given_tokens != nullptr || !points_.empty()) && !room_.empty() &&
         !of_metrics_.empty() && (!s.records || !of_records_.empty());
}

void StackBatch::compute(std::uint64_t first, std::int64_t count) {
  use_device(device_);
  a_.first_replicate = first;
  a_.replicates = count;
  run_stacks(*stream_, a_);
  const auto replicates = static_cast<std::size_t>(count);
  metrics_.resize(replicates * rows_of(a_.shape));
  records_.resize(replicates * records_of(a_.shape));
  stream_->copy_to_host(metrics_.data(), a_.metrics, metrics_.size() * sizeof(LayerMetrics));
  stream_->copy_to_host(records_.data(), a_.records, records_.size() * sizeof(double));
  stream_->synchronise();
}

std::vector<LayerMetrics> StackBatch::metrics(std::int64_t i) const {
  const auto count = static_cast<std::ptrdiff_t>(rows_of(a_.shape));
  std::vector<LayerMetrics> rows(metrics_.begin() + i * count, metrics_.begin() + (i + 1) * count);
  if (!a_.shape.records) return rows;
  TokenRanks at_most;
  for (std::size_t l = 0; l < rows.size(); ++l) {
    stop_point();
    const LayerRecord of = record(i, static_cast<int>(l));
    at_most = l == 0 ? given_ranks(of.tokens)
                     : ranks_at_most(*plan_.stack, at_most, of.tokens.count(), of.tokens.dim());
    measure_spectra(of.tokens, of.attention, rows[l]);
    measure_ranks(of.tokens, at_most, rows[l]);
  }
  return rows;
}

LayerRecord StackBatch::record(std::int64_t i, int l) const {
  const StackShape& s = a_.shape;
  const double* from =
      records_.data() + (i * static_cast<std::int64_t>(rows_of(s)) + l) * s.record();
  LayerRecord out;
  const Eigen::Map<const RowMatrix> tokens(from, s.n + 1, s.d);
  out.tokens.residual = tokens.topRows(s.n);
  out.tokens.mean = tokens.row(s.n);
  from += tokens.size();
  out.tokens.exponent = from[0];
  out.tokens.mean_error = from[1];
  out.tokens.residual_error = from[2];
  from += 3;
  if (l == 0) return out;
  const Eigen::Index size = static_cast<Eigen::Index>(s.n + 1) * s.n;
  for (int h = 0; h < s.used(); ++h) {
    out.attention.push_back({.rows = Eigen::Map<const RowMatrix>(from + h * size, s.n + 1, s.n),
                             .exponent = from[s.used() * size]});
  }
  return out;
}

namespace {

class CudaStackWorker : public ReplicateWorker {
 public:
  CudaStackWorker(const Plan& plan, int device, const Options& options, const Note& note,
                  std::shared_ptr<StreamPool> streams)
      : ReplicateWorker(std::vector<MomentLayout>{plan.layout()}),
        batch_(plan, device, options, note, std::move(streams)) {}

  void run(const Block& block, std::span<Moments> out) override {
    first_ = end_ = block.first;
    end_of_block_ = block.first + block.count;
    ReplicateWorker::run(block, out);
  }

 protected:
  void replicate(std::uint64_t number, std::span<const std::span<double>> statistics,
                 std::span<WindowCounts>) override {
    if (number >= end_) {
      first_ = number;
      const auto count = static_cast<std::uint64_t>(batch_.replicates());
      end_ = std::min(number + count, end_of_block_);
      stop_point();
      batch_.compute(first_, static_cast<std::int64_t>(end_ - first_));
    }
    std::span<double> left = statistics[0];
    const auto rows = batch_.metrics(static_cast<std::int64_t>(number - first_));
    const std::size_t size = left.size() / rows.size();
    for (const LayerMetrics& row : rows) {
      write_metrics(row, left.first(size));
      left = left.subspan(size);
    }
  }

 private:
  StackBatch batch_;
  std::uint64_t first_ = 0;  ///< of the replicates computed last, and behind them
  std::uint64_t end_ = 0;
  std::uint64_t end_of_block_ = 0;
};

}  // namespace

std::unique_ptr<Worker> make_cuda_stack_worker(const Plan& plan, int device, const Options& options,
                                               const Note& note,
                                               std::shared_ptr<StreamPool> streams) {
  return std::make_unique<CudaStackWorker>(plan, device, options, note, std::move(streams));
}

std::uint64_t cuda_stack_worker_bytes(const Plan& plan) {
  const StackShape s = shape_of(plan);
  const std::uint64_t of_batch =
      good_replicates(s) * (rows_of(s) * sizeof(LayerMetrics) + records_of(s) * sizeof(double));
  return of_batch + 8 * 2 * leaf_replicates * plan.layout().statistics();
}

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
