// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/allocation_json.h"

#include <algorithm>
#include <type_traits>

#include "engine/files/json_fields.h"
#include "engine/files/json_writer.h"
#include "engine/files/made_by.h"

namespace headlab {
namespace {

JsonText parameters_text(const Parameters& parameters) {
  return {to_json(parameters.tree())};
}

/// Growth of the best number of heads at one n.
struct HeadGrowthRecord {
  std::uint64_t n;
  const HeadGrowth& growth;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("n", n, "training points in one training set");
    growth.fields(visit);
  }
};

/// What is known in one setting of a map.
template <class Known>
struct SettingRecord {
  const RegimeMap& map;
  const Known& known;

  template <class Visitor>
  void fields(Visitor& visit) const {
    std::vector<std::pair<std::string, std::string>> setting;
    for (std::size_t key = 0; key < map.keys.size(); ++key) {
      setting.emplace_back(map.keys[key], map.settings.at(known.condition)[key]);
    }
    visit("setting", by_name(setting), "swept parameters");
    if constexpr (std::is_same_v<Known, RegimeCell>) {
      visit("words", cell_verdict(known.study.growth), "verdict in words");
      known.study.fields(visit);
    } else {
      known.fields(visit);
    }
  }
};

template <class Known>
std::vector<SettingRecord<Known>> records_of(const RegimeMap& map, const std::vector<Known>& all) {
  std::vector<SettingRecord<Known>> records;
  for (const Known& known : all) records.push_back({map, known});
  return records;
}

}  // namespace

std::string allocation_json(const std::vector<ReplayedAllocation>& studies,
                            const Provenance& program, const std::vector<GrowthStudy>& growth,
                            const std::vector<std::pair<std::uint64_t, HeadGrowth>>& head_growth,
                            const std::string& replay) {
  const AllocationStudy& first = studies.at(0).study;
  std::vector<HeadGrowthRecord> heads;
  for (const auto& [n, of_heads] : head_growth) heads.push_back({n, of_heads});
  return json_text(MadeDocument{
      MadeBy{program, first.machine, first.seed}, [&](auto& visit) {
        visit("parameters", parameters_text(first.parameters), "of the scenario");
        if (studies.size() == 1) {
          studies[0].fields(visit);
        } else {
          const bool complete = std::ranges::all_of(
              studies, [](const auto& one) { return one.study.outcome.complete; });
          visit("complete", complete, "all were decided before time was up or a signal came");
          visit("studies", studies, "one for each budget and n", {.item = "study"});
          visit("replay", replay, "command that gives the same bits of all");
        }
        if (!growth.empty()) visit("growth", growth, "one for each budget", {.item = "growth"});
        if (!heads.empty()) {
          visit("head_growth", heads, "one for each n", {.item = "head_growth"});
        }
      }});
}

std::string regime_json(const RegimeMap& map, const Provenance& program,
                        const std::string& replay) {
  return json_text(MadeDocument{
      MadeBy{program, {}, map.seed}, [&](auto& visit) {
        visit("complete", map.outcome.complete, "no cell is missing");
        visit("seconds", map.outcome.seconds, "wall time", {.unit = "s"});
        visit("replay", replay, "command that gives the same bits");
        visit("n", map.sizes, "training points in one training set");
        visit("parameters", parameters_text(map.parameters), "of the scenario's first setting");
        visit("cells", records_of(map, map.cells), "settings, rules and budgets", {.item = "cell"});
        visit("head_growth", records_of(map, map.heads), "settings, rules and n", {.item = "cell"});
      }});
}

std::string theory_json(const std::vector<TheoryGrowth>& growths, const std::string& limits,
                        const Provenance& program, const std::string& replay) {
  return json_text(
      MadeDocument{MadeBy{program}, [&](auto& visit) {
                     const TheoryGrowth& first = growths.at(0);
                     visit("source", first.mean == TheoryMean::condition ? "exact" : "theory",
                           "closed forms used");
                     visit("rule", rule_name(first.rule), "bandwidth rule");
                     visit("limits", limits, "what the figures are means over");
                     visit("replay", replay, "command that gives the same numbers");
                     visit("parameters", parameters_text(first.parameters), "of the scenario");
                     std::vector<TheoryStudy> studies;
                     for (const TheoryGrowth& growth : growths) {
                       studies.insert(studies.end(), growth.studies.begin(), growth.studies.end());
                     }
                     visit("studies", studies, "one for each budget and n", {.item = "study"});
                     visit("growth", growths, "one for each budget", {.item = "growth"});
                   }});
}

}  // namespace headlab
