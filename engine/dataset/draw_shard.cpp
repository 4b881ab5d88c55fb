// SPDX-License-Identifier: Apache-2.0
#include "engine/dataset/draw_shard.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "engine/dataset/sequence_states.h"
#include "engine/run/simulate.h"
#include "engine/scenario/condition.h"
#include "kernels/cpu/draws.h"
#include "kernels/parallel_for.h"
#include "kernels/plan.h"
#include "kernels/reference/ensemble.h"
#include "kernels/reference/training_set.h"
#include "kernels/tile.h"

namespace headlab {
namespace {

/// Bytes that a thread draws before it writes them: they are still in its cache then.
constexpr std::uint64_t bytes_at_once = std::uint64_t{1} << 20;
/// Time for one kernel weight of the reference, as bytes that a disk takes in it.
constexpr double bytes_a_weight = 64;

template <class Number>
void put(ShardOutput& output, std::size_t variable, std::uint64_t first,
         const std::vector<Number>& values) {
  output.put(variable, first, std::as_bytes(std::span(values)));
}

std::uint64_t bytes_a_point(int d) {
  return 4 * static_cast<std::uint64_t>(d) + 3 * 8;
}

/// Replicates of a shard, from a place within the first of them to one within the last.
struct Part {
  std::uint64_t replicate = 0;  ///< in the shard
  std::uint64_t replicates = 1;
  std::uint64_t point = 0;
  std::uint64_t points = 0;  ///< of each replicate
};

/// Parts of like size that make up all points: several replicates, or whole tiles of one.
class PointParts {
 public:
  PointParts(std::uint64_t replicates, std::uint64_t n, std::uint64_t max_points)
      : replicates_(replicates),
        n_(n),
        together_(std::clamp<std::uint64_t>(max_points / n, 1, replicates)),
        points_(std::min(n, std::max(max_points / tile_points, std::uint64_t{1}) * tile_points)),
        pieces_((n + points_ - 1) / points_) {}

  std::uint64_t count() const { return (replicates_ + together_ - 1) / together_ * pieces_; }
  Part operator[](std::uint64_t i) const {
    const std::uint64_t replicate = i / pieces_ * together_;
    const std::uint64_t point = i % pieces_ * points_;
    return {replicate, std::min(together_, replicates_ - replicate), point,
            std::min(points_, n_ - point)};
  }

 private:
  std::uint64_t replicates_;
  std::uint64_t n_;
  std::uint64_t together_;  ///< replicates in a part
  std::uint64_t points_;    ///< of a replicate in a part
  std::uint64_t pieces_;    ///< of a replicate
};

/// Numbers that go into consecutive places of a variable, a MiB at a time.
class Run {
 public:
  Run(ShardOutput& output, std::size_t variable, std::uint64_t first)
      : output_(output), variable_(variable), next_(first) {}
  void add(const std::vector<double>& values) {
    values_.insert(values_.end(), values.begin(), values.end());
    if (8 * values_.size() >= bytes_at_once) flush();
  }
  void flush() {
    if (values_.empty()) return;
    put(output_, variable_, next_, values_);
    next_ += values_.size();
    values_.clear();
  }

 private:
  ShardOutput& output_;
  std::size_t variable_;
  std::uint64_t next_;
  std::vector<double> values_;
};

class Drawing {
 public:
  Drawing(const Condition& condition, const Plan& plan, const DatasetRequest& request,
          ShardRange range, ShardOutput& output, const Session& session,
          const std::function<void(double work)>& done)
      : plan_(plan),
        request_(request),
        range_(range),
        output_(output),
        session_(session),
        done_(done),
        variables_(dataset_variables(condition, request, range.count)),
        points_(range.count, plan.n, bytes_at_once / bytes_a_point(plan.d)),
        outputs_a_replicate_(static_cast<std::uint64_t>(plan.queries) *
                             static_cast<std::uint64_t>(plan.heads)),
        samples_together_(std::clamp<std::uint64_t>(
            bytes_at_once / 8 / (outputs_a_replicate_ * (request.weights ? plan.n : 1)), 1,
            max_samples_together)) {}

  /// False where it was stopped.
  bool run(int threads) {
    put_constants();
    const std::uint64_t samples = request_.estimates || request_.weights
                                      ? (range_.count + samples_together_ - 1) / samples_together_
                                      : 0;
    parallel_for(points_.count() + samples, threads, [&](std::size_t i) {
      if (stops()) return;
      try {
        if (i < points_.count()) {
          draw_points(points_[i]);
        } else {
          weigh((i - points_.count()) * samples_together_);
        }
      } catch (...) {
        stopped_ = true;
        throw;
      }
    });
    return !stopped_;
  }

 private:
  static constexpr std::uint64_t max_samples_together = 256;

  std::size_t variable(const char* name) const {
    const auto at = std::ranges::find(variables_, name, &DatasetVariable::name);
    return static_cast<std::size_t>(at - variables_.begin());
  }

  bool has(const char* name) const { return variable(name) < variables_.size(); }

  void put_constants() {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(range_.count));
    std::iota(numbers.begin(), numbers.end(), static_cast<std::int64_t>(range_.first));
    put(output_, variable("replicate"), 0, numbers);
    put(output_, variable("projections"), 0, plan_.projections);
    if (has("query_projections")) {
      put(output_, variable("query_projections"), 0, plan_.query_projections);
    }
    if (has("head_weights")) put(output_, variable("head_weights"), 0, plan_.head_weights);
    put(output_, variable("queries"), 0, plan_.query_points);
    put(output_, variable("truth"), 0, plan_.truth);
  }

