// SPDX-License-Identifier: Apache-2.0
#include "tools/report/scale.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "engine/files/words.h"
#include "tools/cli/figure_text.h"

namespace headlab::tools {
namespace {

constexpr double slack = 1e-9;

/// Largest over smallest distance of neighbours, in the numbers that f makes of them.
template <class Function>
double unevenness(std::vector<double> levels, const Function& f) {
  std::ranges::sort(levels);
  double smallest = HUGE_VAL, largest = 0;
  for (std::size_t i = 1; i < levels.size(); ++i) {
    const double gap = f(levels[i]) - f(levels[i - 1]);
    if (gap <= 0) continue;
    smallest = std::min(smallest, gap);
    largest = std::max(largest, gap);
  }
  return largest / smallest;
}

/// "2·10^−7", "−10^5".
std::string power_text(const std::string& factor, int exponent) {
  const std::string power = "10^" + std::to_string(exponent);
  const std::string sign = factor.starts_with("-") ? "-" : "";
  return with_minus_sign(factor == sign + "1" ? sign + power : factor + "·" + power);
}

bool is_power(const Tick& tick) {
  return tick.label.find('^') != std::string::npos;
}

/// "10^−4" beside "10^−5": numbers of one axis are written alike.
void give_equal_powers(std::vector<Tick>& ticks) {
  if (std::ranges::none_of(ticks, is_power)) return;
  for (Tick& tick : ticks) {
    if (tick.value == 0 || is_power(tick)) continue;
    const int exponent = static_cast<int>(std::floor(std::log10(std::abs(tick.value)) + 1e-9));
    tick.label = power_text(formatted("%.6g", tick.value / std::pow(10.0, exponent)), exponent);
  }
}

}  // namespace

Scale::Scale(ScaleKind kind, double low, double high, double from, double to)
    : kind_(kind), low_(low), high_(high), from_(from), to_(to) {
  if (!std::isfinite(low_) || !std::isfinite(high_) || low_ > high_) {
    low_ = kind == ScaleKind::logarithmic ? 1 : 0;
    high_ = kind == ScaleKind::logarithmic ? 10 : 1;
  }
  if (kind_ == ScaleKind::logarithmic && !(low_ > 0)) kind_ = ScaleKind::linear;
  if (transformed(high_) - transformed(low_) > 1e-12 * std::abs(transformed(high_))) return;
  if (kind_ == ScaleKind::logarithmic) {
    low_ /= 2;
    high_ *= 2;
  } else {
    const double half = low_ == 0 ? 1 : std::abs(low_) / 2;
    low_ -= half;
    high_ += half;
  }
}

double Scale::transformed(double value) const {
  switch (kind_) {
    case ScaleKind::logarithmic:
      return std::log10(value);
    case ScaleKind::signed_log:
      return std::copysign(std::log10(1 + std::abs(value)), value);
    default:
      return value;
  }
}

double Scale::operator()(double value) const {
  const double share =
      (transformed(value) - transformed(low_)) / (transformed(high_) - transformed(low_));
  return from_ + std::clamp(share, 0.0, 1.0) * (to_ - from_);
}

bool Scale::holds(double value) const {
  if (!has_place(kind_, value)) return false;
  const double room = slack * (transformed(high_) - transformed(low_));
  return transformed(value) >= transformed(low_) - room &&
         transformed(value) <= transformed(high_) + room;
}

std::vector<Tick> Scale::ticks(int about) const {
  if (kind_ == ScaleKind::linear) return linear_ticks(about);
  std::vector<Tick> all;
  if (kind_ == ScaleKind::logarithmic) {
    all = decade_ticks(about);
    return all.size() >= 2 ? all : linear_ticks(about);
  }
  const double farthest = std::max({std::abs(low_), std::abs(high_), 10.0});
  for (const Tick& positive : Scale(ScaleKind::logarithmic, 1, farthest, 0, 1).ticks(10)) {
    for (const double sign : {-1.0, 1.0}) {
      const double value = sign * positive.value;
      if (holds(value)) all.push_back({value, axis_number(value)});
    }
  }
  if (holds(0)) all.push_back({0, "0"});
  std::ranges::sort(all, {}, &Tick::value);
  give_equal_powers(all);
  return all;
}

std::vector<Tick> Scale::linear_ticks(int about) const {
  const double wanted = std::max(about, 1);
  const double rough = (high_ - low_) / wanted;
  const double decade = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10 * decade;
  for (const double factor : {5.0, 2.0, 1.0}) {
    // Less than half of what is wanted is worse than somewhat more.
    if (factor * decade >= rough * (1 - slack) || (high_ - low_) / step < wanted / 2) {
      step = factor * decade;
    }
  }
  std::vector<Tick> all;
  const double first = std::ceil(low_ / step - slack);
  for (int i = 0; i < 50; ++i) {
    const double value = (first + i) * step;
    if (value > high_ + slack * step) break;
    // A multiple of the step next to 0 is 0 up to rounding.
    const double clean = std::abs(value) < slack * step ? 0 : value;
    all.push_back({clean, ""});
  }
  if (all.size() < 2 && about < 5) return linear_ticks(about + 1);
  label_alike(all);
  return all;
}

std::vector<Tick> Scale::decade_ticks(int about) const {
  const double decades = std::log10(high_ / low_);
  const int step = std::max(1, static_cast<int>(std::ceil(decades / (2.0 * about))));
  const auto multiples = [&](const std::vector<double>& factors) {
    std::vector<Tick> all;
    const int first = static_cast<int>(std::floor(std::log10(low_)));
    for (int exponent = first; exponent <= first + 700; exponent += step) {
      const double decade = std::pow(10.0, exponent);
      if (decade > high_) break;
      for (const double factor : factors) {
        if (holds(factor * decade)) all.push_back({factor * decade, axis_number(factor * decade)});
      }
    }
    // Few of them are read as those of a linear axis.
    if (!all.empty() && all.back().value < 10 * all.front().value) {
      label_alike(all);
    } else {
      give_equal_powers(all);
    }
    return all;
  };
  // Where others would crowd, decades alone are enough.
  if (decades >= 3 || (decades >= 2 && 3 * decades > 2.0 * about)) return multiples({1});
  const std::vector<Tick> few = multiples({1, 2, 5});
  // One or two of them leave an end of the axis without a number.
  if (few.size() >= std::min<std::size_t>(3, static_cast<std::size_t>(std::max(about, 1))))
    return few;
  const std::vector<Tick> all = multiples({1, 2, 3, 4, 5, 6, 7, 8, 9});
  double widest = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    widest = std::max(widest, std::log10(all[i].value / all[i - 1].value));
  }
  // "0.09", "0.10" and "0.20" leave most of an axis without a number.
  return widest > decades / 2 ? multiples({1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9}) : all;
}

