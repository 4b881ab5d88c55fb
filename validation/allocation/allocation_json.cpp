// SPDX-License-Identifier: Apache-2.0
#include "validation/allocation/allocation_json.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include <nlohmann/json.hpp>

namespace headlab {
namespace {

using Json = nlohmann::ordered_json;

Json number(double x) {
  return std::isfinite(x) ? Json(x) : Json();
}

Json row_json(const AllocationRow& row) {
  Json json = {
      {"heads", row.heads},
      {"dim", row.k},
      {"subspaces", row.subspaces},
      {"bandwidth", std::visit([](const auto& law) { return law.length_scale(); }, row.kernel)}};
  if (const auto* softmax = std::get_if<SoftmaxKernel>(&row.kernel)) {
    json["temperature"] = softmax->temperature;
  }
  json["mse"] = {{"value", number(row.mse.value)}, {"mcse", number(row.mse.mcse)}};
  json["replicates"] = row.replicates;
  json["in_best_set"] = row.in_best_set;
  return json;
}

Json advice_json(const AllocationStudy& study) {
  Json json = Json::object();
  json["heads"] = study.advised ? Json(study.rows[*study.advised].heads) : Json();
  json["dim"] = study.advised ? Json(study.rows[*study.advised].k) : Json();
  json["kind"] = advice_name(study.kind);
  json["text"] = advice_text(study);
  json["limits"] = advice_limits(study);
  json["largest_loss"] = number(study.largest_loss);
  json["replicates_needed"] =
      study.kind == AdviceKind::too_close ? number(study.replicates_needed) : Json();
  return json;
}

Json laws_json(const std::vector<GrowthFit>& fits) {
  Json laws = Json::array();
  for (const GrowthFit& fit : fits) {
    laws.push_back({{"law", fit.name},
                    {"level", number(fit.level)},
                    {"slope", number(fit.slope)},
                    {"interval", {number(fit.interval.low), number(fit.interval.high)}},
                    {"p_value", number(fit.p_value)},
                    {"rejected", fit.rejected}});
  }
  return laws;
}

Json head_growth_json(std::uint64_t n, const HeadGrowth& growth) {
  Json json = {{"n", n}, {"points", Json::array()}, {"at_the_end", growth.left_out}};
  for (std::size_t i = 0; i < growth.budgets.size(); ++i) {
    json["points"].push_back(
        {{"budget", growth.budgets[i]},
         {"best_heads", {{"value", number(growth.heads[i])}, {"mcse", number(growth.errors[i])}}},
         {"interpolation", number(growth.interpolation[i])}});
  }
  json["laws"] = laws_json(growth.fits);
  json["verdict"] = growth.verdict;
  return json;
}

Json growth_json(const GrowthStudy& study) {
  Json json = {{"budget", study.budget},
               {"rule", rule_name(study.rule)},
               {"complete", study.outcome.complete},
               {"dims", study.dims},
               {"replicates", study.replicates},
               {"points", Json::array()},
               {"at_the_end", study.growth.left_out}};
  for (std::size_t i = 0; i < study.growth.n.size(); ++i) {
    const BestDimension& best = study.growth.best[i];
    json["points"].push_back(
        {{"n", study.growth.n[i]},
         {"best_dim", {{"value", number(best.value)}, {"mcse", number(study.growth.errors[i])}}},
         {"interpolation", number(best.interpolation)}});
  }
  json["laws"] = laws_json(study.growth.fits);
  json["ends"] = study.growth.ends;
  json["trend"] = study.growth.trend;
  json["verdict"] = study.growth.verdict;
  json["smallest_exponent"] = number(study.growth.smallest_exponent);
  json["seconds"] = study.outcome.seconds;
  return json;
}

void add_study(Json& json, const ReplayedAllocation& replayed) {
  const AllocationStudy& study = replayed.study;
  json["budget"] = study.budget;
  json["n"] = study.n;
  json["rule"] = rule_name(study.rule);
  json["complete"] = study.outcome.complete;
  json["alpha"] = study.guarantee.alpha;
  json["zone"] = study.guarantee.zone;
  json["pilot"] = study.tuning.settings > 0 ? Json{{"settings", study.tuning.settings},
                                                   {"replicates", study.tuning.replicates},
                                                   {"at_the_end", study.tuning.at_boundary}}
                                            : Json();
  json["allocations"] = Json::array();
  for (const AllocationRow& row : study.rows) json["allocations"].push_back(row_json(row));
  json["advice"] = advice_json(study);
  json["seconds"] = study.outcome.seconds;
  json["replay"] = replayed.replay;
}

}  // namespace

std::string allocation_json(const std::vector<ReplayedAllocation>& studies,
                            const Provenance& program, const std::vector<GrowthStudy>& growth,
                            const std::vector<std::pair<std::uint64_t, HeadGrowth>>& head_growth) {
  const AllocationStudy& first = studies.at(0).study;
  Json json = {{"headlab",
                {{"version", program.version},
                 {"git", program.git},
                 {"backend", first.machine.backend},
                 {"simd", first.machine.simd},
                 {"device", first.machine.device},
                 {"threads", first.machine.threads},
                 {"seed", first.seed}}}};
  if (studies.size() == 1) {
    add_study(json, studies[0]);
  } else {
    json["complete"] = std::all_of(studies.begin(), studies.end(),
                                   [](const auto& one) { return one.study.outcome.complete; });
    json["studies"] = Json::array();
    for (const ReplayedAllocation& study : studies) {
      Json one = Json::object();
      add_study(one, study);
      json["studies"].push_back(std::move(one));
    }
  }
  for (const GrowthStudy& study : growth) json["growth"].push_back(growth_json(study));
  for (const auto& [n, heads] : head_growth) {
    json["head_growth"].push_back(head_growth_json(n, heads));
  }
  return json.dump(2) + "\n";
}

std::string regime_json(const RegimeMap& map, const Provenance& program,
                        const std::string& replay) {
  Json json = {
      {"headlab", {{"version", program.version}, {"git", program.git}, {"seed", map.seed}}},
      {"complete", map.outcome.complete},
      {"seconds", map.outcome.seconds},
      {"replay", replay},
      {"n", map.sizes},
      {"cells", Json::array()},
      {"head_growth", Json::array()}};
  const auto setting = [&](std::size_t condition) {
    Json values = Json::object();
    for (std::size_t key = 0; key < map.keys.size(); ++key) {
      values[map.keys[key]] = map.settings.at(condition)[key];
    }
    return values;
  };
  for (const RegimeCell& cell : map.cells) {
    Json one = {{"setting", setting(cell.condition)}, {"words", cell_verdict(cell.study.growth)}};
    one.update(growth_json(cell.study));
    json["cells"].push_back(std::move(one));
  }
  for (const RegimeHeads& heads : map.heads) {
    Json one = {{"setting", setting(heads.condition)}, {"rule", rule_name(heads.rule)}};
    one.update(head_growth_json(heads.n, heads.growth));
    json["head_growth"].push_back(std::move(one));
  }
  return json.dump(2) + "\n";
}

}  // namespace headlab
