// SPDX-License-Identifier: Apache-2.0
#include "validation/heads/layer_sums.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "validation/heads/drawn_queries.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

template <class T>
RowsOf<T> rows_at(const TokenRows& all, const std::vector<std::uint32_t>& tokens) {
  RowsOf<T> some(static_cast<Index>(tokens.size()), all.cols());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    some.row(static_cast<Index>(i)) = all.row(tokens[i]).cast<T>();
  }
  return some;
}

/// Takes numbers of columns from all rows.
template <class T>
void subtract(const Eigen::RowVectorXd& numbers, RowsOf<T>& rows) {
  rows = (rows.template cast<double>().rowwise() - numbers).template cast<T>();
}

bool in_double(const LayerActivations& layer, const HeadSetting& setting) {
  return setting.exact || layer.precision() == NumberKind::exact;
}

/// Whether drawn queries are all that is measured. Losses are sums over all tokens of a sequence.
bool only_drawn(const LayerActivations& layer) {
  return !layer.has("z") && !layer.has("grad_z") && !layer.has("grad_output");
}

/// Throws InvalidInput where numbers of a sequence are so large that it has no weights.
void require_logits(const LayerActivations& layer, std::size_t b, const TokenRows& log_sums) {
  constexpr double most = std::numeric_limits<double>::max();
  if ((log_sums.array() <= most).all()) return;
  reject({layer.source()}, "layer " + std::to_string(layer.number()),
         "products of queries and keys of sequence " + std::to_string(b) +
             " are too large for its type of numbers");
}

/// z of the tokens of a sequence, of which those are taken out that see no key.
template <class T>
RowsOf<T> given_or_attended(const LayerActivations& layer, std::size_t b,
                            std::vector<std::uint32_t>& tokens, int threads) {
  if (layer.has("z")) return rows_at<T>(layer.rows("z", b), tokens);
  Attended<T> found = attend(layer.rule(), layer.sequence<T>(b), tokens, false, threads);
  require_logits(layer, b, found.log_sums);
  found.leave_out_blind(tokens);
  return std::move(found.z);
}

/// Adds one sequence after another to the sums of its documents, in lanes of T.
template <class T>
class Summation {
 public:
  Summation(const LayerActivations& layer, const HeadSetting& setting, bool of_weights, int threads,
            LayerSums& sums)
      : layer_(layer),
        setting_(setting),
        of_weights_(of_weights && layer.has_attention()),
        threads_(threads),
        sums_(sums) {
    sums.products = products_of_rows<T>(layer.output_map<T>(), threads);
    const auto e = static_cast<Index>(layer.shape().e);
    for (std::size_t h = 0; h < layer.shape().heads; ++h) {
      const Index first = static_cast<Index>(h) * e;
      metrics_.emplace_back(sums.products.block(first, first, e, e));
    }
    if (!layer.has("grad_z") && layer.has("grad_output")) {
      maps_ = layer.output_map().transpose();
    }
  }

  void add(std::size_t b) {
    DocumentSums& to = sums_.groups[sums_.group_of[b]];
    std::vector<std::uint32_t>& tokens = sums_.tokens[b];
    RowsOf<T> z = values(b, tokens, to);
    if (tokens.empty()) return;
    const auto count = static_cast<double>(tokens.size());
    const VectorXd sum = z.template cast<double>().colwise().sum().transpose(), mean = sum / count;
    to.tokens += count;
    to.z += sum;
    // About their mean, so that rounding is relative to the spread and not to the size.
    subtract(mean.transpose(), z);
    add_squares(b, z, sum, mean, to);
    if (!sums_.losses.empty()) add_loss(b, z, mean);
    if (layer_.has("residual")) add_shares(b, z, mean, to);
  }

 private:
  /// z of the tokens that count, and sums of weights on the way.
  RowsOf<T> values(std::size_t b, std::vector<std::uint32_t>& tokens, DocumentSums& to) {
    tokens = layer_.tokens(b);
    if (!of_weights_) return given_or_attended<T>(layer_, b, tokens, threads_);
    const TokenDraw draw(setting_, tokens.size(), b);
    std::vector<std::uint32_t> some = draw.of(tokens);
    layer_.read_sequence<T>(b, draw.all() ? std::vector<std::uint32_t>() : some, sequence_);
    add_responses(b, draw, to);
    const WeightedTokens of_exchange = draw.for_exchange(some);
    Attended<T> found = attend(layer_.rule(), sequence_, some, true, threads_,
                               {of_exchange.tokens, of_exchange.weights, metrics_}, memory_);
    require_logits(layer_, b, found.log_sums);
    // With all queries these are much of the memory, and new pages little of the time.
    if (draw.all()) sequence_ = {};
    to.pairs.add(found.pairs);
    to.exchange.add(found.exchange);
    const std::size_t asked = some.size();
    found.leave_out_blind(some);
    sums_.blind += asked - some.size();
    if (draw.all() || only_drawn(layer_)) {
      tokens = std::move(some);
      if (!layer_.has("z")) return std::move(found.z);
    }
    return given_or_attended<T>(layer_, b, tokens, threads_);
  }

