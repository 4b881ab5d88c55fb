// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/estimates.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

#include "engine/moments/figure_rounding.h"
#include "engine/moments/measured_terms.h"
#include "engine/moments/query_terms.h"
#include "kernels/counted.h"
#include "kernels/plan.h"

namespace headlab {
namespace {

constexpr double undefined = std::numeric_limits<double>::quiet_NaN();

double one_minus(double number) {
  return 1 - number;
}
Estimate one_minus(Estimate figure) {
  figure.value = 1 - figure.value;
  figure.skewness = -figure.skewness;
  return figure;
}
Jackknifed one_minus(const Jackknifed& sample) {
  return 1 - sample;
}

/// Sets what follows from means over the queries: ratios, and for each index what it is 1 less of.
/// \param mean_square of the heads' means: variances far below it are rounding, and have no ratio
void set_ratios(ErrorTerms<double>& mean, double mean_square) {
  constexpr double rounding = 0x1p-40;
  for (const Ratio<double>& ratio : ratios<double>) {
    const double bottom = mean.*ratio.bottom;
    const bool varies = bottom > rounding * rounding * mean_square;
    const double quotient = varies ? mean.*ratio.top / bottom : undefined;
    for_figures_of(ratio, mean, [&](double& figure) { figure = quotient; });
  }
}

/// A statistic of a draw that is a mean over the queries.
struct DrawStatistic {
  const char* name;
  double ErrorTerms<double>::*of;
};
/// All but the last, `mean_square` of the heads' means. The index of the weights is their alignment
/// still.
constexpr DrawStatistic draw_terms[] = {
    {"bias_squared", &ErrorTerms<double>::bias_squared},
    {"bias_squared_plugin", &ErrorTerms<double>::bias_squared_plugin},
    {"variance_term", &ErrorTerms<double>::variance_term},
    {"covariance_term", &ErrorTerms<double>::covariance_term},
    {"head_variance_mean", &ErrorTerms<double>::head_variance_mean},
    {"head_covariance_mean", &ErrorTerms<double>::head_covariance_mean},
    {"alignment", &ErrorTerms<double>::weights_index}};
static_assert(std::size(draw_terms) + 1 == draw_statistics);

/// The terms that statistics of draws have, ratios not set.
ErrorTerms<double> terms_of_draws(const MomentLayout& layout, bool has_covariance_mean,
                                  std::span<const double> statistics) {
  ErrorTerms<double> terms;
  for (double* number : all_numbers<double>(terms)) *number = undefined;
  for (std::size_t i = 0; i < std::size(draw_terms); ++i) terms.*draw_terms[i].of = statistics[i];
  terms.mse = terms.bias_squared + terms.variance_term + terms.covariance_term;
  if (!has_covariance_mean) terms.head_covariance_mean = undefined;
  if (!layout.has_alignment()) terms.weights_index = undefined;
  return terms;
}

/// What a standard error over nodes does not say of a figure.
struct Doubt {
  double rounding = 0;  ///< bound of what all nodes share
  double unseen = 0;    ///< most that events may add which no replicate had
  /// Events that make up what varies of the estimates behind the figure.
  double carriers = std::numeric_limits<double>::infinity();
};

/// The same of the means over the queries.
struct Doubts {
  ErrorTerms<double> rounding = {};
  ErrorTerms<double> unseen = {};
  double carriers = std::numeric_limits<double>::infinity();
  bool alike = false;  ///< all heads are the same
};

/// Sets the numbers of `estimates` that follow from means over the queries: number(value,
/// leave_one_out, doubt) becomes of `mean`, of `without` [nodes], the mean with one node left out,
/// and of `doubts`.
template <class Number, class Make>
void set_means(EstimatesOf<Number>& estimates, ErrorTerms<double> mean,
               std::vector<ErrorTerms<double>> without, Doubts doubts, double mean_square,
               const Make& number) {
  set_ratios(mean, mean_square);
  ErrorTerms<double>& unseen = doubts.unseen;
  for (const Ratio<double>& ratio : ratios<double>) {
    for (ErrorTerms<double>* bound : {&doubts.rounding, &unseen}) {
      const double quotient =
          (bound->*ratio.top + std::abs(mean.*ratio.figure) * bound->*ratio.bottom) /
          mean.*ratio.bottom;
      for_figures_of(ratio, *bound, [&](double& figure) { figure = quotient; });
    }
    if (!doubts.alike || !ratio.one_of_alike) continue;
    for_figures_of(ratio, unseen, [](double& figure) { figure = 0; });
  }
  if (doubts.alike) unseen.weights_index = 0;
  const std::vector<double*> of_rounding = all_numbers<double>(doubts.rounding);
  const std::vector<double*> of_unseen = all_numbers<double>(unseen);
  for (ErrorTerms<double>& one : without) set_ratios(one, mean_square);
  const std::vector<double*> of_mean = all_numbers<double>(mean);
  std::vector<std::vector<double*>> of_without;
  for (ErrorTerms<double>& one : without) of_without.push_back(all_numbers<double>(one));
  const std::vector<Number*> numbers = all_numbers<Number>(estimates);
  std::vector<double> leave_one_out(without.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    for (std::size_t j = 0; j < without.size(); ++j) leave_one_out[j] = *of_without[j][i];
    *numbers[i] =
        number(*of_mean[i], leave_one_out, Doubt{*of_rounding[i], *of_unseen[i], doubts.carriers});
  }
  for (const Ratio<Number>& ratio : ratios<Number>) {
    if (ratio.one_minus == nullptr) continue;
    estimates.*ratio.one_minus = one_minus(estimates.*ratio.one_minus);
  }
  estimates.weights_index = one_minus(estimates.weights_index);
}

/// Sets the measures of `estimates`. \param samples  averages, and the queries that measures name
template <class Number, class Make>
void set_measures(EstimatesOf<Number>& estimates, JackknifedEstimates& samples,
                  const Measures& measures, const Make& number) {
  add_measures(samples, measures, estimates.node_counts);
  for (const Measured<Jackknifed>& one : samples.measures) {
    const Jackknifed& sample = one.number;
    estimates.measures.push_back({one.of,
                                  number(sample.value, sample.leave_one_out,
                                         Doubt{sample.rounding, sample.unseen, sample.carriers}),
                                  one.divisor_error});
  }
}

/// Sets the numbers of `estimates` from nodes that hold figures of draws.
template <class Number, class Make>
void set_from_draws(EstimatesOf<Number>& estimates, const MomentLayout& layout,
                    const std::vector<Node>& nodes, std::span<const double> head_weights,
                    std::size_t errors, Doubts doubts, const Make& number) {
  const bool has_covariance_mean = QueryTerms(layout, head_weights).has_covariance_mean();
  const auto terms_of = [&](const Moments& moments) {
    return terms_of_draws(layout, has_covariance_mean, moments.mean);
  };
  // after[j]: nodes j .. end merged; before: nodes 0 .. j - 1.
  std::vector<Moments> after(nodes.size() + 1);
  for (std::size_t j = nodes.size(); j-- > 0;) {
    after[j] = nodes[j].moments;
    merge_moments(layout, after[j], after[j + 1]);
  }
  std::vector<ErrorTerms<double>> without;
  Moments before;
  for (std::size_t j = 0; j < errors; ++j) {
    Moments rest = before;
    merge_moments(layout, rest, after[j + 1]);
    without.push_back(terms_of(rest));
    merge_moments(layout, before, nodes[j].moments);
  }
  set_means(estimates, terms_of(after[0]), std::move(without), std::move(doubts),
            after[0].mean.back(), number);
}

/// What unseen events may add to the means over the queries.
ErrorTerms<double> unseen_terms(const UnseenEvents::Additions& added, std::size_t heads) {
  ErrorTerms<double> terms;
  terms.mse = added.mse;
  terms.bias_squared = terms.bias_squared_plugin = added.bias_squared;
  terms.variance_term = added.mse;
  terms.covariance_term = heads > 1 ? added.covariance_term : 0;
  terms.head_variance_mean = added.variance;
  terms.head_covariance_mean = added.covariance;
  terms.weights_index = added.cosine;
  return terms;
}

/// How the heads' estimates of the nodes of a run vary: the sum over heads of squares about the
/// mean of the run, of one query or more.
class VariationOfNodes {
 public:
  explicit VariationOfNodes(std::size_t nodes) : squares_(nodes, 0.0) {}

