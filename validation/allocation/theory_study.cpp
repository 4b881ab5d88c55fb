// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/theory_study.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <variant>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/laws.h"
#include "validation/allocation/tuning.h"
#include "validation/theory/theory.h"

namespace headlab {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Widths that `tuned` tries: from here, in units of the design (of its root k for temperatures),
/// downwards in such steps, so many at most.
constexpr double widest_window = 8;
const double tuning_step = std::cbrt(2.0);
constexpr int max_widths = 80;
constexpr int steps_past_least = 3;
/// Octaves in a row below the scenario's width over which the exact error rises before narrower
/// windows are left out.
constexpr int max_rises = 2;

double noise_sd(const Condition& condition) {
  return std::get<NormalNoise>(*condition.noise).sd;
}

template <class Law>
std::string quoted_name(const Law& laws) {
  return std::visit([](const auto& law) { return "\"" + std::string(law.name) + "\""; }, laws);
}

double widest_width(const Condition& base, int k) {
  return widest_window * (is_softmax(base) ? std::sqrt(k) : 1.0);
}

/// The best width of one kernel, of errors averaged over queries and truths: from wide windows
/// downwards, to some steps past the least error.
class WidthSearch {
 public:
  WidthSearch(const Condition& base, int k) : widest_(widest_width(base, k)) {}

  bool is_open() const {
    if (errors_.size() == max_widths) return false;
    // The least error is as many steps back: rounding in a flat stretch does not hold the search
    // up.
    return errors_.empty() || errors_.end() - std::ranges::min_element(errors_) <= steps_past_least;
  }
  /// The one to try next.
  double width() const { return at(static_cast<double>(errors_.size())); }
  void add(double error) { errors_.push_back(error); }

  double best() const {
    const std::vector<double>& e = errors_;
    const auto least = static_cast<std::size_t>(std::ranges::min_element(e) - e.begin());
    double step = static_cast<double>(least);
    if (least > 0 && least + 1 < e.size()) {
      const double left = e[least - 1] - e[least], right = e[least + 1] - e[least];
      if (left + right > 0) step += 0.5 * (left - right) / (left + right);
    }
    return at(step);
  }

 private:
  double at(double step) const { return widest_ / std::pow(tuning_step, step); }

  double widest_;
  std::vector<double> errors_;
};

/// Everything about one dimension that does not depend on n.
struct Dimension {
  const Condition& base;
  const TruthLaw& truth;
  int budget;
  int k;
  int threads;
  double normalisation_error = 0;

  std::vector<PopulationHead> heads(const std::vector<PopulationSetting>& settings) {
    const PopulationDomain domain = {
        .softmax = is_softmax(base), .k = k, .correlations = truth.correlations};
    std::vector<PopulationHead> all = population_heads(domain, settings, threads);
    for (const PopulationHead& head : all) {
      normalisation_error = std::max(normalisation_error, std::abs(head.normalisation_error));
    }
    return all;
  }

  PopulationError error(const PopulationHead& head, std::uint64_t n, double heads) const {
    return population_error(head, {heads, k, dimension_of(base), n, noise_sd(base)}, truth);
  }
  double smooth(const PopulationHead& head, std::uint64_t n) const {
    return error(head, n, static_cast<double>(budget) / k).mse;
  }

  /// The best width at each n.
  std::vector<PopulationSetting> tuned(std::span<const std::uint64_t> sizes);
};

std::vector<PopulationSetting> Dimension::tuned(std::span<const std::uint64_t> sizes) {
  std::vector<WidthSearch> searches(sizes.size(), WidthSearch(base, k));
  // Searches that are open are at one step, so that heads of one width are computed together.
  for (;;) {
    std::vector<PopulationSetting> settings;
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (!searches[i].is_open()) continue;
      open.push_back(i);
      settings.push_back({searches[i].width(), sizes[i]});
    }
    if (open.empty()) break;
    const std::vector<PopulationHead> all = heads(settings);
    for (std::size_t j = 0; j < open.size(); ++j) {
      searches[open[j]].add(smooth(all[j], sizes[open[j]]));
    }
  }
  std::vector<PopulationSetting> best;
  for (std::size_t i = 0; i < sizes.size(); ++i) best.push_back({searches[i].best(), sizes[i]});
  return best;
}

