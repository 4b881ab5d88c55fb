// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/control_means.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <variant>
#include <vector>

#include "kernels/reference/ensemble.h"
#include "validation/theory/first_order/tilted_design.h"
#include "validation/theory/model/model.h"

namespace headlab {
namespace {

/// E[K_h K_l f]/(D_h D_l) of one query and pair, for f = 1, s^2 and (m - r_h)(m - r_l), and for
/// (m - r_h) where h = l.
struct PairMeans {
  double one = 0;
  double noise = 0;
  double product = 0;
  double away = 0;
};

/// Puts the means of a plan together.
class Means {
 public:
  explicit Means(const Plan& plan)
      : plan_(plan),
        heads_(static_cast<std::size_t>(plan.heads)),
        pairs_(heads_ * (heads_ + 1) / 2) {
    const auto queries = static_cast<std::size_t>(plan.queries);
    for (std::vector<double>* of_heads :
         {&means.log_sum, &means.estimate, &means.sum_variance, &means.sum_covariance}) {
      of_heads->resize(queries * heads_);
    }
    for (std::vector<double>* of_pairs : {&means.noise_scale, &means.product}) {
      of_pairs->resize(queries * pairs_);
    }
  }

  void set_head(std::size_t q, std::size_t h, double log_mean, double estimate) {
    means.log_sum[q * heads_ + h] = log_mean + std::log(tokens(h));
    means.estimate[q * heads_ + h] = estimate;
  }
  void set_pair(std::size_t q, std::size_t h, std::size_t l, const PairMeans& of_pair) {
    const double share = shared(h, l) / (tokens(h) * tokens(l));
    const std::size_t at = q * pairs_ + h * heads_ - h * (h + 1) / 2 + l;
    const double noise = share * of_pair.noise;
    means.noise_scale[at] = noise > 0 && std::isfinite(1 / noise) ? 1 / noise : 0;
    means.product[at] = share * of_pair.product;
    if (h != l) return;
    means.sum_variance[q * heads_ + h] = share * (of_pair.one - 1);
    means.sum_covariance[q * heads_ + h] = share * of_pair.away;
  }

  ControlMeans means;

 private:
  SeenTokens seen(std::size_t h) const {
    return plan_.mechanism.seen_by(static_cast<int>(h), plan_.n);
  }
  double tokens(std::size_t h) const { return static_cast<double>(seen(h).count()); }
  /// Tokens that both heads see.
  double shared(std::size_t h, std::size_t l) const {
    return static_cast<double>(shared_tokens(seen(h), seen(l)));
  }

  const Plan& plan_;
  std::size_t heads_;
  std::size_t pairs_;
};

ControlMeans closed_means(const Condition& condition, const Plan& plan) {
  const TheoryModel model =
      point_model(condition, plan, " - leave controls out, or use a design of law \"file\"");
  const std::size_t heads = model.projections.size();
  Means all(plan);
  std::vector<std::vector<TiltedMoments>> single(heads);
  for (std::size_t h = 0; h < heads; ++h) {
    const TiltedDesign once(model, h, 1, h, 0, true);
    for (std::size_t q = 0; q < model.queries.size(); ++q) {
      const TiltedMoments& of_head = single[h].emplace_back(once.at(model.queries[q]));
      all.set_head(q, h, of_head.log_mass, of_head.regression.mean);
    }
  }
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t l = h; l < heads; ++l) {
      const TiltedDesign pair(model, h, 1, l, 1, true);
      for (std::size_t q = 0; q < model.queries.size(); ++q) {
        const TiltedMoments both = pair.at(model.queries[q]);
        const double r_h = single[h][q].regression.mean;
        const double r_l = single[l][q].regression.mean;
        const double ratio =
            std::exp(both.log_mass - single[h][q].log_mass - single[l][q].log_mass);
        all.set_pair(q, h, l,
                     {.one = ratio,
                      .noise = ratio * both.noise_variance,
                      .product = ratio * both.regression.product_about(r_h, r_l),
                      .away = ratio * (both.regression.mean - r_h)});
      }
    }
  }
  return all.means;
}

/// The rows of a data file as one training set, which every replicate draws from.
TrainingSet rows_of(const Plan& plan) {
  const FileRows& rows = plan.table.rows();
  TrainingSet set;
  const auto d = static_cast<std::size_t>(plan.d);
  std::vector<float> point(d);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::span<const float> row = rows[i];
    set.x.insert(set.x.end(), row.begin(), row.end());
    const auto number = static_cast<std::uint32_t>(i);
    const double* x = &set.x[i * d];
    set.regression.push_back(std::visit(
        [&](const auto& m) { return m(plan.table.exact(), x, 1, number); }, plan.regression));
    set.noise_sd.push_back(std::visit(
        [&](const auto& noise) { return noise.scale(plan.table.exact(), x, 1); }, plan.noise));
    set.noise.push_back(0);
  }
  return set;
}

ControlMeans means_over_rows(const Plan& plan) {
  const TrainingSet rows = rows_of(plan);
  const std::size_t count = rows.regression.size();
  const auto heads = static_cast<std::size_t>(plan.heads);
  // Weights of sum 1 over all rows, whatever the heads see of a training set.
  Plan whole = plan;
  whole.n = count;
  whole.mechanism = {};
  Means all(plan);
  WindowCounts unused;
  const auto n = static_cast<double>(count);
  for (std::size_t q = 0; q < static_cast<std::size_t>(plan.queries); ++q) {
    std::vector<std::vector<double>> weights;
    std::vector<double> estimates;
    for (std::size_t h = 0; h < heads; ++h) {
      double log_sum = 0;
      weights.push_back(nw_weights(whole, rows, static_cast<int>(h), static_cast<int>(q), unused,
                                   &log_sum));
      double estimate = 0;
      for (std::size_t i = 0; i < count; ++i) estimate += weights[h][i] * rows.regression[i];
      estimates.push_back(estimate);
      all.set_head(q, h, log_sum - std::log(n), estimate);
    }
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t l = h; l < heads; ++l) {
        PairMeans of_pair;
        for (std::size_t i = 0; i < count; ++i) {
          const double both = n * weights[h][i] * weights[l][i];
          const double away = rows.regression[i] - estimates[h];
          of_pair.one += both;
          of_pair.noise += both * rows.noise_sd[i] * rows.noise_sd[i];
          of_pair.product += both * away * (rows.regression[i] - estimates[l]);
          of_pair.away += both * away;
        }
        all.set_pair(q, h, l, of_pair);
      }
    }
  }
  return all.means;
}

}  // namespace

ControlMeans control_means(const Condition& condition, const Plan& plan) {
  return std::holds_alternative<FileDesign::Sampler>(plan.design)
             ? means_over_rows(plan)
             : closed_means(condition, plan);
}

}  // namespace headlab
