// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/theory.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "engine/files/error.h"
#include "engine/run/pilot.h"
#include "engine/run/simulate.h"
#include "engine/scenario/condition.h"
#include "kernels/parallel_for.h"
#include "validation/theory/exact/conditional.h"
#include "validation/theory/exact/finite_n.h"
#include "validation/theory/first_order/first_order.h"
#include "validation/theory/model/model.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Changes this small beside the standard deviations of two heads are rounding, however small the
/// covariance.
constexpr double rounding = 1e-9;

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.2g %%", 100 * share);
  return text;
}

/// Refuses a form whose remainder is too large for some variance or covariance, the largest first.
void require_small_remainders(const Theory& theory, const std::string& remainder,
                              const std::string& way_out) {
  double largest = 0;
  std::string at;
  for (std::size_t q = 0; q < theory.heads.size(); ++q) {
    const HeadTheory& heads = theory.heads[q];
    for (Index h = 0; h < heads.bias.size(); ++h) {
      for (Index l = 0; l <= h; ++l) {
        const double value = heads.covariance(h, l);
        const double off = heads.covariance_remainder(h, l);
        const double scale = std::sqrt(heads.covariance(h, h) * heads.covariance(l, l));
        if (std::abs(off) <= largest_remainder * std::abs(value) ||
            std::abs(off) <= rounding * scale) {
          continue;
        }
        const double relative = off / value;
        if (std::isfinite(value) && !(std::abs(relative) > std::abs(largest))) continue;
        largest = relative;
        at = (h == l ? "the variance of head " + std::to_string(h + 1)
                     : "the covariance of heads " + std::to_string(l + 1) + " and " +
                           std::to_string(h + 1)) +
             " at query " + std::to_string(q + 1);
        if (!std::isfinite(value))
          throw Refused(theory.form + ": " + at + " is out of range" + way_out);
      }
    }
  }
  if (at.empty()) return;
  throw Refused(theory.form + ": " + remainder + " of " + at + " is " + percent(largest) +
                " of it (allowed: 10 %)" + way_out);
}

/// One line where the exact form at finite n does not cover every head and pair of the model.
std::optional<std::string> finite_n_gap(const TheoryModel& model) {
  for (std::size_t h = 0; h < model.projections.size(); ++h) {
    for (std::size_t l = 0; l <= h; ++l) {
      if (auto obstacle = finite_n_obstacle(model, h, l)) return obstacle;
    }
  }
  return std::nullopt;
}

/// Refuses a scenario that was asked for in exact form.
void require_no_gap(const std::optional<std::string>& gap) {
  if (gap) throw Refused("--source exact: " + *gap);
}

void use_finite_n(Theory& theory, const TheoryModel& model, int threads) {
  theory.source = "exact";
  theory.form = "exact at finite n";
  theory.certificate = 0;
  const VectorXd unknown =
      VectorXd::Constant(model.head_weights.size(), std::numeric_limits<double>::quiet_NaN());
  for (const FiniteN& exact : finite_n(model, threads)) {
    theory.heads.push_back({exact.bias, unknown, exact.covariance, exact.change});
    theory.certificate = std::max(theory.certificate, std::abs(exact.certificate));
  }
  require_small_remainders(theory, "the change on refinement",
                           " - use headlab theory --source first_order, or simulate");
}

void use_conditional(Theory& theory) {
  ConditionalTheory given = conditional_theory(theory.plan);
  theory.source = "exact";
  theory.form = "exact for the fixed design";
  theory.heads = std::move(given.queries);
  theory.weights_index = given.weights_index;
  theory.windows = given.windows;
}

void use_first_order(Theory& theory, const TheoryModel& model, bool exact_applies) {
  theory.source = "first_order";
  theory.form = "first order in 1/n";
  theory.heads = first_order(model);
  require_small_remainders(theory, "the second-order term",
                           exact_applies ? " - use --source exact, or simulate with headlab run"
                                         : " - simulate with headlab run");
}

/// Exact, but where its numbers are refused; that refusal, where first order is refused too.
void use_finite_n_or_first_order(Theory& theory, const TheoryModel& model, int threads) {
  const Theory blank = theory;
  try {
    use_finite_n(theory, model, threads);
  } catch (const Refused& refusal) {
    const Refused exact = refusal;
    theory = blank;
    try {
      use_first_order(theory, model, false);
    } catch (const Refused&) {
      throw exact;
    }
  }
}