  /// Of as many keys as queries are drawn.
  void add_responses(std::size_t b, const TokenDraw& draw, DocumentSums& to) const {
    const std::vector<std::uint32_t> keys = draw.of(layer_.keys(b));
    if (keys.size() < 2) return;
    const AttentionShape& shape = layer_.shape();
    const auto e = static_cast<Index>(shape.e);
    RowsOf<T> values(static_cast<Index>(keys.size()), static_cast<Index>(shape.groups) * e);
    for (std::size_t g = 0; g < shape.groups; ++g) {
      const Eigen::Map<const RowsOf<T>> all(sequence_.v.data() + g * shape.keys * shape.e,
                                            static_cast<Index>(shape.keys), e);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        values.row(static_cast<Index>(i)).segment(static_cast<Index>(g) * e, e) = all.row(keys[i]);
      }
    }
    subtract(values.template cast<double>().colwise().mean(), values);
    to.responses += block_products(products_of_columns<T>(values, threads_), sums_.products, shape);
    to.degrees += static_cast<double>(values.rows() - 1);
  }

  /// \param z less its mean
  void add_squares(std::size_t b, const RowsOf<T>& z, const VectorXd& sum, const VectorXd& mean,
                   DocumentSums& to) {
    const std::size_t folds = sums_.folds.size();
    ValueMoments* const fold = folds == 0 ? nullptr : &sums_.folds[layer_.document_of()[b] % folds];
    to.outputs += outputs_of(z, fold == nullptr ? nullptr : &fold->squares) +
                  block_forms(sums_.products, sum, mean, layer_.shape());
    if (fold == nullptr) return;
    fold->tokens += static_cast<double>(z.rows());
    fold->sum += sum;
    fold->squares.noalias() += sum * mean.transpose();
  }

  /// Sums of o_h . o_l [H][H], of z^T z, which is added to `squares` and else kept nowhere.
  MatrixXd outputs_of(const RowsOf<T>& z, MatrixXd* squares) const {
    const auto heads = static_cast<Index>(layer_.shape().heads);
    std::vector<MatrixXd> parts(product_blocks(z.cols()), MatrixXd::Zero(heads, heads));
    over_products_of_columns<T>(z, threads_, [&](const ProductBlock& block) {
      if (squares != nullptr) add_block(block, *squares);
      parts[block.number] = outputs_of(block);
    });
    MatrixXd sum = MatrixXd::Zero(heads, heads);
    for (const MatrixXd& part : parts) sum += part;
    return sum;
  }

  MatrixXd outputs_of(const ProductBlock& block) const {
    const auto heads = static_cast<Index>(layer_.shape().heads),
               e = static_cast<Index>(layer_.shape().e);
    MatrixXd sums = MatrixXd::Zero(heads, heads);
    for (Index i = 0; i < block.rows.rows(); ++i) {
      const Index row = block.first + i, h = row / e;
      // Before the block an entry stands for the one on the other side of the diagonal too.
      for (Index begin = 0, end = 0; begin < block.rows.cols(); begin = end) {
        const Index l = begin / e, edge = begin < block.first ? block.first : block.rows.cols();
        end = std::min((l + 1) * e, edge);
        const double part = block.rows.row(i)
                                .segment(begin, end - begin)
                                .dot(sums_.products.col(row).segment(begin, end - begin));
        sums(h, l) += part;
        if (begin < block.first) sums(l, h) += part;
      }
    }
    return sums;
  }

  void add_shares(std::size_t b, RowsOf<T>& z, const VectorXd& mean, DocumentSums& to) const {
    const VectorXd stream =
        rows_at<double>(layer_.rows("residual", b), sums_.tokens[b]).rowwise().squaredNorm();
    if (!(stream.minCoeff() > 0)) {
      reject({layer_.source()}, "layer " + std::to_string(layer_.number()),
             "residual is 0 at a token of sequence " + std::to_string(b) +
                 ", of which there are no shares - leave it out of length or valid");
    }
    const VectorXd inverse = stream.cwiseInverse();
    const VectorXd moved = z.template cast<double>().transpose() * inverse;
    z = (z.template cast<double>().array().colwise() * inverse.array().sqrt()).template cast<T>();
    to.stream += stream.sum();
    to.inverse_stream += inverse.sum();
    to.z_share += moved + inverse.sum() * mean;
    const MatrixXd cross = block_forms(sums_.products, moved, mean, layer_.shape());
    to.outputs_share += outputs_of(z, nullptr) + cross + cross.transpose() +
                        inverse.sum() * block_forms(sums_.products, mean, mean, layer_.shape());
  }

  /// \param z less its mean
  void add_loss(std::size_t b, const RowsOf<T>& z, const VectorXd& mean) {
    const bool by_z = layer_.has("grad_z");
    TokenRows gradient =
        rows_at<double>(layer_.rows(by_z ? "grad_z" : "grad_output", b), sums_.tokens[b]);
    if (!by_z) gradient = row_product<double>(gradient, maps_, threads_);
    SequenceLoss& loss = sums_.losses[b];
    const auto e = static_cast<Index>(layer_.shape().e);
    loss.gradients = gradient.colwise().sum();
    const VectorXd by_column =
        z.template cast<double>().cwiseProduct(gradient).colwise().sum().transpose() +
        loss.gradients.cwiseProduct(mean);
    for (Index h = 0; h < loss.products.size(); ++h) {
      loss.products(h) = by_column.segment(h * e, e).sum();
    }
  }

  const LayerActivations& layer_;
  const HeadSetting& setting_;
  bool of_weights_;  ///< and not of z alone
  int threads_;
  LayerSums& sums_;
  std::vector<MatrixXd> metrics_;
  AttentionSequence<T> sequence_;  ///< the last one, whose memory is that of the next
  AttentionMemory<T> memory_;
  TokenRows maps_;  ///< [d][H e] where gradients by z follow from those by the output
};

