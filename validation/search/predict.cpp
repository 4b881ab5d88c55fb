// SPDX-License-Identifier: Apache-2.0
#include "validation/search/predict.h"

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <variant>

#include "validation/search/scenarios.h"
#include "validation/theory/first_order/first_order.h"
#include "validation/theory/model/model.h"

namespace headlab {
namespace {

/// E K_h^a K_l^b / (D_h^a D_l^b) at x = 0; tilt = 1/b^2.
double gaussian_moment(const std::vector<double>& cosines, double tilt, int a, int b) {
  double square = 1;
  for (double c : cosines) {
    square *=
        std::pow(1 + tilt, a + b) / ((1 + a * tilt) * (1 + b * tilt) - a * b * tilt * tilt * c * c);
  }
  return std::sqrt(square);
}

}  // namespace

Remainder gaussian_noise_factor(const std::vector<double>& cosines, double bandwidth,
                                std::uint64_t n) {
  const double tilt = 1 / (bandwidth * bandwidth);
  const double leading = gaussian_moment(cosines, tilt, 1, 1);
  // Both heads have one kernel and one bandwidth, so mu_02 = mu_20 and mu_12 = mu_21.
  const double own = gaussian_moment(cosines, tilt, 2, 0);
  const double third = gaussian_moment(cosines, tilt, 2, 1);
  return {leading, (2 * own + leading - 1 - 2 * third / leading) / static_cast<double>(n)};
}

Remainder softmax_noise_factor(const std::vector<double>& cosines, double temperature) {
  const double inverse = 1 / (temperature * temperature);
  if (!(inverse < 0.5)) {
    throw std::invalid_argument("mean noise over normal queries needs a temperature above sqrt(2)");
  }
  double square = 1;
  for (double c : cosines) {
    const double share = c * c * inverse;
    square *= (1 - share) * (1 - share) - share * inverse;
  }
  return {1 / std::sqrt(square), std::numeric_limits<double>::quiet_NaN()};
}

Remainder noise_factor(const Matrices& subspaces, const KernelLaw& kernel, std::uint64_t n) {
  const auto factor = [&](const std::vector<double>& cosines) {
    if (const auto* gaussian = std::get_if<GaussianKernel>(&kernel)) {
      return gaussian_noise_factor(cosines, gaussian->bandwidth, n);
    }
    if (const auto* softmax = std::get_if<SoftmaxKernel>(&kernel)) {
      return softmax_noise_factor(cosines, softmax->temperature);
    }
    throw std::invalid_argument("noise of the ensemble is closed for gaussian and softmax kernels");
  };
  const auto heads = subspaces.size();
  const auto aligned = std::vector<double>(static_cast<std::size_t>(subspaces.at(0).cols()), 1.0);
  const Remainder own = factor(aligned);
  double sum = static_cast<double>(heads) * own.value;
  double second = sum * own.remainder;
  for (std::size_t h = 0; h < heads; ++h) {
    for (std::size_t l = h + 1; l < heads; ++l) {
      const Remainder pair = factor(principal_cosines(subspaces[h], subspaces[l]));
      sum += 2 * pair.value;
      second += 2 * pair.value * pair.remainder;
    }
  }
  return {sum / static_cast<double>(heads * heads), second / sum};
}

double index_of(const std::string& name, const Matrices& subspaces, const KernelLaw& kernel) {
  std::optional<double> bandwidth, temperature;
  if (const auto* gaussian = std::get_if<GaussianKernel>(&kernel)) bandwidth = gaussian->bandwidth;
  if (const auto* softmax = std::get_if<SoftmaxKernel>(&kernel)) temperature = softmax->temperature;
  for (const Index& index : subspace_indices(subspaces, bandwidth, temperature)) {
    if (index.name == name && index.value) return *index.value;
  }
  throw std::invalid_argument("index " + name + " is not there, or undefined for these heads");
}

Scorer score_noise(const std::string& index, const KernelLaw& kernel, std::uint64_t n) {
  return [=](const HeadSet& set) {
    const Matrices subspaces = set.subspaces();
    const Remainder noise = noise_factor(subspaces, kernel, n);
    return Score{index_of(index, subspaces, kernel), noise.value, noise.remainder};
  };
}

Scorer score_mse(const std::string& index, const Condition& base) {
  // One model for each size of head sets, whose heads are then exchanged.
  using Key = std::tuple<int, int, int>;
  const auto models = std::make_shared<std::map<Key, TheoryModel>>();
  return [=](const HeadSet& set) {
    const Key key(set.sizes.heads, set.sizes.k, set.sizes.d);
    if (!models->contains(key)) {
      const std::string text =
          head_sets_condition_text(base, set.sizes, {"{ law = \"aligned\" }"}, base.seed, 8);
      models->emplace(key, theory_model(parse_scenario(text, "search").conditions.at(0)));
    }
    TheoryModel& model = models->at(key);
    model.projections = set.subspaces();
    const Eigen::VectorXd& a = model.head_weights;
    Score score{.index = index_of(index, model.projections, base.kernel)};
    const std::vector<FirstOrder> theory = first_order(model);
    for (const FirstOrder& at : theory) {
      const double bias = a.dot(at.bias);
      score.error += bias * bias + a.dot(at.covariance * a);
      score.remainder += a.dot(at.next_covariance * a);
    }
    score.remainder /= score.error;
    score.error /= static_cast<double>(theory.size());
    return score;
  };
}

}  // namespace headlab
