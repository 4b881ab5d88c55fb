// SPDX-License-Identifier: Apache-2.0
/// \file Error components of the ensemble with Monte Carlo standard errors, from moments.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "engine/moments/error_terms.h"
#include "engine/moments/jackknife.h"
#include "engine/moments/moment_tree.h"
#include "kernels/statistics/moments.h"

namespace headlab {

struct ControlUse;
struct Plan;

/// ConditionEstimates of one condition. A Number is a Estimate, which is what users read, or a
/// Jackknifed, which can be calculated with.
template <class Number>
struct EstimatesOf : ErrorTerms<Number> {
  std::uint64_t replicates = 0;
  std::vector<double> node_counts;  ///< replicates of each node of the jackknife
  /// Nodes of the jackknife; t quantiles have one degree of freedom less.
  int nodes() const { return static_cast<int>(node_counts.size()); }
  WindowCounts windows;
};

using QueryEstimates = QueryErrorTerms<Estimate>;
using ConditionEstimates = EstimatesOf<Estimate>;
using JackknifedEstimates = EstimatesOf<Jackknifed>;

/// What events that none of the replicates had could add to figures, at most: events whose share
/// among all replicates is s = 1 - alpha^(1/R) are not seen in R of them with probability alpha.
class UnseenEvents {
 public:
  /// Level of that share.
  static constexpr double alpha = 0.01;

  /// Unknown: nothing bounds what they add.
  UnseenEvents() = default;
  explicit UnseenEvents(const Plan& plan);

  /// What they may add to E f_h, to its second moments, to those of the ensemble, and to the mean
  /// of a number from 0 to 1.
  struct Additions {
    explicit Additions(double each) {
      bias = bias_squared = variance = covariance = covariance_term = mse = cosine = each;
    }
    double bias, bias_squared, variance;
    double covariance, covariance_term;  ///< of different heads
    double mse, cosine;
  };
  Additions of(std::uint64_t replicates) const;
  /// All heads are the same, so that C/V is 1 in every replicate.
  bool heads_are_alike() const { return alike_; }

 private:
  EstimateBounds bounds_;
  double sum_of_weights_ = std::numeric_limits<double>::infinity();  ///< sum |a_h|
  bool per_draw_ = false;
  bool alike_ = false;
  bool apart_ = false;  ///< heads have no token in common
};

/// ConditionEstimates with jackknife standard errors (delete one node, weighted by count: Busing,
/// Meijer and van der Leeden 1999). `head_weights` is [H], `truth` m at the queries. MCSE are NaN
/// below 8 replicates, values NaN below 2. Where moments are per draw there are no figures of
/// queries, `truth` is not read, and MCSE are NaN below min_draws_for_mcse.
/// \param use of exact controls, where the layout has them; null: all are used
ConditionEstimates estimate(const MomentTree& tree, std::span<const double> head_weights,
                            std::span<const double> truth, const ControlUse* use = nullptr,
                            const UnseenEvents& unseen = {}, const Measures& measures = {});
/// Those of a plan's tree.
ConditionEstimates estimate(const MomentTree& tree, const Plan& plan,
                            const Measures& measures = {});

/// How the layout of a plan uses its controls; null where it has none.
const ControlUse* control_use(const Plan& plan);

/// The same as samples, to be calculated with. They take nodes x queries x H^2 numbers.
JackknifedEstimates jackknifed_estimates(const MomentTree& tree,
                                         std::span<const double> head_weights,
                                         std::span<const double> truth,
                                         const ControlUse* use = nullptr,
                                         const UnseenEvents& unseen = {},
                                         const Measures& measures = {});
/// Those of a plan's tree.
JackknifedEstimates jackknifed_estimates(const MomentTree& tree, const Plan& plan,
                                         const Measures& measures = {});

/// Tells figures how far the rounding of a backend may have moved them (Jackknifed::digits).
/// \param eps of an estimate, relative to the numbers that it is of
void set_digits(JackknifedEstimates& estimates, std::span<const double> truth, double eps);

/// The same without those of single queries: nodes x 11 numbers.
JackknifedEstimates jackknifed_averages(const MomentTree& tree,
                                        std::span<const double> head_weights,
                                        std::span<const double> truth,
                                        const ControlUse* use = nullptr,
                                        const UnseenEvents& unseen = {},
                                        const Measures& measures = {});

/// A figure that too few replicates carry.
struct RareFigure {
  std::string name;
  double carriers = 0;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("figure", name, "figure that few replicates carry");
    visit("carriers", carriers, "about how many of them carry it");
  }
};

/// All that are (Estimate::allowance), each once.
std::vector<RareFigure> rare_figures(const ErrorTerms<Estimate>& terms);

/// True where this figure of the terms is a ratio whose denominator is less than 6 of its standard
/// errors from 0.
bool divides_by_noise(const ErrorTerms<Estimate>& terms, const Estimate& figure);

/// "some 7 of 2048 replicates".
std::string carriers_of(double carriers, std::uint64_t replicates);

/// Fewest replicates whose figures get a standard error.
inline constexpr std::uint64_t min_replicates_for_mcse = 8;
/// Fewest draws of heads or queries whose figures get one.
inline constexpr std::uint64_t min_draws_for_mcse = 16;

/// What is kept of a leaf with a draw of heads or queries of its own: its figures, as the moments
/// of a layout that is per draw. They are unbiased given the draw, and their means over leaves
/// estimate means over draws; ratios follow from these. 0 where there is none: one head, no
/// alignment. \param layout of `leaf`, given the draw
Moments draw_moments(const MomentLayout& layout, const Moments& leaf,
                     std::span<const double> head_weights, std::span<const double> truth);

/// Names of its statistics, in their order.
std::vector<const char*> draw_statistic_names();

/// The values alone, from the moments of all replicates.
/// \param use of exact controls by a run of `replicates`
ErrorTerms<double> error_terms(const MomentLayout& layout, const Moments& moments,
                               std::span<const double> head_weights, std::span<const double> truth,
                               const ControlUse* use = nullptr, std::uint64_t replicates = 0);

}  // namespace headlab
