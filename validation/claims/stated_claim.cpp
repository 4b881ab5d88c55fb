// SPDX-License-Identifier: Apache-2.0
#include "validation/claims/stated_claim.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <variant>

#include "engine/files/document.h"
#include "engine/files/words.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/law_reader.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/setup_laws.h"
#include "validation/claims/experiment.h"
#include "validation/claims/stated_comparison.h"
#include "validation/claims/swept_conditions.h"

namespace headlab {
namespace {

std::vector<std::string> joined(std::vector<std::string> keys,
                                const std::vector<std::string>& others) {
  keys.insert(keys.end(), others.begin(), others.end());
  return keys;
}

std::string margin_text(const ComparisonSetting& setting) {
  return number_text(setting.margin.value) +
         (setting.margin.relative
              ? ", relative to what is compared with" +
                    std::string(setting.margin.value >= 1
                                    ? ": from 1 on, twice the value is within it"
                                    : "")
              : std::string(setting.noise_unit ? " s2/n" : "")) +
         ".";
}

/// Comparisons of the array `all`, each with the setting of the claim where it has none of its own.
std::vector<StatedComparison> read_all(const Value& all, const std::string& key,
                                       const SweptConditions& conditions,
                                       const ComparisonSetting& defaults) {
  const auto* array = std::get_if<Value::Array>(&all.data);
  if (array == nullptr || array->empty()) {
    reject(all.location, key, "needs an array of tables, each with a comparison");
  }
  std::vector<StatedComparison> comparisons;
  for (std::size_t i = 0; i < array->size(); ++i) {
    const Value& table = (*array)[i];
    const std::string at = key + "[" + std::to_string(i) + "]";
    const TableReader reader(table, at);
    reader.allow(joined(comparison_keys(), setting_keys()));
    std::ranges::move(
        read_comparisons(table, at, conditions, read_setting(reader, conditions, &defaults)),
        std::back_inserter(comparisons));
  }
  return comparisons;
}

/// Reads one table [[claim.compare]].
StatedClaim read_stated_claim(const Value& table, const std::string& key,
                              const SweptConditions& conditions) {
  const TableReader reader(table, key);
  reader.allow(
      joined(joined({"name", "statement", "assumptions", "refuted_by", "origin", "expected", "all"},
                    comparison_keys()),
             setting_keys()));
  StatedClaim claim;
  ClaimForm& form = claim.form;
  reader.required("name", form.name, "what is claimed, in words");
  form.statement = form.name + ".";
  reader.optional("expected", claim.expected, "");
  const std::vector<std::string> verdicts = {"supported", "refuted", "unresolved",
                                             "limited by theory"};
  if (reader.find("expected") && std::ranges::find(verdicts, claim.expected) == verdicts.end()) {
    reader.reject_word("expected", claim.expected, verdicts);
  }
  const ComparisonSetting setting = read_setting(reader, conditions);
  claim.margin = setting.margin.value;
  form.assumptions =
      std::string("The conditions of the scenario") +
      (conditions.layers(0) ? "" : ", at its queries") +
      (setting.for_each.empty() ? std::string(".")
                                : ", for each value of " + listed(setting.for_each) + ".");
  form.refuted_by = "A comparison beyond the margin of " + margin_text(setting);
  read_texts(table, key, form);
  std::vector<StatedComparison> comparisons;
  if (const Value* all = reader.find("all")) {
    for (const std::string& other : comparison_keys()) {
      if (const Value* value = reader.find(other.c_str())) {
        reject(value->location, reader.path(other), "stands next to `all` - write it in there");
      }
    }
    comparisons = read_all(*all, reader.path("all"), conditions, setting);
  } else {
    comparisons = read_comparisons(table, key, conditions, setting);
  }
  form.examine = [comparisons = std::move(comparisons)](Experiment& experiment) {
    Finding finding;
    for (std::size_t i = 0; i < comparisons.size(); ++i) {
      FigureComparison compared = comparisons[i](experiment);
      finding.comparisons.push_back(std::move(compared.comparison));
      if (compared.counterexample) {
        finding.counterexamples.emplace(i, std::move(*compared.counterexample));
      }
    }
    return std::vector{std::move(finding)};
  };
  return claim;
}

/// The array [[claim.compare]], or nullptr.
const Value* stated_in(const Value& parameters) {
  const Value* claim = parameters.find("claim");
  return claim == nullptr ? nullptr : claim->find("compare");
}

}  // namespace

void read_texts(const Value& table, const std::string& key, ClaimForm& form) {
  const TableReader reader(table, key);
  reader.optional("statement", form.statement, "");
  reader.optional("assumptions", form.assumptions, "");
  reader.optional("refuted_by", form.refuted_by, "");
  reader.optional("origin", form.origin, "");
}

std::size_t count_stated_claims(const Scenario& scenario) {
  const Value parameters = scenario.conditions.at(0).parameters.tree();
  const Value* stated = stated_in(parameters);
  if (stated == nullptr) return 0;
  const auto* array = std::get_if<Value::Array>(&stated->data);
  // One that is not an array, or is empty, is rejected where claims are read.
  return array == nullptr || array->empty() ? 1 : array->size();
}

StatedClaims read_stated_claims(const Scenario& scenario) {
  const Value parameters = scenario.conditions.at(0).parameters.tree();
  const Value* stated = stated_in(parameters);
  const auto* array = stated == nullptr ? nullptr : std::get_if<Value::Array>(&stated->data);
  if (array == nullptr || array->empty()) {
    reject(stated == nullptr ? parameters.location : stated->location, "claim.compare",
           "needs tables - write [[claim.compare]]");
  }
  const Value& claim = *parameters.find("claim");
  for (const char* key : {"form", "index", "expected", "margin", "statement", "assumptions",
                          "refuted_by", "origin", "pairs", "note"}) {
    if (const Value* value = claim.find(key)) {
      reject(value->location, std::string("claim.") + key,
             "is of a claim in the program - write it in [[claim.compare]]");
    }
  }
  for (const std::string& key : scenario.swept) {
    if (key == "run.replicates") {
      reject(stated->location, "claim.compare",
             "compares conditions of equally many replicates, and run.replicates is swept");
    }
  }
  const SweptConditions conditions(scenario);
  for (const Condition& condition : scenario.conditions) {
    if (!std::holds_alternative<ExactControls>(*condition.controls)) continue;
    const Value tree = condition.parameters.tree();
    reject(value_at(tree, "run.controls")->location, "run.controls",
           "verdicts judge runs without controls - leave it out where claims are stated");
  }
  StatedClaims claims{.name = scenario.conditions.front().name, .all = {}};
  TableReader(claim, "claim").optional("name", claims.name, "");
  for (std::size_t i = 0; i < array->size(); ++i) {
    claims.all.push_back(
        read_stated_claim((*array)[i], "claim.compare[" + std::to_string(i) + "]", conditions));
    for (std::size_t j = 0; j < i; ++j) {
      const std::string& name = claims.all[j].form.name;
      if (claims.all[i].form.name == name) {
        reject((*array)[i].location, "claim.compare[" + std::to_string(i) + "].name",
               "\"" + one_line(name, 80) + "\" is the name of another claim");
      }
    }
  }
  return claims;
}

}  // namespace headlab
