// SPDX-License-Identifier: Apache-2.0
/// \file The best dimension of a head by exact theory, without simulation: for a scenario's own
/// truth and queries (validation/theory/theory.h), or averaged over both (validation/theory/
/// population_error.h), at any n, with constants for the law k* ~ C log n.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/scenario/sweep.h"
#include "validation/allocation/allocations.h"
#include "validation/allocation/growth.h"
#include "validation/theory/population/population_error.h"

namespace headlab {

struct Condition;

/// Shortest length of random_cosines, and highest frequency of additive truths, that theory
/// resolves.
inline constexpr double shortest_theory_length = 0.5;
inline constexpr double highest_theory_frequency = 100;

/// What an error is a mean over, besides training sets and their noise.
enum class TheoryMean {
  population,  ///< queries from the design and truths of the scenario's law
  condition    ///< the scenario's own queries, of its own truth
};

/// Constants C of k* ~ C log10 n, for one bandwidth at every k; NaN where there are none.
struct GrowthConstants {
  /// ln 10/ln Gamma: the mean over queries of the variance of a head is Gamma^k s^2/n to first
  /// order, Gamma = E Z(2a)/Z(a)^2 = (1+a)^(3/2)/(1+3a)^(1/2), a = 1/b^2. That mean is made by rare
  /// queries with |q|^2 far above k, whose windows are empty unless n is far larger still.
  double first_order = 0;
  /// ln 10/kappa_c, kappa_c = (log(1+a) - a/(1+a)^2)/2: k at which at a typical query (|q|^2 = k)
  /// the sum of kernels condenses to few keys, by the entropy of the keys that dominate it (the
  /// random energy model, Derrida 1981). A larger k pays the whole noise of single keys.
  double condensation = 0;
  /// ln 10/kappa*, where D and d are far larger than log n: MSE is then its value at k = 0 plus
  /// k F(log n/k)/D, and kappa* minimises F(kappa)/kappa over kappa <= kappa_c. With a' <= a the
  /// tilt at which kappa_c(a') = kappa, F = (1 - a'/a) N - G(a'), N = s^2 and the variance of the
  /// truth, G what a dimension that is seen explains.
  double asymptotic = 0;
};

/// The constants for a bandwidth or a temperature that is the same at every k.
GrowthConstants growth_constants(const Condition& condition, int budget);

/// One dimension of heads with its error.
struct TheoryRow {
  int heads = 1;  ///< floor(D/k)
  int k = 1;
  bool softmax = false;
  double width = 1;          ///< b, or the temperature of softmax
  bool at_boundary = false;  ///< of the range of widths that `tuned` searched
  PopulationError error;     ///< of so many heads
  /// MSE of D/k heads, a real number: it has no steps where k does not divide D. For
  /// TheoryMean::scenario, whose heads differ, that of the whole heads.
  double smooth_mse = 0;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("heads", heads, "number of heads H");
    visit("dim", k, "per-head dimension d_k");
    visit("bandwidth", softmax ? std::sqrt(width) : width, "bandwidth of the kernel");
    if (softmax) visit("temperature", width, "temperature of the kernel");
    visit("at_the_end", at_boundary, "the width is an end of those searched");
    visit("mse", error.mse, "mean squared error");
    visit("smooth_mse", smooth_mse, "mean squared error with H not rounded");
    visit("squared_bias", error.squared_bias, "squared bias");
    visit("variance", error.variance, "variance V of a head");
    visit("covariance", heads > 1 ? std::optional(error.covariance) : std::nullopt,
          "covariance C of two heads");
  }
};

/// All dimensions of one budget at one n.
struct TheoryStudy {
  int budget = 1;
  std::uint64_t n = 2;
  std::vector<TheoryRow> rows;  ///< by k
  std::size_t best = 0;         ///< the row of least MSE
  /// k* by `smooth_mse`, between all k of `rows`; of TheoryMean::scenario the same as `divisors`.
  BestDimension continuous;
  BestDimension divisors;  ///< k* between the divisors of D alone, as a simulation has it

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("budget", budget, "budget D = H d_k");
    visit("n", n, "training points in one training set");
    visit("allocations", rows, "dimensions compared", {.item = "allocation"});
    visit("advice", Advice{rows[best]}, "row of least error");
    visit("best_dim", continuous, "k* between all dimensions");
    visit("best_dim_of_divisors", divisors, "k* between the divisors of D");
  }

 private:
  struct Advice {
    const TheoryRow& row;

    template <class Visitor>
    void fields(Visitor& visit) const {
      visit("heads", row.heads, "number of heads H");
      visit("dim", row.k, "per-head dimension d_k");
    }
  };
};

