// SPDX-License-Identifier: Apache-2.0
#include "validation/search/scenarios.h"

#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"

namespace headlab {
namespace {

Value whole_number(std::uint64_t number) {
  return {static_cast<std::int64_t>(number), Location{"head sets"}};
}

Value text_value(std::string text) {
  return {std::move(text), Location{"head sets"}};
}

bool is_zero(const Value& value) {
  if (const auto* number = std::get_if<double>(&value.data)) return *number == 0;
  const auto* whole = std::get_if<std::int64_t>(&value.data);
  return whole != nullptr && *whole == 0;
}

void erase(Value& table, const std::string& key) {
  auto& members = std::get<Value::Members>(table.data);
  std::erase_if(members, [&](const auto& entry) { return entry.key == key; });
}

/// Gives a point of the design `d` coordinates.
void resize_point(Value& point, int d) {
  auto& coordinates = std::get<Value::Array>(point.data);
  while (coordinates.size() > static_cast<std::size_t>(d)) {
    if (!is_zero(coordinates.back())) {
      reject(point.location, "",
             "has a coordinate beyond dimension " + std::to_string(d) + " that is not zero");
    }
    coordinates.pop_back();
  }
  coordinates.resize(static_cast<std::size_t>(d), whole_number(0));
}

/// Replaces everything in the sections data and queries that depends on d.
void resize_design(Value& root, const Condition& base, int d) {
  Value& data = *root.find("data");
  Value& design = *data.find("design");
  const auto* normal = std::get_if<NormalDesign>(&base.design);
  if (normal == nullptr || design.find("mean") || design.find("covariance") || design.find("ar1")) {
    throw InvalidInput("head sets are compared under a design { law = \"normal\", dim = d } alone");
  }
  set_value(root, "data.design.dim", whole_number(static_cast<std::uint64_t>(d)));
  Value& regression = *data.find("regression");
  if (Value* direction = regression.find("direction")) {
    resize_point(*direction, d);
  } else if (!std::holds_alternative<ZeroRegression>(base.regression)) {
    throw InvalidInput(
        "head sets are compared under a regression of law \"zero\" or one with a direction");
  }
  if (Value* points = root.find("queries")->find("points")) {
    for (Value& point : std::get<Value::Array>(points->data)) resize_point(point, d);
  }
}

/// The sections of a scenario, one line a key.
std::string sections_text(const Value& root) {
  std::string text;
  for (const auto& section : std::get<Value::Members>(root.data)) {
    text += (text.empty() ? "[" : "\n[") + section.key + "]\n";
    for (const auto& entry : std::get<Value::Members>(section.value.data)) {
      text += entry.key + " = " + to_toml(entry.value) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string head_sets_condition_text(const Condition& base, const HeadSizes& sizes,
                                     const std::vector<std::string>& laws, std::uint64_t seed,
                                     std::uint64_t replicates) {
  Value root = base.parameters.tree();
  for (const char* key : {"claim", "sweep"}) erase(root, key);
  set_value(root, "scenario.name", text_value("head sets"));
  set_value(root, "scenario.aims", text_value("The same draws seen through these head sets."));
  resize_design(root, base, sizes.d);
  set_value(root, "heads.count", whole_number(static_cast<std::uint64_t>(sizes.heads)));
  set_value(root, "heads.dim", whole_number(static_cast<std::uint64_t>(sizes.k)));
  erase(*root.find("heads"), "subspaces");
  set_value(root, "run.seed", whole_number(seed));
  set_value(root, "run.replicates", whole_number(replicates));
  std::string text = sections_text(root) + "\n[sweep]\n\"heads.subspaces\" = [\n";
  for (const std::string& law : laws) text += "  " + law + ",\n";
  return text + "]\n";
}

}  // namespace headlab
