// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/allocation_json.h"

#include <algorithm>
#include <type_traits>

#include "engine/files/json_fields.h"
#include "engine/files/made_by.h"

namespace headlab {
namespace {

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

struct AllocationDocument {
  const std::vector<ReplayedAllocation>& studies;
  const Provenance& program;
  const std::vector<GrowthStudy>& growth;
  std::vector<HeadGrowthRecord> head_growth;
  const std::string& replay;

  template <class Visitor>
  void fields(Visitor& visit) const {
    const AllocationStudy& first = studies.at(0).study;
    visit("headlab", MadeBy{program, first.machine, first.seed}, "what made the document");
    if (studies.size() == 1) {
      studies[0].fields(visit);
    } else {
      const bool complete =
          std::ranges::all_of(studies, [](const auto& one) { return one.study.outcome.complete; });
      visit("complete", complete, "all were decided before time was up or a signal came");
      visit("studies", studies, "one for each budget and n", {.item = "study"});
      visit("replay", replay, "command that gives the same bits of all");
    }
    if (!growth.empty()) visit("growth", growth, "one for each budget", {.item = "growth"});
    if (!head_growth.empty()) {
      visit("head_growth", head_growth, "one for each n", {.item = "head_growth"});
    }
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

struct RegimeDocument {
  const RegimeMap& map;
  const Provenance& program;
  const std::string& replay;

  template <class Visitor>
  void fields(Visitor& visit) const {
    visit("headlab", MadeBy{program, {}, map.seed}, "what made the document");
    visit("complete", map.outcome.complete, "no cell is missing");
    visit("seconds", map.outcome.seconds, "wall time", {.unit = "s"});
    visit("replay", replay, "command that gives the same bits");
    visit("n", map.sizes, "training points in one training set");
    visit("cells", records_of(map, map.cells), "settings, rules and budgets", {.item = "cell"});
    visit("head_growth", records_of(map, map.heads), "settings, rules and n", {.item = "cell"});
  }
};

}  // namespace

std::string allocation_json(const std::vector<ReplayedAllocation>& studies,
                            const Provenance& program, const std::vector<GrowthStudy>& growth,
                            const std::vector<std::pair<std::uint64_t, HeadGrowth>>& head_growth,
                            const std::string& replay) {
  AllocationDocument document{studies, program, growth, {}, replay};
  for (const auto& [n, heads] : head_growth) document.head_growth.push_back({n, heads});
  return json_text(document);
}

std::string regime_json(const RegimeMap& map, const Provenance& program,
                        const std::string& replay) {
  return json_text(RegimeDocument{map, program, replay});
}

}  // namespace headlab
