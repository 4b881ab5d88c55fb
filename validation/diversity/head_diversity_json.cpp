// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <nlohmann/json.hpp>

#include "validation/diversity/head_diversity.h"

namespace headlab {
namespace {

// Keeps the order of the keys; numbers in their shortest form that reads back to the same bits.
using Json = nlohmann::ordered_json;

Json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json();
}

Json index_json(const ReferencedIndex& index) {
  return {{"value", number(index.value)},
          {"ceiling", number(index.upper_bound)},
          {"random_mean", number(index.random_mean)},
          {"random_mcse", index.random_mean ? number(index.random_mcse) : Json()},
          {"random_sd", number(index.random_sd)},
          {"z", number(index.z)}};
}

/// [H][H], symmetric, from the pairs (0, 1), (0, 2), .., with `own` on the diagonal; null where
/// there are none.
template <class T>
Json matrix(const std::vector<T>& pairs, int heads, const T& own) {
  if (pairs.empty() && heads > 1) return Json();
  const auto size = static_cast<std::size_t>(heads);
  Json rows = Json::array();
  for (std::size_t l = 0; l < size; ++l) rows.push_back(Json::array_t(size, Json(own)));
  std::size_t pair = 0;
  for (std::size_t l = 0; l + 1 < size; ++l) {
    for (std::size_t h = l + 1; h < size; ++h, ++pair) {
      rows[l][h] = pairs[pair];
      rows[h][l] = pairs[pair];
    }
  }
  return rows;
}

}  // namespace

std::string head_diversity_json(const HeadDiversity& diversity, const std::string& file,
                                const Provenance& program) {
  const int heads = diversity.heads;
  const std::vector<double> right(static_cast<std::size_t>(diversity.k), 1.0);
  Json layers = Json::array();
  for (const LayerDiversity& layer : diversity.layers) {
    Json indices = Json::object();
    for (const ReferencedIndex& index : layer.indices) indices[index.name] = index_json(index);
    layers.push_back({{"layer", layer.number},
                      {"heads", heads},
                      {"dim", diversity.k},
                      {"indices", std::move(indices)},
                      {"condition_number", layer.condition_numbers},
                      {"principal_cosines", matrix(layer.cosines, heads, right)},
                      {"correlations",
                       {{"gaussian", matrix(layer.gaussian, heads, 1.0)},
                        {"query_key", matrix(layer.query_key, heads, 1.0)},
                        {"log_query_key", matrix(layer.log_query_key, heads, 0.0)}}}});
  }
  const Json json = {
      {"headlab", {{"version", program.version}, {"git", program.git}, {"seed", diversity.seed}}},
      {"file", file},
      {"d", diversity.d},
      {"temperature", diversity.temperature},
      {"bandwidth", diversity.bandwidth},
      {"positions", diversity.rotary ? "rotary" : "absolute"},
      {"random_sets", diversity.random_sets},
      {"layers", std::move(layers)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace headlab
