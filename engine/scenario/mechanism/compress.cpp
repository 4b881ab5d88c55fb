// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/mechanism/compress.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <variant>

#include "engine/files/document.h"
#include "engine/files/words.h"
#include "engine/scenario/mechanism/low_rank.h"
#include "kernels/design_point.h"
#include "kernels/laws.h"
#include "kernels/plan.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Points of one update of the moments.
constexpr std::uint64_t batch_points = 256;

struct DesignMoments {
  VectorXd mean;        ///< [d]
  MatrixXd covariance;  ///< [d][d]; empty: I

  MatrixXd second() const {
    if (mean.isZero(0)) return covariance;
    const MatrixXd spread =
        covariance.size() > 0 ? covariance : MatrixXd::Identity(mean.size(), mean.size());
    return spread + mean * mean.transpose();
  }
};

DesignMoments exact_moments(const NormalDesign::Sampler& normal, const Table& table) {
  if (normal.standard) return {VectorXd::Zero(normal.d), {}};
  const Eigen::Map<const RowMajor> root(table.exact() + normal.factor, normal.d, normal.d);
  return {Eigen::Map<const VectorXd>(table.exact() + normal.mean, normal.d),
          root * root.transpose()};
}

/// Of points drawn as those on which heads are learned: a run has either. About the first point, so
/// that a mean far from 0 does not cancel.
DesignMoments drawn_moments(const DesignSampler& design, const Table& table, int d,
                            std::uint64_t points, std::uint64_t seed) {
  std::vector<float> x(static_cast<std::size_t>(point_buffer(d)));
  const auto draw = [&](std::uint64_t i) {
    draw_design_point(design, table.design(), d, seed, learning_streams.design,
                      learning_streams.design_choice, 0, i, x.data());
    return Eigen::Map<const Eigen::RowVectorXf>(x.data(), d).cast<double>();
  };
  const Eigen::RowVectorXd origin = draw(0);
  VectorXd sum = VectorXd::Zero(d);
  MatrixXd squares = MatrixXd::Zero(d, d);
  for (std::uint64_t first = 0; first < points; first += batch_points) {
    const std::uint64_t count = std::min(batch_points, points - first);
    RowMajor batch(static_cast<Index>(count), d);
    for (std::uint64_t i = 0; i < count; ++i) {
      batch.row(static_cast<Index>(i)) = draw(first + i) - origin;
    }
    sum += batch.colwise().sum().transpose();
    squares.selfadjointView<Eigen::Lower>().rankUpdate(batch.transpose());
  }
  const auto n = static_cast<double>(points);
  const VectorXd mean = sum / n;
  const MatrixXd second = squares.selfadjointView<Eigen::Lower>();
  return {origin.transpose() + mean, second / n - mean * mean.transpose()};
}

/// W^T M W for the W of one head.
MatrixXd projected(const MatrixXd& w, const MatrixXd& m) {
  return m.size() > 0 ? MatrixXd(w.transpose() * m * w) : MatrixXd(w.transpose() * w);
}

/// "head 1 keeps 1 of the singular values 1.5, 1.5, 0.5, of which ...".
[[noreturn]] void reject_tie(int head, int rank, const VectorXd& spectrum) {
  const auto place = [](int i) { return std::to_string(i); };
  throw ParameterError(
      "compress.rank",
      "leaves open what head " + place(head) + " keeps: its singular values " + place(rank) +
          " and " + place(rank + 1) + " agree to 1e-9 (" + number_text(spectrum(rank - 1)) +
          "), so that no subspace is the best - give the design a covariance, or the heads query "
          "matrices");
}

}  // namespace

void CompressStage::check(const StageSetting& setting) const {
  if (!low_rank_method(by)) {
    throw ParameterError("by", "is \"" + by + "\" - allowed: " + listed(low_rank_methods()));
  }
  if (queries != "design" && queries != "scenario") {
    throw ParameterError("queries", "is \"" + queries + "\" - allowed: design, scenario");
  }
  if (!setting.is_softmax) {
    throw ParameterError("",
                         "needs the kernel \"softmax\": a distance has one projection for keys and "
                         "queries");
  }
  rank.check("rank", setting.sizes.heads);
}