  /// Adds those of one query; `layout` has that query alone.
  void add(const MomentLayout& layout, std::size_t j, const Moments& node, const Moments& run) {
    for (std::size_t h = 0; h < static_cast<std::size_t>(layout.heads); ++h) {
      const double away = node.mean[h] - run.mean[h];
      squares_[j] += node.comoment[layout.pairwise() ? layout.pair(h, h) : h] +
                     static_cast<double>(node.count) * away * away;
    }
  }
  void add(const VariationOfNodes& other) {
    for (std::size_t j = 0; j < squares_.size(); ++j) squares_[j] += other.squares_[j];
  }

  /// How many events make up the squares, as NodeSpread has it: squares of normal estimates have
  /// the coefficient of variation sqrt(2 / replicates) of a node.
  double carriers(std::span<const double> counts) const {
    const auto nodes = static_cast<double>(squares_.size());
    double sum = 0, of_squares = 0;
    for (const double one : squares_) {
      sum += one;
      of_squares += one * one;
    }
    if (!(of_squares > 0)) return 0;
    const double normal = 2 / counts[0];
    const double usual = normal + 2 * normal * std::sqrt((2 + 6 * normal) / nodes);
    const double excess = nodes * of_squares / (sum * sum) - 1 - usual;
    return excess > 0 ? nodes / excess : std::numeric_limits<double>::infinity();
  }

