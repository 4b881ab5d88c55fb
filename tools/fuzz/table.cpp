// SPDX-License-Identifier: Apache-2.0
// A data file, CSV or NPY, as the design and the regression of a scenario.
#include "engine/files/error.h"
#include "engine/scenario/plan_fingerprint.h"
#include "engine/scenario/world.h"
#include "kernels/parameter.h"
#include "kernels/plan.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {
namespace {

std::string text_of(const std::string& path, const char* standardise) {
  return World{
      .n = "2",
      .design = "{ law = \"file\", path = \"" + path + "\", standardise = " + standardise + " }",
      .regression = R"({ law = "file", column = 0 })",
      .heads = "count = 1\ndim = 1\nsubspaces = { law = \"haar\" }",
      .queries = "law = \"design\"\ncount = 1",
      .run = "seed = 1\nreplicates = 8"}
      .text();
}

void read_both_ways(const std::string& bytes) {
  const std::string path = file_of(bytes);
  std::string rejected;
  for (const char* standardise : {"false", "true"}) {
    try {
      const Scenario scenario = parse_scenario(text_of(path, standardise), "fuzz");
      require(scenario.conditions.size() == 1, "not one condition");
      plan_sha256(make_plan(scenario.conditions[0]));
    } catch (const InvalidInput& refusal) {
      rejected = refusal.what();
    } catch (const ParameterError& refusal) {
      rejected = refusal.what();
    }
  }
  if (!rejected.empty()) throw InvalidInput(rejected);
}

}  // namespace

const Target reader::table = {"table", read_both_ways};

}  // namespace headlab::fuzz
