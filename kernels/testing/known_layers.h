// SPDX-License-Identifier: Apache-2.0
/// \file Cases of attention layers with known answers, from known-answers-real.json.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "kernels/cpu/attention.h"
#include "kernels/testing/paths.h"

namespace headlab {

inline std::filesystem::path layer_answers(const std::string& name) {
  return std::filesystem::path(test::known_answers()).parent_path() / name;
}

inline nlohmann::json known_layer_case(const std::string& name) {
  return nlohmann::json::parse(std::ifstream(layer_answers("known-answers-real.json")))["cases"].at(
      name);
}

/// All numbers of nested arrays, the last index varying fastest.
inline void flatten(const nlohmann::json& from, std::vector<double>& to) {
  if (from.is_array()) {
    for (const auto& item : from) flatten(item, to);
  } else {
    to.push_back(from.is_boolean() ? static_cast<double>(from.get<bool>()) : from.get<double>());
  }
}
inline std::vector<double> flat(const nlohmann::json& from) {
  std::vector<double> to;
  flatten(from, to);
  return to;
}

/// Part b of all equal parts.
template <class T>
std::vector<T> part_of(const nlohmann::json& array, std::size_t b, std::size_t parts) {
  const std::vector<double> all = flat(array);
  const std::size_t size = all.size() / parts;
  return {all.begin() + static_cast<std::ptrdiff_t>(b * size),
          all.begin() + static_cast<std::ptrdiff_t>((b + 1) * size)};
}

inline AttentionRule rule_of(const nlohmann::json& given) {
  AttentionRule rule{.scale = given["scale"], .causal = given["mask"] == "causal"};
  if (given.contains("softcap")) rule.softcap = given["softcap"];
  if (given.contains("window")) rule.window = given["window"];
  if (given.contains("sink")) rule.sink = flat(given["sink"]);
  rule.leave_own_out = given.contains("exclude_self");
  return rule;
}

/// Sequence b of a case.
template <class T>
AttentionSequence<T> sequence_of(const nlohmann::json& given, std::size_t b) {
  const auto& q = given["q"];
  const auto& k = given["k"];
  const std::size_t count = q.size();
  AttentionSequence<T> out;
  out.shape = {.heads = q[0].size(),
               .groups = k[0].size(),
               .queries = q[0][0].size(),
               .keys = k[0][0].size(),
               .k = q[0][0][0].size(),
               .e = given.contains("v") ? given["v"][0][0][0].size() : 1};
  out.q = part_of<T>(q, b, count);
  out.k = part_of<T>(k, b, count);
  out.v.assign(out.shape.groups * out.shape.keys * out.shape.e, T(0));
  if (given.contains("v")) out.v = part_of<T>(given["v"], b, count);
  if (given.contains("bias")) out.bias = part_of<T>(given["bias"], 0, 1);
  if (given["mask"].is_array()) {
    for (const double seen : part_of<double>(given["mask"], b, count)) {
      out.unseen.push_back(seen == 0 ? 1 : 0);
    }
  }
  if (given.contains("length")) {
    for (std::size_t s = 0; s < out.shape.keys; ++s) {
      out.padding.push_back(s < given["length"][b].get<std::size_t>() ? 0 : 1);
    }
  }
  return out;
}

/// Numbers in [-1, 1) that look like none in particular.
template <class T>
std::vector<T> scattered(std::size_t count, unsigned start) {
  std::vector<T> numbers(count);
  std::uint32_t state = start;
  for (T& number : numbers) {
    state = state * 1664525U + 1013904223U;
    number = static_cast<T>(static_cast<double>(state >> 8) / 0x1p23 - 1);
  }
  return numbers;
}

/// Largest difference over the largest number, or 1; NaN where one of the numbers is.
inline double relative_distance(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 1, off = a.size() == b.size() ? 0 : HUGE_VAL;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    most = std::max(most, std::abs(b[i]));
    const double distance = std::abs(a[i] - b[i]);
    if (!(distance <= off)) off = distance;
  }
  return off / most;
}

}  // namespace headlab