  /// Points drawn and not yet written.
  struct Points {
    std::vector<float> x;
    std::vector<double> regression, noise_sd, y;
  };

  bool stops() {
    if (session_.should_stop()) stopped_ = true;
    return stopped_;
  }

  void draw_points(const Part& part) {
    // Kept from part to part, for the memory.
    thread_local Points to;
    const auto d = static_cast<std::size_t>(plan_.d);
    const auto points = static_cast<std::size_t>(part.points);
    const std::size_t count = points * static_cast<std::size_t>(part.replicates);
    to.x.resize(count * d);
    for (std::vector<double>* values : {&to.regression, &to.noise_sd, &to.y}) {
      values->resize(count);
    }
    for (std::size_t r = 0; r < part.replicates; ++r) {
      const auto of = [&](auto& values, std::size_t width) {
        return std::span(values).subspan(r * points * width, points * width);
      };
      const std::uint64_t replicate = range_.first + part.replicate + r;
      SequenceState sequence;
      if (plan_.ar1) sequence = sequences_.take(replicate, part.point);
      draw_training_points(plan_, replicate, part.point,
                           {of(to.x, d), of(to.regression, 1), of(to.noise_sd, 1), of(to.y, 1)},
                           sequence);
      if (plan_.ar1) sequences_.put(replicate, std::move(sequence));
    }
    const std::uint64_t first = part.replicate * plan_.n + part.point;
    put(output_, variable("X"), first * d, to.x);
    put(output_, variable("Y"), first, to.y);
    put(output_, variable("m"), first, to.regression);
    put(output_, variable("noise_sd"), first, to.noise_sd);
    done_(static_cast<double>(count * bytes_a_point(plan_.d)));
  }

  /// ConditionEstimates and weights of the replicates from `first` on, of the shard.
  void weigh(std::uint64_t first) {
    Run estimates(output_, variable("head_estimates"), first * outputs_a_replicate_);
    Run kept(output_, variable("attention_weights"), first * outputs_a_replicate_ * plan_.n);
    const std::uint64_t end = std::min(first + samples_together_, range_.count);
    const double written =
        8 * ((request_.weights ? static_cast<double>(plan_.n) : 0) + (request_.estimates ? 1 : 0));
    for (std::uint64_t r = first; r < end; ++r) {
      const TrainingSet sample = draw_training_set(plan_, range_.first + r);
      std::vector<double> estimate;
      for (int q = 0; q < plan_.queries; ++q) {
        for (int h = 0; h < plan_.heads; ++h) {
          if (stops()) return;
          WindowCounts windows;
          const std::vector<double> weights = nw_weights(plan_, sample, h, q, windows);
          double sum = 0;
          for (std::size_t i = 0; i < weights.size(); ++i) {
            sum += weights[i] * (sample.regression[i] + sample.noise[i]);
          }
          estimate.push_back(sum);
          if (request_.weights) kept.add(weights);
          done_(written + bytes_a_weight * static_cast<double>(plan_.n));
        }
      }
      if (request_.estimates) estimates.add(estimate);
    }
    if (request_.weights) kept.flush();
    if (request_.estimates) estimates.flush();
  }

  const Plan& plan_;
  const DatasetRequest& request_;
  ShardRange range_;
  ShardOutput& output_;
  const Session& session_;
  const std::function<void(double work)>& done_;
  std::vector<DatasetVariable> variables_;
  PointParts points_;
  SequenceStates sequences_;
  std::uint64_t outputs_a_replicate_;  ///< queries x heads
  std::uint64_t samples_together_;     ///< replicates that are weighed in one part
  std::atomic<bool> stopped_ = false;
};

double weights_a_replicate(const Condition& condition) {
  return static_cast<double>(condition.n) * condition.heads * query_count(condition);
}

}  // namespace

double shard_work(const Condition& condition, const DatasetRequest& request,
                  std::uint64_t replicates) {
  double work = 0;
  for (const DatasetVariable& variable : dataset_variables(condition, request, replicates)) {
    if (variable.dimensions.front() == "replicate" && variable.name != "replicate") {
      work += static_cast<double>(variable.bytes());
    }
  }
  if (!request.estimates && !request.weights) return work;
  return work + bytes_a_weight * static_cast<double>(replicates) * weights_a_replicate(condition);
}

double draw_bytes(const Condition& condition, const DatasetRequest& request) {
  const double d = dimension_of(condition);
  double bytes = 2 * static_cast<double>(bytes_at_once);
  if (request.estimates || request.weights) {
    // The sample, the weights of one head, and those that wait to be written.
    bytes +=
        8 * static_cast<double>(condition.n) * (d + 5) + 4 * static_cast<double>(bytes_at_once);
  }
  return bytes;
}

bool draw_shard(const Condition& condition, const Plan& plan, const DatasetRequest& request,
                ShardRange range, ShardOutput& output, const Session& session,
                const std::function<void(double work)>& done) {
  return Drawing(condition, plan, request, range, output, session, done)
      .run(thread_count(session.threads));
}

}  // namespace headlab
