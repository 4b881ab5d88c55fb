// SPDX-License-Identifier: Apache-2.0
#include "engine/results/results_id.h"

#include <cstddef>
#include <filesystem>

#include "engine/files/document.h"
#include "engine/files/input_file.h"
#include "engine/files/json_writer.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/sha256.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/plan_fingerprint.h"

namespace headlab {

std::string results_id(const RunResult& result) {
  Sha256 sum;
  sum.add(result.machine.backend);
  sum.add(result.machine.simd);
  sum.add(result.outcome.complete ? std::string("complete") : "");
  for (const ConditionResult& one : result.conditions) {
    sum.add(to_json(one.condition->parameters.tree()));
    sum.add(plan_sha256(one.plan));
    sum.add(std::to_string(one.plan.seed));
    sum.add(std::to_string(one.estimates.replicates));
  }
  return sum.digest();
}

std::optional<std::string> results_id_of_netcdf(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return {};
  try {
    const NetcdfInput file(path);
    return file.root().text_attribute("results_id");
  } catch (const NetcdfDamage&) {
    throw;
  } catch (const NetcdfError&) {
    return {};
  }
}

std::optional<std::string> results_id_of_summary(const std::string& path) {
  constexpr std::size_t digits = sha256_digits;
  // The key is among the first, and a summary may be large.
  const std::string text = first_bytes(path, std::size_t{1} << 16);
  const std::string key = "\"results_id\": \"";
  const std::size_t at = text.find(key);
  if (at == std::string::npos) return {};
  std::string id = text.substr(at + key.size(), digits);
  if (id.size() < digits || id.find_first_not_of("0123456789abcdef") != std::string::npos)
    return {};
  return id;
}

}  // namespace headlab
