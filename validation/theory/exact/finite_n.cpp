// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/exact/finite_n.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "engine/files/error.h"
#include "kernels/parallel_for.h"
#include "validation/theory/exact/radial_finite_n.h"
#include "validation/theory/exact/scalar_finite_n.h"

namespace headlab {
namespace {

/// Natural digits aimed at by each refinement.
constexpr double refinements[] = {18, 26, 36, 48};
/// Change, of the resolution before the last, and normalisation error at which refinement stops.
constexpr double enough_change = 1e-7;
constexpr double enough_normalisation = 1e-9;

/// Terms of a radial head's regression: their squares are integrated pair by pair.
constexpr Eigen::Index max_cosines = 64;

/// Nodes of a scalar's grid; grids that need max_panels, 20 times as many, are refused, because
/// panels so much wider than needed never converge.
constexpr Eigen::Index max_nodes = 25000;

/// What one resolution gives.
template <class Result>
struct Attempt {
  Result result;   ///< its change is not yet known
  double figure;   ///< what changes
  double scale;    ///< that changes are relative to
  bool coarsened;  ///< finer is out of reach
};

/// Refines until neither the figure nor the normalisation error moves or a limit is met, and
/// returns the last result with its change, or the one before where the limit made the last one
/// worse.
template <class Result, class Compute>
Result refine(const Compute& compute, int at_once, const std::string& what) {
  const auto attempt = [&](double digits) -> std::optional<Attempt<Result>> {
    try {
      return compute(Resolution{digits, max_nodes, at_once});
    } catch (const TooManyPanels& problem) {
      if (digits > refinements[0]) return std::nullopt;
      throw InvalidInput("exact finite-n theory of " + what + ": " + problem.what() +
                         ", the kernel is narrow for so few keys - take a larger bandwidth or n, "
                         "use headlab theory --source first_order, or simulate with headlab run");
    }
  };
  Attempt<Result> best = *attempt(refinements[0]);
  for (std::size_t i = 1; i < std::size(refinements) && !best.coarsened; ++i) {
    const std::optional<Attempt<Result>> finer = attempt(refinements[i]);
    if (!finer) break;
    const Attempt<Result>& next = *finer;
    const double change = next.figure - best.figure;
    const bool worse = next.coarsened && std::abs(next.result.normalisation_error) >
                                             std::abs(best.result.normalisation_error);
    if (!worse) best = next;
    best.result.change = change;
    const bool settled = std::abs(change) <= enough_change * best.scale &&
                         std::abs(best.result.normalisation_error) <= enough_normalisation;
    if (settled || worse) break;
  }
  require_normalisation(best.result.normalisation_error, what);
  return best.result;
}

/// One line where heads of a Gaussian kernel cannot be seen as functions of radii.
std::optional<std::string> radial_obstacle(const TheoryModel& model) {
  if (!model.standard_design) return "needs the design N(0, I)";
  if (!model.constant_noise) return "needs noise of constant variance";
  if (model.zero_regression) return std::nullopt;
  const auto* cosines = dynamic_cast<const CosineSumFunction*>(model.regression.get());
  if (cosines && cosines->amplitude().size() <= max_cosines) return std::nullopt;
  return "needs a regression that is zero or a sum of up to " + std::to_string(max_cosines) +
         " cosines";
}

bool are_orthogonal(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  return (a.transpose() * b).cwiseAbs().maxCoeff() <= 1e-10;
}

bool is_frame(const Eigen::MatrixXd& a) {
  const Eigen::MatrixXd gram = a.transpose() * a;
  return (gram - Eigen::MatrixXd::Identity(a.cols(), a.cols())).cwiseAbs().maxCoeff() <= 1e-10;
}

bool same_subspace(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  return a.cols() == b.cols() && (a * (a.transpose() * b) - b).cwiseAbs().maxCoeff() < 1e-12;
}

}  // namespace

std::optional<std::string> finite_n_obstacle(const TheoryModel& model, std::size_t h,
                                             std::size_t l) {
  if (std::holds_alternative<SoftmaxKernel>(model.kernel)) return std::nullopt;
  if (!std::holds_alternative<GaussianKernel>(model.kernel)) {
    return "exact finite-n theory is for the kernel laws gaussian and softmax - simulate with "
           "headlab run";
  }
  if (model.projections[h].cols() == 1 && model.projections[l].cols() == 1) return std::nullopt;
  const std::string many = "exact finite-n theory of a Gaussian kernel with heads.dim > 1 ";
  const std::string otherwise =
      " - use headlab theory --source first_order, heads.dim = 1, the softmax kernel, or simulate";
  if (const auto obstacle = radial_obstacle(model)) return many + *obstacle + otherwise;
  if (!is_frame(model.projections[h]) || !is_frame(model.projections[l])) {
    return many + "needs projections with orthonormal columns" + otherwise;
  }
  if (!are_orthogonal(model.projections[h], model.projections[l]) &&
      !same_subspace(model.projections[h], model.projections[l])) {
    return many + "needs heads on orthogonal or identical subspaces" + otherwise;
  }
  return std::nullopt;
}

namespace {

/// Heads and pairs at one query.
class AtQuery {
 public:
  AtQuery(const TheoryModel& model, std::size_t query, int at_once = 1)
      : model_(model), query_(query), at_once_(at_once) {
    const bool is_gaussian = std::holds_alternative<GaussianKernel>(model.kernel);
    if (is_gaussian && !radial_obstacle(model))
      radial_ = std::make_unique<RadialHeads>(model, query);
  }

