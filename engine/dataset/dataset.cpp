// SPDX-License-Identifier: Apache-2.0
#include "engine/dataset/dataset.h"

#include <algorithm>
#include <variant>

#include "engine/files/enumerators.h"
#include "engine/files/error.h"
#include "engine/run/learned_heads.h"
#include "engine/run/memory.h"
#include "engine/scenario/condition.h"
#include "engine/scenario/plan_fingerprint.h"
#include "engine/scenario/scenario.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/counted.h"
#include "kernels/plan.h"

namespace headlab {
namespace {

constexpr double max_bytes = 0x1p60;

/// `number` with leading zeros: names sort as numbers do.
std::string padded(std::uint64_t number, std::uint64_t most) {
  const std::size_t digits = std::max<std::size_t>(3, std::to_string(most).size());
  std::string text = std::to_string(number);
  return std::string(digits - std::min(digits, text.size()), '0') + text;
}

std::uint64_t bytes_of(const std::vector<DatasetVariable>& variables) {
  std::uint64_t bytes = 0;
  for (const DatasetVariable& variable : variables) bytes += variable.bytes();
  return bytes;
}

/// The same in numbers that cannot overflow.
double rough_bytes(const std::vector<DatasetVariable>& variables) {
  double bytes = 0;
  for (const DatasetVariable& variable : variables) {
    double size = static_cast<double>(size_of(variable.type));
    for (const std::uint64_t length : variable.shape) size *= static_cast<double>(length);
    bytes += size;
  }
  return bytes;
}

/// `most` is how many a condition may have.
std::uint64_t shards_of(const Condition& condition, const DatasetRequest& request,
                        std::uint64_t most) {
  const double bytes = rough_bytes(dataset_variables(condition, request, condition.replicates));
  if (bytes > max_bytes) {
    throw InvalidInput("--replicates: " + counted(condition.replicates, "replicate") +
                       " take more than 2^60 bytes - lower --replicates");
  }
  if (!request.shards) {
    const auto wanted = static_cast<std::uint64_t>(bytes) / max_shard_bytes + 1;
    return std::min({wanted, condition.replicates, most});
  }
  if (*request.shards > condition.replicates) {
    throw InvalidInput("--shards: is " + std::to_string(*request.shards) +
                       ", more than there are replicates (allowed: 1 to " +
                       std::to_string(condition.replicates) + ")");
  }
  if (*request.shards > most) {
    throw InvalidInput("--shards: is " + std::to_string(*request.shards) +
                       ", more than can be kept track of (allowed: 1 to " + std::to_string(most) +
                       ")");
  }
  return *request.shards;
}

bool learns_weights(const Condition& condition) {
  return std::holds_alternative<LearnedWeights>(*condition.weights);
}

}  // namespace

const char* name_of(DatasetFormat format) {
  return format == DatasetFormat::netcdf ? "netcdf" : "npy";
}

std::size_t size_of(NumberType type) {
  return type == NumberType::float32 ? 4 : 8;
}

const char* name_of(NumberType type) {
  return word_of<NumberType::int64>(type, "float32", "float64", "int64");
}

std::uint64_t DatasetVariable::elements() const {
  std::uint64_t product = 1;
  for (const std::uint64_t length : shape) product *= length;
  return product;
}

std::vector<DatasetVariable> dataset_variables(const Condition& condition,
                                               const DatasetRequest& request,
                                               std::uint64_t replicates) {
  const auto d = static_cast<std::uint64_t>(dimension_of(condition));
  const auto queries = static_cast<std::uint64_t>(query_count(condition));
  const auto heads = static_cast<std::uint64_t>(condition.heads);
  const auto k = static_cast<std::uint64_t>(condition.k);
  const std::uint64_t n = condition.n;
  using enum NumberType;
  std::vector<DatasetVariable> variables = {
      {"replicate", int64, {"replicate"}, {replicates}, "number of the training set"},
      {"projections", float64, {"head", "d", "k"}, {heads, d, k}, "projections W_h"},
      {"queries", float64, {"query", "d"}, {queries, d}, "query points x"},
      {"truth", float64, {"query"}, {queries}, "regression function m(x) at the queries"},
      {"X", float32, {"replicate", "n", "d"}, {replicates, n, d}, "design points X, as drawn"},
      {"Y", float64, {"replicate", "n"}, {replicates, n}, "responses Y = m(X) + noise"},
      {"m", float64, {"replicate", "n"}, {replicates, n}, "regression function m(X)"},
      {"noise_sd",
       float64,
       {"replicate", "n"},
       {replicates, n},
       "standard deviation of the noise, s(X)"}};
  if (projects_queries_apart(condition)) {
    variables.push_back({"query_projections",
                         float64,
                         {"head", "d", "k"},
                         {heads, d, k},
                         "projections of the queries"});
  }
  if (learns_weights(condition)) {
    variables.push_back({"head_weights", float64, {"head"}, {heads}, "head weights a_h"});
  }
  if (request.estimates) {
    variables.push_back({"head_estimates",
                         float64,
                         {"replicate", "query", "head"},
                         {replicates, queries, heads},
                         "estimates f_h(x) = sum_i w_i Y_i"});
  }
  if (request.weights) {
    variables.push_back({"attention_weights",
                         float64,
                         {"replicate", "query", "head", "n"},
                         {replicates, queries, heads, n},
                         "attention weights w_i of a head at a query"});
  }
  return variables;
}

ShardRange shard_range(std::uint64_t replicates, std::uint64_t shards, std::uint64_t shard) {
  const std::uint64_t each = replicates / shards;
  const std::uint64_t more = replicates % shards;
  return {shard * each + std::min(shard, more), each + (shard < more ? 1 : 0)};
}

ShardRange Dataset::range(std::size_t which, std::uint64_t shard) const {
  const DatasetCondition& of = conditions[which];
  return shard_range(of.condition->replicates, of.shards, shard);
}

std::string Dataset::shard_path(std::size_t which, std::uint64_t shard) const {
  return "condition_" + padded(which, conditions.size() - 1) + "/shard_" +
         padded(shard, conditions[which].shards - 1) +
         (request.format == DatasetFormat::netcdf ? ".nc" : "");
}

std::vector<std::string> Dataset::shard_files(std::size_t which, std::uint64_t shard) const {
  const std::string path = shard_path(which, shard);
  if (request.format == DatasetFormat::netcdf) return {path};
  std::vector<std::string> files;
  for (const DatasetVariable& variable :
       dataset_variables(*conditions[which].condition, request, 1)) {
    files.push_back(path + "/" + variable.name + ".npy");
  }
  return files;
}

std::uint64_t Dataset::shard_bytes(std::size_t which, std::uint64_t shard) const {
  return bytes_of(
      dataset_variables(*conditions[which].condition, request, range(which, shard).count));
}

Dataset plan_dataset(const Scenario& scenario, const DatasetRequest& request, Session session) {
  session.backend = "cpu";
  session.report = {};
  Dataset dataset{.scenario_file = scenario.file,
                  .scenario_text = scenario.text,
                  .sets = scenario.sets,
                  .request = request,
                  .conditions = {}};
  const std::uint64_t most =
      std::max<std::uint64_t>(max_shards_of_dataset / scenario.conditions.size(), 1);
  for (const Condition& condition : scenario.conditions) {
    DatasetCondition one{.condition = condition, .shards = shards_of(condition, request, most)};
    if (const auto* law = std::get_if<LearnedSubspaces>(&*condition.subspaces);
        law && !law->once()) {
      reject(condition, "heads.subspaces.fit",
             "heads that every replicate learns cannot be part of a data set - use fit = \"once\"");
    }
    require_one_draw(condition, "a data set has one draw of heads and queries");
    if (any_stage(one.condition->mechanism)) {
      reject(*one.condition, "heads.mechanism",
             "cannot be given here: a data set has the weights and estimates of plain heads");
    }
    check_fit_memory(*one.condition);
    auto found = learn_heads(*one.condition, session);
    if (!found) {
      throw Unfinished("interrupted while heads were learned: nothing was written");
    }
    one.found = std::move(*found);
    // Those of law "optimal" would ask for a pilot study.
    if (!learns_weights(*one.condition)) one.condition.own().weights = UniformWeights{};
    one.inputs_sha256 = plan_sha256(make_plan(*one.condition, one.found));
    dataset.conditions.push_back(std::move(one));
  }
  return dataset;
}

}  // namespace headlab
