// SPDX-License-Identifier: Apache-2.0
#include "validation/heads/contexts.h"

#include <cstddef>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "engine/files/available_memory.h"
#include "engine/files/document.h"
#include "kernels/decompositions.h"
#include "validation/heads/targets.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::RowVectorXd;
using Eigen::VectorXd;

constexpr double readout_ridge = 1e-3;  ///< of the mean diagonal

/// Products of a stratum: N U, N M, and N; zero where its tokens are of one document alone.
struct Stratum {
  double tokens = 0;
  MatrixXd between, within;
};

Stratum stratum_of(const ContextCell& sums) {
  const double pairs = sums.tokens * sums.tokens - sums.square_tokens;
  if (!(pairs > 0)) return {};
  const MatrixXd all = sums.sums * sums.sums.transpose();
  return {sums.tokens, (all - sums.own) * (sums.tokens / pairs), sums.squares};
}

/// The figures of sums over strata; `all` is the number of tokens, with those left out.
std::vector<HeadFigure> terms_of(const MatrixXd& between, const MatrixXd& within, double used,
                                 double all) {
  const Index heads = between.rows() - 1;
  const MatrixXd u = between / used, m = within / used, k = m - u;
  VectorXd residual = VectorXd::Constant(heads + 1, -1);
  residual(heads) = 1;
  const MatrixXd of_heads = k.topLeftCorner(heads, heads);
  const double variance = of_heads.trace();
  const auto figure = [](const char* name, const char* meaning, const char* unit, double value) {
    return HeadFigure{name, FigureOf::layer, meaning, unit, {value}};
  };
  return {
      figure("contexts_bias_squared", "square of the mean error of a stratum", target_squared,
             residual.dot(u * residual)),
      figure("contexts_variance", "summed variance of the heads' contributions", target_squared,
             variance),
      figure("contexts_covariance", "summed covariance of the heads' contributions", target_squared,
             of_heads.sum() - variance),
      figure("contexts_target_variance", "variance of the target", target_squared, k(heads, heads)),
      figure("contexts_alignment", "-2 covariance of the target with the sum of the heads",
             target_squared, -2 * k.row(heads).head(heads).sum()),
      figure("contexts_mse", "mean squared error of the sum of the heads: the five terms",
             target_squared, residual.dot(m * residual)),
      figure("contexts_tokens_used", "share of the tokens in strata of several documents", "1",
             used / all)};
}

/// A linear map of the output to the target, with means that both lose first.
struct Readout {
  MatrixXd output_means;  ///< [H][d] of the heads
  RowVectorXd target_mean;
  MatrixXd map;  ///< [d][p]
};

/// Outputs of heads at the tokens of a sequence that have a target [heads] of [tokens][d].
class Contributions {
 public:
  Contributions(const LayerActivations& layer, const LayerSums& sums, const HeadSetting& setting,
                int threads)
      : layer_(layer),
        sums_(sums),
        setting_(setting),
        threads_(threads),
        output_map_(layer.output_map()) {}

  std::vector<TokenRows> of(std::size_t b, const std::vector<std::uint32_t>& tokens) const {
    const TokenRows z = values_of(layer_, b, tokens, setting_, threads_).z;
    const auto e = static_cast<Index>(layer_.shape().e);
    std::vector<TokenRows> out;
    for (Index h = 0; h < static_cast<Index>(layer_.shape().heads); ++h) {
      out.push_back(
          row_product<double>(z.middleCols(h * e, e), output_map_.middleRows(h * e, e), threads_));
    }
    return out;
  }

