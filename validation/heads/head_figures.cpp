// SPDX-License-Identifier: Apache-2.0
#include "validation/heads/head_figures.h"

#include <cmath>
#include <limits>
#include <utility>

#include "validation/heads/refit.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr const char *squared = "output^2", *nats = "nats/token";
constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

/// [e H][..] maps of all groups side by side, W_V[g] as columns: M_h . M_l needs their products.
MatrixXd value_products(const LayerActivations& layer) {
  const std::vector<double> numbers = layer.all("W_V");
  const AttentionShape& shape = layer.shape();
  const auto d = static_cast<Index>(layer.d()), e = static_cast<Index>(shape.e);
  MatrixXd maps(d, static_cast<Index>(shape.groups) * e);
  for (Index g = 0; g < static_cast<Index>(shape.groups); ++g) {
    maps.middleCols(g * e, e) = Eigen::Map<const TokenRows>(numbers.data() + g * d * e, d, e);
  }
  return maps.transpose() * maps;
}

/// Mean covariance of two heads over mean variance of one; NaN for one head.
double mean_correlation(const MatrixXd& of) {
  const auto heads = static_cast<double>(of.rows());
  const double variance = of.trace();
  return (of.sum() - variance) / (heads * (heads - 1)) / (variance / heads);
}

MatrixXd over_diagonal(const MatrixXd& of) {
  const VectorXd root = of.diagonal().cwiseSqrt();
  return of.cwiseQuotient(root * root.transpose());
}

class Figures {
 public:
  Figures(const LayerActivations& layer, const LayerSums& sums, bool refitted)
      : layer_(layer), sums_(sums), refitted_(refitted), e_(static_cast<Index>(layer.shape().e)) {
    if (!layer.has_attention()) return;
    const auto columns = static_cast<Index>(layer.shape().groups) * e_;
    cache_ = block_products(MatrixXd::Identity(columns, columns), sums.products, layer.shape());
    if (layer.has("W_V")) {
      input_ = block_products(value_products(layer), sums.products, layer.shape());
    }
  }

  /// Of the documents in `total`: all but those of group `left_out`.
  std::vector<HeadFigure> of(const DocumentSums& total, std::size_t left_out) {
    out_.clear();
    const double n = total.tokens;
    const MatrixXd means = of_means(total.z / n, total.z / n);
    const MatrixXd spread = total.outputs / n - means;
    outputs(total, spread, means);
    if (refitted_) refits(total, spread);
    if (layer_.has_attention()) attention(total, spread);
    if (!sums_.losses.empty()) losses(total, left_out);
    return std::move(out_);
  }

 private:
  void add(const char* name, FigureOf of, const char* unit, const char* meaning,
           std::vector<double> values) {
    out_.push_back({name, of, meaning, unit, std::move(values)});
  }
  void add(const std::string& name, const char* unit, const std::string& meaning, double value) {
    out_.push_back({name, FigureOf::layer, meaning, unit, {value}});
  }
  void add(const char* name, const char* unit, const char* meaning, const VectorXd& values) {
    add(name, FigureOf::head, unit, meaning, {values.begin(), values.end()});
  }
  void add_pairs(const char* name, const char* unit, const char* meaning, const MatrixXd& values) {
    const TokenRows by_rows = values;
    add(name, FigureOf::pair, unit, meaning, {by_rows.data(), by_rows.data() + by_rows.size()});
  }

  /// o_h . o_l of two means of z.
  MatrixXd of_means(const VectorXd& a, const VectorXd& b) const {
    return block_forms(sums_.products, a, b, layer_.shape());
  }

  void outputs(const DocumentSums& total, const MatrixXd& spread, const MatrixXd& means) {
    const double n = total.tokens;
    add("energy", squared, "mean square of the head's output", total.outputs.diagonal() / n);
    add("spread", squared, "error of the output with the head replaced by its mean",
        spread.diagonal());
    if (layer_.has("residual")) {
      const MatrixXd cross = of_means(total.z_share / n, total.z / n);
      share_ =
          total.outputs_share / n - cross - cross.transpose() + means * (total.inverse_stream / n);
      add("spread_share", "1", "mean square of output minus mean, over that of the stream",
          share_.diagonal());
    }
    add("shapley", squared, "covariance with the layer's output: its share of the variance",
        spread.rowwise().sum());
    add_pairs("covariance", squared, "covariance of the outputs of two heads", spread);
    if (layer_.has("residual")) {
      add_pairs("share_covariance", "1", "the same over the square of the stream", share_);
    }
    add_pairs("spread_correlation", "1", "correlation of the outputs of two heads",
              over_diagonal(spread));
    add("output_variance", squared, "total variance of the layer's output", spread.sum());
    add("output_correlation", "1", "mean covariance of two heads over mean variance of one",
        mean_correlation(spread));
    if (layer_.has("residual")) {
      add("stream", squared, "mean square of the residual stream", total.stream / n);
    }
  }

  void refits(const DocumentSums& total, const MatrixXd& spread) {
    const VectorXd cost = total.held_out / total.tokens;
    add("refit_cost", squared,
        "error without the head, the others' output maps fitted to other documents", cost);
    if (layer_.has("residual")) {
      add("refit_cost_share", "1", "the same over the mean square of the stream",
          cost * (total.tokens / total.stream));
    }
    add("explained_by_others", "1", "1 - refit_cost / spread",
        (1 - cost.array() / spread.diagonal().array()).matrix());
  }