  FiniteNHead head(std::size_t h) const {
    if (const auto obstacle = finite_n_obstacle(model_, h, h)) throw InvalidInput(*obstacle);
    const auto compute = [&](const Resolution& resolution) {
      if (is_radial(h)) return radial_->head(h, resolution);
      const ScalarHead head = scalar_head(model_, model_.queries[query_], h);
      return scalar_head_moments(model_, model_.truth[query_], head,
                                 sigma_range(head, model_.n, resolution), resolution);
    };
    const auto attempt = [&](const Resolution& resolution) {
      const HeadMoments moments = compute(resolution);
      const double variance = moments.square - moments.mean * moments.mean;
      return Attempt<FiniteNHead>{{moments.mean, variance, 0, moments.normalisation_error},
                                  variance,
                                  moments.square,
                                  moments.coarsened};
    };
    return refine<FiniteNHead>(attempt, at_once_, "head " + std::to_string(h + 1));
  }

  FiniteNPair pair(std::size_t h, std::size_t l, const FiniteNHead& first,
                   const FiniteNHead& second) const {
    if (const auto obstacle = finite_n_obstacle(model_, h, l)) throw InvalidInput(*obstacle);
    if (same_subspace(model_.projections[h], model_.projections[l])) {
      return {first.variance, first.change, first.normalisation_error};
    }
    const bool both_radial = is_radial(h) && is_radial(l) &&
                             are_orthogonal(model_.projections[h], model_.projections[l]);
    const auto compute = [&](const Resolution& resolution) {
      if (both_radial) return radial_->pair(h, l, resolution);
      return scalar_pair_moments(model_, model_.truth[query_],
                                 scalar_head(model_, model_.queries[query_], h),
                                 scalar_head(model_, model_.queries[query_], l), resolution);
    };
    const double scale = std::sqrt((first.variance + first.bias * first.bias) *
                                   (second.variance + second.bias * second.bias));
    const auto attempt = [&](const Resolution& resolution) {
      const PairMoments moments = compute(resolution);
      const double covariance = moments.product - first.bias * second.bias;
      return Attempt<FiniteNPair>{
          {covariance, 0, moments.normalisation_error}, covariance, scale, moments.coarsened};
    };
    return refine<FiniteNPair>(attempt, at_once_,
                               "heads " + std::to_string(h + 1) + " and " + std::to_string(l + 1));
  }

 private:
  const TheoryModel& model_;
  std::size_t query_;
  int at_once_;                          ///< heads or pairs, see Resolution
  std::unique_ptr<RadialHeads> radial_;  ///< none where no pair is one of radii

  /// Whether the kernel sees the radius of a standard normal.
  bool is_radial(std::size_t h) const { return radial_ && is_frame(model_.projections[h]); }
};

/// A head or a pair (h > l) at a query.
struct Piece {
  std::size_t query, h, l;
};

}  // namespace

FiniteNHead finite_n_head(const TheoryModel& model, std::size_t query, std::size_t h) {
  return AtQuery(model, query).head(h);
}

FiniteNPair finite_n_pair(const TheoryModel& model, std::size_t query, std::size_t h, std::size_t l,
                          const FiniteNHead& first, const FiniteNHead& second) {
  return AtQuery(model, query).pair(h, l, first, second);
}

std::vector<FiniteN> finite_n(const TheoryModel& model, int threads) {
  const std::size_t heads = model.projections.size();
  const auto size = static_cast<Eigen::Index>(heads);
  std::vector<std::unique_ptr<AtQuery>> at;
  std::vector<Piece> singles, pairs;
  std::vector<FiniteN> all;
  const auto most = model.queries.size() * std::max(heads, heads * (heads - 1) / 2);
  const int at_once =
      static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(threads), most));
  for (std::size_t query = 0; query < model.queries.size(); ++query) {
    at.push_back(std::make_unique<AtQuery>(model, query, at_once));
    all.push_back(
        {Eigen::VectorXd(size), Eigen::MatrixXd(size, size), Eigen::MatrixXd(size, size)});
    for (std::size_t h = 0; h < heads; ++h) {
      singles.push_back({query, h, h});
      for (std::size_t l = 0; l < h; ++l) pairs.push_back({query, h, l});
    }
  }
  std::vector<FiniteNHead> own(singles.size());
  parallel_for(singles.size(), threads,
               [&](std::size_t i) { own[i] = at[singles[i].query]->head(singles[i].h); });
  std::vector<FiniteNPair> results(pairs.size());
  parallel_for(pairs.size(), threads, [&](std::size_t i) {
    const auto [query, h, l] = pairs[i];
    results[i] = at[query]->pair(l, h, own[query * heads + l], own[query * heads + h]);
  });

  const auto take = [&](const Piece& piece, double covariance, double change,
                        double normalisation_error) {
    const auto i = static_cast<Eigen::Index>(piece.h);
    const auto j = static_cast<Eigen::Index>(piece.l);
    FiniteN& one = all[piece.query];
    one.covariance(i, j) = one.covariance(j, i) = covariance;
    one.change(i, j) = one.change(j, i) = change;
    if (std::abs(normalisation_error) > std::abs(one.normalisation_error))
      one.normalisation_error = normalisation_error;
  };
  for (std::size_t i = 0; i < singles.size(); ++i) {
    all[singles[i].query].bias(static_cast<Eigen::Index>(singles[i].h)) = own[i].bias;
    take(singles[i], own[i].variance, own[i].change, own[i].normalisation_error);
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    take(pairs[i], results[i].covariance, results[i].change, results[i].normalisation_error);
  }
  return all;
}

}  // namespace headlab
