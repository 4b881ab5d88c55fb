// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/theory.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <variant>

#include "engine/files/error.h"
#include "engine/files/words.h"
#include "engine/moments/measured_terms.h"
#include "engine/run/pilot.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/parallel_for.h"
#include "kernels/plan.h"
#include "validation/theory/depth/stack_theory.h"
#include "validation/theory/exact/conditional.h"
#include "validation/theory/finite_n.h"
#include "validation/theory/mechanisms/first_order_tokens.h"
#include "validation/theory/mechanisms/token_model.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// Changes this small compared with the standard deviations of two heads are rounding, however
/// small the covariance.
constexpr double rounding = 1e-9;

/// Figures whose remainder is too large, of which the worst is named.
class LargeRemainders {
 public:
  LargeRemainders(const Theory& theory, std::string way_out)
      : theory_(theory), way_out_(std::move(way_out)) {}

  /// Refuses a remainder that is not a number.
  /// \param scale what the remainder is compared with, and how the message calls it
  /// \param negligible remainder that is rounding
  void look(const std::string& figure, double remainder, double scale, const char* of_scale,
            double negligible) {
    if (!std::isfinite(remainder) || !std::isfinite(scale))
      throw InvalidInput(theory_.form + ": " + figure + " is out of range" + way_out_);
    const double size = std::abs(scale);
    if (remainder <= largest_remainder * size || remainder <= negligible) return;
    const double relative = remainder / size;
    if (relative <= largest_) return;
    largest_ = relative;
    worst_ = "the remainder of " + figure + " is " +
             (size > 0 ? formatted("%.2g %%", 100 * relative) + " of " + of_scale
                       : "not 0 where " + figure + " is");
  }

  void require_none() const {
    if (worst_.empty()) return;
    throw InvalidInput(theory_.form + ": " + worst_ + " (allowed: 10 %)" + way_out_);
  }

 private:
  const Theory& theory_;
  std::string way_out_;
  double largest_ = 0;
  std::string worst_;
};

/// Refuses a form whose remainder is too large for some variance, covariance or, where its
/// remainder is known, bias. A bias may be zero without being wrong: it is compared with the root
/// of its head's mean squared error.
void require_small_remainders(const Theory& theory, const std::string& way_out) {
  LargeRemainders large(theory, way_out);
  for (std::size_t q = 0; q < theory.heads.size(); ++q) {
    const HeadTheory& heads = theory.heads[q];
    const std::string query = " at query " + std::to_string(q);
    for (Index h = 0; h < heads.bias.size(); ++h) {
      const std::string head = " of head " + std::to_string(h) + query;
      const double variance = heads.covariance(h, h);
      for (Index l = 0; l <= h; ++l) {
        large.look(h == l ? "the variance" + head
                          : "the covariance of heads " + std::to_string(l) + " and " +
                                std::to_string(h) + query,
                   heads.covariance_remainder(h, l), heads.covariance(h, l), "it",
                   rounding * std::sqrt(variance * heads.covariance(l, l)));
      }
      if (std::isnan(heads.bias_remainder(h)) && theory.source == "exact") continue;
      large.look("the bias" + head, heads.bias_remainder(h),
                 std::sqrt(heads.bias(h) * heads.bias(h) + variance),
                 "the root of the head's mean squared error", 0);
    }
  }
  large.require_none();
}

/// Refuses a form whose remainder is too large for the MSE at some query.
void require_small_mse_remainders(const Theory& theory, const std::string& way_out) {
  LargeRemainders large(theory, way_out);
  for (std::size_t q = 0; q < theory.figures.queries.size(); ++q) {
    const Remainder& mse = theory.figures.queries[q].mse;
    large.look("the MSE at query " + std::to_string(q), mse.remainder, mse.value, "it", 0);
  }
  large.require_none();
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
  if (gap) throw InvalidInput("--source exact: " + *gap);
}