bool has_place(ScaleKind kind, double value) {
  return std::isfinite(value) && (kind != ScaleKind::logarithmic || value > 0);
}

Range range_of(ScaleKind kind, std::span<const double> values, double margin) {
  Range range{HUGE_VAL, -HUGE_VAL};
  for (const double value : values) {
    if (!has_place(kind, value)) continue;
    range.low = std::min(range.low, value);
    range.high = std::max(range.high, value);
  }
  if (range.low > range.high) return kind == ScaleKind::logarithmic ? Range{1, 10} : Range{0, 1};
  if (kind == ScaleKind::logarithmic) {
    const double factor = std::pow(range.high / range.low, margin);
    return {range.low / factor, range.high * factor};
  }
  if (kind == ScaleKind::signed_log) {
    const double factor = 1 + 5 * margin;
    return {range.low * (range.low < 0 ? factor : 1), range.high * (range.high > 0 ? factor : 1)};
  }
  const double room = margin * (range.high - range.low);
  // What begins or ends at 0 has nothing beyond it.
  return {range.low == 0 ? 0 : range.low - room, range.high == 0 ? 0 : range.high + room};
}

ScaleKind kind_for_levels(std::span<const double> levels) {
  if (levels.empty()) return ScaleKind::linear;
  const auto [low, high] = std::ranges::minmax(levels);
  if (!(low > 0) || high / low < 8) return ScaleKind::linear;
  const std::vector<double> all(levels.begin(), levels.end());
  const double linear = unevenness(all, [](double x) { return x; });
  const double logarithmic = unevenness(all, [](double x) { return std::log(x); });
  return logarithmic < linear ? ScaleKind::logarithmic : ScaleKind::linear;
}