/// What several n say together.
struct TheoryGrowth {
  int budget = 1;
  TheoryMean mean = TheoryMean::population;
  BandwidthRule rule = BandwidthRule::fixed;
  bool softmax = false;
  Parameters parameters = {};        ///< of the scenario
  std::vector<TheoryStudy> studies;  ///< by n, ascending
  std::vector<double> slopes;        ///< [n - 1] of k* between neighbours, dimensions a decade
  GrowthConstants constants;         ///< under `fixed`, of the population
  double normalisation_error = 0;    ///< largest deviation of sums of weights from 1; NaN: none
  double change = 0;                 ///< largest TheoryRow::error.change
  double seconds = 0;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("budget", budget, "budget D = H d_k");
    std::vector<Slope> between;
    for (std::size_t i = 0; i < slopes.size(); ++i) {
      between.push_back({studies[i].n, studies[i + 1].n, slopes[i]});
    }
    visit("slopes", between, "growth of k* between neighbouring n", {.item = "slope"});
    visit("first_order", constants.first_order, "dimensions a decade, to first order");
    visit("condensation", constants.condensation, "dimensions a decade, by condensation");
    visit("asymptotic", constants.asymptotic, "dimensions a decade, far larger D and d");
    visit("certificate", normalisation_error, "largest deviation of sums of weights from 1");
    visit("change", change, "largest bound on the error of the quadrature");
    visit("seconds", seconds, "wall time", {.unit = "s"});
  }

 private:
  struct Slope {
    std::uint64_t from, to;
    double slope;

    template <class Visitor>
    void fields(Visitor& visit) const {
      visit("from", from, "smaller n");
      visit("to", to, "larger n");
      visit("slope", slope, "dimensions a decade");
    }
  };
};

/// Largest dimension that is compared.
inline constexpr int max_theory_dim = 64;
/// Largest budget of theory, whose cost does not depend on it.
inline constexpr int max_theory_budget = 1 << 20;

/// Dimensions compared: all up to 32, from there steps of about 2^(1/4) and the divisors of D, up
/// to min(d, D, max_theory_dim).
std::vector<int> theory_dims(int budget, int d);

/// Throws InvalidInput, naming the key, unless the theory is that of `scenario` under `budget`:
/// design N(0, I), orthogonal heads with D <= d, uniform weights, a Gaussian or softmax kernel,
/// normal noise and a regression of truth_law(); softmax not with an additive one.
void require_theory(const Condition& condition, int budget);

/// Computes the error of every dimension at each of `sizes` (n >= 2), the mean over queries from
/// the design and over the law of the truth. Under `tuned` each has the best width of a search that
/// starts at wide windows and continues in steps of 2^(1/3) to three steps beyond the least
/// error, with a parabola through it. Throws InvalidInput as require_theory(), as
/// allocation_scenarios() for a rule, and where a normalisation error fails. \param done hears the
/// share that is computed
TheoryGrowth study_theory(const Condition& base, int budget, BandwidthRule rule,
                          std::span<const std::uint64_t> sizes, int threads,
                          const std::function<void(double)>& done = {});

/// Throws InvalidInput where study_exactly() would before it computes anything: where a candidate
/// has no exact form, or heads of law `haar`, which a simulation draws again in every block.
void require_exact_study(const Condition& base, int budget, BandwidthRule rule);

/// Computes the error of every candidate of allocation_scenarios() at each of `sizes` exactly, for
/// the queries and the truth of `base`: what a simulation of it estimates
/// (validation/theory/theory.h). k* lies between the divisors of D. `tuned` searches as a
/// simulation does (OctaveSearch), by exact errors, but below the
/// scenario's width no further than the error has risen over two octaves, nor to windows too narrow
/// for an exact form. Throws InvalidInput as require_exact_study() and where a quadrature does not
/// converge.
TheoryGrowth study_exactly(const Condition& base, int budget, BandwidthRule rule,
                           std::span<const std::uint64_t> sizes, int threads,
                           const std::function<void(double)>& done = {});

/// One sentence on what the figures are means over.
std::string theory_limits(const Condition& condition, TheoryMean mean);

}  // namespace headlab
