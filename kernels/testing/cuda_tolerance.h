// SPDX-License-Identifier: Apache-2.0
/// \file What rounding may do to the statistics of the CUDA backend: a bound for every statistic of
/// a replicate, from the errors of its own keys and exponents, for the tests.
///
/// With u = 2^-24. A weight is known up to what the error of its exponent makes of it, and that
/// follows from the key and the query: a far key, whose exponent has a large error, has no weight
/// that could spoil anything. Sums and estimates inherit these errors to first order.
///
/// - A key that is read is one float32 chain over the coordinates. One that is projected on the
///   tensor cores is a sum of three products of numbers in two parts: 2^-22 for each part and for
///   what is left out.
/// - Split products of a query and a key have the same three errors of 2^-22, and 2^-25 for
///   coordinates below 2^-3, which are subnormal in their lower part.
/// - A tensor core adds eight products of float16 to a float at a time, or four of TF32: it aligns
///   them to the largest with one bit more than float32 has, truncates, and truncates the sum, at
///   most (9 + 2) u of the largest, or (5 + 2) u. That is the A100 of Khattak and Mikaitis
///   (arXiv:2512.07004); the H100 has more bits.
/// - The exponential unit has 2^-22.4 of its result.
/// - A thread sums 256 keys in float32.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <variant>
#include <vector>

#include "kernels/cuda/launch_plan.h"
#include "kernels/laws.h"
#include "kernels/reference/ensemble.h"
#include "kernels/reference/training_set.h"
#include "kernels/testing/agreement.h"
#include "kernels/testing/tolerances.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

class RoundingBounds {
 public:
  RoundingBounds(const Plan& plan, const LaunchPlan& launch, std::uint64_t replicate)
      : plan_(plan),
        launch_(launch),
        law_(norm_coefficient_of(*plan.kernel)),
        d_(static_cast<std::size_t>(plan.d)),
        k_(static_cast<std::size_t>(plan.k)),
        heads_(static_cast<std::size_t>(plan.heads)),
        centre_(centre_of(plan)),
        queries_(projected_queries(plan)),
        projections_(plan.projections),
        largest_projections_(d_) {
    for (double& w : projections_) w *= key_unit(*plan.kernel);
    for (std::size_t at = 0; at < projections_.size(); ++at) {
      double& largest = largest_projections_[at / k_ % d_];
      largest = std::max(largest, std::abs(projections_[at]));
    }
    const TrainingSet typical = draw_training_set(plan, 0);
    take_tokens(draw_training_set(plan, replicate), typical);
    take_keys(tokens_of(plan, typical));
  }

  /// Of values m(x) in float32.
  test::ExpectedStatistics all() const {
    const MomentLayout layout = plan_.layout();
    test::ExpectedStatistics expected;
    expected.values.resize(layout.statistics());
    expected.tolerances.resize(layout.statistics());
    for (int q = 0; q < plan_.queries; ++q) {
      const std::size_t at = static_cast<std::size_t>(q) * layout.per_query();
      std::vector<std::vector<double>> weights;
      std::vector<HeadError> errors;
      std::vector<double> log_sums(heads_), log_errors;
      for (int h = 0; h < plan_.heads; ++h) {
        weights.push_back(nw_weights(plan_, tokens_, h, q, expected.windows,
                                     &log_sums[static_cast<std::size_t>(h)]));
        errors.push_back(errors_of(h, q, weights.back()));
        log_errors.push_back(log_error_of_sum(errors.back()));
      }
      expected.bounded.push_back(std::ranges::all_of(errors, &HeadError::known));
      query_statistics(plan_, tokens_, weights, &expected.values[at]);
      set_tolerances(weights, errors, &expected.values[at], &expected.tolerances[at]);
      if (!plan_.controls) continue;
      test::set_control_tolerances(plan_, static_cast<std::size_t>(q), log_sums, log_errors,
                                   &expected.values[at], &expected.tolerances[at]);
      set_controlled(*plan_.controls, layout, static_cast<std::size_t>(q), log_sums,
                     plan_.head_weights, &expected.values[at]);
    }
    return expected;
  }

