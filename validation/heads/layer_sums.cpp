// SPDX-License-Identifier: Apache-2.0
#include "validation/heads/layer_sums.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "kernels/cpu/attention_arithmetic.h"
#include "kernels/draws.h"
#include "kernels/parallel_for.h"
#include "kernels/philox.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t rows_of_task = 64;

LaneRows<const double> lanes(const TokenRows& rows) {
  return {rows.data(), static_cast<std::size_t>(rows.rows()), static_cast<std::size_t>(rows.cols()),
          static_cast<std::size_t>(rows.cols())};
}

/// out = a b by blocks of rows of a.
TokenRows product_of_rows(const TokenRows& a, const TokenRows& b, int threads) {
  TokenRows out(a.rows(), b.cols());
  const LaneRows<const double> left = lanes(a), right = lanes(b);
  parallel_for((left.rows + rows_of_task - 1) / rows_of_task, threads, [&](std::size_t i) {
    const std::size_t first = i * rows_of_task, count = std::min(rows_of_task, left.rows - first);
    lane_product<double, double>(
        {left.row(first), count, left.columns, left.stride}, right,
        {out.data() + first * right.columns, count, right.columns, right.columns});
  });
  return out;
}

/// Some of the tokens, ascending, drawn without replacement.
std::vector<std::uint32_t> drawn(std::vector<std::uint32_t> tokens, std::size_t b,
                                 const HeadSetting& setting) {
  if (setting.queries == 0 || setting.queries >= tokens.size()) return tokens;
  const std::uint64_t stream = subsequence(Purpose::queries_choice, b);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ordered;
  for (const std::uint32_t t : tokens) {
    ordered.emplace_back(philox(setting.seed, stream, t).w[0], t);
  }
  std::ranges::sort(ordered);
  tokens.clear();
  for (std::size_t i = 0; i < setting.queries; ++i) tokens.push_back(ordered[i].second);
  std::ranges::sort(tokens);
  return tokens;
}

TokenRows rows_at(const TokenRows& all, const std::vector<std::uint32_t>& tokens) {
  TokenRows some(static_cast<Index>(tokens.size()), all.cols());
  for (std::size_t i = 0; i < tokens.size(); ++i)
    some.row(static_cast<Index>(i)) = all.row(tokens[i]);
  return some;
}

template <class T>
Attended attended(const LayerActivations& layer, std::size_t b,
                  const std::vector<std::uint32_t>& rows, const std::vector<MatrixXd>* metrics,
                  int threads) {
  return attend(layer.rule(), layer.sequence<T>(b), rows, metrics, threads);
}

Attended attended(const LayerActivations& layer, std::size_t b, const HeadSetting& setting,
                  const std::vector<std::uint32_t>& rows, const std::vector<MatrixXd>* metrics,
                  int threads) {
  return setting.exact || layer.precision() == NumberKind::exact
             ? attended<double>(layer, b, rows, metrics, threads)
             : attended<float>(layer, b, rows, metrics, threads);
}

void drop_blind(std::vector<std::uint32_t>& tokens, const Attended& of) {
  std::erase_if(tokens, [&](std::uint32_t t) {
    return of.log_sums.col(t).minCoeff() == -std::numeric_limits<double>::infinity();
  });
}

/// Adds one sequence after another to the sums of its documents.
class Summation {
 public:
  Summation(const LayerActivations& layer, const HeadSetting& setting, int threads, LayerSums& sums)
      : layer_(layer), setting_(setting), threads_(threads), sums_(sums) {
    const auto e = static_cast<Index>(layer.shape().e);
    for (std::size_t h = 0; h < layer.shape().heads; ++h) {
      const Index first = static_cast<Index>(h) * e;
      metrics_.emplace_back(sums.products.block(first, first, e, e));
    }
  }

  void add(std::size_t b) {
    DocumentSums& to = sums_.groups[sums_.group_of[b]];
    SequenceValues own = add_pairs(b, to);
    if (layer_.has_attention()) add_responses(b, to);
    sums_.tokens[b] = own.tokens;
    if (own.tokens.empty()) return;
    const MatrixXd squares = transposed_product(own.z, own.z, threads_);
    to.tokens += static_cast<double>(own.tokens.size());
    to.z += own.z.colwise().sum().transpose();
    to.outputs += block_products(squares, sums_.products, layer_.shape());
    ValueMoments& fold = sums_.folds[layer_.document_of()[b] % 2];
    fold.tokens += static_cast<double>(own.tokens.size());
    fold.sum += own.z.colwise().sum().transpose();
    fold.squares += squares;
    if (layer_.has("residual")) add_shares(b, own, to);
    if (!sums_.losses.empty()) add_loss(b, own);
  }