void use_finite_n(Theory& theory, const TheoryModel& model, int threads) {
  theory.source = "exact";
  theory.form = "exact at finite n";
  theory.normalisation_error = 0;
  const VectorXd unknown =
      VectorXd::Constant(model.head_weights.size(), std::numeric_limits<double>::quiet_NaN());
  for (const FiniteN& exact : finite_n(model, threads)) {
    theory.heads.push_back({exact.bias, unknown, exact.covariance, exact.change.cwiseAbs()});
    theory.normalisation_error =
        std::max(theory.normalisation_error, std::abs(exact.normalisation_error));
  }
  require_small_remainders(theory, " - use headlab theory --source first_order, or simulate");
}

void use_conditional(Theory& theory) {
  ConditionalTheory given = conditional_theory(*theory.plan);
  theory.source = "exact";
  theory.form = "exact for the fixed design";
  theory.heads = std::move(given.queries);
  theory.weights_index = given.weights_index;
  theory.windows = given.windows;
}

std::string first_order_way_out(bool exact_applies) {
  return exact_applies ? " - use --source exact, or simulate with headlab run"
                       : " - simulate with headlab run";
}

void use_first_order(Theory& theory, const TheoryModel& model, bool exact_applies) {
  if (const auto obstacle = first_order_obstacle(model)) throw InvalidInput(*obstacle);
  theory.source = "first_order";
  theory.form = "first order in 1/n";
  for (FirstOrder& at : first_order_of_tokens(model)) theory.heads.push_back(std::move(at));
  require_small_remainders(theory, first_order_way_out(exact_applies));
}