ScaleKind kind_for_figure(std::span<const double> values) {
  constexpr double log_from = 20;
  double low = HUGE_VAL, high = -HUGE_VAL;
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  return low > 0 && high / low > log_from ? ScaleKind::logarithmic : ScaleKind::linear;
}

std::string shown_number(double value, int digits) {
  return with_minus_sign(short_number(value, digits));
}

std::string measured_number(double value, int digits) {
  if (!std::isfinite(value) || value == 0) return shown_number(value, digits);
  const std::string rounded = formatted("%.*e", digits - 1, value);
  const int decimals = digits - 1 - std::stoi(rounded.substr(rounded.find('e') + 1));
  const bool is_plain = std::abs(value) >= min_plain && decimals > -digits;
  return with_minus_sign(is_plain ? formatted("%.*f", std::max(decimals, 0), value) : rounded);
}

std::string axis_number(double value) {
  // Six digits hide the rounding of multiples of a step. Few fonts have raised digits.
  const std::string text = formatted("%.6g", value);
  const std::size_t e = text.find('e');
  if (e == std::string::npos) return with_minus_sign(text);
  return power_text(text.substr(0, e), std::stoi(text.substr(e + 1)));
}

void label_alike(std::vector<Tick>& ticks) {
  std::size_t decimals = 0;
  for (Tick& tick : ticks) {
    tick.label = axis_number(tick.value);
    const std::size_t point = tick.label.find('.');
    if (point != std::string::npos) decimals = std::max(decimals, tick.label.size() - point - 1);
  }
  if (std::ranges::any_of(ticks, is_power)) return give_equal_powers(ticks);
  for (Tick& tick : ticks) {
    tick.label = with_minus_sign(fixed_number(tick.value, static_cast<int>(decimals)));
  }
}

std::string with_minus_sign(const std::string& printed) {
  std::string out;
  for (const char c : printed) {
    if (c == '-') {
      out += "−";
    } else if (c != '+') {
      out += c;
    }
  }
  return out;
}

void drop_overlapping(std::vector<Tick>& ticks, std::span<const double> places,
                      std::span<const double> widths, double gap, ScaleKind kind) {
  std::vector<std::size_t> kept;
  const auto has_room = [&](std::size_t i) {
    return std::ranges::none_of(kept, [&](std::size_t j) {
      return std::abs(places[i] - places[j]) < (widths[i] + widths[j]) / 2 + gap;
    });
  };
  // 0, powers of ten, others.
  const auto rank_of = [&](double value) {
    if (kind == ScaleKind::linear || value == 0) return 0;
    const double exponent = std::log10(std::abs(value));
    return std::abs(exponent - std::round(exponent)) < slack ? 1 : 2;
  };
  for (const int rank : {0, 1, 2}) {
    for (std::size_t i = 0; i < ticks.size(); ++i) {
      if (ticks[i].label.empty() || rank_of(ticks[i].value) != rank) continue;
      if (has_room(i)) {
        kept.push_back(i);
      } else {
        ticks[i].label.clear();
      }
    }
  }
}

}  // namespace headlab::tools
