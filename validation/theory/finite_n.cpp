// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/finite_n.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <variant>

#include "engine/files/error.h"
#include "kernels/kernel_laws.h"
#include "kernels/parallel_for.h"
#include "kernels/statistics/stopping.h"
#include "validation/theory/exact/radial_finite_n.h"
#include "validation/theory/exact/scalar_finite_n.h"
#include "validation/theory/mechanisms/finite_n_tokens.h"

namespace headlab {
namespace {

using Eigen::MatrixXd;

/// Natural digits aimed at by each refinement.
constexpr double refinements[] = {18, 26, 36, 48};
/// Change, of the resolution before the last, and normalisation error at which refinement stops.
constexpr double enough_change = 1e-7;
constexpr double enough_normalisation = 1e-9;

/// Natural digits of the mean weights of a head on dependent points.
constexpr double sequence_digits = 26;

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
    stop_point();
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

bool are_orthogonal(const MatrixXd& a, const MatrixXd& b) {
  return (a.transpose() * b).cwiseAbs().maxCoeff() <= 1e-10;
}

/// Columns that are one length c and orthogonal: a kernel of the radius.
bool is_radial(const MatrixXd& w) {
  const MatrixXd gram = w.transpose() * w;
  const MatrixXd round = gram(0, 0) * MatrixXd::Identity(w.cols(), w.cols());
  return (gram - round).cwiseAbs().maxCoeff() <= 1e-12 * gram(0, 0);
}

/// Whether W_K W_Q^T is the same matrix: then both heads weigh alike what they see.
bool same_metric(const TheoryModel& model, std::size_t h, std::size_t l) {
  const MatrixXd& q_h = model.query_projection(h);
  const MatrixXd& q_l = model.query_projection(l);
  for (const MatrixXd& y : {q_h, q_l}) {
    const MatrixXd by_h = model.projections[h] * (q_h.transpose() * y);
    const MatrixXd by_l = model.projections[l] * (q_l.transpose() * y);
    if ((by_h - by_l).cwiseAbs().maxCoeff() >= 1e-12 * std::max(1.0, by_h.cwiseAbs().maxCoeff()))
      return false;
  }
  return true;
}

bool same_head(const TheoryModel& model, std::size_t h, std::size_t l) {
  return model.seen_by(h) == model.seen_by(l) &&
         model.keep.of_head(static_cast<int>(h)) == model.keep.of_head(static_cast<int>(l)) &&
         same_metric(model, h, l);
}

/// Whether the weights of two heads are independent and the noise is all that they share.
bool share_noise_alone(const TheoryModel& model, std::size_t h, std::size_t l) {
  if (!model.zero_regression || !model.constant_noise) return false;
  if (model.keep.shared || model.design.components.size() != 1) return false;
  return are_orthogonal(model.projections[h],
                        model.design.components[0].covariance * model.projections[l]);
}

/// Whether every token that a head sees has the same weight at a query.
bool is_constant(const TheoryModel& model, std::size_t query, std::size_t h) {
  if (model.is_softmax()) return scalar_head(model, model.queries[query], h).is_constant();
  return model.projections[h].isZero(0);
}

bool is_constant(const TheoryModel& model, std::size_t h) {
  for (std::size_t q = 0; q < model.queries.size(); ++q) {
    if (!is_constant(model, q, h)) return false;
  }
  return true;
}

/// Whether a head sees one scalar of a token.
bool is_scalar(const TheoryModel& model, std::size_t h) {
  return model.is_softmax() || model.projections[h].cols() == 1;
}

std::optional<std::string> stage_obstacle(const TheoryModel& model, std::size_t h) {
  const HeadKeep keep = model.keep.of_head(static_cast<int>(h));
  if (keep.rule == Keep::Rule::all || is_constant(model, h)) return std::nullopt;
  const std::string stage = "heads.mechanism.keep: ";
  if (model.keep.shared && model.projections.size() > 1)
    return stage + "\"union\" has no closed form" + simulation_instead;
  if (keep.rule == Keep::Rule::block)
    return stage + "blocks have no closed form, top, fraction and ratio have one" +
           simulation_instead;
  if (model.levels.empty() && model.correlation == 0) return std::nullopt;
  return stage + "has no closed form with levels or dependent points" + simulation_instead;
}

std::optional<std::string> levels_obstacle(const TheoryModel& model, std::size_t h) {
  const std::string stage = "heads.mechanism.levels: ";
  if (model.levels.size() > 2)
    return stage + "exact finite-n theory is of two successive scales, here " +
           std::to_string(model.levels.size()) +
           " - use headlab theory --source first_order (softmax, noise alone), simulate with "
           "headlab run, or use data.fixed_design = true";
  if (!is_scalar(model, h) || model.design.components.size() != 1) {
    return stage +
           "exact finite-n theory needs heads.dim = 1 or the softmax kernel, on a normal design" +
           simulation_instead;
  }
  return std::nullopt;
}

const std::string many = "exact finite-n theory of a Gaussian kernel with heads.dim > 1 ";
const std::string otherwise =
    " - use headlab theory --source first_order, heads.dim = 1, the softmax kernel, or simulate";

std::optional<std::string> head_obstacle(const TheoryModel& model, std::size_t h) {
  if (const auto obstacle = stage_obstacle(model, h)) return obstacle;
  if (model.correlation != 0) {
    for (std::size_t q = 0; q < model.queries.size(); ++q) {
      if (const auto obstacle = sequence_obstacle(model, q, h)) return obstacle;
    }
    return std::nullopt;
  }
  if (!model.levels.empty()) return levels_obstacle(model, h);
  if (is_scalar(model, h)) return std::nullopt;
  const auto radial = radial_obstacle(model);
  if ((!radial && is_radial(model.projections[h])) || is_planar(model, h)) return std::nullopt;
  if (radial) return many + *radial + otherwise;
  return many + "needs a transformation that stretches all directions alike" + otherwise;
}

/// Two heads that are functions of radii, where radial_obstacle() finds none.
enum class RadialPair { none, orthogonal, aligned };
RadialPair radial_pair(const TheoryModel& model, std::size_t h, std::size_t l) {
  const MatrixXd& w_h = model.projections[h];
  const MatrixXd& w_l = model.projections[l];
  if (!is_radial(w_h) || !is_radial(w_l)) return RadialPair::none;
  if (are_orthogonal(w_h, w_l)) return RadialPair::orthogonal;
  return w_h.cols() > 1 && same_metric(model, h, l) ? RadialPair::aligned : RadialPair::none;
}

/// Whether pairs are heads on independent tokens that keep all weights.
bool covers_pairs(const TheoryModel& model, std::size_t h, std::size_t l) {
  return model.correlation == 0 && model.levels.empty() &&
         (model.keep.off() || (is_constant(model, h) && is_constant(model, l)));
}

std::optional<std::string> pair_obstacle(const TheoryModel& model, std::size_t h, std::size_t l) {
  for (const std::size_t head : {h, l}) {
    if (const auto obstacle = head_obstacle(model, head)) return obstacle;
  }
  const bool independent = model.correlation == 0;
  if ((independent && model.shared_tokens(h, l) == 0) || same_head(model, h, l) ||
      share_noise_alone(model, h, l)) {
    return std::nullopt;
  }
  if (!covers_pairs(model, h, l)) {
    return std::string(!independent           ? "data.sequence"
                       : model.levels.empty() ? "heads.mechanism.keep"
                                              : "heads.mechanism.levels") +
           ": pairs of heads have a closed form where they see the same tokens through the same "
           "projection, " +
           (independent ? "no token in common, " : "") +
           "or noise alone through orthogonal projections" + simulation_instead;
  }
  if (is_scalar(model, h) && is_scalar(model, l)) return std::nullopt;
  if (on_one_plane(model, h, l)) return std::nullopt;
  if (const auto radial = radial_obstacle(model)) return many + *radial + otherwise;
  if (radial_pair(model, h, l) == RadialPair::none) {
    return many + "needs heads on orthogonal or identical subspaces" + otherwise;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> finite_n_obstacle(const TheoryModel& model, std::size_t h,
                                             std::size_t l) {
  if (!model.is_softmax() && !std::holds_alternative<GaussianKernel>(*model.kernel)) {
    return "exact finite-n theory is for the kernel laws gaussian and softmax - simulate with "
           "headlab run";
  }
  return h == l ? head_obstacle(model, h) : pair_obstacle(model, h, l);
}

namespace {

/// Heads and pairs at one query.
class AtQuery {
 public:
  AtQuery(const TheoryModel& model, std::size_t query, int at_once = 1)
      : model_(model), query_(query), at_once_(at_once) {
    const bool is_gaussian = std::holds_alternative<GaussianKernel>(*model.kernel);
    if (is_gaussian && !radial_obstacle(model))
      radial_ = std::make_unique<RadialHeads>(model, query);
  }

  FiniteNHead head(std::size_t h) const {
    if (const auto obstacle = finite_n_obstacle(model_, h, h)) throw InvalidInput(*obstacle);
    const auto attempt = [&](const Resolution& resolution) {
      const HeadMoments moments = head_moments_at(h, resolution);
      const double variance = moments.square - moments.mean * moments.mean;
      return Attempt<FiniteNHead>{{moments.mean, variance, 0, moments.normalisation_error},
                                  variance,
                                  moments.square,
                                  moments.coarsened};
    };
    return refine<FiniteNHead>(attempt, at_once_, "head " + std::to_string(h));
  }

  FiniteNPair pair(std::size_t h, std::size_t l, const FiniteNHead& first,
                   const FiniteNHead& second) const {
    if (const auto obstacle = finite_n_obstacle(model_, h, l)) throw InvalidInput(*obstacle);
    if (same_head(model_, h, l)) return {first.variance, first.change, first.normalisation_error};
    if (model_.shared_tokens(h, l) == 0 && model_.correlation == 0) return {};
    const auto compute = pair_form(h, l);
    if (!compute) return {noise_of_independent_weights(h, l), 0, 0};
    const double scale = std::sqrt((first.variance + first.bias * first.bias) *
                                   (second.variance + second.bias * second.bias));
    const auto attempt = [&](const Resolution& resolution) {
      const PairMoments moments = compute(resolution);
      const double covariance = moments.product - first.bias * second.bias;
      return Attempt<FiniteNPair>{
          {covariance, 0, moments.normalisation_error}, covariance, scale, moments.coarsened};
    };
    return refine<FiniteNPair>(attempt, at_once_,
                               "heads " + std::to_string(h) + " and " + std::to_string(l));
  }

 private:
  HeadMoments head_moments_at(std::size_t h, const Resolution& resolution) const {
    const std::uint64_t n = model_.tokens(h);
    const double truth = model_.truth[query_];
    const bool as_radial = radial_ && model_.levels.empty() && is_radial(model_.projections[h]);
    const ScalarHead head =
        as_radial ? radial_->radial(h) : scalar_head(model_, model_.queries[query_], h);
    if (model_.correlation != 0) return sequence_moments(model_, query_, h, resolution);
    if (!model_.levels.empty()) return two_level_moments(model_, n, truth, head, resolution);
    if (!as_radial && !is_scalar(model_, h))
      return planar_head_moments(model_, query_, h, resolution);
    const DesignOf design = [&](const SigmaRange& range, const Resolution& at,
                                const LevelRange& levels) {
      return as_radial ? radial_->design(h, range, at, levels)
                       : scalar_design(model_, truth, head, range, at, levels);
    };
    const HeadKeep keep = model_.keep.of_head(static_cast<int>(h));
    const bool keeps_all = is_constant(model_, query_, h);
    if (!keeps_all && keep.rule == Keep::Rule::top && keep.top < n)
      return top_moments(n, keep.top, head, design, resolution);
    if (!keeps_all && keep.rule == Keep::Rule::ratio)
      return ratio_moments(n, keep.ratio, head, design, resolution);
    if (as_radial) return radial_->head(h, resolution);
    return scalar_head_moments(model_, n, truth, head, sigma_range(head, n, resolution),
                               resolution);
  }

  /// The quadrature of a pair; none where the weights of the two are independent, and that is all
  /// that is known.
  std::function<PairMoments(const Resolution&)> pair_form(std::size_t h, std::size_t l) const {
    if (!covers_pairs(model_, h, l)) return nullptr;
    switch (radial_ ? radial_pair(model_, h, l) : RadialPair::none) {
      case RadialPair::orthogonal:
        return [this, h, l](const Resolution& at) { return radial_->pair(h, l, at); };
      case RadialPair::aligned:
        return [this, h, l](const Resolution& at) { return radial_->aligned_pair(h, l, at); };
      case RadialPair::none:
        break;
    }
    if (on_one_plane(model_, h, l)) {
      return [this, h, l](const Resolution& at) {
        return planar_pair_moments(model_, query_, h, l, at);
      };
    }
    if (!is_scalar(model_, h) || !is_scalar(model_, l)) return nullptr;
    return [this, h, l](const Resolution& at) {
      const Eigen::VectorXd& x = model_.queries[query_];
      return scalar_pair_moments(model_, PairTokens(model_, h, l), model_.truth[query_],
                                 scalar_head(model_, x, h), scalar_head(model_, x, l), at);
    };
  }

  /// s2 sum_i E w_hi E w_li over the tokens that both see.
  double noise_of_independent_weights(std::size_t h, std::size_t l) const {
    const double s2 = model_.noise_sd * model_.noise_sd;
    if (model_.correlation == 0) {
      return s2 * static_cast<double>(model_.shared_tokens(h, l)) /
             (static_cast<double>(model_.tokens(h)) * static_cast<double>(model_.tokens(l)));
    }
    const auto weights = [&](std::size_t i) {
      return sequence_moments(model_, query_, i, Resolution{sequence_digits, max_nodes, at_once_})
          .weights;
    };
    const SeenTokens of_h = model_.seen_by(h);
    const SeenTokens of_l = model_.seen_by(l);
    const Eigen::VectorXd first = weights(h);
    const Eigen::VectorXd second = weights(l);
    double sum = 0;
    for (std::uint64_t token = of_h.begin; token < of_h.end; ++token) {
      if (!of_l.holds(token)) continue;
      sum += first(static_cast<Eigen::Index>(of_h.rank(token))) *
             second(static_cast<Eigen::Index>(of_l.rank(token)));
    }
    return s2 * sum;
  }

  const TheoryModel& model_;
  std::size_t query_;
  int at_once_;                          ///< heads or pairs, see Resolution
  std::unique_ptr<RadialHeads> radial_;  ///< none where no head is one of radii
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
