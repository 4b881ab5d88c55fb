// SPDX-License-Identifier: Apache-2.0
#include "validation/heads/identity.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

#include "engine/files/document.h"
#include "validation/heads/row_products.h"

namespace headlab {
namespace {

using Eigen::Index;

constexpr std::size_t max_sequences = 8;
/// Mean distance beyond which another computation was done: rounding of q and k to 8 bits moves the
/// weights by 0.004.
constexpr double max_of_half = 0.01, max_of_single = 0.001;

/// Another way to attend that is tried, and how it is written.
template <class T>
struct Alternative {
  std::string words;
  std::function<bool(AttentionRule&, AttentionSequence<T>&)> change;  ///< false: the same
};

/// Sums of squares of a difference and of what it is compared with.
struct Distance {
  double off = 0, size = 0;

  /// \param found of the rows of `given` alone
  void add(const TokenRows& found, const TokenRows& given, const std::vector<std::uint32_t>& rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      off += (found.row(static_cast<Index>(i)) - given.row(rows[i])).squaredNorm();
      size += given.row(rows[i]).squaredNorm();
    }
  }
  double relative() const { return std::sqrt(off / size); }
};

template <class T>
class Comparison {
 public:
  Comparison(const LayerActivations& layer, int threads) : layer_(layer), threads_(threads) {
    if (layer.has("output")) output_map_ = layer.output_map<T>();
  }

  Identity distances(const Alternative<T>* alternative) const {
    Identity found;
    Distance z, output;
    std::vector<double> variations;
    for (std::size_t b = 0; b < layer_.sequences(); ++b) {
      const bool in_attention = layer_.has("attention") && b < layer_.info("attention").shape[0];
      if (!in_attention && b >= max_sequences) break;
      AttentionSequence<T> sequence = layer_.sequence<T>(b);
      AttentionRule rule = layer_.rule();
      if (alternative != nullptr && !alternative->change(rule, sequence)) return found;
      std::vector<std::uint32_t> rows = layer_.tokens(b);
      Attended<T> attended = attend(rule, sequence, rows, false, threads_);
      attended.leave_out_blind(rows);
      if (in_attention) add_variations(rule, sequence, b, rows, variations);
      if (b >= max_sequences) continue;
      const bool has_z = layer_.has("z");
      if (has_z) z.add(attended.z.template cast<double>(), layer_.rows("z", b), rows);
      if (layer_.has("output") && b < layer_.info("output").shape[0])
        output.add(output_of(attended.z), layer_.rows("output", b), rows);
    }
    if (layer_.has("z")) found.z_relative = z.relative();
    if (layer_.has("output")) found.output_relative = output.relative();
    if (!variations.empty()) {
      found.variation_max = *std::ranges::max_element(variations);
      double sum = 0;
      for (const double one : variations) sum += one;
      found.variation_mean = sum / static_cast<double>(variations.size());
    }
    return found;
  }

 private:
  void add_variations(const AttentionRule& rule, const AttentionSequence<T>& sequence,
                      std::size_t b, const std::vector<std::uint32_t>& rows,
                      std::vector<double>& variations) const {
    const std::size_t keys = sequence.shape.keys;
    const TokenRows given = layer_.rows("attention", b);  // [T][H S]
    for (std::size_t h = 0; h < sequence.shape.heads; ++h) {
      const std::vector<T> own = attention_weights(rule, sequence, h, rows);
      for (std::size_t r = 0; r < rows.size(); ++r) {
        double sum = 0;
        for (std::size_t s = 0; s < keys; ++s) {
          sum += std::abs(static_cast<double>(own[r * keys + s]) -
                          given(rows[r], static_cast<Index>(h * keys + s)));
        }
        variations.push_back(sum / 2);
      }
    }
  }

  TokenRows output_of(const RowsOf<T>& z) const {
    TokenRows output = row_product<T>(z, output_map_, threads_);
    if (layer_.has("b_O")) {
      const std::vector<double> bias = layer_.all("b_O");
      output.rowwise() += Eigen::Map<const Eigen::RowVectorXd>(bias.data(), output.cols());
    }
    return output;
  }

