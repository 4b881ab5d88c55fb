// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/first_order/next_orders.h"

#include <cmath>
#include <cstddef>

namespace headlab {
namespace {

constexpr int largest_order = 3;

/// How often A, B, delta and eta are factors; of one token a, b, k and j.
struct Factors {
  int a = 0;
  int b = 0;
  int k = 0;
  int j = 0;

  int count() const { return a + b + k + j; }
  int of_h() const { return a + k; }
  int of_l() const { return b + j; }
  Factors without(const Factors& some) const {
    return {a - some.a, b - some.b, k - some.k, j - some.j};
  }
};

double choose(int n, int m) {
  double ways = 1;
  for (int i = 0; i < m; ++i) ways = ways * (n - i) / (i + 1);
  return ways;
}

double sign_of(int power) {
  return power % 2 == 0 ? 1 : -1;
}

/// Calls visit(some, ways) for every choice of some of the factors.
template <class Visit>
void for_each_choice(const Factors& from, const Visit& visit) {
  for (int a = 0; a <= from.a; ++a) {
    for (int b = 0; b <= from.b; ++b) {
      for (int k = 0; k <= from.k; ++k) {
        for (int j = 0; j <= from.j; ++j) {
          visit(Factors{a, b, k, j},
                choose(from.a, a) * choose(from.b, b) * choose(from.k, k) * choose(from.j, j));
        }
      }
    }
  }
}

/// What of the responses counts: every mean is linear in m - r_h and m - r_l, or in s^2.
enum class Part { signal, noise };

/// The joint cumulants of A, B, delta and eta, with their powers of 1/n.
class Cumulants {
 public:
  Cumulants(const PairOfHeads& pair, Part part) : pair_(pair), part_(part) {
    for_each_choice({1, 1, largest_order, largest_order}, [&](const Factors& f, double) {
      if (f.count() >= 2 && f.count() <= largest_order + 1) at(f) = of_token(f) * tokens(f);
    });
  }

  double operator()(const Factors& f) const { return values_[index(f)]; }

 private:
  static constexpr std::size_t powers = largest_order + 1;

  static std::size_t index(const Factors& f) {
    return ((static_cast<std::size_t>(f.a) * 2 + static_cast<std::size_t>(f.b)) * powers +
            static_cast<std::size_t>(f.k)) *
               powers +
           static_cast<std::size_t>(f.j);
  }
  double& at(const Factors& f) { return values_[index(f)]; }

  /// Tokens that all of these averages see, over the sizes of the averages.
  double tokens(const Factors& f) const {
    const double count = f.of_l() == 0 ? pair_.n_h : f.of_h() == 0 ? pair_.n_l : pair_.shared;
    return count * std::pow(pair_.n_h, -f.of_h()) * std::pow(pair_.n_l, -f.of_l());
  }

  /// The mean of a^a b^b k^k j^j.
  double raw(const Factors& f) const {
    const WeightedMeans& means =
        pair_.means[static_cast<std::size_t>(f.of_h())][static_cast<std::size_t>(f.of_l())];
    if (f.a == 0 && f.b == 0) return means.mass;
    const bool both = f.a == 1 && f.b == 1;
    if (part_ == Part::noise) return both ? means.mass * means.noise : 0;
    return means.mass * (both ? means.product : f.a == 1 ? means.from_h : means.from_l);
  }

  /// That of the same about the means: 0 of a and b, 1 of k and j.
  double central(const Factors& f) const {
    double sum = 0;
    for_each_choice({0, 0, f.k, f.j}, [&](const Factors& ones, double ways) {
      sum += sign_of(ones.count()) * ways * raw(f.without(ones));
    });
    return sum;
  }

  double of_token(const Factors& f) const {
    double cumulant = central(f);
    if (f.count() < 4) return cumulant;
    // Less the three ways of pairing four factors, each of which is met with both of its pairs.
    for_each_choice(f, [&](const Factors& two, double ways) {
      if (two.count() == 2) cumulant -= ways / 2 * central(two) * central(f.without(two));
    });
    return cumulant;
  }

  const PairOfHeads& pair_;
  Part part_;
  std::array<double, 2 * 2 * powers * powers> values_{};
};

/// A series in 1/n, by order.
struct Series {
  std::array<double, largest_order + 1> sum{};   ///< of the terms of an order
  std::array<double, largest_order + 1> size{};  ///< sum of their absolute values
};

Factors one_of(const Factors& factors) {
  if (factors.a > 0) return {.a = 1};
  if (factors.b > 0) return {.b = 1};
  if (factors.k > 0) return {.k = 1};
  return {.j = 1};
}

/// Adds the mean of a product of averages: every partition of `left` into blocks, times `product`.
/// \param counted whether partitions count without another block of both heads
void add_partitions(const Cumulants& cumulants, const Factors& left, double product, int order,
                    bool counted, Series& series) {
  if (left.count() == 0) {
    if (!counted) return;
    series.sum[static_cast<std::size_t>(order)] += product;
    series.size[static_cast<std::size_t>(order)] += std::abs(product);
    return;
  }
  const Factors one = one_of(left);
  const Factors others = left.without(one);
  for_each_choice(others, [&](const Factors& some, double ways) {
    const int more = some.count();
    if (more == 0 || order + more > largest_order) return;
    const Factors rest = others.without(some);
    const Factors block = left.without(rest);
    const double cumulant = cumulants(block);
    if (cumulant == 0) return;
    add_partitions(cumulants, rest, product * ways * cumulant, order + more,
                   counted || (block.of_h() > 0 && block.of_l() > 0), series);
  });
}

/// The mean of A/(1 + delta).
Series mean_of_ratio(const Cumulants& cumulants) {
  Series series;
  // Blocks of two have the most factors for their order.
  for (int p = 1; p < 2 * largest_order; ++p) {
    add_partitions(cumulants, {.a = 1, .k = p}, sign_of(p), 0, true, series);
  }
  return series;
}

/// The covariance of A/(1 + delta) and B/(1 + eta): the product of their means is what partitions
/// without a block of both heads add up to.
Series covariance_of_ratios(const Cumulants& cumulants) {
  Series series;
  for (int p = 0; p <= 2 * largest_order - 2; ++p) {
    for (int q = 0; p + q <= 2 * largest_order - 2; ++q) {
      add_partitions(cumulants, {.a = 1, .b = 1, .k = p, .j = q}, sign_of(p + q), 0, false, series);
    }
  }
  return series;
}

/// A series of cancelling terms says little of the next one: a share of the sizes of its last terms
/// stands for all later orders.
constexpr double later_orders = 0.1;

OrderTerms combined(const Series& signal, const Series& noise) {
  // The parts of signal and noise do not make up for one another, nor do two orders.
  double remainder = later_orders * (signal.size[largest_order] + noise.size[largest_order]);
  for (std::size_t order = 2; order <= largest_order; ++order) {
    remainder += std::abs(signal.sum[order]) + std::abs(noise.sum[order]);
  }
  return {.first = signal.sum[1] + noise.sum[1],
          .second = signal.sum[2] + noise.sum[2],
          .remainder = remainder};
}

}  // namespace

OrderTerms bias_orders(const PairOfHeads& pair) {
  return combined(mean_of_ratio(Cumulants(pair, Part::signal)), Series());
}

OrderTerms covariance_orders(const PairOfHeads& pair) {
  return combined(covariance_of_ratios(Cumulants(pair, Part::signal)),
                  covariance_of_ratios(Cumulants(pair, Part::noise)));
}

}  // namespace headlab