 private:
  /// Sums of weights, and z on the way where it is not given.
  SequenceValues add_pairs(std::size_t b, DocumentSums& to) {
    SequenceValues own;
    own.tokens = layer_.tokens(b);
    if (!layer_.has_attention()) return values_of(layer_, b, own.tokens, setting_, threads_);
    const std::vector<std::uint32_t> some = drawn(own.tokens, b, setting_);
    const bool all = some.size() == own.tokens.size();
    const Attended found = attended(layer_, b, setting_, some, &metrics_, threads_);
    to.pairs.add(found.pairs);
    if (!all) {
      own = values_of(layer_, b, own.tokens, setting_, threads_);
    } else {
      drop_blind(own.tokens, found);
      own.z = rows_at(layer_.has("z") ? layer_.rows("z", b) : found.z, own.tokens);
    }
    sums_.blind += layer_.tokens(b).size() - own.tokens.size();
    return own;
  }

  void add_responses(std::size_t b, DocumentSums& to) const {
    TokenRows values = layer_.values(b);
    if (values.rows() < 2) return;
    values.rowwise() -= values.colwise().mean().eval();
    to.responses += block_products(transposed_product(values, values, threads_), sums_.products,
                                   layer_.shape());
    to.degrees += static_cast<double>(values.rows() - 1);
  }

  void add_shares(std::size_t b, const SequenceValues& own, DocumentSums& to) const {
    const VectorXd stream = rows_at(layer_.rows("residual", b), own.tokens).rowwise().squaredNorm();
    if (!(stream.minCoeff() > 0)) {
      reject({layer_.source()}, "layer " + std::to_string(layer_.number()),
             "residual is 0 at a token of sequence " + std::to_string(b) +
                 ", of which there are no shares - leave it out of length or valid");
    }
    TokenRows scaled = own.z;
    scaled.array().colwise() /= stream.array();
    to.stream += stream.sum();
    to.inverse_stream += stream.cwiseInverse().sum();
    to.z_share += scaled.colwise().sum().transpose();
    to.outputs_share +=
        block_products(transposed_product(own.z, scaled, threads_), sums_.products, layer_.shape());
  }

  void add_loss(std::size_t b, const SequenceValues& own) {
    const TokenRows gradient = rows_at(layer_.gradient(b), own.tokens);
    SequenceLoss& loss = sums_.losses[b];
    const auto e = static_cast<Index>(layer_.shape().e);
    const VectorXd by_column = own.z.cwiseProduct(gradient).colwise().sum();
    for (Index h = 0; h < loss.products.size(); ++h) {
      loss.products(h) = by_column.segment(h * e, e).sum();
    }
    loss.gradients = gradient.colwise().sum();
  }

  const LayerActivations& layer_;
  const HeadSetting& setting_;
  int threads_;
  LayerSums& sums_;
  std::vector<MatrixXd> metrics_;
};

}  // namespace

DocumentSums::DocumentSums(const LayerActivations& layer)
    : z(VectorXd::Zero(static_cast<Index>(layer.columns()))),
      outputs(MatrixXd::Zero(static_cast<Index>(layer.shape().heads),
                             static_cast<Index>(layer.shape().heads))),
      z_share(z),
      outputs_share(outputs),
      pairs(layer.shape().heads),
      responses(outputs),
      held_out(VectorXd::Zero(outputs.rows())) {}

void DocumentSums::add(const DocumentSums& other, double sign) {
  tokens += sign * other.tokens;
  z += sign * other.z;
  outputs += sign * other.outputs;
  stream += sign * other.stream;
  inverse_stream += sign * other.inverse_stream;
  z_share += sign * other.z_share;
  outputs_share += sign * other.outputs_share;
  pairs.add(other.pairs, sign);
  responses += sign * other.responses;
  degrees += sign * other.degrees;
  held_out += sign * other.held_out;
}