/// Exact, but where its numbers are refused; that refusal, where first order is refused too.
void use_finite_n_or_first_order(Theory& theory, const TheoryModel& model, int threads) {
  const Theory blank = theory;
  try {
    use_finite_n(theory, model, threads);
  } catch (const InvalidInput& refusal) {
    const InvalidInput exact = refusal;
    theory = blank;
    try {
      use_first_order(theory, model, false);
    } catch (const InvalidInput&) {
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

/// The terms of the error from the biases and covariances of the heads.
ErrorTerms<Remainder> figures_of(const Theory& theory) {
  const Plan& plan = *theory.plan;
  const auto heads = static_cast<std::size_t>(plan.heads);
  const auto queries = static_cast<std::size_t>(plan.queries);

  // Those of two replicates that agree and have these means.
  const MomentLayout layout = plan.layout();
  Moments moments;
  moments.count = 2;
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
  auto e = converted<Remainder>(error_terms(layout, moments, plan.head_weights, plan.truth),
                                [](double value) { return Remainder{value}; });

  // Remainders are sizes, and no part makes up for another; that of a figure left out here stays
  // unknown.
  const VectorXd a = Eigen::Map<const VectorXd>(plan.head_weights.data(), plan.heads);
  const VectorXd size = a.cwiseAbs();
  for (Remainder* sum : {&e.mse, &e.bias_squared, &e.variance_term, &e.covariance_term,
                         &e.head_variance_mean, &e.head_covariance_mean}) {
    sum->remainder = 0;
  }
  const double share = 1.0 / plan.queries;
  const double pairs = plan.heads * (plan.heads - 1.0);
  for (std::size_t q = 0; q < queries; ++q) {
    const HeadTheory& at = theory.heads[q];
    const MatrixXd& off = at.covariance_remainder;
    const double own = off.diagonal().dot(a.cwiseAbs2());
    const double all = size.dot(off * size);
    const double output = a.dot(at.bias) + (a.sum() - 1) * plan.truth[q];
    const double of_output = size.dot(at.bias_remainder);
    // A truth without bias has none in any order, where no remainder is known either.
    const double bias_squared =
        output == 0 && std::isnan(of_output) ? 0 : (2 * std::abs(output) + of_output) * of_output;
    e.bias_squared.remainder += share * bias_squared;
    e.variance_term.remainder += share * own;
    e.covariance_term.remainder += share * (all - own);
    e.mse.remainder += share * (bias_squared + all);
    e.head_variance_mean.remainder += share * off.trace() / plan.heads;
    e.head_covariance_mean.remainder += share * (off.sum() - off.trace()) / pairs;
    QueryErrorTerms<Remainder>& query = e.queries[q];
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
  for (const Ratio<Remainder>& ratio : ratios<Remainder>) {
    const Remainder& bottom = e.*ratio.bottom;
    const double remainder =
        ((e.*ratio.top).remainder + std::abs((e.*ratio.figure).value) * bottom.remainder) /
        (bottom.value - bottom.remainder);
    for_figures_of(ratio, e, [&](Remainder& figure) { figure.remainder = remainder; });
  }
  e.weights_index.remainder = std::isnan(theory.weights_index) ? theory.weights_index : 0;
  add_measures(e, theory.measures);
  return e;
}

/// Whatever else stands in the way is said first, so that what this advises is not refused next.
void require_given_draw(const Condition& condition) {
  require_one_draw(condition, "closed forms are for given heads and queries");
}

/// Heads that are learned have no closed form.
void require_given_heads(const Condition& condition) {
  const auto* learned = std::get_if<LearnedSubspaces>(&*condition.subspaces);
  if (learned == nullptr) return;
  reject(condition, "heads.subspaces",
         "heads that are learned on data have no closed form - simulate with headlab run");
}

}  // namespace

Theory compute_theory(const Condition& condition, TheorySource source, int threads,
                      const Preparation& found) {
  if (condition.stack) {
    if (source == TheorySource::first_order) {
      reject(condition, "layers", "have no form of first order in 1/n - use --source exact");
    }
    Theory theory;
    static_cast<TheoryResult&>(theory) = stack_theory(condition);
    return theory;
  }
  const auto start = std::chrono::steady_clock::now();
  require_given_heads(condition);
  const bool optimal = std::holds_alternative<OptimalWeights>(*condition.weights);
  const bool to_be_optimised = optimal && !found.head_weights;
  Condition weighted = condition;
  if (optimal) weighted.weights = UniformWeights{};
  weighted.estimator = Estimator::conditional;
  weighted.moments = MomentMode::pairwise;

  Theory theory;
  theory.measures = condition.measures;
  theory.plan = make_plan(weighted, found);
  bool exact_instead = false;
  if (condition.fixed_design) {
    if (source == TheorySource::first_order) {
      reject(condition, "data.fixed_design",
             "first order is over training sets that each draw their own design - use --source "
             "exact");
    }
    require_given_draw(condition);
    use_conditional(theory);
  } else {
    const TheoryModel model = token_model(weighted, *theory.plan);
    require_given_draw(condition);
    const std::optional<std::string> gap = finite_n_gap(model);
    if (source == TheorySource::exact) require_no_gap(gap);
    if (source == TheorySource::automatic && gap && first_order_obstacle(model))
      throw InvalidInput(*gap);
    if (source == TheorySource::first_order || gap) {
      exact_instead = !gap;
      use_first_order(theory, model, exact_instead);
    } else if (source == TheorySource::exact) {
      use_finite_n(theory, model, thread_count(threads));
    } else {
      use_finite_n_or_first_order(theory, model, thread_count(threads));
    }
  }
  if (to_be_optimised) {
    try {
      theory.plan.own().head_weights = condition.heads == 1
                                           ? std::vector<double>{1.0}
                                           : optimal_weights(mean_squared_errors(theory.heads));
    } catch (const ParameterError& error) {
      reject(condition, "heads.weights", std::string("law \"optimal\": ") + error.what());
    }
  }
  set_head_weights(theory, theory.plan->head_weights);
  if (theory.source == "first_order") {
    require_small_mse_remainders(theory, first_order_way_out(exact_instead));
  }
  theory.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return theory;
}

void require_exact(const Condition& condition) {
  require_given_heads(condition);
  if (condition.fixed_design) return;
  require_no_gap(finite_n_gap(token_model(condition, make_plan(condition))));
}

void set_head_weights(Theory& theory, const std::vector<double>& head_weights) {
  if (theory.plan->stack) return;
  Plan weighted = *theory.plan;  // which may be what holds these weights
  weighted.head_weights = head_weights;
  theory.plan = std::move(weighted);
  theory.figures = figures_of(theory);
}

}  // namespace headlab