template <class T>
void add_sequences(const LayerActivations& layer, const HeadSetting& setting, bool of_weights,
                   int threads, const std::function<bool()>& stop, LayerSums& sums) {
  Summation<T> summation(layer, setting, of_weights, threads, sums);
  for (std::size_t b = 0; b < layer.sequences(); ++b) {
    if (stop && stop()) throw Stopped();
    summation.add(b);
  }
}

}  // namespace

DocumentSums::DocumentSums(const LayerActivations& layer)
    : z(VectorXd::Zero(static_cast<Index>(layer.columns()))),
      outputs(MatrixXd::Zero(static_cast<Index>(layer.shape().heads),
                             static_cast<Index>(layer.shape().heads))),
      z_share(z),
      outputs_share(outputs),
      pairs(layer.shape().heads),
      exchange(layer.shape().heads),
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
  exchange.add(other.exchange, sign);
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
    for (Index l = 0; l <= h; ++l) {
      out(h, l) = out(l, h) =
          a.block(place(h), place(l), e, e).cwiseProduct(b.block(h * e, l * e, e, e)).sum();
    }
  }
  return out;
}

MatrixXd block_forms(const MatrixXd& m, const VectorXd& a, const VectorXd& b,
                     const AttentionShape& shape) {
  const auto e = static_cast<Index>(shape.e), heads = static_cast<Index>(shape.heads);
  MatrixXd out(heads, heads);
  for (Index l = 0; l < heads; ++l) {
    const VectorXd of_head = m.middleCols(l * e, e) * b.segment(l * e, e);
    for (Index h = 0; h < heads; ++h) {
      out(h, l) = a.segment(h * e, e).dot(of_head.segment(h * e, e));
    }
  }
  return out;
}

SequenceValues values_of(const LayerActivations& layer, std::size_t b,
                         std::vector<std::uint32_t> tokens, const HeadSetting& setting,
                         int threads) {
  SequenceValues own;
  if (in_double(layer, setting)) {
    own.z = given_or_attended<double>(layer, b, tokens, threads);
  } else {
    own.z = given_or_attended<float>(layer, b, tokens, threads).cast<double>();
  }
  own.tokens = std::move(tokens);
  return own;
}

std::size_t possible_tokens(const LayerActivations& layer, const HeadSetting& setting) {
  const std::size_t most = setting.queries > 0 && only_drawn(layer)
                               ? setting.queries
                               : std::numeric_limits<std::size_t>::max();
  std::size_t count = 0;
  for (std::size_t b = 0; b < layer.sequences(); ++b) {
    count += std::min(most, layer.tokens(b).size());
  }
  return count;
}

LayerSums layer_sums(const LayerActivations& layer, const HeadSetting& setting, KeptMoments kept,
                     int threads, const std::function<bool()>& stop) {
  LayerSums sums;
  const std::size_t folds = kept == KeptMoments::none ? 0 : kept == KeptMoments::all ? 1 : 2;
  sums.folds.assign(folds, ValueMoments(layer.columns()));
  sums.tokens.resize(layer.sequences());
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
  const auto add = in_double(layer, setting) ? add_sequences<double> : add_sequences<float>;
  add(layer, setting, kept != KeptMoments::all, threads, stop, sums);
  std::vector<double> tokens(layer.documents());
  for (std::size_t b = 0; b < layer.sequences(); ++b) {
    tokens[layer.document_of()[b]] += static_cast<double>(sums.tokens[b].size());
    sums.count += sums.tokens[b].size();
  }
  const std::string where = "layer " + std::to_string(layer.number());
  if (sums.count == 0) reject({layer.source()}, where, "has no token that sees a key");
  sums.largest_document = *std::ranges::max_element(tokens) / static_cast<double>(sums.count);
  const auto is_zero = [](const SequenceLoss& loss) { return loss.gradients.isZero(0); };
  if (!sums.losses.empty() && std::ranges::all_of(sums.losses, is_zero)) {
    reject({layer.source()}, where,
           "no gradient reached it: grad_z is 0 everywhere - call backward before leaving capture");
  }
  return sums;
}

}  // namespace headlab
