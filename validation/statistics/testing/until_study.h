// SPDX-License-Identifier: Apache-2.0
/// \file How often the 95 % interval of a run that ends by its standard error covers the truth, and
/// what ending so costs.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/files/document.h"
#include "engine/moments/estimates.h"
#include "engine/moments/precision.h"
#include "kernels/parallel_for.h"
#include "validation/statistics/intervals.h"

namespace headlab {

/// What the estimate f of one head at one query is, replicate by replicate. The regression function
/// is 0 there, so that mse is the mean of f^2 and head_bias that of f.
struct UntilSetting {
  std::string name;
  std::string until;                   ///< target, for a figure of which truth and least are known
  double truth;                        ///< of the figure
  double least;                        ///< replicates at which its standard error is the target
  std::function<double(double)> head;  ///< f of a standard normal draw
};

/// The settings, with targets that need `least` replicates: a figure that is a mean of normal, of
/// chi-squared, and of lognormal numbers of relative variance e^2.25 - 1.
inline std::vector<UntilSetting> until_settings(double least) {
  constexpr double sigma = 1.5;  // of log f^2
  const auto percent = [&](double relative_variance) {
    return number_text(100 * std::sqrt(relative_variance / least)) + "%";
  };
  return {
      {"normal", "head_bias[0,0]=" + number_text(1 / std::sqrt(least)), 0, least,
       [](double normal) { return normal; }},
      {"chi-squared", "mse=" + percent(2), 1, least, [](double normal) { return normal; }},
      {"lognormal", "mse=" + percent(std::exp(sigma * sigma) - 1), std::exp(sigma * sigma / 2),
       least, [](double normal) { return std::exp(sigma / 2 * normal); }},
  };
}

/// What many studies of one setting came to.
struct UntilRates {
  std::uint64_t studies = 0;
  std::uint64_t covered = 0;        ///< intervals at the last look that hold the truth
  std::uint64_t covered_fixed = 0;  ///< the same of runs of `least` replicates
  double looks = 0;                 ///< mean number
  double excess = 0;                ///< mean of replicates / least - 1
};

/// One run that grows.
class UntilStudy {
 public:
  UntilStudy(const UntilSetting& setting, std::uint64_t seed) : setting_(setting), random_(seed) {}

  void grow(std::uint64_t replicates) {
    while (tree_.count() < replicates) {
      const std::uint64_t size = tree_.count() < first_leaf ? 1 : leaf_replicates;
      std::vector<double> values(std::min(size, replicates - tree_.count()));
      for (double& value : values) value = setting_.head(normal_(random_));
      Moments moments;
      leaf_moments(tree_.layout(), values, static_cast<int>(values.size()), moments);
      tree_.append(std::move(moments));
    }
    const std::vector<double> weight = {1}, truth = {0};
    estimates_ = estimate(tree_, weight, truth);
  }

  bool covers(const FigureName& name) const {
    const Estimate& figure = *find_figure<Estimate>(estimates_, name);
    const double quantile = student_quantile(0.975, estimates_.nodes() - 1);
    return std::abs(figure.value - setting_.truth) <= quantile * figure.mcse;
  }

  const ConditionEstimates& estimates() const { return estimates_; }
  std::uint64_t replicates() const { return tree_.count(); }

 private:
  const UntilSetting& setting_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  MomentTree tree_{{.queries = 1, .heads = 1, .conditional = false}};
  ConditionEstimates estimates_;
};

/// The same rates for any number of threads.
inline UntilRates until_rates(const UntilSetting& setting, std::uint64_t studies,
                              std::uint64_t seed, int threads) {
  const std::vector<PrecisionTarget> targets = parse_until(setting.until);
  std::vector<UntilRates> all(studies);
  parallel_for(studies, threads, [&](std::size_t i) {
    UntilStudy study(setting, seed + 2 * i);
    Precision precision{.targets = targets, .most = std::uint64_t{1} << 40, .conditions = 1};
    while (!precision.done()) {
      study.grow(precision.goal());
      Look look{.replicates = study.replicates()};
      look.add(targets, 0, study.estimates());
      precision.looks.push_back(look);
    }
    UntilStudy fixed(setting, seed + 2 * i + 1);
    fixed.grow(whole_nodes_from(static_cast<std::uint64_t>(setting.least)));
    const FigureName& figure = targets[0].figure;
    all[i] = {.studies = 1,
              .covered = study.covers(figure) ? 1u : 0u,
              .covered_fixed = fixed.covers(figure) ? 1u : 0u,
              .looks = static_cast<double>(precision.looks.size()),
              .excess = static_cast<double>(study.replicates()) / setting.least - 1};
  });
  UntilRates rates;
  const auto share = 1 / static_cast<double>(studies);
  for (const UntilRates& one : all) {
    rates.studies += one.studies;
    rates.covered += one.covered;
    rates.covered_fixed += one.covered_fixed;
    rates.looks += share * one.looks;
    rates.excess += share * one.excess;
  }
  return rates;
}

}  // namespace headlab