  Readout readout(const TokenTargets& targets) const {
    const auto d = static_cast<Index>(layer_.d()), p = static_cast<Index>(targets.width());
    const auto heads = static_cast<Index>(layer_.shape().heads);
    Readout out{MatrixXd::Zero(heads, d), RowVectorXd::Zero(p), MatrixXd::Zero(d, p)};
    MatrixXd squares = MatrixXd::Zero(d, d);
    double count = 0;
    for (std::size_t b = 0; b < layer_.sequences(); ++b) {
      if (layer_.document_of()[b] % 2 != 0) continue;
      const std::vector<std::uint32_t> tokens = targets.known(b, sums_.tokens[b]);
      if (tokens.empty()) continue;
      const std::vector<TokenRows> parts = of(b, tokens);
      TokenRows f = TokenRows::Zero(parts[0].rows(), d);
      for (Index h = 0; h < heads; ++h) {
        f += parts[static_cast<std::size_t>(h)];
        out.output_means.row(h) += parts[static_cast<std::size_t>(h)].colwise().sum();
      }
      const TokenRows y = targets.rows(b, tokens);
      count += static_cast<double>(tokens.size());
      out.target_mean += y.colwise().sum();
      squares += products_of_columns<double>(f, threads_);
      out.map += transposed_product(f, y, threads_);
    }
    out.output_means /= count;
    out.target_mean /= count;
    const RowVectorXd mean = out.output_means.colwise().sum();
    squares = squares / count - mean.transpose() * mean;
    squares.diagonal().array() += readout_ridge * squares.trace() / static_cast<double>(d);
    out.map = out.map / count - mean.transpose() * out.target_mean;
    const Cholesky factor(squares);
    if (!factor.succeeded()) {
      reject({layer_.source()}, "layer " + std::to_string(layer_.number()),
             "its output is the same at all tokens: nothing can be read from it");
    }
    out.map = factor.solve(out.map);
    return out;
  }

 private:
  const LayerActivations& layer_;
  const LayerSums& sums_;
  const HeadSetting& setting_;
  int threads_;
  TokenRows output_map_;
};

/// Refuses sums that take over half of the memory.
void require_room(const LayerActivations& layer, std::size_t cells, std::size_t width) {
  const std::uint64_t rows = layer.shape().heads + 1;
  const std::uint64_t bytes = 8 * cells * rows * (width + 2 * rows), most = available_bytes();
  if (bytes <= most / 2) return;
  reject({layer.source()}, "layer " + std::to_string(layer.number()),
         "sums across contexts take " + format_bytes(bytes) + ", over half of the " +
             format_bytes(most) + " available - choose other strata or a smaller target");
}

}  // namespace

void ContextCell::add(const ContextCell& other, double sign) {
  if (sums.size() == 0) {
    sums = TokenRows::Zero(other.sums.rows(), other.sums.cols());
    own = squares = MatrixXd::Zero(other.own.rows(), other.own.cols());
  }
  tokens += sign * other.tokens;
  square_tokens += sign * other.square_tokens;
  sums += sign * other.sums;
  own += sign * other.own;
  squares += sign * other.squares;
}

void ContextCells::add(std::int64_t stratum, std::size_t document, const TokenRows& token) {
  ContextCell& cell = cells_[stratum][document];
  if (cell.sums.size() == 0) {
    cell.sums = TokenRows::Zero(token.rows(), token.cols());
    cell.own = cell.squares = MatrixXd::Zero(token.rows(), token.rows());
  }
  cell.tokens += 1;
  cell.sums += token;
  cell.squares += token * token.transpose();
}

std::vector<HeadFigure> ContextCells::figures(std::size_t min_documents) const {
  std::set<std::size_t> documents;
  std::vector<ContextCell> totals;
  double all = 0;
  std::map<std::size_t, double> tokens_of;
  std::vector<std::map<std::size_t, ContextCell>> by_group;
  for (const auto& [stratum, cells] : cells_) {
    for (const auto& [document, cell] : cells) documents.insert(document);
  }
  const bool few = documents.size() <= max_single_documents;
  std::map<std::size_t, std::size_t> group_of;
  for (const std::size_t document : documents) {
    const std::size_t rank = group_of.size();
    group_of[document] = few ? rank : rank % document_groups;
  }
  for (const auto& [stratum, cells] : cells_) {
    ContextCell& total = totals.emplace_back();
    std::map<std::size_t, ContextCell>& groups = by_group.emplace_back();
    for (const auto& [document, cell] : cells) {
      ContextCell own = cell;
      own.square_tokens = cell.tokens * cell.tokens;
      own.own = cell.sums * cell.sums.transpose();
      total.add(own);
      groups[group_of[document]].add(own);
      tokens_of[group_of[document]] += cell.tokens;
      all += cell.tokens;
    }
  }
  std::vector<Stratum> whole;
  for (const ContextCell& total : totals) whole.push_back(stratum_of(total));
  constexpr std::size_t no_group = std::numeric_limits<std::size_t>::max();
  const auto without = [&](std::size_t group) {
    const Index rows = totals.empty() ? 1 : totals[0].own.rows();
    MatrixXd between = MatrixXd::Zero(rows, rows), within = between;
    double used = 0;
    for (std::size_t c = 0; c < totals.size(); ++c) {
      const auto own = by_group[c].find(group);
      Stratum one = whole[c];
      if (own != by_group[c].end()) {
        ContextCell rest = totals[c];
        rest.add(own->second, -1);
        one = stratum_of(rest);
      }
      if (one.tokens == 0) continue;
      used += one.tokens;
      between += one.between;
      within += one.within;
    }
    return terms_of(between, within, used, group == no_group ? all : all - tokens_of[group]);
  };
  std::vector<HeadFigure> out = without(no_group);
  if (documents.size() < min_documents) return out;
  add_errors(out, few ? documents.size() : document_groups, without);
  return out;
}