 private:
  std::vector<double> squares_;  ///< [nodes]
};

Jackknifed make_jackknifed(double value, std::span<const double> leave_one_out,
                           std::span<const double>, const Doubt& doubt) {
  Jackknifed figure(value, {leave_one_out.begin(), leave_one_out.end()}, doubt.rounding);
  figure.unseen = doubt.unseen;
  figure.carriers = doubt.carriers;
  return figure;
}

/// ConditionEstimates in which make(value, leave_one_out, counts, doubt) becomes of a number, its
/// values [nodes] with one node left out, which are empty where there can be no standard error, and
/// its Doubt.
/// \param by_query  keep what is known of single queries
template <class Number, class Make>
EstimatesOf<Number> estimate_as(const MomentLayout& layout, const std::vector<Node>& nodes,
                                std::span<const double> head_weights, std::span<const double> truth,
                                const ControlUse* use, const UnseenEvents& unseen,
                                const Measures& measures, const Make& make, bool by_query = true,
                                std::uint64_t replicates_of_run = 0) {
  MomentLayout single = layout;
  single.queries = 1;
  QueryTerms set_terms(single, head_weights);
  const std::size_t heads = head_weights.size();

  EstimatesOf<Number> estimates;
  if (nodes.empty()) return estimates;
  for (const Node& node : nodes) {
    estimates.replicates += node.moments.count;
    estimates.node_counts.push_back(static_cast<double>(node.moments.count));
    estimates.windows.add(node.moments.windows);
  }
  JackknifedEstimates samples;  // behind measures
  const auto sample = [](double value, std::span<const double> leave_one_out, const Doubt& doubt) {
    return make_jackknifed(value, leave_one_out, {}, doubt);
  };
  const std::uint64_t least =
      layout.per_draw ? min_draws_for_mcse * leaf_replicates : min_replicates_for_mcse;
  const bool with_error = estimates.replicates >= least && nodes.size() > 1;
  const std::size_t errors = with_error ? nodes.size() : 0;
  auto number = [&](double value, std::span<const double> leave_one_out, const Doubt& doubt) {
    return make(value, leave_one_out, estimates.node_counts, doubt);
  };
  const UnseenEvents::Additions added = unseen.of(estimates.replicates);
  if (layout.per_draw) {
    const Doubts of_draws{.unseen = unseen_terms(added, heads), .alike = unseen.heads_are_alike()};
    set_from_draws(estimates, layout, nodes, head_weights, errors, of_draws, number);
    if (measures.empty()) return estimates;
    set_from_draws(samples, layout, nodes, head_weights, errors, of_draws, sample);
    set_measures(estimates, samples, measures, number);
    return estimates;
  }
  const std::vector<bool> is_measured =
      measured_queries(measures, static_cast<std::size_t>(layout.queries));

  ErrorTerms<double> mean;                          // over the queries
  ErrorTerms<double> terms;                         // of one query, with a node left out or none
  std::vector<ErrorTerms<double>> without(errors);  // the mean with one node left out
  const std::vector<double*> of_mean = all_numbers<double>(mean);
  const std::vector<double*> of_terms = all_numbers<double>(terms);
  std::vector<std::vector<double*>> of_without;
  for (ErrorTerms<double>& one : without) of_without.push_back(all_numbers<double>(one));
  Doubts doubts;  // of the mean
  doubts.unseen = unseen_terms(added, heads);
  doubts.alike = unseen.heads_are_alike();
  const std::vector<double*> of_rounding = all_numbers<double>(doubts.rounding);
  VariationOfNodes variation(errors);
  // Noise that is integrated varies from one training set to the next by itself.
  const bool noise_hides_signal = layout.conditional && added.bias > 0;
  const double share = 1.0 / layout.queries;
  auto add_terms_to = [&](const std::vector<double*>& sum) {
    for (std::size_t i = 0; i < sum.size(); ++i) *sum[i] += share * *of_terms[i];
  };

  double mean_square = 0;
  std::vector<double> mse_by_query;
  std::vector<double> mse_leave_one_out(errors);
  std::vector<double> of_heads(set_terms.head_numbers());
  std::vector<double> out(of_heads.size());
  std::vector<double> rounding_of_heads(of_heads.size());
  std::vector<std::vector<double>> heads_leave_one_out(of_heads.size(), mse_leave_one_out);
  for (int q = 0; q < layout.queries; ++q) {
    const double m = truth[static_cast<std::size_t>(q)];
    // after[j]: nodes j .. end merged; before: nodes 0 .. j - 1.
    std::vector<Moments> after(nodes.size() + 1);
    for (std::size_t j = nodes.size(); j-- > 0;) {
      after[j] = query_moments(layout, nodes[j].moments, q);
      merge_moments(single, after[j], after[j + 1]);
    }
    const auto at_query = static_cast<std::size_t>(q);
    set_terms.set_controlled(ControlledStatistics::of(
        single, use, at_query, std::max(replicates_of_run, estimates.replicates)));
    double mse_rounding = 0;
    if (use != nullptr && !use->estimate_rounding.empty()) {
      set_terms.set_rounding(
          after[0], m, std::span(use->estimate_rounding).subspan(at_query * heads, heads),
          std::span(use->noise_rounding).subspan(at_query * single.pairs(), single.pairs()), terms,
          rounding_of_heads.data());
      mse_rounding = terms.mse;
      add_terms_to(of_rounding);
    }
    set_terms(after[0], m, terms, of_heads.data());
    add_terms_to(of_mean);
    for (std::size_t h = 0; h < heads; ++h) {
      const double head = after[0].mean[h];
      mean_square += share * head * head / static_cast<double>(heads);
    }
    mse_by_query.push_back(terms.mse);
    VariationOfNodes of_query(errors);
    Moments before;
    for (std::size_t j = 0; j < errors; ++j) {
      const Moments node = query_moments(layout, nodes[j].moments, q);
      of_query.add(single, j, node, after[0]);
      Moments rest = before;
      merge_moments(single, rest, after[j + 1]);
      set_terms(rest, m, terms, out.data());
      add_terms_to(of_without[j]);
      mse_leave_one_out[j] = terms.mse;
      for (std::size_t c = 0; c < out.size(); ++c) heads_leave_one_out[c][j] = out[c];
      merge_moments(single, before, node);
    }
    variation.add(of_query);

    const auto set_query = [&](auto& at, const auto& make_number) {
      const double carriers = noise_hides_signal ? of_query.carriers(estimates.node_counts)
                                                 : std::numeric_limits<double>::infinity();
      at.mse = make_number(mse_by_query.back(), mse_leave_one_out,
                           Doubt{mse_rounding, added.mse, carriers});
      for (std::size_t h = 0; h < heads; ++h) {
        at.head_bias.push_back(make_number(of_heads[h], heads_leave_one_out[h],
                                           Doubt{rounding_of_heads[h], added.bias}));
      }
      if (!layout.pairwise()) return;
      at.head_covariance.resize(heads * heads);
      for (std::size_t h = 0; h < heads; ++h) {
        for (std::size_t l = h; l < heads; ++l) {
          const std::size_t c = heads + layout.pair(h, l);
          at.head_covariance[h * heads + l] = make_number(
              of_heads[c], heads_leave_one_out[c],
              Doubt{rounding_of_heads[c], h == l ? added.variance : added.covariance, carriers});
          at.head_covariance[l * heads + h] = at.head_covariance[h * heads + l];
        }
      }
    };
    if (by_query) set_query(estimates.queries.emplace_back(), number);
    if (!measures.empty()) {
      samples.queries.emplace_back();
      if (is_measured[at_query]) set_query(samples.queries.back(), sample);
    }
  }

  if (layout.queries > 1) {
    double square = 0;
    for (const double value : mse_by_query) square += (value - mean.mse) * (value - mean.mse);
    estimates.mse_query_se = std::sqrt(square / (layout.queries - 1) / layout.queries);
  }
  if (noise_hides_signal) doubts.carriers = variation.carriers(estimates.node_counts);
  if (!measures.empty()) set_means(samples, mean, without, doubts, mean_square, sample);
  set_means(estimates, std::move(mean), std::move(without), std::move(doubts), mean_square, number);
  set_measures(estimates, samples, measures, number);
  return estimates;
}

}  // namespace

ConditionEstimates estimate(const MomentTree& tree, std::span<const double> head_weights,
                            std::span<const double> truth, const ControlUse* use,
                            const UnseenEvents& unseen, const Measures& measures) {
  return estimate_as<Estimate>(
      tree.layout(), tree.jackknife_nodes(), head_weights, truth, use, unseen, measures,
      [](double value, std::span<const double> leave_one_out, std::span<const double> counts,
         const Doubt& doubt) {
        if (leave_one_out.empty()) return Estimate{.value = value};
        const NodeSpread spread = jackknife_spread(value, leave_one_out, counts);
        return Estimate{.value = value,
                        .mcse = with_rounding(spread.error, doubt.rounding),
                        .skewness = spread.skewness,
                        .carriers = std::min(spread.carriers, doubt.carriers),
                        .allowance = allowance_of(spread, doubt.unseen, doubt.carriers)};
      });
}

const ControlUse* control_use(const Plan& plan) {
  return plan.layout().controlled() ? &plan.controls->use : nullptr;
}

ConditionEstimates estimate(const MomentTree& tree, const Plan& plan, const Measures& measures) {
  return estimate(tree, plan.head_weights, plan.truth, control_use(plan), UnseenEvents(plan),
                  measures);
}

JackknifedEstimates jackknifed_estimates(const MomentTree& tree,
                                         std::span<const double> head_weights,
                                         std::span<const double> truth, const ControlUse* use,
                                         const UnseenEvents& unseen, const Measures& measures) {
  return estimate_as<Jackknifed>(tree.layout(), tree.jackknife_nodes(), head_weights, truth, use,
                                 unseen, measures, make_jackknifed);
}

JackknifedEstimates jackknifed_estimates(const MomentTree& tree, const Plan& plan,
                                         const Measures& measures) {
  return jackknifed_estimates(tree, plan.head_weights, plan.truth, control_use(plan),
                              UnseenEvents(plan), measures);
}

JackknifedEstimates jackknifed_averages(const MomentTree& tree,
                                        std::span<const double> head_weights,
                                        std::span<const double> truth, const ControlUse* use,
                                        const UnseenEvents& unseen, const Measures& measures) {
  return estimate_as<Jackknifed>(tree.layout(), tree.jackknife_nodes(), head_weights, truth, use,
                                 unseen, measures, make_jackknifed, false);
}

std::vector<RareFigure> rare_figures(const ErrorTerms<Estimate>& terms) {
  std::vector<RareFigure> rare;
  const auto add = [&](const std::string& name, const Estimate& figure) {
    if (std::isnan(figure.value) || std::isnan(figure.mcse) || !(figure.allowance > 0)) return;
    rare.push_back({name, figure.carriers});
  };
  for (const NamedNumber<const Estimate>& one : numbers_of<Estimate>(terms)) {
    add(one.name, *one.number);
  }
  for (std::size_t q = 0; q < terms.queries.size(); ++q) {
    const QueryEstimates& at = terms.queries[q];
    const std::string query = "[" + std::to_string(q);
    const std::size_t heads = at.head_bias.size();
    for (std::size_t h = 0; h < heads; ++h) {
      add("head_bias" + query + "," + std::to_string(h) + "]", at.head_bias[h]);
      for (std::size_t l = h; l < heads && !at.head_covariance.empty(); ++l) {
        add("head_covariance" + query + "," + std::to_string(h) + "," + std::to_string(l) + "]",
            at.head_covariance[h * heads + l]);
      }
    }
  }
  return rare;
}

bool divides_by_noise(const ErrorTerms<Estimate>& terms, const Estimate& figure) {
  const Ratio<Estimate>* ratio = ratio_of(terms, &figure);
  if (ratio == nullptr) return false;
  const Estimate& bottom = terms.*ratio->bottom;
  return !std::isnan(figure.value) && figure.mcse > 0 &&
         !(std::abs(bottom.value) > denominator_errors * bottom.mcse);
}

std::string carriers_of(double carriers, std::uint64_t replicates) {
  return (carriers > 0 ? "some " : "") +
         grouped(static_cast<std::uint64_t>(std::max(std::floor(carriers), 0.0))) + " of " +
         counted(replicates, "replicate");
}

void set_digits(JackknifedEstimates& estimates, std::span<const double> truth, double eps) {
  const ErrorTerms<double> roundings = figure_roundings(estimates, truth, eps);
  const std::vector<Jackknifed*> figures = all_numbers<Jackknifed>(estimates);
  const std::vector<const double*> of_figures = all_numbers<const double>(roundings);
  const auto exact_zero = [](const Jackknifed& figure) {
    return figure.value == 0 && figure.unseen == 0 &&
           std::ranges::all_of(figure.leave_one_out, [](double one) { return one == 0; });
  };
  for (std::size_t i = 0; i < figures.size(); ++i) {
    figures[i]->digits = exact_zero(*figures[i]) ? 0 : *of_figures[i];
  }
  for (std::size_t q = 0; q < estimates.queries.size(); ++q) {
    QueryErrorTerms<Jackknifed>& at = estimates.queries[q];
    const std::size_t heads = at.head_bias.size();
    double largest = 0;
    for (std::size_t h = 0; h < heads; ++h) {
      const double u = head_rounding(at, h, truth[q], eps);
      if (!exact_zero(at.head_bias[h])) at.head_bias[h].digits = u;
      largest = std::max(largest, u);
      for (std::size_t l = 0; l < heads && !at.head_covariance.empty(); ++l) {
        at.head_covariance[h * heads + l].digits = covariance_rounding(at, h, l, truth[q], eps);
      }
    }
    at.mse.digits = moment_rounding(at.mse.value, largest);
  }
  set_digits_of_measures(estimates);
}

Moments draw_moments(const MomentLayout& layout, const Moments& leaf,
                     std::span<const double> head_weights, std::span<const double> truth) {
  MomentLayout single = layout;
  single.queries = 1;
  const QueryTerms set_terms(single, head_weights);
  std::vector<double> of_heads(set_terms.head_numbers());
  std::vector<double> statistics(draw_statistics, 0.0);
  ErrorTerms<double> terms;
  const double share = 1.0 / layout.queries;
  for (int q = 0; q < layout.queries; ++q) {
    const Moments of_query = query_moments(layout, leaf, q);
    set_terms(of_query, truth[static_cast<std::size_t>(q)], terms, of_heads.data());
    if (!set_terms.has_covariance_mean()) terms.head_covariance_mean = 0;
    if (!layout.has_alignment()) terms.weights_index = 0;
    for (std::size_t i = 0; i < std::size(draw_terms); ++i) {
      statistics[i] += share * terms.*draw_terms[i].of;
    }
    for (std::size_t h = 0; h < head_weights.size(); ++h) {
      const double head = of_query.mean[h];
      statistics.back() += share * head * head / static_cast<double>(head_weights.size());
    }
  }
  return {
      .count = leaf.count, .mean = std::move(statistics), .comoment = {}, .windows = leaf.windows};
}

std::vector<const char*> draw_statistic_names() {
  std::vector<const char*> names;
  for (const DrawStatistic& one : draw_terms) names.push_back(one.name);
  names.push_back("mean_square");
  return names;
}

ErrorTerms<double> error_terms(const MomentLayout& layout, const Moments& moments,
                               std::span<const double> head_weights, std::span<const double> truth,
                               const ControlUse* use, std::uint64_t replicates) {
  return estimate_as<double>(
      layout, {{0, moments}}, head_weights, truth, use, UnseenEvents(), {},
      [](double value, auto&&...) { return value; }, true, replicates);
}

}  // namespace headlab