 private:
  static constexpr double never = -std::numeric_limits<double>::infinity();
  /// Maximum sum of the errors of a head's weights that the bounds are made for.
  static constexpr double max_error = 0.25;
  /// Of a sum of 2^-40, below which the fallback is taken: kernel values below 2^-126 are 0, and
  /// products of two are rounded to 2^-149.
  static constexpr double no_weight = 0x1p-86, no_product = 0x1p-69;
  static constexpr double tensor_step = 11 * u32;  ///< of the largest, for eight products

  /// Of the weights of a head, whose sum is 1.
  struct HeadError {
    std::vector<double> of_weight;  ///< [N], before they are normalised
    double sum = 0;
    bool has_factor = true;  ///< that all weights share is in them
    bool known() const { return sum < max_error; }
    /// Of a weight once they are normalised.
    double normalised(std::size_t i, double weight) const {
      return (of_weight[i] + weight * sum) / (1 - sum);
    }
  };
  /// A key of a head in its units and the bounds of its error.
  struct Key {
    std::vector<double> x, error;  ///< [k]
    double norm = 0;               ///< |key|^2, with the prior of `levels`
    double prior = 0, prior_error = 0;
  };

  std::vector<float> point(const TrainingSet& sample, std::size_t i) const {
    const auto first = sample.x.begin() + static_cast<std::ptrdiff_t>(i * d_);
    return {first, first + static_cast<std::ptrdiff_t>(d_)};
  }
  /// Values m(x) become those of float32, which have the same bits on the device: whether a law is
  /// right in float32 is for its own test, and far points have no digits there.
  void round_values(TrainingSet& sample) const {
    if (std::holds_alternative<FileRegression::Function>(*plan_.regression)) return;
    for (std::size_t i = 0; i < sample.regression.size(); ++i) {
      const std::vector<float> x = point(sample, i);
      sample.regression[i] = std::visit(
          [&](const auto& m) {
            return static_cast<double>(m(plan_.table.rounded(), x.data(), 1, 0u));
          },
          *plan_.regression);
    }
  }
  /// What values are kept relative to: the median of the first points of replicate 0.
  static double value_centre(const TrainingSet& typical) {
    std::vector<double> first = typical.regression;
    first.resize(std::min<std::size_t>(32, first.size()));
    const auto middle = first.begin() + static_cast<std::ptrdiff_t>(first.size() / 2);
    std::nth_element(first.begin(), middle, first.end());
    return *middle;
  }

  void take_tokens(TrainingSet sample, TrainingSet typical) {
    round_values(sample);
    round_values(typical);
    const double centre = value_centre(typical);
    const double steps = static_cast<double>(plan_.mechanism.merge.stride) + 3;
    TrainingSet errors = sample;
    for (std::size_t i = 0; i < sample.regression.size(); ++i) {
      const std::vector<float> x = point(sample, i);
      const double scale = std::visit(
          [&](const auto& noise) {
            return static_cast<double>(noise.scale(plan_.table.rounded(), x.data(), 1));
          },
          *plan_.noise);
      const double of_scale =
          scale == sample.noise_sd[i] ? 0 : std::abs(scale / sample.noise_sd[i] - 1);
      scale_error_ = std::max(scale_error_, of_scale);
      const double m = sample.regression[i];
      errors.regression[i] = steps * u32 * (std::abs(m) + std::abs(m - centre));
      errors.noise[i] = (of_scale + steps * u32) * std::abs(sample.noise[i]);
      for (std::size_t c = 0; c < d_; ++c) {
        double& of_x = errors.x[i * d_ + c];
        // Points themselves have the bits of the device.
        of_x = launch_.tokens.separate ? steps * u32 * std::abs(of_x - centre_[c]) : 0;
      }
    }
    scale_error_ += (0.5 * static_cast<double>(plan_.mechanism.merge.stride) + 3) * u32;
    value_centre_ = centre * plan_.mechanism.merge.group_weight();
    tokens_ = tokens_of(plan_, std::move(sample));
    errors_ = tokens_of(plan_, std::move(errors));
    count_ = tokens_.regression.size();
  }