  void attention(const DocumentSums& total, const MatrixXd& spread) {
    const HeadPairSums& pairs = total.pairs;
    const double n = pairs.queries;
    const MatrixXd overlap = pairs.overlap / n,
                   exchange = total.exchange.squares / total.exchange.queries;
    add("tokens_effective", "1", "1 over mean sum of squared weights",
        overlap.diagonal().cwiseInverse());
    add("self", "1", "mean weight on the query's own key", pairs.self / n);
    add("first", "1", "mean weight on key 0", pairs.first / n);
    add_pairs("overlap", "1", "mean sum of products of weights", overlap);
    add_pairs("weight_correlation", "1", "overlap over the roots of the heads' own",
              over_diagonal(overlap));
    add_pairs("total_variation", "1", "mean total variation of the weights of two heads",
              pairs.variation / n);
    add_pairs("exchange_error", squared,
              "what the output changes by if the first head attends as the second", exchange);
    add_pairs("exchange_share", "1", "the same over the spread of the first head",
              (exchange.array().colwise() / spread.diagonal().array()).matrix());
    noise("shared", overlap, MatrixXd::Ones(overlap.rows(), overlap.cols()));
    noise("values", overlap, total.responses / total.degrees);
    if (input_.size() > 0) noise("input", overlap, input_);
    noise("cache", overlap, cache_);
  }

  /// tr Cov(o_h, o_l) = overlap_hl S_hl given the weights.
  void noise(const std::string& kind, const MatrixXd& overlap, const MatrixXd& responses) {
    const MatrixXd covariance = overlap.cwiseProduct(responses);
    const double variance = covariance.trace();
    const std::string start = "noise_" + kind + "_", of = " of heads under noise of kind " + kind;
    add(start + "variance", squared, "summed variance" + of, variance);
    add(start + "covariance", squared, "summed covariance" + of, covariance.sum() - variance);
    add(start + "correlation", "1", "mean correlation" + of, mean_correlation(covariance));
  }

  void losses(const DocumentSums& total, std::size_t left_out) {
    const VectorXd mean = total.z / total.tokens;
    const Index heads = mean.size() / e_;
    VectorXd sensitivity = VectorXd::Zero(heads), first = sensitivity, second = sensitivity;
    for (std::size_t b = 0; b < sums_.losses.size(); ++b) {
      if (sums_.group_of[b] == left_out) continue;
      const SequenceLoss& loss = sums_.losses[b];
      for (Index h = 0; h < heads; ++h) {
        const double u =
            loss.products(h) - loss.gradients.segment(h * e_, e_).dot(mean.segment(h * e_, e_));
        sensitivity(h) += std::abs(loss.products(h));
        first(h) -= u;
        second(h) += u * u / 2;
      }
    }
    const double n = total.tokens;
    add("sensitivity", nats, "mean size of the gradient by a factor of the head", sensitivity / n);
    add("first_order", nats, "loss added by the head's mean in its place, to first order",
        first / n);
    add("second_order", nats, "the same by the second derivatives of Fisher's information",
        second / n);
  }

  const LayerActivations& layer_;
  const LayerSums& sums_;
  bool refitted_;
  Index e_;
  MatrixXd cache_, input_, share_;
  std::vector<HeadFigure> out_;
};

}  // namespace

const std::vector<std::string>& noise_kinds() {
  static const std::vector<std::string> kinds = {"shared", "values", "input", "cache"};
  return kinds;
}

std::vector<HeadFigure> head_figures(const LayerActivations& layer, const LayerSums& sums,
                                     const HeadSetting& setting, bool refitted) {
  DocumentSums total(layer);
  for (const DocumentSums& group : sums.groups) total.add(group);
  Figures figures(layer, sums, refitted);
  std::vector<HeadFigure> all = figures.of(total, none);
  if (layer.documents() < setting.min_documents) return all;

  add_errors(all, sums.groups.size(), [&](std::size_t group) {
    DocumentSums others = total;
    others.add(sums.groups[group], -1);
    return figures.of(others, group);
  });
  if (refitted) {
    const VectorXd in_sample = refit_errors_in_sample(layer, sums, setting);
    all.push_back({"refit_cost_in_sample",
                   FigureOf::head,
                   "refit_cost in the tokens that were fitted to, which is too small",
                   squared,
                   {in_sample.begin(), in_sample.end()}});
  }
  return all;
}

void add_errors(std::vector<HeadFigure>& figures, std::size_t groups,
                const std::function<std::vector<HeadFigure>(std::size_t)>& without) {
  // Means and sums of squares about them, of one group left out after another.
  std::vector<std::vector<double>> means;
  for (HeadFigure& figure : figures) {
    means.emplace_back(figure.values.size(), 0.0);
    figure.errors.assign(figure.values.size(), 0.0);
  }
  for (std::size_t i = 0; i < groups; ++i) {
    const std::vector<HeadFigure> rest = without(i);
    for (std::size_t f = 0; f < figures.size(); ++f) {
      for (std::size_t j = 0; j < means[f].size(); ++j) {
        const double step = rest[f].values[j] - means[f][j];
        means[f][j] += step / static_cast<double>(i + 1);
        figures[f].errors[j] += step * (rest[f].values[j] - means[f][j]);
      }
    }
  }
  const auto count = static_cast<double>(groups);
  for (HeadFigure& figure : figures) {
    for (double& error : figure.errors) error = std::sqrt((count - 1) / count * error);
  }
}

}  // namespace headlab
