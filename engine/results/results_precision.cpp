// SPDX-License-Identifier: Apache-2.0
#include "engine/results/results_precision.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/files/error.h"

namespace headlab {
namespace {

/// Numbers that every look has, with their names.
struct LookNumber {
  const char* name;
  const char* doc;
  std::uint64_t (*of)(const Look&);
  void (*set)(Look&, std::uint64_t);
};

constexpr LookNumber look_numbers[] = {
    {"look_replicates", "training sets at a look at the standard errors",
     [](const Look& look) { return look.replicates; },
     [](Look& look, std::uint64_t number) { look.replicates = number; }},
    {"look_condition", "condition with the largest MCSE over target, from 0",
     [](const Look& look) { return std::uint64_t{look.condition}; },
     [](Look& look, std::uint64_t number) { look.condition = number; }},
    {"look_target", "target that it is of, from 0",
     [](const Look& look) { return std::uint64_t{look.target}; },
     [](Look& look, std::uint64_t number) { look.target = number; }},
    {"look_undefined", "figures that are undefined",
     [](const Look& look) { return look.undefined; },
     [](Look& look, std::uint64_t number) { look.undefined = number; }},
};

constexpr const char* ratio_name = "look_ratio";

std::uint64_t count_of(const NetcdfGroup& root, const char* attribute) {
  const std::int64_t number = root.integer_attribute(attribute);
  if (number < 0) throw NetcdfError(std::string(attribute) + ": is negative");
  return static_cast<std::uint64_t>(number);
}

}  // namespace

void write_precision(const NetcdfGroup& root, const Precision& precision, bool complete) {
  root.put_attribute("until", until_text(precision.targets));
  root.put_attribute("until_most", static_cast<std::int64_t>(precision.most));
  root.put_attribute("until_first", static_cast<std::int64_t>(precision.first));
  root.put_attribute("until_conditions", static_cast<std::int64_t>(precision.conditions));
  root.put_attribute("until_looks", static_cast<std::int64_t>(precision.looks.size()));
  if (complete) root.put_attribute("target_met", std::int64_t{precision.met() ? 1 : 0});
  if (precision.looks.empty()) return;
  root.define_dimension("look", precision.looks.size());
  for (const LookNumber& number : look_numbers) {
    std::vector<std::int64_t> values;
    for (const Look& look : precision.looks) {
      values.push_back(static_cast<std::int64_t>(number.of(look)));
    }
    root.write(number.name, {"look"}, {number.doc}, values);
  }
  std::vector<double> ratios;
  for (const Look& look : precision.looks) ratios.push_back(look.ratio);
  root.write(ratio_name, {"look"}, {"the largest MCSE over target"}, ratios);
}

std::optional<Precision> read_precision(const NetcdfGroup& root) {
  if (!root.has_attribute("until")) return std::nullopt;
  Precision precision{.most = count_of(root, "until_most"),
                      .first = count_of(root, "until_first"),
                      .conditions = count_of(root, "until_conditions")};
  try {
    precision.targets = parse_until(root.text_attribute("until"));
  } catch (const InvalidInput& error) {
    throw NetcdfError(error.what());
  }
  if (count_of(root, "until_looks") == 0) return precision;
  const std::vector<double> ratios = root.doubles(ratio_name);
  precision.looks.resize(ratios.size());
  for (std::size_t i = 0; i < ratios.size(); ++i) precision.looks[i].ratio = ratios[i];
  for (const LookNumber& number : look_numbers) {
    const std::vector<std::int64_t> values = root.integers(number.name);
    if (values.size() != ratios.size()) throw NetcdfError("look: variables of different lengths");
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] < 0) throw NetcdfError(std::string(number.name) + ": is negative");
      number.set(precision.looks[i], static_cast<std::uint64_t>(values[i]));
    }
  }
  std::uint64_t before = 0;
  for (const Look& look : precision.looks) {
    if (look.replicates <= before || !(look.ratio >= 0) ||
        look.target >= precision.targets.size()) {
      throw NetcdfError("look: is none that a run takes");
    }
    before = look.replicates;
  }
  return precision;
}

}  // namespace headlab
