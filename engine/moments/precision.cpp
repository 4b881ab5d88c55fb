// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/precision.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/moments/measures.h"

namespace headlab {
namespace {

constexpr double spare = 1.05;  // of the replicates that an MCSE makes likely
constexpr double min_growth = 1.1;
constexpr double max_growth = 4;

[[noreturn]] void reject_target(const std::string& text) {
  // mse<1%, mse@3=1%
  std::string meant = text;
  std::ranges::replace(meant, '<', '=');
  std::ranges::replace(meant, ':', '=');
  if (const std::size_t two = meant.find("=="); two != std::string::npos) meant.erase(two, 1);
  const std::size_t at = meant.find('@') + 1;
  if (at > 0 && at < meant.size() && meant[at] >= '0' && meant[at] <= '9') meant.insert(at, "#");
  throw InvalidInput("--until: \"" + one_line(text) +
                     "\" does not fit (allowed: FIGURE=MCSE or FIGURE=SHARE%, numbers above 0 and "
                     "below 100 %; FIGURE@#3 for condition #3 alone)" +
                     (meant == text ? "" : " - write " + one_line(meant)));
}

constexpr std::string_view difference_prefix = "difference_";

/// A figure of the lists, or a name that a measure may have.
FigureName figure_of(const std::string& text) {
  std::vector<std::string> measures;
  if (may_name_measure(text) && std::ranges::count(figure_kinds(), text, &FigureKind::name) == 0) {
    measures.push_back(text);
  }
  return parse_figure("--until", text, measures);
}

PrecisionTarget parse_target(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || text.find_first_of("<:") != std::string::npos) {
    reject_target(text);
  }
  const std::string left = text.substr(0, equals);
  const std::size_t at = std::min(left.find('@'), left.size());
  std::string name = left.substr(0, at);
  const bool of_difference = name.starts_with(difference_prefix);
  if (of_difference) name.erase(0, difference_prefix.size());
  PrecisionTarget target{.figure = figure_of(name), .of_difference = of_difference};
  if (of_difference && !target.figure.index.empty()) {
    throw InvalidInput("--until: " + one_line(left.substr(0, at)) +
                       ": differences are of figures averaged over queries");
  }
  if (at < left.size()) {
    const char* const first = left.data() + at + 2;
    const char* const last = left.data() + left.size();
    if (at + 2 >= left.size() || left[at + 1] != '#') reject_target(text);
    const auto [stop, error] = std::from_chars(first, last, target.condition.emplace());
    if (error != std::errc() || stop != last) reject_target(text);
  }
  std::string number = text.substr(equals + 1);
  target.relative = number.ends_with('%');
  if (target.relative) number.pop_back();
  const char* const end = number.data() + number.size();
  const auto [stop, error] = std::from_chars(number.data(), end, target.limit);
  const bool fits = error == std::errc() && stop == end && target.limit > 0 &&
                    std::isfinite(target.limit) && (!target.relative || target.limit < 100);
  if (!fits) reject_target(text);
  return target;
}

}  // namespace

std::string PrecisionTarget::figure_text() const {
  return (of_difference ? std::string(difference_prefix) : "") + figure.text();
}

std::string PrecisionTarget::text() const {
  return figure_text() + (condition ? "@#" + std::to_string(*condition) : "") + "=" +
         number_text(limit) + (relative ? "%" : "");
}

std::vector<PrecisionTarget> parse_until(const std::string& given) {
  std::string text = given;
  std::erase(text, ' ');
  std::vector<PrecisionTarget> targets;
  std::size_t begin = 0;
  int brackets = 0;
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : ',';
    brackets += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c != ',' || (brackets > 0 && i < text.size())) continue;
    // No figure begins with a digit.
    if (i + 1 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '9') {
      throw InvalidInput("--until: \"" + one_line(text) +
                         "\": numbers have a decimal point and no comma, as in mse=0.5%");
    }
    PrecisionTarget target = parse_target(text.substr(begin, i - begin));
    for (const PrecisionTarget& other : targets) {
      if (other.figure == target.figure && other.of_difference == target.of_difference &&
          other.condition == target.condition) {
        throw InvalidInput("--until: " + other.text() + " and " + target.text() +
                           " are targets of one figure - leave one of them out");
      }
    }
    targets.push_back(std::move(target));
    begin = i + 1;
  }
  return targets;
}