/// Fills the row of dimension k of every study.
void add_rows(Dimension& dimension, BandwidthRule rule, std::span<const std::uint64_t> sizes,
              TheoryGrowth& growth) {
  std::vector<PopulationSetting> settings;
  if (rule == BandwidthRule::tuned) {
    settings = dimension.tuned(sizes);
  } else {
    Condition one = dimension.base;
    one.k = dimension.k;
    for (const std::uint64_t n : sizes) {
      one.n = n;
      settings.push_back({width_by_rule(one, rule), n});
    }
  }
  const std::vector<PopulationHead> heads = dimension.heads(settings);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    TheoryRow row{.heads = dimension.budget / dimension.k,
                  .k = dimension.k,
                  .softmax = growth.softmax,
                  .width = settings[i].width,
                  .at_boundary = rule == BandwidthRule::tuned &&
                                 settings[i].width >= widest_width(dimension.base, dimension.k),
                  .error = dimension.error(heads[i], sizes[i], dimension.budget / dimension.k),
                  .smooth_mse = dimension.smooth(heads[i], sizes[i])};
    growth.change = std::max(growth.change, row.error.change);
    growth.studies[i].rows.push_back(row);
  }
  growth.normalisation_error = std::max(growth.normalisation_error, dimension.normalisation_error);
}

/// k* between the dimensions for which `use` is true.
template <class Use>
BestDimension best_of(const std::vector<TheoryRow>& rows, const Use& use) {
  std::vector<int> dims;
  std::vector<double> errors;
  for (const TheoryRow& row : rows) {
    if (!use(row)) continue;
    dims.push_back(row.k);
    errors.push_back(row.smooth_mse);
  }
  return interpolated_best(dims, errors);
}

/// An empty study of each n, ascending.
TheoryGrowth empty_growth(const Condition& base, int budget, TheoryMean mean, BandwidthRule rule,
                          std::span<const std::uint64_t> sizes) {
  TheoryGrowth growth{.budget = budget,
                      .mean = mean,
                      .rule = rule,
                      .softmax = is_softmax(base),
                      .parameters = base.parameters};
  for (const std::uint64_t n : sizes) growth.studies.push_back({.budget = budget, .n = n});
  std::ranges::sort(growth.studies, {}, &TheoryStudy::n);
  return growth;
}

/// Fills in what follows from the rows.
void conclude(TheoryGrowth& growth) {
  for (TheoryStudy& study : growth.studies) {
    const auto by_mse = [](const TheoryRow& row) { return row.error.mse; };
    study.best = static_cast<std::size_t>(std::ranges::min_element(study.rows, {}, by_mse) -
                                          study.rows.begin());
    study.divisors =
        best_of(study.rows, [&](const TheoryRow& row) { return growth.budget % row.k == 0; });
    study.continuous = growth.mean == TheoryMean::population
                           ? best_of(study.rows, [](const TheoryRow&) { return true; })
                           : study.divisors;
  }
  for (std::size_t i = 1; i < growth.studies.size(); ++i) {
    const TheoryStudy &from = growth.studies[i - 1], &to = growth.studies[i];
    const double decades =
        std::log10(static_cast<double>(to.n)) - std::log10(static_cast<double>(from.n));
    growth.slopes.push_back(from.continuous.at_end || to.continuous.at_end
                                ? nan
                                : (to.continuous.value - from.continuous.value) / decades);
  }
}

/// Gives a candidate the width of least error; true where that is an end of the range searched.
bool tune_exactly(Condition& one, int threads) {
  OctaveSearch search(one);
  int narrowest = std::numeric_limits<int>::min();
  const auto any_new = [&](std::vector<int> steps) {
    bool found = false;
    double last = std::numeric_limits<double>::infinity();
    int rises = 0;
    std::ranges::sort(steps, std::ranges::greater{});
    for (const int step : steps) {
      if (step < narrowest || !search.is_new(step)) continue;
      set_kernel_width(one.kernel.own(), search.width(step));
      try {
        const double error = compute_theory(one, TheorySource::exact, threads).figures.mse.value;
        search.errors[step] = error;
        found = true;
        rises = step < 0 && error > last ? rises + 1 : 0;
        last = error;
        // Narrower windows cost most and promise least.
        if (rises == max_rises) narrowest = step;
      } catch (const InvalidInput&) {
        // Windows that hardly hold a key: their integrals do not converge.
        if (search.errors.empty()) throw;
        narrowest = step + 1;
      }
    }
    return found;
  };
  any_new(search.first_grid());
  while (any_new(search.beyond_the_end())) {
  }
  for (int reach = OctaveSearch::octave / 2; reach > 0; reach /= 2) {
    any_new(search.around_the_best(reach));
  }
  set_kernel_width(one.kernel.own(), search.best_width());
  return search.is_at_boundary();
}

