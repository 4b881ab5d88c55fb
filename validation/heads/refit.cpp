// SPDX-License-Identifier: Apache-2.0
// With C the second moment of z about its mean and P = C^-1, the residual of the refit without the
// heads of rows A is z P_A (P_AA)^-1 W_A: it needs one inverse for all heads.
#include "validation/heads/refit.h"

#include <cmath>

#include "engine/files/error.h"
#include "kernels/decompositions.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// C of moments with the ridge.
MatrixXd second_moment(const ValueMoments& of, double ridge) {
  MatrixXd c = of.about(of.mean());
  c.diagonal().array() += ridge * c.trace() / static_cast<double>(c.rows());
  return c;
}

MatrixXd inverse_of(const MatrixXd& c) {
  const Cholesky factor(c);
  // Heads that are linear maps of one another, without a ridge.
  if (!factor.succeeded()) return MatrixXd::Constant(c.rows(), c.cols(), std::nan(""));
  return factor.solve(MatrixXd(MatrixXd::Identity(c.rows(), c.cols())));
}

/// (P_AA)^-1 W_A.
MatrixXd solved_map(const MatrixXd& p, const MatrixXd& w, const std::vector<Index>& rows) {
  return Cholesky(p(rows, rows)).solve(MatrixXd(w(rows, Eigen::all)));
}

std::vector<Index> rows_of(const AttentionShape& shape, const std::vector<std::size_t>& heads) {
  std::vector<Index> rows;
  for (const std::size_t h : heads) {
    for (std::size_t i = 0; i < shape.e; ++i) rows.push_back(static_cast<Index>(h * shape.e + i));
  }
  return rows;
}

}  // namespace

bool can_refit(const LayerActivations& layer, const HeadSetting& setting, std::size_t tokens) {
  const double needed = setting.refit_tokens * static_cast<double>(layer.columns());
  return static_cast<double>(tokens) >= needed && layer.documents() >= setting.min_documents;
}

std::string no_refit(const LayerActivations& layer, const LayerSums& sums,
                     const HeadSetting& setting) {
  if (can_refit(layer, setting, sums.count)) return "";
  const double needed = setting.refit_tokens * static_cast<double>(layer.columns());
  return "no refit: it needs " + std::to_string(static_cast<long>(needed)) + " tokens (" +
         std::to_string(static_cast<long>(setting.refit_tokens)) + " for each column of z) and " +
         std::to_string(setting.min_documents) + " documents, there are " +
         std::to_string(sums.count) + " and " + std::to_string(layer.documents());
}

void add_held_out(const LayerActivations& layer, const HeadSetting& setting, LayerSums& sums,
                  int threads, const std::function<bool()>& stop) {
  const AttentionShape& shape = layer.shape();
  const auto e = static_cast<Index>(shape.e);
  const MatrixXd output_map = layer.output_map();
  for (std::size_t fold = 0; fold < 2; ++fold) {
    const MatrixXd p = inverse_of(second_moment(sums.folds[fold], setting.ridge));
    const VectorXd mean = sums.folds[fold].mean();
    std::vector<MatrixXd> metrics;
    for (std::size_t h = 0; h < shape.heads; ++h) {
      const MatrixXd map = solved_map(p, output_map, rows_of(shape, {h}));
      metrics.emplace_back(map * map.transpose());
    }
    for (std::size_t b = 0; b < layer.sequences(); ++b) {
      if (stop && stop()) throw Stopped();
      if (layer.document_of()[b] % 2 == fold || sums.tokens[b].empty()) continue;
      TokenRows z = values_of(layer, b, sums.tokens[b], setting, threads).z;
      z.rowwise() -= mean.transpose();
      const TokenRows y = row_product<double>(z, p, threads);
      for (std::size_t h = 0; h < shape.heads; ++h) {
        const MatrixXd own = y.middleCols(static_cast<Index>(h) * e, e);
        sums.groups[sums.group_of[b]].held_out(static_cast<Index>(h)) +=
            (own * metrics[h]).cwiseProduct(own).sum();
      }
    }
  }
}

VectorXd refit_errors_in_sample(const LayerActivations& layer, const LayerSums& sums,
                                const HeadSetting& setting) {
  ValueMoments all = sums.folds[0];
  all += sums.folds[1];
  const MatrixXd p = inverse_of(second_moment(all, setting.ridge));
  const MatrixXd output_map = layer.output_map();
  VectorXd errors(static_cast<Index>(layer.shape().heads));
  for (std::size_t h = 0; h < layer.shape().heads; ++h) {
    const std::vector<Index> rows = rows_of(layer.shape(), {h});
    const MatrixXd own = output_map(rows, Eigen::all);
    errors(static_cast<Index>(h)) = solved_map(p, output_map, rows).cwiseProduct(own).sum();
  }
  return errors;
}

RemovalMoments removal_moments(const LayerActivations& layer, const HeadSetting& setting,
                               int threads, const std::function<bool()>& stop) {
  const LayerSums sums = layer_sums(layer, setting, KeptMoments::all, threads, stop);
  const ValueMoments& all = sums.folds[0];
  RemovalMoments out{.tokens = all.tokens, .mean = all.mean(), .squares = all.squares / all.tokens};
  if (layer.has("residual")) {
    double stream = 0;
    for (const DocumentSums& group : sums.groups) stream += group.stream;
    out.stream = stream / all.tokens;
  }
  const auto e = static_cast<Index>(layer.shape().e);
  for (std::size_t b = 0; b < sums.losses.size(); ++b) {
    const SequenceLoss& loss = sums.losses[b];
    if (b == 0) {
      out.losses.resize(static_cast<Index>(sums.losses.size()), loss.products.size());
      out.sensitivity = VectorXd::Zero(loss.products.size());
    }
    out.sensitivity += loss.products.cwiseAbs() / all.tokens;
    for (Index h = 0; h < loss.products.size(); ++h) {
      out.losses(static_cast<Index>(b), h) =
          loss.products(h) - loss.gradients.segment(h * e, e).dot(out.mean.segment(h * e, e));
    }
  }
  return out;
}

double refit_error_of(const LayerActivations& layer, const LayerSums& sums,
                      const HeadSetting& setting, const std::vector<std::size_t>& heads) {
  const std::vector<Index> rows = rows_of(layer.shape(), heads);
  const MatrixXd output_map = layer.output_map();
  double error = 0, tokens = 0;
  for (std::size_t fold = 0; fold < 2; ++fold) {
    const ValueMoments &fitted = sums.folds[fold], &other = sums.folds[1 - fold];
    const MatrixXd p = inverse_of(second_moment(fitted, setting.ridge));
    const MatrixXd map = p(Eigen::all, rows) * solved_map(p, output_map, rows);
    error += other.tokens * (other.about(fitted.mean()) * map).cwiseProduct(map).sum();
    tokens += other.tokens;
  }
  return error / tokens;
}

}  // namespace headlab
