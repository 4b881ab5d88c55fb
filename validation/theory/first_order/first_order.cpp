// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/first_order/first_order.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "validation/theory/first_order/next_orders.h"
#include "validation/theory/first_order/tilted_design.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int largest_power = PairOfHeads::largest_power;

/// One head under each power of its weight: [power - 1][Q].
using PowersOfHead = std::vector<std::vector<TiltedMoments>>;

std::vector<TiltedMoments> at_queries(const TheoryModel& model, std::size_t h, int p, std::size_t l,
                                      int q) {
  const TiltedDesign tilted(model, h, p, l, q, true);
  std::vector<TiltedMoments> moments;
  for (const VectorXd& x : model.queries) moments.push_back(tilted.at(x));
  return moments;
}

PowersOfHead powers_of(const TheoryModel& model, std::size_t h) {
  PowersOfHead powers;
  for (int p = 1; p <= largest_power; ++p) powers.push_back(at_queries(model, h, p, h, 0));
  return powers;
}

/// Two heads at every query: what the tilts say of each product of powers of their weights.
class Pair {
 public:
  Pair(const TheoryModel& model, const std::vector<PowersOfHead>& heads, std::size_t h,
       std::size_t l)
      : h_(heads[h]), l_(heads[l]), same_(h == l) {
    for (int p = 1; p < largest_power && !same_; ++p) {
      for (int q = 1; p + q <= largest_power; ++q) both_[p][q] = at_queries(model, h, p, l, q);
    }
  }

  /// \param p,q not both 0
  const TiltedMoments& at(int p, int q, std::size_t query) const {
    if (same_ || q == 0) return h_[static_cast<std::size_t>(p + q - 1)][query];
    return p == 0 ? l_[static_cast<std::size_t>(q - 1)][query] : both_[p][q][query];
  }

  PairOfHeads means(std::size_t query) const {
    PairOfHeads pair;
    const TiltedMoments& of_h = at(1, 0, query);
    const TiltedMoments& of_l = at(0, 1, query);
    for (int p = 0; p <= largest_power; ++p) {
      for (int q = p == 0 ? 1 : 0; p + q <= largest_power; ++q) {
        const TiltedMoments& moments = at(p, q, query);
        const FunctionMoments& m = moments.regression;
        const double r_h = of_h.regression.mean;
        const double r_l = of_l.regression.mean;
        pair.means[static_cast<std::size_t>(p)][static_cast<std::size_t>(q)] = {
            .mass = std::exp(moments.log_mass - p * of_h.log_mass - q * of_l.log_mass),
            .from_h = m.mean - r_h,
            .from_l = m.mean - r_l,
            .product = m.product_about(r_h, r_l),
            .noise = moments.noise_variance};
      }
    }
    return pair;
  }

 private:
  const PowersOfHead& h_;
  const PowersOfHead& l_;
  bool same_;
  std::vector<TiltedMoments> both_[largest_power][largest_power];
};

}  // namespace

std::vector<FirstOrder> first_order(const TheoryModel& model) {
  const std::size_t count = model.projections.size();
  const auto size = static_cast<Index>(count);
  const VectorXd heads_zero = VectorXd::Zero(size);
  const MatrixXd pairs_zero = MatrixXd::Zero(size, size);
  std::vector<FirstOrder> theory(
      model.queries.size(), FirstOrder{HeadTheory{heads_zero, heads_zero, pairs_zero, pairs_zero},
                                       heads_zero, pairs_zero});
  std::vector<PowersOfHead> heads;
  for (std::size_t h = 0; h < count; ++h) heads.push_back(powers_of(model, h));
  for (std::size_t h = 0; h < count; ++h) {
    for (std::size_t l = 0; l <= h; ++l) {
      const Pair both(model, heads, h, l);
      const auto row = static_cast<Index>(h);
      const auto column = static_cast<Index>(l);
      for (std::size_t q = 0; q < model.queries.size(); ++q) {
        PairOfHeads pair = both.means(q);
        pair.n_h = static_cast<double>(model.tokens(h));
        pair.n_l = static_cast<double>(model.tokens(l));
        pair.shared = static_cast<double>(model.shared_tokens(h, l));
        const double r_h = both.at(1, 0, q).regression.mean;
        const double r_l = both.at(0, 1, q).regression.mean;
        const double rounding = pair.means[1][1].mass * pair.shared / (pair.n_h * pair.n_l) *
                                both.at(1, 1, q).regression.product_rounding(r_h, r_l);

        FirstOrder& at = theory[q];
        const OrderTerms covariance = covariance_orders(pair);
        at.covariance(row, column) = at.covariance(column, row) = covariance.first;
        at.next_covariance(row, column) = at.next_covariance(column, row) = covariance.second;
        at.covariance_remainder(row, column) = at.covariance_remainder(column, row) =
            covariance.remainder + rounding;
        if (h != l) continue;
        const OrderTerms bias = bias_orders(pair);
        const double truth = model.truth[q];
        at.bias(row) = r_h - truth + bias.first;
        at.next_bias(row) = bias.second;
        at.bias_remainder(row) = bias.remainder + 4 * std::numeric_limits<double>::epsilon() *
                                                      std::max(std::abs(r_h), std::abs(truth));
      }
    }
  }
  return theory;
}

}  // namespace headlab