/// Mean over the queries of C + B B^T.
MatrixXd mean_squared_errors(const std::vector<HeadTheory>& queries) {
  const Index heads = queries.front().bias.size();
  MatrixXd m = MatrixXd::Zero(heads, heads);
  for (const HeadTheory& at : queries) m += at.covariance + at.bias * at.bias.transpose();
  return m / static_cast<double>(queries.size());
}

/// Estimates of another kind of number.
template <class To, class From, class Convert>
EstimatesOf<To> with_figures(const EstimatesOf<From>& from, const Convert& convert) {
  EstimatesOf<To> to;
  to.replicates = from.replicates;
  to.node_counts = from.node_counts;
  to.mse = convert(from.mse);
  to.bias_squared = convert(from.bias_squared);
  to.variance_term = convert(from.variance_term);
  to.covariance_term = convert(from.covariance_term);
  to.bias_squared_plugin = convert(from.bias_squared_plugin);
  to.head_variance_mean = convert(from.head_variance_mean);
  to.head_covariance_mean = convert(from.head_covariance_mean);
  to.output_correlation = convert(from.output_correlation);
  to.output_index = convert(from.output_index);
  to.weights_index = convert(from.weights_index);
  to.mse_query_se = from.mse_query_se;
  to.windows = from.windows;
  for (const QueryEstimatesOf<From>& query : from.queries) {
    QueryEstimatesOf<To>& at = to.queries.emplace_back();
    at.mse = convert(query.mse);
    std::ranges::transform(query.head_bias, std::back_inserter(at.head_bias), convert);
    std::ranges::transform(query.head_covariance, std::back_inserter(at.head_covariance), convert);
  }
  return to;
}

/// The figures of a simulation from the biases and covariances of the heads.
EstimatesOf<TheoryFigure> figures_of(const Theory& theory) {
  const Plan& plan = theory.plan;
  const auto heads = static_cast<std::size_t>(plan.heads);
  const auto queries = static_cast<std::size_t>(plan.queries);

  // The figures are those of two replicates that agree and have these means.
  const MomentLayout layout = plan.layout();
  Moments moments;
  moments.count = 1;
  moments.mean.resize(layout.statistics());
  moments.comoment.assign(layout.comoments(), 0.0);
  for (std::size_t q = 0; q < queries; ++q) {
    const HeadTheory& at = theory.heads[q];
    double* statistics = moments.mean.data() + q * layout.per_query();
    for (std::size_t h = 0; h < heads; ++h) {
      const auto row = static_cast<Index>(h);
      statistics[h] = plan.truth[q] + at.bias(row);
      for (std::size_t l = h; l < heads; ++l) {
        statistics[layout.noise_offset() + layout.pair(h, l)] =
            at.covariance(row, static_cast<Index>(l));
      }
    }
    if (layout.has_alignment()) {
      statistics[layout.alignment_offset()] = 1 - theory.weights_index;
    }
  }
  MomentTree tree(layout);
  tree.append(moments);
  tree.append(std::move(moments));
  EstimatesOf<TheoryFigure> e =
      with_figures<TheoryFigure>(estimate(tree, plan.head_weights, plan.truth),
                                 [](const Figure& figure) { return TheoryFigure{figure.value}; });
  e.replicates = 0;
  e.node_counts.clear();
  e.windows = theory.windows;

  // Remainders, which are linear in those of the heads.
  const VectorXd a = Eigen::Map<const VectorXd>(plan.head_weights.data(), plan.heads);
  auto reset = [](std::initializer_list<TheoryFigure*> figures) {
    for (TheoryFigure* figure : figures) figure->remainder = 0;
  };
  reset({&e.mse, &e.bias_squared, &e.bias_squared_plugin, &e.variance_term, &e.covariance_term,
         &e.head_variance_mean, &e.head_covariance_mean});
  const double share = 1.0 / plan.queries;
  const double pairs = plan.heads * (plan.heads - 1.0);
  for (std::size_t q = 0; q < queries; ++q) {
    const HeadTheory& at = theory.heads[q];
    const MatrixXd& off = at.covariance_remainder;
    const double own = off.diagonal().dot(a.cwiseAbs2());
    const double all = a.dot(off * a);
    const double output = a.dot(at.bias) + (a.sum() - 1) * plan.truth[q];
    // A truth without bias has none in any order, known remainder or not.
    const double bias_squared = output == 0 ? 0 : 2 * output * a.dot(at.bias_remainder);
    e.bias_squared.remainder += share * bias_squared;
    e.variance_term.remainder += share * own;
    e.covariance_term.remainder += share * (all - own);
    e.mse.remainder += share * (bias_squared + all);
    e.head_variance_mean.remainder += share * off.trace() / plan.heads;
    e.head_covariance_mean.remainder += share * (off.sum() - off.trace()) / pairs;
    QueryEstimatesOf<TheoryFigure>& query = e.queries[q];
    query.mse.remainder = bias_squared + all;
    for (std::size_t h = 0; h < heads; ++h) {
      query.head_bias[h].remainder = at.bias_remainder(static_cast<Index>(h));
      for (std::size_t l = 0; l < heads; ++l) {
        query.head_covariance[h * heads + l].remainder =
            off(static_cast<Index>(h), static_cast<Index>(l));
      }
    }
  }
  e.bias_squared_plugin.remainder = e.bias_squared.remainder;
  e.output_correlation.remainder = (e.head_covariance_mean.remainder -
                                    e.output_correlation.value * e.head_variance_mean.remainder) /
                                   e.head_variance_mean.value;
  e.output_index.remainder = -e.output_correlation.remainder;
  e.weights_index.remainder = std::isnan(theory.weights_index) ? theory.weights_index : 0;
  return e;
}