bool CompressStage::operator==(const CompressStage& other) const {
  const auto equal = [](const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
    return a.rows() == b.rows() && a.cols() == b.cols() && a == b;
  };
  const bool same_moments =
      moments == other.moments ||
      (moments && other.moments && equal(moments->keys, other.moments->keys) &&
       equal(moments->queries, other.moments->queries));
  return same_moments && by == other.by && rank == other.rank && centre == other.centre &&
         queries == other.queries && points == other.points && seed == other.seed;
}

bool CompressStage::off(int heads, int k) const {
  for (int h = 0; h < heads; ++h) {
    if (rank[h] < static_cast<std::uint64_t>(k)) return false;
  }
  return true;
}

void CompressStage::apply(Subspaces& subspaces) const {
  if (off(subspaces.heads(), subspaces.k())) return;
  if (!moments) throw ParameterError("compress", "has not been calibrated");
  const Index d = subspaces.d(), k = subspaces.k();
  const int heads = subspaces.heads();
  std::uint64_t largest = 0;
  for (int h = 0; h < heads; ++h) largest = std::max(largest, rank[h]);
  const Index columns = std::min<Index>(k, static_cast<Index>(largest));
  const std::vector<double>& all_keys = subspaces.numbers();
  const std::vector<double>& all_queries =
      subspaces.queries().empty() ? subspaces.numbers() : subspaces.queries();
  std::vector<double> new_keys, new_queries;
  const auto append = [&](std::vector<double>& all, const MatrixXd& w) {
    RowMajor padded = RowMajor::Zero(d, columns);
    padded.leftCols(w.cols()) = w;
    all.insert(all.end(), padded.data(), padded.data() + padded.size());
  };
  for (int h = 0; h < heads; ++h) {
    const MatrixXd w_k = Eigen::Map<const RowMajor>(all_keys.data() + h * d * k, d, k);
    const MatrixXd w_q = Eigen::Map<const RowMajor>(all_queries.data() + h * d * k, d, k);
    if (rank[h] >= static_cast<std::uint64_t>(k)) {
      append(new_keys, w_k);
      append(new_queries, w_q);
      continue;
    }
    const int kept = static_cast<int>(rank[h]);
    const LowRankMaps maps =
        low_rank_maps(*low_rank_method(by), root_of_moment(projected(w_k, moments->keys)),
                      root_of_moment(projected(w_q, moments->queries)), kept);
    if (is_ambiguous(maps.spectrum, kept)) reject_tie(h, kept, maps.spectrum);
    append(new_keys, w_k * maps.keys);
    append(new_queries, w_q * maps.queries);
  }
  Subspaces compressed({.d = subspaces.d(), .heads = heads, .k = static_cast<int>(columns)});
  compressed.assign(std::move(new_keys), std::move(new_queries), false);
  subspaces = std::move(compressed);
}

void calibrate(CompressStage& stage, const DesignLaw& law, int d,
               const std::vector<double>& query_points) {
  Table table;
  const DesignSampler design =
      std::visit([&](const auto& one) { return DesignSampler(one.sampler(table)); }, law);
  const auto* normal = std::get_if<NormalDesign::Sampler>(&design);
  const DesignMoments of_design = normal
                                      ? exact_moments(*normal, table)
                                      : drawn_moments(design, table, d, stage.points, stage.seed);
  PointMoments moments;
  moments.keys = stage.centre ? of_design.covariance : of_design.second();
  if (stage.queries == "design") {
    moments.queries = of_design.second();
  } else {
    const auto count = static_cast<Index>(query_points.size()) / d;
    const Eigen::Map<const RowMajor> x(query_points.data(), count, d);
    moments.queries = x.transpose() * x / static_cast<double>(count);
  }
  stage.moments = std::make_shared<const PointMoments>(std::move(moments));
}

}  // namespace headlab