/// One candidate, at its width.
TheoryRow exact_row(const Condition& condition, int threads, double& normalisation_error) {
  const Theory theory = compute_theory(condition, TheorySource::exact, threads);
  const auto& figures = theory.figures;
  if (!(theory.normalisation_error <= normalisation_error))
    normalisation_error = theory.normalisation_error;
  return {.heads = condition.heads,
          .k = condition.k,
          .softmax = is_softmax(condition),
          .width = kernel_width(*condition.kernel),
          .error = {.mse = figures.mse.value,
                    .squared_bias = figures.bias_squared.value,
                    .variance = figures.head_variance_mean.value,
                    .covariance = condition.heads > 1 ? figures.head_covariance_mean.value : 0,
                    // That of the bias is not known.
                    .change = std::abs(figures.variance_term.remainder) +
                              std::abs(figures.covariance_term.remainder)},
          .smooth_mse = figures.mse.value};
}

}  // namespace

std::vector<int> theory_dims(int budget, int d) {
  const int most = std::min({budget, d, max_theory_dim});
  std::vector<int> dims;
  for (int k = 1; k <= most; ++k) {
    const double octaves = std::log2(k / 32.0) * 4;
    const bool nearest = std::abs(k - 32 * std::pow(2, std::round(octaves) / 4)) <= 0.5;
    if (k <= 32 || nearest || budget % k == 0 || k == most) dims.push_back(k);
  }
  return dims;
}

void require_theory(const Condition& condition, int budget) {
  const std::string otherwise = " - take that, or --source simulation";
  const auto* normal = std::get_if<NormalDesign>(&*condition.design);
  if (!normal || !normal->mean.empty() || !normal->covariance.empty() || normal->ar1) {
    reject(condition, "data.design",
           "theory needs the design N(0, I), law \"normal\" alone" + otherwise);
  }
  if (condition.fixed_design) {
    reject(condition, "data.fixed_design", "theory is the mean over designs" + otherwise);
  }
  if (any_stage(condition.mechanism)) {
    reject(condition, "heads.mechanism",
           "theory is of heads without stages - leave them out, or take --source simulation");
  }
  if (!std::holds_alternative<IndependentSequence>(*condition.sequence)) {
    reject(condition, "data.sequence",
           "theory is of independent points - leave it out, or take --source simulation");
  }
  if (!std::holds_alternative<NormalNoise>(*condition.noise)) {
    reject(condition, "data.noise",
           "theory needs normal noise, this one is " + quoted_name(*condition.noise) + otherwise);
  }
  if (!is_softmax(condition) && !std::holds_alternative<GaussianKernel>(*condition.kernel)) {
    reject(condition, "heads.kernel",
           "theory needs a gaussian or softmax kernel, this one is " +
               quoted_name(*condition.kernel) + otherwise);
  }
  if (!std::holds_alternative<OrthogonalSubspaces>(*condition.subspaces)) {
    reject(condition, "heads.subspaces",
           "theory needs orthogonal heads, these are " + quoted_name(*condition.subspaces) +
               otherwise);
  }
  if (!std::holds_alternative<UniformWeights>(*condition.weights)) {
    reject(
        condition, "heads.weights",
        "theory needs uniform weights, these are " + quoted_name(*condition.weights) + otherwise);
  }
  if (!std::holds_alternative<DesignQueries>(*condition.queries)) {
    reject(condition, "queries",
           "theory is the mean over queries of law \"design\", these are " +
               quoted_name(*condition.queries) + otherwise);
  }
  const TruthLaw truth = truth_law(condition);
  if (is_softmax(condition) && !truth.coordinates.empty()) {
    reject(condition, "data.regression",
           "theory of the softmax kernel is for random_cosines and zero, not for additive" +
               otherwise);
  }
  if (const auto* random = std::get_if<RandomCosinesRegression>(&*condition.regression);
      random && random->length_scale < shortest_theory_length) {
    reject(condition, "data.regression.length_scale",
           "theory resolves correlation lengths of " + number_text(shortest_theory_length) +
               " and more" + otherwise);
  }
  if (const auto* additive = std::get_if<AdditiveRegression>(&*condition.regression)) {
    for (const double frequency : additive->frequency) {
      if (std::abs(frequency) <= highest_theory_frequency) continue;
      reject(
          condition, "data.regression.frequency",
          "theory resolves frequencies up to " + number_text(highest_theory_frequency) + otherwise);
    }
  }
  const int d = dimension_of(condition);
  if (budget < 1 || budget > d) {
    throw InvalidInput("--budget: is " + std::to_string(budget) +
                       ", but heads are orthogonal up to D = d = " + std::to_string(d) +
                       " (allowed with --source theory: 1 to that) - take a smaller one");
  }
}

