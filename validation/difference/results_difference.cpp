// SPDX-License-Identifier: Apache-2.0
#include "validation/difference/results_difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_syntax.h"
#include "engine/files/json_writer.h"
#include "engine/files/words.h"
#include "validation/statistics/comparison.h"

namespace headlab {
namespace {

using Leaves = std::map<std::string, std::string>;  ///< dotted key -> value as JSON

/// The values of a scenario by their dotted keys; an array is one value.
void add_leaves(const Value& json, const std::string& key, Leaves& leaves) {
  if (!json.is<Value::Members>()) leaves[key] = to_json(json);
  for (const auto& [name, location, value] : members_of(json)) {
    add_leaves(value, key.empty() ? name : key + "." + name, leaves);
  }
}

Leaves leaves_of(const StoredResults& results, std::size_t i) {
  Leaves leaves;
  const std::optional<Value> parameters = parse_json(results.parameters(i));
  if (!parameters) {
    throw InvalidInput(results.path() + ": the parameters of " + numbered_condition(i) +
                       " are not JSON");
  }
  add_leaves(*parameters, "", leaves);
  return leaves;
}

std::string value_at(const Leaves& leaves, const std::string& key) {
  const auto found = leaves.find(key);
  return found == leaves.end() ? "" : found->second;
}

/// Adds the keys whose values are not the same in all conditions.
void add_varying(const StoredResults& results, std::set<std::string>& keys) {
  if (results.size() == 0) return;
  const Leaves first = leaves_of(results, 0);
  for (std::size_t i = 1; i < results.size(); ++i) {
    const Leaves leaves = leaves_of(results, i);
    for (const Leaves* all : {&first, &leaves}) {
      for (const auto& [key, value] : *all) {
        if (value_at(first, key) != value_at(leaves, key)) keys.insert(key);
      }
    }
  }
}

using Setting = std::vector<std::string>;  ///< values of the varying keys

/// "bandwidth = 0.2, n = 100"; the last part of a key that no other ends with.
std::string label_of(const std::set<std::string>& keys, const Setting& setting) {
  const auto last = [](const std::string& key) { return key.substr(key.rfind('.') + 1); };
  std::string text;
  std::size_t i = 0;
  for (const std::string& key : keys) {
    const std::string& value = setting[i++];
    if (value.empty()) continue;
    const bool alone = std::ranges::count(keys, last(key), last) == 1;
    text += (text.empty() ? "" : ", ") + (alone ? last(key) : key) + " = " + one_line(value, 60);
  }
  return text;
}

/// Conditions of both sides with the same setting.
struct Match {
  std::size_t a, b;
  std::string label;
};

struct Matches {
  std::set<std::string> keys;  ///< that vary
  std::vector<Match> all = {};
  std::vector<std::string> a_alone = {}, b_alone = {};
};

Matches matches_of(const StoredResults& a, const StoredResults& b) {
  Matches matches;
  add_varying(a, matches.keys);
  add_varying(b, matches.keys);
  const auto setting_of = [&](const StoredResults& results, std::size_t i) {
    const Leaves leaves = leaves_of(results, i);
    Setting setting;
    for (const std::string& key : matches.keys) setting.push_back(value_at(leaves, key));
    return setting;
  };
  std::multimap<Setting, std::size_t> left;
  for (std::size_t i = 0; i < b.size(); ++i) left.emplace(setting_of(b, i), i);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const Setting setting = setting_of(a, i);
    const std::string label = label_of(matches.keys, setting);
    // A setting that stands in a sweep twice matches in order.
    const auto found = left.lower_bound(setting);
    if (found == left.end() || found->first != setting) {
      matches.a_alone.push_back(label);
    } else {
      matches.all.push_back({i, found->second, label});
      left.erase(found);
    }
  }
  std::map<std::size_t, std::string> rest;
  for (const auto& [setting, i] : left) rest[i] = label_of(matches.keys, setting);
  for (const auto& [i, label] : rest) matches.b_alone.push_back(label);
  return matches;
}

/// Keys that do not change what a replicate is.
bool leaves_problem_alone(const std::string& key) {
  return key == "run.replicates" || key.starts_with("scenario.") || key.starts_with("claim") ||
         key.starts_with("measures");
}

bool same_bits_of(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

bool same_bits_of(const Estimate& a, const Estimate& b) {
  return same_bits_of(a.value, b.value) && same_bits_of(a.mcse, b.mcse);
}

using ByNameOfFigure = std::map<std::string, const NamedFigure*>;

ByNameOfFigure by_name_of(const StoredFigures& stored) {
  ByNameOfFigure figures;
  for (const NamedFigure& one : stored.figures) figures[one.name] = &one;
  return figures;
}

double value_of(const ByNameOfFigure& figures, const std::string& name) {
  const auto found = figures.find(name);
  return found == figures.end() ? std::nan("") : found->second->estimate.value;
}

/// How far figures may be off by the float32 of the simulation.
class Rounding {
 public:
  Rounding(const StoredFigures& stored, const ByNameOfFigure& figures) {
    for (const auto& [name, one] : figures) {
      if (one->query == NamedFigure::of_no_query || !std::isfinite(one->estimate.value)) continue;
      const double truth = stored.truth.at(static_cast<std::size_t>(one->query));
      const double size = std::abs(one->estimate.value);
      const bool is_bias = name.find("head_bias") != std::string::npos;
      scale_ = std::max(scale_, std::abs(truth) + (is_bias ? size : std::sqrt(size)));
    }
    const ErrorTerms<double> terms;
    std::map<const double*, std::string> names;
    for_each_number<const double>(
        terms, [&](const std::string& name, int, const double& number) { names[&number] = name; });
    for (const auto& [number, name] : names) {
      const Ratio<double>* ratio = ratio_of(terms, number);
      if (ratio == nullptr) continue;
      bottoms_[name] = std::abs(value_of(figures, names.at(&(terms.*ratio->bottom))));
    }
  }

  double of(const std::string& name) const {
    if (name == "indices.weights") return unit;
    if (name.find("head_bias") != std::string::npos) return unit * scale_;
    const double moment = unit * scale_ * scale_;
    const auto bottom = bottoms_.find(name);
    return bottom != bottoms_.end() && bottom->second > 0 ? moment / bottom->second : moment;
  }

 private:
  static constexpr double unit = 0x1p-20;  ///< 8 eps of float32
  double scale_ = 0;                       ///< of the estimates of m
  std::map<std::string, double> bottoms_;  ///< what ratios divide by
};

/// Of the figures known without Monte Carlo error.
double exact_rounding(double a, double b) {
  return 0x1p-40 * std::max({1.0, std::abs(a), std::abs(b)});
}

/// Degrees of freedom of sqrt(a^2 + b^2) (Welch 1947, Satterthwaite 1946).
double joint_df(double a, double df_a, double b, double df_b) {
  // Relative to the larger one: fourth powers of small errors underflow.
  const double larger = std::max(a, b);
  if (!(larger > 0)) return std::min(df_a, df_b);
  const double va = a / larger * (a / larger), vb = b / larger * (b / larger);
  const double sum = va + vb;
  return sum * sum / (va * va / df_a + vb * vb / df_b);
}

double nodes_df(const StoredFigures& stored) {
  return std::max(
      1.0, static_cast<double>(jackknife_node_count(stored.replicates, stored.per_draw)) - 1);
}

/// Compares the matching conditions one after the other.
class Comparer {
 public:
  Comparer(const StoredResults& a, const StoredResults& b) : a_(a), b_(b) {}

  ResultsDifference compare() {
    if (a_.size() == 0 || b_.size() == 0) {
      throw InvalidInput((a_.size() == 0 ? a_ : b_).path() +
                         ": has no condition with replicates - run it first");
    }
    Matches matches = matches_of(a_, b_);
    if (matches.all.empty()) {
      throw InvalidInput(a_.path() + " and " + b_.path() + ": have no condition in common (A: " +
                         one_line(matches.a_alone[0], 100) + more(matches.a_alone) +
                         "; B: " + one_line(matches.b_alone[0], 100) + more(matches.b_alone) + ")");
    }
    found_.matching = matches.all.size();
    found_.a_alone = std::move(matches.a_alone);
    found_.b_alone = std::move(matches.b_alone);
    found_.a_complete = a_.complete();
    found_.b_complete = b_.complete();
    compare_origins();
    for (const Match& match : matches.all) compare_conditions(match);
    finish();
    return std::move(found_);
  }

 private:
  static std::string more(const std::vector<std::string>& labels) {
    return labels.size() == 1 ? "" : " and " + std::to_string(labels.size() - 1) + " more";
  }

  void compare_origins() {
    const auto value_of_origin = [](const StoredResults& results, const std::string& name) {
      for (const auto& [key, value] : results.origin()) {
        if (key == name) return json_string(value);
      }
      return std::string();
    };
    for (const auto& [name, unused] : a_.origin()) {
      const std::string in_a = value_of_origin(a_, name), in_b = value_of_origin(b_, name);
      // A summary says less than results.nc.
      if (in_a != in_b && !in_b.empty()) found_.made_by.push_back({name, in_a, in_b, 0});
    }
  }

  void add_key(const std::string& key, const std::string& in_a, const std::string& in_b) {
    const auto same = std::ranges::find_if(found_.keys, [&](const KeyDifference& one) {
      return one.key == key && one.a == in_a && one.b == in_b;
    });
    auto& at = same == found_.keys.end()
                   ? found_.keys.emplace_back(KeyDifference{key, in_a, in_b, 0})
                   : *same;
    ++at.conditions;
  }

  /// Whether both sides simulate the same problem.
  bool compare_keys(const StoredFigures& a, const StoredFigures& b, const Leaves& of_a,
                    const Leaves& of_b) {
    bool same_problem = true;
    std::set<std::string> keys;
    for (const Leaves* leaves : {&of_a, &of_b}) {
      for (const auto& [key, value] : *leaves) keys.insert(key);
    }
    for (const std::string& key : keys) {
      const std::string in_a = value_at(of_a, key), in_b = value_at(of_b, key);
      if (in_a == in_b) continue;
      add_key(key, in_a, in_b);
      same_problem = same_problem && leaves_problem_alone(key);
    }
    if (a.replicates != b.replicates) {
      add_key("replicates", std::to_string(a.replicates), std::to_string(b.replicates));
    }
    const bool known = !a.plan_sha256.empty() && !b.plan_sha256.empty();
    if (same_problem && known && a.plan_sha256 != b.plan_sha256) {
      add_key("plan_sha256", json_string(a.plan_sha256), json_string(b.plan_sha256));
    }
    return same_problem;
  }

  void compare_nodes(const StoredFigures& a, const StoredFigures& b) {
    if (a.nodes_sha256.empty() || b.nodes_sha256.empty()) {
      if (found_.nodes == NodeBits::same) found_.nodes = NodeBits::unknown;
    } else if (a.nodes_sha256 != b.nodes_sha256) {
      found_.nodes = NodeBits::different;
    }
  }

  void compare_conditions(const Match& match) {
    const StoredFigures a = a_.figures(match.a), b = b_.figures(match.b);
    const Leaves of_a = leaves_of(a_, match.a), of_b = leaves_of(b_, match.b);
    const auto seed = [](const Leaves& leaves) {
      const std::string text = value_at(leaves, "run.seed");
      return text.empty() ? std::string("0") : text;
    };
    const bool same_problem = compare_keys(a, b, of_a, of_b);
    compare_nodes(a, b);

    Pairing pairing = Pairing::conservative;
    std::optional<std::map<std::string, double>> paired;
    if (seed(of_a) != seed(of_b)) {
      pairing = Pairing::independent;
    } else if (same_problem && a.replicates == b.replicates) {
      pairing = Pairing::same_problem;
    } else if (a.replicates == b.replicates && a_.has_nodes() && b_.has_nodes()) {
      paired = paired_errors(a_.nodes(match.a), b_.nodes(match.b));
      if (paired) pairing = Pairing::paired;
    }
    if (std::ranges::count(found_.pairings, pairing) == 0) found_.pairings.push_back(pairing);

    const ByNameOfFigure figures_a = by_name_of(a), figures_b = by_name_of(b);
    const Rounding rounding_a(a, figures_a), rounding_b(b, figures_b);
    const auto same_query = [&](int q) {
      // Figures of queries that are drawn again are null, as their places are.
      if (q == NamedFigure::of_no_query || (a.per_draw && b.per_draw)) return true;
      const auto i = static_cast<std::size_t>(q);
      return a.x.at(i) == b.x.at(i);
    };
    for (const NamedFigure& one : b.figures) {
      if (!figures_a.contains(one.name)) ++found_.counts.in_one;
    }
    for (const NamedFigure& of_figure : a.figures) {
      const auto other = figures_b.find(of_figure.name);
      if (other == figures_b.end()) {
        ++found_.counts.in_one;
        continue;
      }
      const NamedFigure& to = *other->second;
      if (!same_query(of_figure.query)) {
        ++found_.counts.other_queries;
        continue;
      }
      const bool same = same_bits_of(of_figure.estimate, to.estimate);
      found_.figures_same_bits = found_.figures_same_bits && same;
      FigureDifference row{.condition_a = match.a,
                           .condition_b = match.b,
                           .label = match.label,
                           .figure = of_figure.name,
                           .a = of_figure.estimate,
                           .b = to.estimate,
                           .pairing = pairing};
      row.difference.value = row.b.value - row.a.value;
      if (of_figure.exact && to.exact) {
        row.difference.mcse = 0;
        row.df = 1;
        row.rounding = exact_rounding(row.a.value, row.b.value);
      } else {
        row.rounding = std::max(rounding_a.of(row.figure), rounding_b.of(row.figure));
        if (paired) {
          const auto error = paired->find(row.figure);
          row.difference.mcse = error == paired->end() ? std::nan("") : error->second;
          row.df = nodes_df(a);
        } else {
          row.difference.mcse = std::hypot(row.a.mcse, row.b.mcse);
          row.df = joint_df(row.a.mcse, nodes_df(a), row.b.mcse, nodes_df(b));
        }
      }
      add(std::move(row), same);
    }
  }

  void add(FigureDifference row, bool same) {
    if (!std::isfinite(row.difference.value) || !std::isfinite(row.difference.mcse)) {
      ++found_.counts.undefined;
      return;
    }
    if (same) ++found_.counts.same_bits;
    const double size = std::abs(row.difference.value);
    row.in_mcse = row.difference.mcse > 0 ? row.difference.value / row.difference.mcse
                  : size <= row.rounding  ? 0.0
                                          : std::copysign(std::numeric_limits<double>::infinity(),
                                                          row.difference.value);
    row.p_value = p_value_against({.what = row.figure,
                                   .statement = Statement::equal,
                                   .effect = row.difference,
                                   .df = row.df,
                                   .margin = row.rounding});
    row.order = found_.counts.compared++;
    p_values_.push_back(row.p_value);
    found_.rows.push_back(std::move(row));
    if (found_.rows.size() >= 2 * ResultsDifference::max_rows) keep_largest();
  }

  static bool is_larger(const FigureDifference& one, const FigureDifference& other) {
    return std::pair(-std::abs(one.in_mcse), one.order) <
           std::pair(-std::abs(other.in_mcse), other.order);
  }

  void keep_largest() {
    std::ranges::sort(found_.rows, is_larger);
    if (found_.rows.size() > ResultsDifference::max_rows) {
      found_.rows.resize(ResultsDifference::max_rows);
    }
  }

  void finish() {
    if (found_.counts.compared == 0 && !found_.same_bits()) {
      throw InvalidInput(a_.path() + " and " + b_.path() +
                         ": have no figure that both know with its MCSE (" +
                         std::to_string(found_.counts.undefined) + " undefined, " +
                         std::to_string(found_.counts.in_one + found_.counts.other_queries) +
                         " without a counterpart)");
    }
    keep_largest();
    const std::vector<bool> differs = holm(p_values_, difference_level);
    found_.counts.differ = static_cast<std::size_t>(std::ranges::count(differs, true));
    for (FigureDifference& row : found_.rows) row.differs = differs[row.order];
  }

  const StoredResults& a_;
  const StoredResults& b_;
  ResultsDifference found_;
  std::vector<double> p_values_;  ///< of all figures compared
};

}  // namespace

ResultsDifference difference_of(const StoredResults& a, const StoredResults& b) {
  return Comparer(a, b).compare();
}

}  // namespace headlab
