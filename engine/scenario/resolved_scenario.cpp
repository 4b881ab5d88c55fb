// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "engine/scenario/scenario.h"
#include "engine/scenario/setup_laws.h"
#include "engine/scenario/stack/stack_setting.h"
#include "kernels/kernel_laws.h"
#include "kernels/laws.h"

namespace headlab {
namespace {

Value value_of(bool value) {
  return {value, {}};
}
Value value_of(const std::string& value) {
  return {value, {}};
}
Value value_of(double value) {
  return {value, {}};
}
template <class Whole>
requires(std::is_integral_v<Whole> && !std::is_same_v<Whole, bool>) Value value_of(Whole value) {
  return {static_cast<std::int64_t>(value), {}};
}

/// Visitor of a law's parameters that adds to its table those that stand at their defaults. An
/// array that is empty and an optional that has no value were not given, and have no text.
class DefaultsWriter {
 public:
  explicit DefaultsWriter(Value& table) : table_(table) {}

  template <class... Rest>
  void required(const char*, Rest&&...) {}
  template <class T, class... Rest>
  void optional(const char* key, const T& member, Rest&&...) {
    if (table_.find(key) == nullptr) add(key, member);
  }

 private:
  template <class T>
  void add(const char* key, const T& member) {
    if constexpr (requires { value_of(member); }) {
      std::get<Value::Members>(table_.data).push_back({key, {}, value_of(member)});
    }
  }
  template <class T>
  void add(const char* key, const std::optional<T>& member) {
    if (member) add(key, *member);
  }

  Value& table_;
};

/// Fills a scenario that is not a sweep, or the part of one that is the same in all conditions.
class Resolver {
 public:
  Resolver(const Scenario& scenario, Value root)
      : scenario_(scenario), one_(scenario.conditions.front()), root_(std::move(root)) {}

  Value resolve() {
    fill("scenario", "aims", std::string());
    if (one_.stack) {
      fill_stack(*one_.stack);
      make_absolute(root_, "");
      return std::move(root_);
    }
    fill("data", "fixed_design", false);
    // A seed of the design is rejected where the design is not fixed.
    if (one_.fixed_design && !is_swept("data.fixed_design")) {
      fill("data", "design_seed", one_.design_seed);
    }
    fill("run", "seed", one_.seed);
    fill("run", "estimator",
         std::string(one_.estimator == Estimator::conditional ? "conditional" : "plain"));
    fill("run", "moments",
         std::string(one_.moments == MomentMode::pairwise ? "pairwise" : "aggregate"));
    fill_name("heads", "weights", *one_.weights);
    fill_law("data.design", *one_.design);
    fill_law("data.regression", *one_.regression);
    fill_law("data.noise", *one_.noise);
    fill_law("data.sequence", *one_.sequence);
    fill_law("heads.subspaces", *one_.subspaces);
    fill_law("heads.kernel", *one_.kernel);
    fill_law("heads.weights", *one_.weights);
    fill_law("queries", *one_.queries);
    make_absolute(root_, "");
    return std::move(root_);
  }

 private:
  void fill_stack(const StackSetting& s) {
    const auto word = [](bool yes, const char* if_yes, const char* if_not) {
      return std::string(yes ? if_yes : if_not);
    };
    fill("tokens", "fixed_design", false);
    if (s.fixed_design && !is_swept("tokens.fixed_design")) {
      fill("tokens", "design_seed", s.design_seed);
    }
    if (s.value_dim && !is_swept("heads.dim")) fill("heads", "value_dim", *s.value_dim);
    fill("heads", "values", word(s.averaged, "averaged", "independent"));
    fill("heads", "order", word(s.alternating, "alternating", "together"));
    fill("layers", "skip", s.skip);
    fill("layers", "branch", s.branch);
    fill("layers", "memory", s.memory);
    fill("layers", "mask", word(s.causal, "causal", "none"));
    fill("layers", "weights", word(s.shared_weights, "shared", "fresh"));
    fill_name("layers", "norm", s.norm);
    fill_name("layers", "mlp", s.mlp);
    fill("run", "seed", s.seed);
    fill("run", "spectra", s.spectra);
    fill_law("tokens.design", s.design);
    fill_law("heads.kernel", s.kernel);
    fill_law("heads.maps", s.maps);
    fill_law("layers.norm", s.norm);
    fill_law("layers.mlp", s.mlp);
  }

  /// True where the sweep sets `key`, a table that holds it or a part of it.
  bool is_swept(const std::string& key) const {
    return std::ranges::any_of(scenario_.swept, [&](const std::string& swept) {
      return swept == key || key.starts_with(swept + ".") || swept.starts_with(key + ".");
    });
  }

  template <class T>
  void fill(const std::string& section, const std::string& key, const T& value) {
    Value* table = root_.find(section);
    if (table == nullptr || table->find(key) != nullptr || is_swept(section + "." + key)) return;
    std::get<Value::Members>(table->data).push_back({key, {}, value_of(value)});
  }

  /// Adds the table of a law that was not given.
  template <class Law>
  void fill_name(const std::string& section, const std::string& key, const Law& law) {
    Value* table = root_.find(section);
    if (table == nullptr || table->find(key) != nullptr || is_swept(section + "." + key)) return;
    const std::string name = std::visit([](const auto& one) { return std::string(one.name); }, law);
    std::get<Value::Members>(table->data)
        .push_back({key, {}, Value{Value::Members{{"law", {}, value_of(name)}}, {}}});
  }

  /// \param law of the first condition, which has the defaults of all where it is not swept
  template <class Law>
  void fill_law(const std::string& key, Law law) {
    const bool swept = std::ranges::any_of(scenario_.swept, [&](const std::string& one) {
      return one == key || one == key + ".law" || key.starts_with(one + ".");
    });
    const Value* found = value_at(root_, key);
    if (swept || found == nullptr || found->find("law") == nullptr) return;
    Value table = *found;
    DefaultsWriter writer(table);
    std::visit([&](auto& one) { one.parameters(writer); }, law);
    set_value(root_, key, std::move(table));
  }

  /// Paths in a scenario are relative to its folder, and the text may be read anywhere.
  void make_absolute(Value& value, const std::string& key) const {
    const bool is_path = key == "path" || key.ends_with(".path");
    if (auto* members = std::get_if<Value::Members>(&value.data)) {
      for (Value::Entry& entry : *members) make_absolute(entry.value, entry.key);
    } else if (auto* array = std::get_if<Value::Array>(&value.data)) {
      for (Value& element : *array) make_absolute(element, key);
    } else if (auto* text = std::get_if<std::string>(&value.data); text && is_path) {
      namespace fs = std::filesystem;
      const fs::path folder = fs::path(scenario_.file).parent_path();
      *text = fs::absolute(folder / *text).lexically_normal().string();
    }
  }

  const Scenario& scenario_;
  const Condition& one_;
  Value root_;
};

}  // namespace

std::string resolved_toml(const Scenario& scenario) {
  return to_toml_document(Resolver(scenario, scenario_tree(scenario)).resolve());
}

}  // namespace headlab