TheoryGrowth study_theory(const Condition& base, int budget, BandwidthRule rule,
                          std::span<const std::uint64_t> sizes, int threads,
                          const std::function<void(double)>& done) {
  const auto start = std::chrono::steady_clock::now();
  require_theory(base, budget);
  require_rule_for(base, rule);
  TheoryGrowth growth = empty_growth(base, budget, TheoryMean::population, rule, sizes);
  std::vector<std::uint64_t> ascending;
  for (const TheoryStudy& study : growth.studies) {
    if (study.n < 2) throw InvalidInput("--n: is 1 (allowed with --source theory: 2 and more)");
    ascending.push_back(study.n);
  }
  const TruthLaw truth = truth_law(base);
  const std::vector<int> dims = theory_dims(budget, dimension_of(base));
  for (std::size_t i = 0; i < dims.size(); ++i) {
    Dimension dimension = {base, truth, budget, dims[i], threads};
    add_rows(dimension, rule, ascending, growth);
    if (done) done(static_cast<double>(i + 1) / static_cast<double>(dims.size()));
  }
  conclude(growth);
  growth.constants = rule == BandwidthRule::fixed ? growth_constants(base, budget)
                                                  : GrowthConstants{nan, nan, nan};
  growth.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return growth;
}

void require_exact_study(const Condition& base, int budget, BandwidthRule rule) {
  for (const Condition& one : allocation_conditions(base, budget, rule)) {
    if (std::holds_alternative<HaarSubspaces>(*one.subspaces) && one.k < dimension_of(one)) {
      throw InvalidInput(
          "--source exact: is for given heads, but " + std::to_string(one.heads) +
          " of dimension " + std::to_string(one.k) +
          " would be drawn at random (law haar), and a simulation draws them many times "
          "- take the law orthogonal and D <= d, or --source simulation");
    }
    require_exact(one);
  }
}

TheoryGrowth study_exactly(const Condition& base, int budget, BandwidthRule rule,
                           std::span<const std::uint64_t> sizes, int threads,
                           const std::function<void(double)>& done) {
  const auto start = std::chrono::steady_clock::now();
  TheoryGrowth growth = empty_growth(base, budget, TheoryMean::condition, rule, sizes);
  growth.constants = {nan, nan, nan};
  growth.normalisation_error = nan;
  require_exact_study(base, budget, rule);
  std::size_t computed = 0;
  for (TheoryStudy& study : growth.studies) {
    Condition at_n = base;
    at_n.n = study.n;
    std::vector<Condition> candidates = allocation_conditions(at_n, budget, rule);
    for (Condition& one : candidates) {
      const bool at_boundary = rule == BandwidthRule::tuned && tune_exactly(one, threads);
      study.rows.push_back(exact_row(one, threads, growth.normalisation_error));
      study.rows.back().at_boundary = at_boundary;
      growth.change = std::max(growth.change, study.rows.back().error.change);
      if (done) {
        done(static_cast<double>(++computed) /
             static_cast<double>(candidates.size() * growth.studies.size()));
      }
    }
  }
  conclude(growth);
  growth.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return growth;
}

std::string theory_limits(const Condition& condition, TheoryMean mean) {
  if (mean == TheoryMean::condition) {
    return std::string("Exact at every n, as the mean over training sets and noise") +
           (condition.fixed_design ? " at these design points" : "") +
           ", for this truth and these queries.";
  }
  const bool additive = std::holds_alternative<AdditiveRegression>(*condition.regression);
  const bool zero = std::holds_alternative<ZeroRegression>(*condition.regression);
  const auto* random = std::get_if<RandomCosinesRegression>(&*condition.regression);
  const bool rough = random != nullptr && random->smoothness.has_value();
  // A Matern truth has correlation lengths of any size; short ones are continued to.
  return std::string(rough
                         ? "Exact at every n except for the part of the truth with lengths below a "
                           "half, which is approximate: the mean over training sets, noise, "
                           "queries from the design"
                         : "Exact at every n, as the mean over training sets, noise, queries "
                           "from the design") +
         (zero       ? ""
          : additive ? " and the phases of the cosines"
                     : " and truths of this law") +
         "; a simulation has one truth and its queries.";
}

}  // namespace headlab
