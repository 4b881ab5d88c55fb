// SPDX-License-Identifier: Apache-2.0
/// \file Replicates that are computed together: their arrays on a device, and the steps from the
/// draws to the float64 sums of every query.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/arguments.h"
#include "kernels/cuda/constants.h"
#include "kernels/cuda/launch_plan.h"
#include "kernels/cuda/runtime.h"
#include "kernels/plan.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

struct DrawArguments;

/// Steps of a batch; a measurement takes one at a time.
struct Steps {
  bool draw = false, project = false, weigh = false, collect = false, fallback = false;
};

class Batch {
 public:
  /// Takes no memory yet. The arguments outlive the batch.
  Batch(const Plan& plan, const LaunchPlan& launch, const Constants& constants, Stream& stream)
      : plan_(plan), launch_(launch), constants_(constants), stream_(stream) {}

  /// Replicates that fill a device.
  std::int64_t good_replicates() const;
  /// Room for a batch in the stream's memory [bytes].
  std::uint64_t bytes(std::int64_t replicates) const;
  /// Takes the arrays of a batch there.
  void place(std::int64_t replicates);
  std::int64_t replicates() const { return arrays_.replicates; }

  /// Computes `count` replicates from `first` on; `windows` counts their windows.
  void compute(std::uint64_t first, std::int64_t count, const WindowCounters& windows,
               const Steps& steps = {true, true, true, true, true});
  /// Sums of the replicates computed last [replicates][Q][totals.size()], on the device.
  double* totals() const { return arrays_.totals; }
  /// Which rows of them the fallback made, see FallbackArguments.
  const std::uint32_t* taken() const { return arrays_.fallback; }

  /// Design points of one replicate as the device draws them, x [n][d].
  std::vector<float> design(std::uint64_t replicate);

 private:
  struct Arrays {
    std::int64_t replicates = 0;
    float *x = nullptr, *keys = nullptr, *values = nullptr, *scales = nullptr;
    double *partials = nullptr, *totals = nullptr;
    std::uint32_t* fallback = nullptr;
    char* row_scratch = nullptr;
    // Of points that are kept apart from tokens.
    float *drawn_x = nullptr, *drawn_values = nullptr, *drawn_scales = nullptr;
    // Of stage `keep`.
    float* pooled = nullptr;
    std::uint32_t* kept = nullptr;
  };

  /// Calls put(pointer, count) for each array of a batch.
  template <class Put>
  void each_array(std::int64_t replicates, Arrays& arrays, const Put& put) const;

  int key_rows() const { return plan_.heads * launch_.padded_k; }
  std::int64_t partials_of_query() const;
  std::int64_t pooled_blocks() const;  ///< of a head whose mean keys are stored
  std::int64_t kept_words() const;     ///< of the bits of a head at a query
  std::int64_t token_rows() const;     ///< of X
  TrainingSets sets() const;
  /// Of the points: those of tokens unless they are kept apart.
  TrainingSets drawn_sets() const;
  TokenNumbers numbers() const;
  KeptTokens kept() const;
  DrawArguments draw_arguments(std::uint64_t first, std::int64_t count) const;
  WeighArguments weigh_arguments() const;
  void draw_tokens(std::uint64_t first, std::int64_t count);
  ProjectArguments project_arguments(std::int64_t replicates) const;
  void make_keys(std::int64_t replicates);
  void select(const WeighArguments& arguments, std::int64_t replicates);
  void weigh_all(const WeighArguments& arguments, std::int64_t replicates);

  const Plan& plan_;
  const LaunchPlan& launch_;
  const Constants& constants_;
  Stream& stream_;
  Arrays arrays_;
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