  void take_keys(const TrainingSet& typical) {
    for (std::size_t h = 0; h < heads_; ++h) {
      std::vector<Key>& keys = keys_.emplace_back();
      for (std::size_t i = 0; i < count_; ++i) {
        keys.push_back(key_of(h, &tokens_.x[i * d_], &errors_.x[i * d_]));
      }
      if (!plan_.mechanism.levels.off()) average(keys);
      for (Key& key : keys) {
        key.norm = key.prior;
        for (const double x : key.x) key.norm += x * x;
      }
      // The shift of a softmax query comes from the first tokens of replicate 0.
      std::vector<double>& shifts = shifts_.emplace_back();
      std::vector<Key> some;
      const std::vector<double> exact(d_);
      for (std::size_t i = 0; i < std::min<std::size_t>(32, typical.regression.size()); ++i) {
        some.push_back(key_of(h, &typical.x[i * d_], exact.data()));
      }
      for (std::size_t q = 0; q < static_cast<std::size_t>(plan_.queries); ++q) {
        double norm = 0;
        for (std::size_t j = 0; j < k_; ++j) norm += query(h, j, q) * query(h, j, q);
        double largest = never;
        for (const Key& key : some) {
          double product = 0;
          for (std::size_t j = 0; j < k_; ++j) product += 2 * query(h, j, q) * key.x[j];
          largest = std::max(largest, product);
        }
        shifts.push_back(law_ == 0.0 ? -largest : -norm);
      }
    }
  }