ValueMoments::ValueMoments(std::size_t columns)
    : sum(VectorXd::Zero(static_cast<Index>(columns))),
      squares(MatrixXd::Zero(static_cast<Index>(columns), static_cast<Index>(columns))) {}

ValueMoments& ValueMoments::operator+=(const ValueMoments& other) {
  tokens += other.tokens;
  sum += other.sum;
  squares += other.squares;
  return *this;
}

MatrixXd ValueMoments::about(const VectorXd& centre) const {
  const VectorXd own = mean();
  MatrixXd out = squares / tokens;
  out -= own * centre.transpose() + centre * own.transpose() - centre * centre.transpose();
  return out;
}

MatrixXd block_products(const MatrixXd& a, const MatrixXd& b, const AttentionShape& shape) {
  const auto e = static_cast<Index>(shape.e), heads = static_cast<Index>(shape.heads);
  const bool by_head = a.rows() == b.rows();
  const auto place = [&](Index h) {
    return by_head ? h * e : static_cast<Index>(shape.group(static_cast<std::size_t>(h))) * e;
  };
  MatrixXd out(heads, heads);
  for (Index h = 0; h < heads; ++h) {
    for (Index l = 0; l < heads; ++l) {
      out(h, l) = a.block(place(h), place(l), e, e).cwiseProduct(b.block(h * e, l * e, e, e)).sum();
    }
  }
  return out;
}

MatrixXd transposed_product(const TokenRows& a, const TokenRows& b, int threads) {
  return product_of_rows(a.transpose(), b, threads);
}

TokenRows row_product(const TokenRows& a, const MatrixXd& b, int threads) {
  return product_of_rows(a, b, threads);
}

SequenceValues values_of(const LayerActivations& layer, std::size_t b,
                         std::vector<std::uint32_t> tokens, const HeadSetting& setting,
                         int threads) {
  SequenceValues own{.z = {}, .tokens = std::move(tokens)};
  if (layer.has("z")) {
    own.z = rows_at(layer.rows("z", b), own.tokens);
    return own;
  }
  const Attended found = attended(layer, b, setting, own.tokens, nullptr, threads);
  drop_blind(own.tokens, found);
  own.z = rows_at(found.z, own.tokens);
  return own;
}

LayerSums layer_sums(const LayerActivations& layer, const HeadSetting& setting, int threads,
                     const std::function<bool()>& stop) {
  LayerSums sums;
  sums.folds.assign(2, ValueMoments(layer.columns()));
  sums.tokens.resize(layer.sequences());
  const TokenRows maps = layer.output_map().transpose();
  sums.products = transposed_product(maps, maps, threads);
  const bool few = layer.documents() <= max_single_documents;
  sums.groups.assign(few ? layer.documents() : document_groups, DocumentSums(layer));
  for (const std::size_t document : layer.document_of()) {
    sums.group_of.push_back(few ? document : document % document_groups);
  }
  if (layer.has("grad_z") || layer.has("grad_output")) {
    const auto heads = static_cast<Index>(layer.shape().heads);
    sums.losses.assign(
        layer.sequences(),
        SequenceLoss{VectorXd::Zero(heads), VectorXd::Zero(static_cast<Index>(layer.columns()))});
  }
  Summation summation(layer, setting, threads, sums);
  std::vector<double> tokens(layer.documents());
  double all = 0;
  for (std::size_t b = 0; b < layer.sequences(); ++b) {
    if (stop && stop()) throw Stopped();
    const double before = sums.folds[0].tokens + sums.folds[1].tokens;
    summation.add(b);
    all = sums.folds[0].tokens + sums.folds[1].tokens;
    tokens[layer.document_of()[b]] += all - before;
  }
  const std::string where = "layer " + std::to_string(layer.number());
  if (all == 0) reject({layer.source()}, where, "has no token that sees a key");
  sums.largest_document = *std::ranges::max_element(tokens) / all;
  const auto is_zero = [](const SequenceLoss& loss) { return loss.gradients.isZero(0); };
  if (!sums.losses.empty() && std::ranges::all_of(sums.losses, is_zero)) {
    reject({layer.source()}, where,
           "no gradient reached it: grad_z is 0 everywhere - call backward before leaving capture");
  }
  return sums;
}

}  // namespace headlab
