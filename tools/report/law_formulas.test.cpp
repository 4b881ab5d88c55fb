// SPDX-License-Identifier: Apache-2.0
#include "tools/report/law_formulas.h"

#include <string>

#include <gtest/gtest.h>

#include "engine/files/json_reader.h"
#include "engine/moments/layer_estimates.h"
#include "engine/scenario/law_reader.h"
#include "kernels/kernel_laws.h"
#include "tools/report/mathml.h"
#include "tools/report/testing/pages.h"

namespace headlab::tools {
namespace {

TEST(LawFormulas, AreThereForEveryMetricOfLayers) {
  for (const LayerMetricDescription& metric : layer_metric_descriptions()) {
    EXPECT_FALSE(metric_formula(metric.name).empty())
        << metric.name << " has no row in tools/report/law_formulas.cpp";
  }
  EXPECT_TRUE(metric_formula("none").empty());
}

TEST(LawFormulas, AreThereForEveryLawOfData) {
  for (const LawDescription& law : describe_laws()) {
    if (law.family != "design" && law.family != "regression" && law.family != "noise" &&
        law.family != "kernel") {
      continue;
    }
    EXPECT_FALSE(law.equation.empty()) << law.family << " law " << law.name << " has no equation";
  }
}

TEST(LawFormulas, AreThoseOfTheLaws) {
  const Value law = parse_json(R"({"law": "triangular", "bandwidth": 0.5})").value();
  const std::string text = law_html("kernel", {&law});
  EXPECT_NE(text.find(mathml(TriangularKernel::equation)), std::string::npos) << text;
  EXPECT_EQ(text.find(TriangularKernel::summary), std::string::npos);
}

TEST(LawFormulas, ShowTheSummaryOfALawWithoutOne) {
  const Value law = parse_json(R"({"law": "haar", "seed": 3})").value();
  const Value other = parse_json(R"({"law": "haar", "seed": 4})").value();
  const std::string text = law_html("subspaces", {&law, &other});
  EXPECT_NE(text.find("independent and uniformly distributed heads"), std::string::npos) << text;
  EXPECT_TRUE(contains(text, "seed = 3 or 4")) << text;
}

}  // namespace
}  // namespace headlab::tools
