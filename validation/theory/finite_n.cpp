// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/finite_n.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <variant>

#include "engine/error.h"
#include "validation/theory/radial_finite_n.h"
#include "validation/theory/scalar_finite_n.h"

namespace headlab {
namespace {

/// Natural digits aimed at by each refinement.
constexpr double refinements[] = {18, 26, 36, 48};
/// Change, of the resolution before the last, and certificate at which refinement stops.
constexpr double enough_change = 1e-7;
constexpr double enough_certificate = 1e-9;

/// Terms of a radial head's regression: their squares are integrated pair by pair.
constexpr Eigen::Index most_cosines = 32;

/// Nodes of a scalar's grid.
constexpr Eigen::Index most_nodes = 25000;

/// What one resolution gives.
template <class Result>
struct Attempt {
  Result result;   ///< its change is not yet known
  double figure;   ///< what changes
  double scale;    ///< that changes are relative to
  bool coarsened;  ///< finer is out of reach
};

/// Refines until neither the figure nor the certificate moves or a limit is met, and returns the
/// last result with its change, or the one before where the limit made the last one worse.
template <class Result, class Compute>
Result refine(const Compute& compute, const std::string& what) {
  Attempt<Result> best = compute(Resolution{refinements[0], most_nodes});
  for (std::size_t i = 1; i < std::size(refinements) && !best.coarsened; ++i) {
    Attempt<Result> next = compute(Resolution{refinements[i], most_nodes});
    const double change = next.figure - best.figure;
    const bool worse =
        next.coarsened && std::abs(next.result.certificate) > std::abs(best.result.certificate);
    if (!worse) best = next;
    best.result.change = change;
    const bool settled = std::abs(change) <= enough_change * best.scale &&
                         std::abs(best.result.certificate) <= enough_certificate;
    if (settled || worse) break;
  }
  require_certificate(best.result.certificate, what);
  return best.result;
}

/// Whether heads see radii: a Gaussian kernel and k > 1.
bool is_radial(const TheoryModel& model) {
  return std::holds_alternative<GaussianKernel>(model.kernel) && model.projections[0].cols() > 1;
}

bool same_subspace(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  return (a * (a.transpose() * b) - b).cwiseAbs().maxCoeff() < 1e-12;
}

}  // namespace

std::optional<std::string> finite_n_obstacle(const TheoryModel& model, std::size_t h,
                                             std::size_t l) {
  if (std::holds_alternative<SoftmaxKernel>(model.kernel)) return std::nullopt;
  if (!std::holds_alternative<GaussianKernel>(model.kernel)) {
    return "exact finite-n theory is for the kernel laws gaussian and softmax - simulate with "
           "headlab run";
  }
  if (model.projections[h].cols() == 1) return std::nullopt;
  const std::string many = "exact finite-n theory of a Gaussian kernel with heads.dim > 1 ";
  const std::string otherwise =
      " - use --source first_order, heads.dim = 1, the softmax kernel, or simulate with headlab "
      "run";
  if (!model.standard_design) {
    return many + "needs the design N(0, I)" + otherwise;
  }
  if (!model.constant_noise) {
    return many + "needs noise of constant variance" + otherwise;
  }
  if (!model.zero_regression) {
    const auto* cosines = dynamic_cast<const CosineSumFunction*>(model.regression.get());
    if (!cosines || cosines->amplitude().size() > most_cosines) {
      return many + "needs a regression that is zero or a sum of up to " +
             std::to_string(most_cosines) + " cosines" + otherwise;
    }
  }
  const Eigen::MatrixXd inner = model.projections[h].transpose() * model.projections[l];
  if (inner.cwiseAbs().maxCoeff() > 1e-10 &&
      !same_subspace(model.projections[h], model.projections[l])) {
    return many + "needs heads on orthogonal or identical subspaces" + otherwise;
  }
  return std::nullopt;
}

FiniteNHead finite_n_head(const TheoryModel& model, std::size_t query, std::size_t h) {
  if (const auto obstacle = finite_n_obstacle(model, h, h)) throw Refused(*obstacle);
  const auto compute = [&](const Resolution& resolution) {
    if (is_radial(model)) return radial_head_moments(model, query, h, resolution);
    const ScalarHead head = scalar_head(model, model.queries[query], h);
    return scalar_head_moments(model, model.truth[query], head,
                               sigma_range(head, model.n, resolution), resolution);
  };
  const auto attempt = [&](const Resolution& resolution) {
    const HeadMoments moments = compute(resolution);
    const double variance = moments.square - moments.mean * moments.mean;
    return Attempt<FiniteNHead>{{moments.mean, variance, 0, moments.certificate},
                                variance,
                                moments.square,
                                moments.coarsened};
  };
  return refine<FiniteNHead>(attempt, "head " + std::to_string(h + 1));
}

FiniteNPair finite_n_pair(const TheoryModel& model, std::size_t query, std::size_t h, std::size_t l,
                          const FiniteNHead& first, const FiniteNHead& second) {
  if (const auto obstacle = finite_n_obstacle(model, h, l)) throw Refused(*obstacle);
  if (same_subspace(model.projections[h], model.projections[l])) {
    return {first.variance, first.change, first.certificate};
  }
  const auto compute = [&](const Resolution& resolution) {
    if (is_radial(model)) return orthogonal_pair_moments(model, query, h, l, resolution);
    return scalar_pair_moments(model, model.truth[query],
                               scalar_head(model, model.queries[query], h),
                               scalar_head(model, model.queries[query], l), resolution);
  };
  const double scale = std::sqrt((first.variance + first.bias * first.bias) *
                                 (second.variance + second.bias * second.bias));
  const auto attempt = [&](const Resolution& resolution) {
    const PairMoments moments = compute(resolution);
    const double covariance = moments.product - first.bias * second.bias;
    return Attempt<FiniteNPair>{
        {covariance, 0, moments.certificate}, covariance, scale, moments.coarsened};
  };
  return refine<FiniteNPair>(attempt,
                             "heads " + std::to_string(h + 1) + " and " + std::to_string(l + 1));
}

FiniteN finite_n(const TheoryModel& model, std::size_t query, int threads) {
  const std::size_t heads = model.projections.size();
  const auto size = static_cast<Eigen::Index>(heads);
  std::vector<FiniteNHead> own(heads);
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t h = 0; h < heads; ++h) {
    own[h] = finite_n_head(model, query, h);
    for (std::size_t l = 0; l < h; ++l) pairs.emplace_back(l, h);
  }
  std::vector<FiniteNPair> results(pairs.size());
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  {
    std::vector<std::jthread> workers;
    for (int worker = 0; worker < threads; ++worker) {
      workers.emplace_back([&] {
        for (std::size_t i = next++; i < pairs.size(); i = next++) {
          try {
            const auto [h, l] = pairs[i];
            results[i] = finite_n_pair(model, query, h, l, own[h], own[l]);
          } catch (...) {
            const std::scoped_lock lock(mutex);
            if (!failure) failure = std::current_exception();
            next = pairs.size();
          }
        }
      });
    }
  }
  if (failure) std::rethrow_exception(failure);

  FiniteN all = {Eigen::VectorXd(size), Eigen::MatrixXd(size, size), Eigen::MatrixXd(size, size)};
  const auto take = [&](double certificate) {
    if (std::abs(certificate) > std::abs(all.certificate)) all.certificate = certificate;
  };
  for (std::size_t h = 0; h < heads; ++h) {
    const auto i = static_cast<Eigen::Index>(h);
    all.bias(i) = own[h].bias;
    all.covariance(i, i) = own[h].variance;
    all.change(i, i) = own[h].change;
    take(own[h].certificate);
  }
  for (std::size_t p = 0; p < pairs.size(); ++p) {
    const auto i = static_cast<Eigen::Index>(pairs[p].first);
    const auto j = static_cast<Eigen::Index>(pairs[p].second);
    all.covariance(i, j) = all.covariance(j, i) = results[p].covariance;
    all.change(i, j) = all.change(j, i) = results[p].change;
    take(results[p].certificate);
  }
  return all;
}

}  // namespace headlab
