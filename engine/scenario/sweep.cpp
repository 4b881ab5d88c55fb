// SPDX-License-Identifier: Apache-2.0
#include "engine/scenario/sweep.h"

#include <algorithm>

#include "engine/scenario/law_reader.h"
#include "engine/scenario/progression.h"

namespace headlab {

namespace {

bool starts_with(const std::vector<std::string>& path, const std::vector<std::string>& start) {
  return start.size() <= path.size() && std::equal(start.begin(), start.end(), path.begin());
}

}  // namespace

Sweep::Sweep(Value root) : base_(std::move(root)) {
  const Value* found = base_.find("sweep");
  if (found == nullptr) return;
  const Value section = *found;
  auto& members = std::get<Value::Members>(base_.data);
  std::erase_if(members, [](const auto& entry) { return entry.key == "sweep"; });

  if (!std::holds_alternative<Value::Members>(section.data)) {
    reject(section.location, "sweep", std::string("is ") + section.kind() + ", needs a table");
  }
  if (const Value* zip = section.find("zip")) read_value(*zip, "sweep.zip", finite(), zip_);
  read(section, "");
  check(section);
  if (zip_) {
    size_ = axes_[0].values.size();
  } else {
    for (const auto& axis : axes_) size_ *= axis.values.size();
  }
}

/// Collects the arrays and progressions of a table; "data.n" = [...] and data.n = [...] mean the
/// same.
void Sweep::read(const Value& table, const std::string& prefix) {
  for (const auto& entry : std::get<Value::Members>(table.data)) {
    if (prefix.empty() && entry.key == "zip") continue;
    const std::string key = prefix + entry.key;
    if (const auto* values = std::get_if<Value::Array>(&entry.value.data)) {
      axes_.push_back({key, entry.location, split_path(key, entry.location), *values});
    } else if (is_progression(entry.value)) {
      axes_.push_back({key, entry.location, split_path(key, entry.location),
                       progression(entry.value, "sweep." + key, max_conditions)});
    } else if (std::holds_alternative<Value::Members>(entry.value.data)) {
      read(entry.value, key + ".");
    } else {
      reject(entry.value.location, "sweep." + key,
             std::string("is ") + entry.value.kind() +
                 ", needs an array of values, or { linspace = [first, last, number] }");
    }
  }
}

void Sweep::check(const Value& section) const {
  if (axes_.empty()) {
    // --set sweep={} takes away the sweep of a file.
    if (section.location.line == 0) return;
    reject(section.location, "sweep",
           "has no keys - write a line such as \"heads.kernel.bandwidth\" = [0.2, 0.4]");
  }
  double count = 1;
  for (const auto& axis : axes_) {
    const std::string key = "sweep." + axis.key;
    if (axis.values.empty()) reject(axis.location, key, "is an empty array");
    if (axis.path[0] == "sweep") reject(axis.location, key, "is part of the sweep itself");
    for (const auto& other : axes_) {
      const bool same = axis.path == other.path;
      if (same && &axis <= &other) continue;  // the later one is the one too many
      if (&other != &axis && starts_with(axis.path, other.path)) {
        reject(axis.location, key,
               same ? "is swept twice, first at " + other.location.text() + " - leave one out"
                    : "is swept together with " + other.key + ", which holds it");
      }
    }
    if (zip_ && axis.values.size() != axes_[0].values.size()) {
      reject(axis.location, key,
             "has " + std::to_string(axis.values.size()) +
                 (axis.values.size() == 1 ? " value, " : " values, ") + axes_[0].key + " has " +
                 std::to_string(axes_[0].values.size()) +
                 " - with zip = true all need the same number");
    }
    count = zip_ ? static_cast<double>(axis.values.size())
                 : count * static_cast<double>(axis.values.size());
  }
  if (count > static_cast<double>(max_conditions)) {
    reject(section.location, "sweep",
           "has " + number_text(count) + " conditions (allowed: at most " +
               std::to_string(max_conditions) + ")");
  }
}

std::vector<std::string> Sweep::keys() const {
  std::vector<std::string> keys;
  for (const auto& axis : axes_) keys.push_back(axis.key);
  return keys;
}

const std::string* Sweep::key_that_undoes(const std::vector<std::string>& path) const {
  for (const auto& axis : axes_) {
    if (starts_with(path, axis.path)) return &axis.key;
    if (starts_with(axis.path, path) && value_at(base_, axis.key) != nullptr) return &axis.key;
  }
  return nullptr;
}

std::vector<const Value*> Sweep::values(std::size_t index) const {
  std::vector<const Value*> values(axes_.size());
  for (std::size_t a = axes_.size(); a-- > 0;) {
    const std::size_t length = axes_[a].values.size();
    values[a] = &axes_[a].values[index % length];
    if (!zip_) index /= length;
  }
  return values;
}

Value Sweep::condition(std::size_t index) const {
  Value scenario = base_;
  const auto picked = values(index);
  for (std::size_t a = 0; a < axes_.size(); ++a) set_value(scenario, axes_[a].key, *picked[a]);
  return scenario;
}

}  // namespace headlab
