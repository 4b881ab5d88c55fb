// SPDX-License-Identifier: Apache-2.0
#include "tools/report/slopes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tools/report/figure.h"
#include "tools/report/scenario_sections.h"
#include "tools/report/sweep.h"

namespace headlab::tools {
namespace {

constexpr std::size_t none = static_cast<std::size_t>(-1);

/// The place of a key with numbers in a sweep.
std::size_t place_of(const Sweep& sweep, const std::string& key, std::size_t levels) {
  const auto found = std::ranges::find_if(sweep.keys, [&](const SweptKey& one) {
    return one.key == key && one.numeric && one.levels.size() >= levels;
  });
  return found == sweep.keys.end() ? none : static_cast<std::size_t>(found - sweep.keys.begin());
}

bool have_one_seed(const Value::Array& conditions) {
  std::set<double> seeds;
  for (const Value& one : conditions) seeds.insert(number_of(parameter(one, {"run", "seed"})));
  return seeds.size() == 1;
}

}  // namespace

SlopesOverN slopes_over_n(
    const Value::Array& conditions,
    const std::function<std::optional<NodeFigure>(std::size_t condition)>& mse_of) {
  constexpr std::size_t min_n = 3;
  const Sweep sweep = sweep_of(conditions);
  const std::size_t n = place_of(sweep, "data.n", min_n);
  if (n == none || !have_one_seed(conditions)) return {};
  std::size_t least = none;
  for (const char* key : {"heads.kernel.bandwidth", "heads.kernel.temperature"}) {
    least = std::min(least, place_of(sweep, key, 2));
  }
  SlopesOverN slopes{.at_the_least = least == none ? "" : sweep.keys[least].words()};
  std::vector<double> counts;
  // The least MSE of each n, by the levels of the other keys.
  std::map<std::vector<std::size_t>, std::map<std::size_t, Jackknifed>> mse_by_n;
  for (std::size_t c = 0; c < conditions.size(); ++c) {
    std::optional<NodeFigure> mse = mse_of(c);
    if (!mse || mse->figure.leave_one_out.empty()) return {};
    if (c == 0) counts = mse->counts;
    if (mse->counts != counts) return {};
    std::vector<std::size_t> others = sweep.places[c];
    others[n] = 0;
    if (least != none) others[least] = 0;
    auto& points = mse_by_n[others];
    const auto [at, is_new] = points.try_emplace(sweep.places[c][n], mse->figure);
    if (!is_new && mse->figure.value < at->second.value) at->second = mse->figure;
  }
  for (const auto& [others, points] : mse_by_n) {
    FittedSlope one;
    for (std::size_t k = 0; k < sweep.keys.size(); ++k) {
      if (k == n || k == least) continue;
      one.setting += (one.setting.empty() ? "" : ", ") + sweep.level_words(k, others[k]);
    }
    Curve curve;
    for (const auto& [level, mse] : points) {
      curve.x.push_back(sweep.keys[n].levels[level].number);
      curve.y.push_back(mse);
    }
    if (curve.x.size() < min_n) continue;
    one.slope = log_log_slope(curve, counts);
    if (std::isfinite(one.slope.slope.value)) slopes.all.push_back(std::move(one));
  }
  return slopes;
}

std::vector<std::string> slope_row(const std::string& name, const SlopeEstimate& fitted) {
  const auto end = [&](double value) {
    const std::string both = estimate_text({value, fitted.slope.mcse});
    return both.substr(0, both.find(' '));
  };
  return {name.empty() ? "the only one" : name, estimate_text(fitted.slope),
          end(fitted.interval.low) + " to " + end(fitted.interval.high)};
}

std::string slopes_html(const SlopesOverN& slopes) {
  if (slopes.all.empty()) return "";
  Table table{.caption = "Slope of log MSE in log n",
              .error = "MCSE",
              .headings = {"setting", "slope", "95 % interval"}};
  for (const FittedSlope& one : slopes.all) {
    table.rows.push_back(slope_row(one.setting, one.slope));
  }
  return paragraph("Least squares without weights" +
                   (slopes.at_the_least.empty()
                        ? "."
                        : ", of the least MSE over the " + slopes.at_the_least +
                              " at each n: the MCSE is that of the values chosen, and does not "
                              "cover the choice.") +
                   " What conditions have in common cancels in the jackknife over their common "
                   "training sets.") +
         table_element(table);
}

}  // namespace headlab::tools