  const LayerActivations& layer_;
  int threads_;
  RowsOf<T> output_map_;  ///< where outputs are compared
};

/// The distance that decides, NaN where there is none.
double deciding(const Identity& identity) {
  if (!std::isnan(identity.variation_mean)) return identity.variation_mean;
  return std::isnan(identity.z_relative) ? identity.output_relative : identity.z_relative;
}

/// [first][second][n] as [second][first][n].
template <class T>
void swap_axes(std::vector<T>& numbers, std::size_t first, std::size_t second) {
  const std::size_t n = numbers.size() / (first * second);
  std::vector<T> swapped(numbers.size());
  for (std::size_t i = 0; i < first; ++i) {
    for (std::size_t j = 0; j < second; ++j) {
      std::copy_n(numbers.data() + (i * second + j) * n, n, swapped.data() + (j * first + i) * n);
    }
  }
  numbers = std::move(swapped);
}

/// Keys and values of every head on their own, heads h, h + G, h + 2 G, .. with those of group h.
template <class T>
void deal_groups(AttentionSequence<T>& sequence) {
  AttentionShape& shape = sequence.shape;
  for (std::vector<T>* const numbers : {&sequence.k, &sequence.v}) {
    const std::size_t size = numbers->size() / shape.groups;
    std::vector<T> dealt;
    for (std::size_t h = 0; h < shape.heads; ++h) {
      const auto from = numbers->begin() + static_cast<std::ptrdiff_t>(h % shape.groups * size);
      dealt.insert(dealt.end(), from, from + static_cast<std::ptrdiff_t>(size));
    }
    *numbers = std::move(dealt);
  }
  shape.groups = shape.heads;
}

template <class T>
std::vector<Alternative<T>> alternatives() {
  const auto scaled = [](AttentionRule& rule, double scale) {
    return std::exchange(rule.scale, scale) != scale;
  };
  using Rule = AttentionRule;
  using Sequence = AttentionSequence<T>;
  return {
      {"scale=1", [=](Rule& rule, Sequence&) { return scaled(rule, 1); }},
      {"scale=k**-0.5",
       [=](Rule& rule, Sequence& of) {
         return scaled(rule, 1 / std::sqrt(static_cast<double>(of.shape.k)));
       }},
      {"mask=\"full\"", [](Rule& rule, Sequence&) { return std::exchange(rule.causal, false); }},
      {"mask=\"causal\"", [](Rule& rule, Sequence&) { return !std::exchange(rule.causal, true); }},
      {"no window", [](Rule& rule, Sequence&) { return std::exchange(rule.window, 0) > 0; }},
      {"no softcap", [](Rule& rule, Sequence&) { return std::exchange(rule.softcap, 0) > 0; }},
      {"keys of head h in group h mod G",
       [](Rule&, Sequence& of) {
         if (of.shape.groups == of.shape.heads || of.shape.groups == 1) return false;
         deal_groups(of);
         return true;
       }},
      {"the axes of heads and tokens swapped", [](Rule&, Sequence& of) {
         const AttentionShape& shape = of.shape;
         if (shape.heads != shape.queries || shape.groups != shape.keys) return false;
         swap_axes(of.q, shape.heads, shape.queries);
         swap_axes(of.k, shape.groups, shape.keys);
         swap_axes(of.v, shape.groups, shape.keys);
         return true;
       }}};
}

template <class T>
Identity checked(const LayerActivations& layer, int threads) {
  const Comparison<T> comparison(layer, threads);
  const Identity found = comparison.distances(nullptr);
  const double most = layer.precision() == NumberKind::half ? max_of_half : max_of_single;
  const double distance = deciding(found);
  if (std::isnan(distance) || distance <= most) return found;
  std::string problem = "not what this model attends with: " +
                        (std::isnan(found.variation_mean)
                             ? "relative error " + rounded_text(distance) +
                                   (std::isnan(found.z_relative) ? " of the output" : " of z")
                             : "total variation " + rounded_text(distance) + " of 1");
  std::string advice =
      "no other scale, mask, order of groups or axes that was tried fits: look at "
      "scale, mask, window, softcap, bias and sink";
  for (const Alternative<T>& one : alternatives<T>()) {
    const double with = deciding(comparison.distances(&one));
    if (with <= most) {
      advice = "with " + one.words + " it is " + rounded_text(with);
      break;
    }
  }
  problem += " - " + advice;
  reject({layer.source()}, "layer " + std::to_string(layer.number()), problem);
}

}  // namespace

Identity identity_of(const LayerActivations& layer, bool exact, int threads) {
  const bool given = layer.has("attention") || layer.has("z") || layer.has("output");
  if (!layer.has_attention() || !given) return {};
  return exact || layer.precision() == NumberKind::exact ? checked<double>(layer, threads)
                                                         : checked<float>(layer, threads);
}

std::string rounded_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", number);
  return text;
}

std::string identity_text(const Identity& identity) {
  std::string text;
  if (!std::isnan(identity.variation_mean)) {
    text = "attention recomputed from q and k equals the model's (total variation " +
           rounded_text(identity.variation_mean) + ", at most " +
           rounded_text(identity.variation_max) + ")";
  }
  const auto add = [&](const char* what, double relative) {
    if (std::isnan(relative)) return;
    text += (text.empty() ? "" : "; ") + std::string(what) + " differs by " +
            rounded_text(relative) + " of its size";
  };
  add("z", identity.z_relative);
  add("the output", identity.output_relative);
  return text.empty() ? "not checked against the model: give attention, z or output" : text;
}

}  // namespace headlab
