// SPDX-License-Identifier: Apache-2.0
/// \file One condition, ready to compute: plain numbers, no files and no scenario.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/copy_on_write.h"
#include "kernels/learning/learning.h"
#include "kernels/mechanism.h"
#include "kernels/philox.h"
#include "kernels/sequence.h"
#include "kernels/statistics/moments.h"
#include "kernels/table.h"

namespace headlab {

struct Controls;
struct DesignSampler;
struct KernelLaw;
struct NoiseSampler;
struct RegressionFunction;
struct Stack;

/// The purposes a run draws for. A pilot study has its own, so that it never shares a draw with the
/// run it prepares.
struct Streams {
  Purpose design = Purpose::design;
  Purpose design_choice = Purpose::design_choice;
  Purpose noise = Purpose::noise;
  bool operator==(const Streams&) const = default;
};
inline constexpr Streams pilot_streams = {Purpose::pilot_design, Purpose::pilot_design_choice,
                                          Purpose::pilot_noise};

/// Those of the pilot that fits controls.
inline constexpr Streams control_streams = {Purpose::control_design, Purpose::control_design_choice,
                                            Purpose::control_noise};

/// Those of the one sample on which heads are learned once for a whole run.
inline constexpr Streams learning_streams = {
    Purpose::learning_design, Purpose::learning_design_choice, Purpose::learning_noise};

/// Everything a backend needs to compute replicates of one condition.
struct Plan {
  // Compiled once.
  Plan();
  ~Plan();
  Plan(const Plan&);
  Plan(Plan&&) noexcept;
  Plan& operator=(const Plan&);
  Plan& operator=(Plan&&) noexcept;

  std::uint64_t n = 1;  ///< training points in one replicate
  int d = 1;            ///< dimension of the design
  int heads = 1;        ///< H
  int k = 1;            ///< per-head dimension d_k
  int queries = 1;      ///< Q

  std::uint64_t seed = 0;
  std::optional<std::uint64_t> fixed_design_seed;  ///< present: one design for all replicates
  Streams streams;

  std::optional<Ar1> ar1;  ///< present: successive points depend on one another

  Table table;  ///< numbers the laws below refer to
  // Who reads these includes kernels/laws.h, for the kernel kernels/kernel_laws.h.
  CopyOnWrite<DesignSampler> design;
  CopyOnWrite<RegressionFunction> regression;
  CopyOnWrite<NoiseSampler> noise;
  CopyOnWrite<KernelLaw> kernel;

  std::vector<double> projections;  ///< [H][d][k], W_h(i, j)
  /// [H][d][k] or empty: what projects the queries, where it is not what projects the keys (softmax
  /// alone).
  std::vector<double> query_projections;
  Mechanism mechanism;               ///< between the training set and the weights
  std::vector<double> head_weights;  ///< [H], a_h
  std::vector<double> query_points;  ///< [Q][d]
  std::vector<double> truth;         ///< [Q], m at the queries

  /// Present: every replicate learns projections and weights of its own on its training set; those
  /// above are where it starts. See kernels/learning/worker.h.
  std::optional<Learning> learning;

  EstimateBounds bounds;

  Estimator estimator = Estimator::conditional;
  MomentMode moments = MomentMode::pairwise;

  /// Not null: the design points are the tokens of a stack of layers, which has heads of its own
  /// (kernels/stack/worker.h). Of the rest of the plan it has n, d, seed, design and table alone.
  std::shared_ptr<const Stack> stack;

  /// Not null: exact controls, of a plan that is conditional and pairwise. Without coefficients it
  /// is the plan of the pilot that finds them.
  std::shared_ptr<const Controls> controls;

  /// Heads or queries are drawn again for every leaf; those above are of draw 0. A backend computes
  /// the leaves of one draw.
  bool redraws = false;

  /// W_h of head h as it projects queries [d][k].
  const double* query_projection(int head) const {
    const std::vector<double>& all = query_projections.empty() ? projections : query_projections;
    return &all[static_cast<std::size_t>(head) * static_cast<std::size_t>(d) *
                static_cast<std::size_t>(k)];
  }

  /// Of what a backend computes, given heads and queries.
  MomentLayout layout() const;
  /// Of what a run keeps.
  MomentLayout kept_layout() const {
    MomentLayout kept = layout();
    kept.per_draw = redraws;
    return kept;
  }
};

/// True of the kernel law softmax.
bool is_softmax(const Plan& plan);

/// True where the noise of all tokens has one scale.
bool has_constant_noise(const Plan& plan);

/// True where both plans see the same training sets, replicate by replicate: the same points, the
/// same values of the regression there and the same noise, drawn or integrated. Kernel, heads,
/// weights, queries and kept moments may differ.
bool shares_draws(const Plan& a, const Plan& b);

}  // namespace headlab