  double query(std::size_t head, std::size_t j, std::size_t q) const {
    return queries_[(head * k_ + j) * static_cast<std::size_t>(plan_.queries) + q];
  }
  Key key_of(std::size_t head, const double* x, const double* x_error) const {
    Key key = {.x = std::vector<double>(k_), .error = std::vector<double>(k_)};
    for (std::size_t j = 0; j < k_; ++j) {
      double sum = 0, chain = 0, terms = 0, given = 0, below = 0, steps = 0;
      double largest = 0;  // addend of a tensor core
      for (std::size_t c = 0; c < d_; ++c) {
        const double w = projections_[(head * d_ + c) * k_ + j];
        const double y = x[c] - centre_[c];
        sum += w * y;
        chain += std::abs(sum);
        terms += std::abs(w * y);
        given += std::abs(w) * x_error[c];
        // Both factors are in units in which the largest projection of the coordinate is about 1.
        below += 0x1p-25 * (std::abs(y) * largest_projections_[c] + 1) * 1.5;
        largest = std::max({largest, std::abs(w * y), std::abs(sum)});
        if (c % 8 == 7 || c + 1 == d_) {
          steps += 3 * tensor_step * largest;
          largest = std::abs(sum);
        }
      }
      key.x[j] = sum;
      const double read = u32 * (chain + 3 * terms);
      const double projected = 2 * u32 * terms + 3 * 0x1p-22 * terms + below + steps;
      // Rows that the fallback takes have their keys read.
      key.error[j] = given + (launch_.projects ? std::max(read, projected) : read);
    }
    return key;
  }
  /// Stage `levels`: keys become averages of mean keys, with a prior.
  void average(std::vector<Key>& keys) const {
    const std::vector<double>& weights = plan_.mechanism.levels.weights;
    const std::vector<Key> own = keys;
    const double steps = 2 * static_cast<double>(weights.size()) + 2;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      Key& key = keys[i];
      for (std::size_t j = 0; j < k_; ++j) {
        std::vector<double> means, errors;
        key.x[j] = 0;
        key.error[j] = 0;
        for (std::size_t level = 0; level < weights.size(); ++level) {
          const std::size_t first = i >> level << level;
          const std::size_t end = std::min(first + (std::size_t{1} << level), keys.size());
          double mean = 0, error = 0;
          for (std::size_t t = first; t < end; ++t) {
            mean += own[t].x[j];
            error += own[t].error[j] + steps * u32 * std::abs(own[t].x[j]);
          }
          means.push_back(mean / static_cast<double>(end - first));
          errors.push_back(error / static_cast<double>(end - first));
          key.x[j] += weights[level] * means.back();
          key.error[j] += weights[level] * errors.back();
        }
        for (std::size_t level = 0; level < weights.size(); ++level) {
          const double apart = std::abs(means[level] - key.x[j]);
          const double error = errors[level] + key.error[j];
          key.prior += weights[level] * apart * apart;
          key.prior_error += weights[level] * (2 * apart + error) * error;
        }
      }
      key.prior_error += (static_cast<double>(k_) + 2) * steps * u32 * key.prior;
      if (law_ != -1.0) key.prior = key.prior_error = 0;
    }
  }

  /// Minus the exponent in the units of the keys: the squared distance, or minus a product; and how
  /// far off the device may be.
  struct Exponent2 {
    double value = 0, error = 0;
  };
  Exponent2 exponent_of(std::size_t head, std::size_t q, const Key& key) const {
    const Microkernel m = launch_.microkernel;
    const bool only_products = law_ == 0.0;
    const bool tensor = launch_.on_tensor_cores() && !launch_.fallback_only;
    const bool products =
        only_products || tensor || (m >= Microkernel::dots1 && m <= Microkernel::shifted4);
    const double shift = shifts_[head][q];
    double distance = key.prior, product = 0, sizes = 0, below = 0;
    double of_key = 0, of_query = 0, steps = 0;
    double largest = std::abs(shift);
    for (std::size_t j = 0; j < k_; ++j) {
      const double query = this->query(head, j, q);
      const double x = key.x[j];
      const double apart = std::abs(query - x);
      distance += apart * apart;
      product += 2 * query * x;
      sizes += 2 * std::abs(query * x);
      below += 0x1p-25 * (2 * std::abs(query) + std::abs(x));
      of_key += (only_products ? 2 * std::abs(query) : 2 * apart + key.error[j]) * key.error[j];
      of_query += 2 * u32 * std::abs(query) * (products ? std::abs(x) : apart);
      largest = std::max({largest, 2 * std::abs(query * x), std::abs(shift + product)});
      if (j % 8 == 7 || j + 1 == k_) {
        steps += 3 * tensor_step * largest;
        largest = std::abs(shift + product);
      }
    }
    Exponent2 exponent = {.value = only_products ? -product : distance,
                          .error = of_key + of_query + key.prior_error};
    const double roundings = static_cast<double>(k_) + 4;
    const double norm = only_products ? 0 : key.norm;
    if (!products) {
      exponent.error += roundings * u32 * distance;
    } else if (!tensor) {
      exponent.error += roundings * u32 * (norm + std::abs(shift) + sizes);
    } else {
      exponent.error += 3 * 0x1p-22 * sizes + below + steps + roundings * u32 * norm +
                        2 * u32 * std::abs(shift + product);
    }
    return exponent;
  }

  /// log K of minus an exponent.
  double log_kernel(double value) const {
    if (law_) return -std::log(2.0) * value;
    return std::visit([&](const auto& law) { return law.log_weight(std::max(value, 0.0)); },
                      *plan_.kernel);
  }

  HeadError errors_of(int head, int q, const std::vector<double>& weights) const {
    const auto h = static_cast<std::size_t>(head);
    std::vector<Exponent2> exponents(count_);
    for (std::size_t i = 0; i < count_; ++i) {
      exponents[i] = exponent_of(h, static_cast<std::size_t>(q), keys_[h][i]);
    }
    const auto heaviest = static_cast<std::size_t>(
        std::max_element(weights.begin(), weights.end()) - weights.begin());
    HeadError errors = errors_of(head, weights, heaviest, exponents);
    if (!law_ || errors.known()) return errors;
    // A factor of all weights drops out: that of the heaviest.
    const double factor = exponents[heaviest].error;
    for (Exponent2& exponent : exponents) exponent.error += factor;
    exponents[heaviest].error = 0;
    HeadError without = errors_of(head, weights, heaviest, exponents);
    without.has_factor = false;
    return without.sum < errors.sum ? without : errors;
  }
  HeadError errors_of(int head, const std::vector<double>& weights, std::size_t heaviest,
                      const std::vector<Exponent2>& exponents) const {
    HeadError errors{.of_weight = std::vector<double>(count_)};
    const double log_heaviest = log_kernel(exponents[heaviest].value);
    // Of all weights 0 the nearest token has 1, on the device too.
    if (log_heaviest == never) return errors;
    const double log_sum = log_heaviest - std::log(weights[heaviest]);
    const SeenTokens seen = plan_.mechanism.seen_by(head, plan_.n);
    for (std::size_t i = 0; i < count_; ++i) {
      const double w = weights[i];
      if (w == 0 && (!seen.holds(i) || !plan_.mechanism.keep.off())) continue;
      const auto& [value, error] = exponents[i];
      const auto relative_to_sum = [&](double at) {
        return std::exp(std::min(log_kernel(at) - log_sum, 700.0));
      };
      const double exact = relative_to_sum(value);
      double& of_weight = errors.of_weight[i];
      of_weight =
          std::max(relative_to_sum(value - error) - exact, exact - relative_to_sum(value + error));
      of_weight += 4 * u32 * w + no_weight;  // the exponential unit
      if (!law_) {
        // Formulas of laws are a few operations on numbers up to 1, or on the logarithm.
        const double log_weight = log_kernel(value);
        of_weight += 4 * u32 * (log_weight > never ? 1 - log_weight : 1) * w +
                     (is_formula_of_weight() ? 4 * u32 * std::exp(std::min(-log_sum, 700.0)) : 0);
      }
      errors.sum += of_weight;
    }
    return errors;
  }
  bool is_formula_of_weight() const {
    return std::visit([]<class Law>(const Law&) { return HasWeight<Law>; }, *plan_.kernel);
  }

  /// Of the logarithm of the sum of a head's kernel values.
  double log_error_of_sum(const HeadError& error) const {
    if (!error.has_factor || !error.known()) return HUGE_VAL;
    return -std::log1p(-error.sum) + 2 * roundings_of_sum() * u32;
  }

  /// Roundings of a sum of positive terms.
  double roundings_of_sum() const {
    const auto n = static_cast<double>(count_);
    const bool on_sides = launch_.totals.pairs && launch_.register_heads == 0;
    // Three products of four keys at a time, of 512 keys at most.
    if (on_sides) return 3 * 7 * std::ceil(std::min(n, 512.0) / 4);
    return std::min(n, 256.0) + 3;
  }

  void set_tolerances(const std::vector<std::vector<double>>& weights,
                      const std::vector<HeadError>& errors, const double* values,
                      double* out) const {
    const MomentLayout layout = plan_.layout();
    const bool conditional = layout.conditional;
    const double of_sum = roundings_of_sum() * u32;
    const auto value_of = [&](std::size_t i) {
      return tokens_.regression[i] + (conditional ? 0 : tokens_.noise[i]);
    };
    double min_value = HUGE_VAL, max_value = never, max_variance = 0;
    for (std::size_t i = 0; i < count_; ++i) {
      min_value = std::min(min_value, value_of(i));
      max_value = std::max(max_value, value_of(i));
      max_variance = std::max(max_variance, tokens_.noise_sd[i] * tokens_.noise_sd[i]);
    }
    for (std::size_t h = 0; h < heads_; ++h) {
      double tolerance = 2 * u32 * std::abs(values[h]);
      for (std::size_t i = 0; i < count_; ++i) {
        const double w = weights[h][i];
        const double of_value = errors_.regression[i] + (conditional ? 0 : errors_.noise[i]) +
                                2 * of_sum * std::abs(value_of(i) - value_centre_);
        tolerance += (errors[h].of_weight[i] * std::abs(value_of(i) - values[h]) +
                      (w + errors[h].of_weight[i]) * of_value) /
                     (1 - errors[h].sum);
      }
      // A mean of values is never outside of them.
      out[h] = errors[h].known() ? tolerance : max_value - min_value;
    }
    if (!layout.pairwise()) {
      out[heads_] = 0;
      for (std::size_t h = 0; h < heads_; ++h) {
        out[heads_] += std::abs(plan_.head_weights[h]) * out[h];
      }
    }
    if (!conditional) return;

    // Sums over pairs in TF32 leave out 2^-20 and round each part to 2^-21.
    const bool on_sides = launch_.totals.pairs && launch_.register_heads == 0;
    const auto n = static_cast<double>(count_);
    const double relative = 3 * of_sum + (on_sides ? 0x1p-19 : 0) + 2 * scale_error_;
    /// Bounds of sum_i factor(i) w_gi w_li and of its error.
    const auto product = [&](std::size_t g, std::size_t l, const auto& factor, double largest) {
      Exponent2 sum;
      const bool known = errors[g].known() && errors[l].known();
      for (std::size_t i = 0; i < count_; ++i) {
        const double a = weights[g][i];
        const double b = weights[l][i];
        sum.value += factor(i) * a * b;
        if (!known || a + b + errors[g].of_weight[i] + errors[l].of_weight[i] == 0) continue;
        const double of_a = errors[g].normalised(i, a);
        const double of_b = errors[l].normalised(i, b);
        sum.error += factor(i) * (a * of_b + b * of_a + of_a * of_b);
      }
      sum.error = known ? sum.error + relative * sum.value + n * no_product * largest : largest;
      return sum;
    };
    const auto variance = [&](std::size_t i) { return tokens_.noise_sd[i] * tokens_.noise_sd[i]; };
    double* noise = out + layout.noise_offset();
    if (layout.pairwise()) {
      for (std::size_t h = 0; h < heads_; ++h) {
        for (std::size_t l = h; l < heads_; ++l) {
          noise[layout.pair(h, l)] = product(h, l, variance, max_variance).error;
        }
      }
    } else {
      set_ensemble_tolerance(weights, errors, relative, max_variance, noise + heads_);
      for (std::size_t h = 0; h < heads_; ++h) {
        noise[h] = product(h, h, variance, max_variance).error;
      }
    }
    if (!layout.has_alignment()) return;
    const double last_share = plan_.mechanism.merge.last_share(plan_.n);
    const auto share = [&](std::size_t i) { return i + 1 == count_ ? last_share : 1; };
    const double max_share = std::max(1.0, last_share);
    std::vector<Exponent2> own;
    for (std::size_t h = 0; h < heads_; ++h) own.push_back(product(h, h, share, max_share));
    double sum = 0;
    for (std::size_t h = 0; h < heads_; ++h) {
      for (std::size_t l = h + 1; l < heads_; ++l) {
        const Exponent2 both = product(h, l, share, max_share);
        const double norm = std::sqrt(own[h].value * own[l].value);
        const double of_norm = own[h].error / own[h].value / 2 + own[l].error / own[l].value / 2;
        // A cosine of weights is from 0 to 1.
        sum += std::min(1.0,
                        (both.error + both.value * of_norm) / norm / (1 - std::min(of_norm, 0.5)));
      }
    }
    out[layout.alignment_offset()] = sum / static_cast<double>(heads_ * (heads_ - 1) / 2);
  }

  /// Of the noise of the ensemble, which heads of negative weight make smaller and not its error.
  void set_ensemble_tolerance(const std::vector<std::vector<double>>& weights,
                              const std::vector<HeadError>& errors, double relative,
                              double max_variance, double* out) const {
    double tolerance = 0, sum_of_weights = 0;
    bool known = true;
    for (std::size_t h = 0; h < heads_; ++h) {
      known = known && errors[h].known();
      sum_of_weights += std::abs(plan_.head_weights[h]);
    }
    // The second pass also sums over heads.
    relative += launch_.totals.ensemble ? 2 * (static_cast<double>(heads_) + 3) * u32 : 0;
    for (std::size_t i = 0; known && i < count_; ++i) {
      double size = 0, error = 0;
      for (std::size_t h = 0; h < heads_; ++h) {
        const double a = std::abs(plan_.head_weights[h]);
        size += a * weights[h][i];
        error += a * errors[h].normalised(i, weights[h][i]);
      }
      const double variance = tokens_.noise_sd[i] * tokens_.noise_sd[i];
      tolerance += variance * ((2 * size + error) * error + relative * size * size);
    }
    *out = known ? tolerance : max_variance * sum_of_weights * sum_of_weights;
  }

  const Plan& plan_;
  const LaunchPlan& launch_;
  std::optional<double> law_;  ///< norm_coefficient_of
  std::size_t d_, k_, heads_, count_ = 0;
  std::vector<double> centre_;
  std::vector<double> queries_;              ///< [H][k][Q], in the units of the keys
  std::vector<double> projections_;          ///< [H][d][k], in the units of the keys
  std::vector<double> largest_projections_;  ///< [d], of all heads
  TrainingSet tokens_;
  TrainingSet errors_;  ///< of the tokens
  double value_centre_ = 0;
  double scale_error_ = 0;                   ///< relative, of a noise scale
  std::vector<std::vector<Key>> keys_;       ///< [H][N]
  std::vector<std::vector<double>> shifts_;  ///< [H][Q]
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
