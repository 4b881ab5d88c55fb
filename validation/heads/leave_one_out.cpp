// SPDX-License-Identifier: Apache-2.0
#include "validation/heads/leave_one_out.h"

#include <algorithm>
#include <limits>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "kernels/decompositions.h"
#include "kernels/parallel_for.h"
#include "validation/heads/targets.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

/// Means of fewer keys say more of their number than of the heads.
constexpr std::uint32_t first_query = 8;
constexpr std::size_t queries_of_task = 64;

/// Weights of the heads, which sum to 1, with the least error: E^-1 1 / (1^T E^-1 1). NaN where
/// heads predict the same.
VectorXd best_weights(const MatrixXd& errors) {
  const Cholesky factor(errors);
  if (!factor.succeeded()) return VectorXd::Constant(errors.rows(), std::nan(""));
  const VectorXd weights = factor.solve(VectorXd(VectorXd::Ones(errors.rows())));
  return weights / weights.sum();
}

std::vector<HeadFigure> figures_of(const PredictionSums& all, const PredictionSums& even,
                                   const PredictionSums& odd) {
  const MatrixXd errors = all.errors / all.queries, other = odd.errors / odd.queries;
  const double own = errors.diagonal().mean();
  const VectorXd weights = best_weights(even.errors / even.queries);
  std::vector<HeadFigure> out;
  const auto layer = [&](const char* name, const char* meaning, double value) {
    out.push_back({name, FigureOf::layer, meaning, target_squared, {value}});
  };
  layer("loo_mse", "error of the mean of the heads' predictions, own key left out", errors.mean());
  layer("loo_mean_head_mse", "mean error of the heads' predictions", own);
  layer("loo_ambiguity", "mean squared distance of the predictions to their mean",
        own - errors.mean());
  layer("loo_uniform_mse", "error of equal weights on all keys that are seen",
        all.uniform / all.queries);
  layer("loo_equal_mse", "loo_mse of documents 1, 3, 5, ..", other.mean());
  layer("loo_weighted_mse", "the same with the heads weighted as documents 0, 2, 4, .. want them",
        weights.dot(other * weights));
  const VectorXd of_heads = errors.diagonal();
  out.push_back({"loo_head_mse",
                 FigureOf::head,
                 "error of the head's prediction",
                 target_squared,
                 {of_heads.begin(), of_heads.end()}});
  out.push_back({"loo_weight",
                 FigureOf::head,
                 "weight of the head with the least error in documents 0, 2, 4, ..",
                 "1",
                 {weights.begin(), weights.end()}});
  const TokenRows by_rows = errors;
  out.push_back({"loo_error",
                 FigureOf::pair,
                 "mean product of the errors of two heads",
                 target_squared,
                 {by_rows.data(), by_rows.data() + by_rows.size()}});
  return out;
}

/// A sequence whose own keys are hidden, and what follows its keys.
struct Predictor {
  AttentionRule rule;
  AttentionSequence<double> sequence;
  TokenRows responses;  ///< [S][p]
  std::size_t heads;

  /// Predictions of these queries are added to `sums`.
  void add(std::span<const std::uint32_t> queries, PredictionSums& sums) const {
    const std::size_t keys = sequence.shape.keys;
    std::vector<TokenRows> all;
    std::vector<bool> seeing(queries.size(), true);
    for (std::size_t h = 0; h <= heads; ++h) {
      const std::vector<double> weights =
          h < heads ? attention_weights(rule, sequence, h, queries) : equal_weights(queries);
      const Eigen::Map<const TokenRows> rows(weights.data(), static_cast<Index>(queries.size()),
                                             static_cast<Index>(keys));
      for (std::size_t i = 0; i < queries.size(); ++i) {
        // Weights sum to 1, or to 0 where no key is seen.
        if (!(rows.row(static_cast<Index>(i)).sum() > 0.5)) seeing[i] = false;
      }
      all.emplace_back(rows * responses);
    }
    TokenRows predictions(static_cast<Index>(heads) + 1, responses.cols());
    for (std::size_t i = 0; i < queries.size(); ++i) {
      if (!seeing[i]) continue;
      for (std::size_t h = 0; h <= heads; ++h) {
        predictions.row(static_cast<Index>(h)) = all[h].row(static_cast<Index>(i));
      }
      sums.add(predictions, responses.row(queries[i]));
    }
  }