/// Closed forms are for heads that are the same in every replicate.
void require_given_heads(const Scenario& scenario) {
  const auto* learned = std::get_if<LearnedSubspaces>(&scenario.subspaces);
  if (learned == nullptr) return;
  reject(scenario, "heads.subspaces",
         "heads that are learned on data have no closed form - simulate with headlab run");
}

}  // namespace

Theory compute_theory(const Scenario& scenario, TheorySource source, int threads) {
  const auto start = std::chrono::steady_clock::now();
  require_given_heads(scenario);
  const auto* optimal = std::get_if<OptimalWeights>(&scenario.weights);
  const bool to_be_optimised = optimal != nullptr && !optimal->resolved;
  Scenario weighted = scenario;
  if (to_be_optimised) weighted.weights = UniformWeights{};
  weighted.estimator = Estimator::conditional;
  weighted.moments = MomentMode::pairwise;

  Theory theory;
  theory.plan = make_plan(weighted);
  if (scenario.fixed_design) {
    if (source == TheorySource::first_order) {
      reject(scenario, "data.fixed_design",
             "first order is over training sets that each draw their own design - use --source "
             "exact");
    }
    use_conditional(theory);
  } else {
    const TheoryModel model = theory_model(weighted);
    const std::optional<std::string> gap = finite_n_gap(model);
    if (source == TheorySource::exact) require_no_gap(gap);
    if (source == TheorySource::first_order || gap) {
      use_first_order(theory, model, !gap);
    } else if (source == TheorySource::exact) {
      use_finite_n(theory, model, thread_count(threads));
    } else {
      use_finite_n_or_first_order(theory, model, thread_count(threads));
    }
  }
  if (to_be_optimised) {
    try {
      theory.plan.head_weights = scenario.heads == 1
                                     ? std::vector<double>{1.0}
                                     : optimal_weights(mean_squared_errors(theory.heads));
    } catch (const ParameterError& error) {
      reject(scenario, "heads.weights", std::string("law \"optimal\": ") + error.what());
    }
  }
  set_head_weights(theory, theory.plan.head_weights);
  theory.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return theory;
}

void require_exact(const Scenario& scenario) {
  require_given_heads(scenario);
  if (!scenario.fixed_design) require_no_gap(finite_n_gap(theory_model(scenario)));
}

void set_head_weights(Theory& theory, const std::vector<double>& head_weights) {
  theory.plan.head_weights = head_weights;
  theory.figures = figures_of(theory);
}

Estimates as_estimates(const EstimatesOf<TheoryFigure>& figures) {
  return with_figures<Figure>(figures, [](const TheoryFigure& figure) {
    return Figure{figure.value, figure.remainder};
  });
}

}  // namespace headlab