const std::vector<std::string>& context_targets() {
  static const std::vector<std::string> all = {"output", "next_token", "array"};
  return all;
}

const std::vector<std::string>& context_strata() {
  static const std::vector<std::string> all = {"token", "none"};
  return all;
}

std::string contexts_title(const HeadSetting& setting) {
  const std::string target = setting.target == "output"       ? "the output of the layer"
                             : setting.target == "next_token" ? "the next token"
                                                              : "the target of the file";
  return "across contexts: " + target +
         (setting.strata == "token" ? ", the current token fixed" : "");
}

std::vector<HeadFigure> context_figures(const LayerActivations& layer, const LayerSums& sums,
                                        const HeadSetting& setting, int threads) {
  const std::string where = "layer " + std::to_string(layer.number());
  const bool by_token = setting.strata == "token", read_out = setting.target != "output";
  if (setting.target == "array" && !layer.has("target")) {
    reject({layer.source()}, where, "has no array target [B, T, p]");
  }
  if (setting.target == "next_token" && layer.has("target")) {
    reject({layer.source()}, where, "has an array target - ask for target array, or leave it out");
  }
  const auto strata = by_token ? tokens_of(layer) : std::vector<std::vector<std::int64_t>>();
  const std::optional<TokenTargets> targets =
      read_out ? std::optional<TokenTargets>(std::in_place, layer) : std::nullopt;
  const Contributions contributions(layer, sums, setting, threads);
  const auto tokens_of_sequence = [&](std::size_t b) {
    return read_out ? targets->known(b, sums.tokens[b]) : sums.tokens[b];
  };
  const auto stratum = [&](std::size_t b, std::uint32_t t) {
    return by_token ? strata[b][t] : std::int64_t{0};
  };
  // A readout is fitted to the other half of the documents.
  const auto counts = [&](std::size_t b) { return !read_out || layer.document_of()[b] % 2 == 1; };
  std::set<std::pair<std::int64_t, std::size_t>> cells;
  for (std::size_t b = 0; b < layer.sequences(); ++b) {
    if (!counts(b)) continue;
    for (const std::uint32_t t : tokens_of_sequence(b)) {
      cells.emplace(stratum(b, t), layer.document_of()[b]);
    }
  }
  if (cells.empty()) {
    reject({layer.source()}, where, "has no token with a target in documents 1, 3, 5, ..");
  }
  require_room(layer, cells.size(), read_out ? targets->width() : layer.d());
  const Readout readout = read_out ? contributions.readout(*targets) : Readout{};

  ContextCells found;
  const auto heads = static_cast<Index>(layer.shape().heads);
  for (std::size_t b = 0; b < layer.sequences(); ++b) {
    const std::vector<std::uint32_t> tokens = tokens_of_sequence(b);
    if (!counts(b) || tokens.empty()) continue;
    std::vector<TokenRows> parts = contributions.of(b, tokens);
    TokenRows target;
    if (read_out) {
      for (Index h = 0; h < heads; ++h) {
        TokenRows& part = parts[static_cast<std::size_t>(h)];
        part.rowwise() -= readout.output_means.row(h);
        part = row_product<double>(part, readout.map, threads);
      }
      target = targets->rows(b, tokens);
      target.rowwise() -= readout.target_mean;
    } else {
      target = TokenRows::Zero(parts[0].rows(), parts[0].cols());
      for (const TokenRows& part : parts) target += part;
    }
    TokenRows token(heads + 1, target.cols());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto row = static_cast<Index>(i);
      for (Index h = 0; h < heads; ++h) token.row(h) = parts[static_cast<std::size_t>(h)].row(row);
      token.row(heads) = target.row(row);
      found.add(stratum(b, tokens[i]), layer.document_of()[b], token);
    }
  }
  return found.figures(setting.min_documents);
}

}  // namespace headlab