void require_figures(std::span<const PrecisionTarget> targets,
                     const std::vector<std::string>& measures) {
  for (const PrecisionTarget& target : targets) {
    const FigureKind kind = figure_kind("--until", target.figure.name, measures);
    if (!target.relative || (kind.positive && !target.of_difference)) continue;
    const std::string figure = target.figure_text();
    throw InvalidInput("--until: " + target.text() + ": " + figure +
                       " may be 0 or negative, and a share of it measures nothing - give its "
                       "standard error itself, as " +
                       figure + "=0.001");
  }
}

std::string until_text(std::span<const PrecisionTarget> targets) {
  std::string text;
  for (const PrecisionTarget& target : targets) text += (text.empty() ? "" : ",") + target.text();
  return text;
}

double precision_ratio(const Estimate& figure, const PrecisionTarget& target) {
  if (std::isnan(figure.value) || std::isnan(figure.mcse)) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const double error = figure.mcse + figure.allowance;
  if (error == 0) return 0;
  const double allowed = target.relative ? target.limit / 100 * figure.value : target.limit;
  if (!(allowed > 0)) return std::numeric_limits<double>::infinity();
  const double of_share = target.relative ? denominator_errors * figure.mcse / figure.value : 0;
  return std::max(error / allowed, of_share);
}

void Look::add(std::span<const PrecisionTarget> targets, std::size_t of_condition,
               const ConditionEstimates& estimates, const ErrorTerms<Estimate>* difference) {
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (targets[t].condition.value_or(of_condition) != of_condition) continue;
    if (targets[t].of_difference && difference == nullptr) continue;
    const ErrorTerms<Estimate>& terms = targets[t].of_difference ? *difference : estimates;
    const Estimate* figure = find_figure<Estimate>(terms, targets[t].figure);
    double seen =
        figure ? precision_ratio(*figure, targets[t]) : std::numeric_limits<double>::quiet_NaN();
    for (const Measured<Estimate>& measure : estimates.measures) {
      if (figure != &measure.number) continue;
      seen = std::max(seen, denominator_errors * measure.divisor_error);
    }
    if (const Ratio<Estimate>* divided = ratio_of(estimates, figure)) {
      const Estimate& divisor = estimates.*divided->bottom;
      if (figure->mcse > 0)
        seen = std::max(seen, denominator_errors * divisor.mcse / divisor.value);
    }
    if (std::isnan(seen)) ++undefined;
    if (!(seen > ratio)) continue;
    ratio = seen;
    condition = of_condition;
    target = t;
  }
}

std::uint64_t whole_nodes_from(std::uint64_t replicates) {
  // A run of more replicates may have larger nodes. Draws of heads or queries are leaves
  // throughout.
  const MomentLayout leaves{.per_draw = true};
  for (std::uint64_t before = 0; before != replicates;) {
    before = replicates;
    const std::uint64_t size = node_replicates(leaves, replicates);
    replicates = (replicates + size - 1) / size * size;
  }
  return replicates;
}

std::uint64_t next_look(std::uint64_t replicates, double ratio) {
  const double growth = std::clamp(spare * ratio * ratio, min_growth, max_growth);
  return whole_nodes_from(
      static_cast<std::uint64_t>(std::ceil(growth * static_cast<double>(replicates))));
}

std::uint64_t Precision::planned(std::size_t i) const {
  return i == 0 ? first : next_look(looks[i - 1].replicates, looks[i - 1].ratio);
}

bool Precision::done() const {
  return !looks.empty() && (looks.back().ratio <= 1 || looks.back().replicates >= most);
}

std::uint64_t Precision::goal() const {
  return done() ? looks.back().replicates : std::min(most, planned(looks.size()));
}

void Precision::drop_early_look() {
  if (!looks.empty() && looks.back().replicates < std::min(most, planned(looks.size() - 1))) {
    looks.pop_back();
  }
}

}  // namespace headlab