 private:
  /// Of the keys that the first head sees.
  std::vector<double> equal_weights(std::span<const std::uint32_t> queries) const {
    AttentionRule equal = rule;
    equal.alibi.clear();
    AttentionSequence<double> zero = sequence;
    std::ranges::fill(zero.q, 0.0);
    zero.bias.clear();
    return attention_weights(equal, zero, 0, queries);
  }
};

/// Columns that are other than 0 in some row, in their order.
TokenRows used_columns(const TokenRows& rows) {
  std::vector<Index> used;
  for (Index column = 0; column < rows.cols(); ++column) {
    if (!rows.col(column).isZero(0)) used.push_back(column);
  }
  return rows(Eigen::all, used);
}

}  // namespace

PredictionSums::PredictionSums(std::size_t heads)
    : errors(MatrixXd::Zero(static_cast<Index>(heads), static_cast<Index>(heads))) {}

void PredictionSums::add(const TokenRows& predictions, const RowVectorXd& target) {
  const TokenRows off = predictions.rowwise() - target;
  queries += 1;
  errors += off.topRows(errors.rows()) * off.topRows(errors.rows()).transpose();
  uniform += off.row(errors.rows()).squaredNorm();
}

void PredictionSums::add(const PredictionSums& other, double sign) {
  queries += sign * other.queries;
  errors += sign * other.errors;
  uniform += sign * other.uniform;
}

std::vector<HeadFigure> prediction_figures(const std::vector<PredictionSums>& groups, bool errors) {
  constexpr std::size_t no_group = std::numeric_limits<std::size_t>::max();
  const auto without = [&](std::size_t left_out) {
    const auto heads = static_cast<std::size_t>(groups[0].errors.rows());
    PredictionSums all(heads), folds[2] = {all, all};
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (i == left_out) continue;
      all.add(groups[i]);
      folds[i % 2].add(groups[i]);
    }
    return figures_of(all, folds[0], folds[1]);
  };
  std::vector<HeadFigure> out = without(no_group);
  if (errors) add_errors(out, groups.size(), without);
  return out;
}

std::vector<HeadFigure> leave_one_out_figures(const LayerActivations& layer, const LayerSums& sums,
                                              const HeadSetting& setting, int threads,
                                              const std::function<bool()>& stop) {
  const AttentionShape& shape = layer.shape();
  const std::string where = "layer " + std::to_string(layer.number());
  if (!layer.has_attention() || shape.keys != shape.queries) {
    reject({layer.source()}, where, "heads as predictors need q, k and v, a query for each key");
  }
  const TokenTargets targets(layer);
  Predictor predictor{.rule = layer.rule(), .sequence = {}, .responses = {}, .heads = shape.heads};
  predictor.rule.leave_own_out = true;
  predictor.rule.sink.clear();
  std::vector<PredictionSums> groups(sums.groups.size(), PredictionSums(shape.heads));
  for (std::size_t b = 0; b < layer.sequences(); ++b) {
    if (stop && stop()) throw Stopped();
    std::vector<std::uint32_t> queries = targets.known(b, layer.tokens(b));
    predictor.sequence = layer.sequence<double>(b);
    predictor.sequence.padding.assign(shape.keys, 1);
    for (const std::uint32_t t : queries) predictor.sequence.padding[t] = 0;
    TokenRows responses =
        TokenRows::Zero(static_cast<Index>(shape.keys), static_cast<Index>(targets.width()));
    const TokenRows known = targets.rows(b, queries);
    for (std::size_t i = 0; i < queries.size(); ++i) {
      responses.row(queries[i]) = known.row(static_cast<Index>(i));
    }
    predictor.responses = used_columns(responses);
    std::erase_if(queries, [](std::uint32_t t) { return t < first_query; });
    const std::size_t count = (queries.size() + queries_of_task - 1) / queries_of_task;
    std::vector<PredictionSums> parts(count, PredictionSums(shape.heads));
    parallel_for(count, threads, [&](std::size_t i) {
      const std::size_t first = i * queries_of_task;
      const std::span<const std::uint32_t> some = queries;
      predictor.add(some.subspan(first, std::min(queries_of_task, queries.size() - first)),
                    parts[i]);
    });
    for (const PredictionSums& part : parts) groups[sums.group_of[b]].add(part);
  }
  PredictionSums all(shape.heads);
  for (const PredictionSums& group : groups) all.add(group);
  if (all.queries == 0) {
    reject({layer.source()}, where,
           "has no query from the ninth on that sees a key besides its own and has a target");
  }
  return prediction_figures(groups, layer.documents() >= setting.min_documents);
}

}  // namespace headlab
