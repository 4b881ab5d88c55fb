// SPDX-License-Identifier: Apache-2.0
/// \file Reports say what was run, and what their words and numbers mean.
#include <string>

#include <gtest/gtest.h>

#include "engine/files/json_reader.h"
#include "tools/report/figure.h"
#include "tools/report/law_formulas.h"
#include "tools/report/testing/pages.h"

namespace headlab::tools {
namespace {

const std::string scenario_parameters =
    R"("parameters": {"data": {"n": 50, "design": {"law": "normal", "dim": 4},
       "regression": {"law": "linear", "coefficients": [1, 1, 1, 1]},
       "noise": {"law": "normal", "sd": 1}},
       "heads": {"count": 2, "dim": 2, "subspaces": {"law": "haar"},
                 "kernel": {"law": "gaussian", "bandwidth": 0.25}},
       "queries": {"law": "design", "count": 3}, "run": {"replicates": 77}})";

void expect_scenario(const std::string& page) {
  EXPECT_TRUE(contains(page, "bandwidth b = 0.25"));
  EXPECT_TRUE(contains(page, "independent and uniformly distributed heads"));
  EXPECT_TRUE(contains(page, "<dt>training sets</dt><dd>77</dd>"));
}

TEST(SaidInReports, AnAllocationHasItsKernelAndReplicates) {
  const std::string page = page_of_document(R"({"headlab": {}, "budget": 4, "n": 50,
      "rule": "sqrt_dim", "alpha": 0.05, "advice": {}, "allocations": [{"heads": 2, "dim": 2,
      "bandwidth": 0.25, "mse": {"value": 1, "mcse": 0.1}, "replicates": 77, "in_best_set": true}],
      )" + scenario_parameters + "}");
  expect_scenario(page);
  EXPECT_TRUE(contains(page, "a bandwidth b with"));
}

TEST(SaidInReports, ACurveHasItsKernelAndEachOfItsDesigns) {
  const auto curve = [](const std::string& name, const std::string& its_own) {
    return R"({"name": ")" + name + R"(", "points": [{"x": 50, "figure": {"value": 2, "mcse": 1}},
        {"x": 60, "figure": {"value": 1, "mcse": 1}}], )" +
           its_own + "}";
  };
  std::string other = scenario_parameters;
  other.replace(other.find("\"normal\", \"dim\""), 15, "\"uniform\", \"dim\"");
  const auto page_with = [&](const char* key) {
    return page_of_document(R"({"headlab": {}, "over": "n", "over_key": ")" + std::string(key) +
                            R"(", "figure": "mse", "curves": [)" +
                            curve("normal", scenario_parameters) + "," + curve("uniform", other) +
                            R"(], "crossings": [], )" + scenario_parameters + "}");
  };
  const std::string page = page_with("data.n");
  expect_scenario(page);
  EXPECT_TRUE(contains(page, "<strong>normal</strong>"));
  EXPECT_TRUE(contains(page, "<strong>uniform</strong>"));
  EXPECT_TRUE(contains(page, "No two curves are known to cross."));
  const std::string of_n = "<mi>log</mi><mspace width=\"0.25em\"/><mi>n</mi>";
  EXPECT_TRUE(contains(page, of_n));
  const std::string over_noise = page_with("data.noise.sd");
  EXPECT_FALSE(contains(over_noise, of_n));
  EXPECT_TRUE(contains(over_noise, "sd = 50 or 60")) << over_noise;
}

TEST(SaidInReports, AMapHasItsKernelAndReplicates) {
  expect_scenario(page_of_document(R"({"headlab": {}, "n": [50, 100], "cells": [{"setting": {},
      "words": "rises", "budget": 4, "rule": "fixed", "dims": [1, 2, 4], "replicates": 77,
      "points": []}], )" + scenario_parameters +
                                   "}"));
}

std::string stack_page(const std::string& replicates, const std::string& kernel) {
  return page_of_document(R"({"headlab": {}, "results_id": "x", "conditions": [{"parameters":
      {"tokens": {"n": 2}, "heads": {"count": 1, "kernel": )" +
                          kernel + R"(}, "layers": {"count": 1}}, "replicates": )" + replicates +
                          R"(, "layers": [{"log_residual": {"value": 1}, "self_weight":
      {"value": 1}}]}]})");
}

TEST(SaidInReports, AMatrixIsWholeOrSaysWhereItIs) {
  const std::string small = R"({"law": "fixed", "matrices": [[[1, 0], [0.5, 0.5]]]})";
  EXPECT_TRUE(contains(stack_page("9", small), "matrices [[[1,0],[0.5,0.5]]]"));
  std::string row = "[0.125";
  for (int i = 1; i < 16; ++i) row += ", 0.125";
  std::string rows = row + "]";
  for (int i = 1; i < 16; ++i) rows += ", " + row + "]";
  const std::string large = stack_page("9", R"({"law": "fixed", "matrices": [[)" + rows + "]]}");
  EXPECT_TRUE(contains(large, "matrices 1 × 16 × 16 numbers, in the parameters of the results"));
  EXPECT_FALSE(contains(large, "[…"));
}

TEST(SaidInReports, AMetricWithoutAFigureSaysWhereItIs) {
  const std::string page = stack_page("9", R"({"law": "uniform"})");
  EXPECT_TRUE(contains(page, "<dt>log residual</dt>"));
  EXPECT_FALSE(contains(page, "<dt>self weight</dt>"));
  EXPECT_TRUE(contains(page, "conditions[].layers"));
  EXPECT_TRUE(contains(page, "and not in this report: self weight."));
}

TEST(SaidInReports, OneReplicateHasNoMeans) {
  EXPECT_TRUE(contains(stack_page("1", R"({"law": "uniform"})"),
                       "Every figure is that of the only replicate, without a Monte Carlo"));
  EXPECT_TRUE(
      contains(stack_page("9", R"({"law": "uniform"})"), "Every figure is a mean over replicates"));
}

TEST(SaidInReports, ThePlaceOfVariancesThatATableLeavesOut) {
  const auto page_with = [](int heads) {
    std::string matrix;
    for (int h = 0; h < heads; ++h) {
      matrix += h == 0 ? "[" : ", [";
      for (int l = 0; l < heads; ++l) {
        matrix += (l == 0 ? "" : ", ") + std::to_string(h == l ? 100 + h : heads * h + l);
      }
      matrix += "]";
    }
    return page_of_document(R"({"headlab": {}, "results_id": "x", "conditions": [{"queries": [
        {"head_covariance": [)" +
                            matrix + "]}]}]}");
  };
  const std::string some = page_with(16);
  EXPECT_TRUE(contains(some, "the table has the variances and the ten largest"));
  EXPECT_TRUE(contains(some, ">115.0<"));
  EXPECT_TRUE(contains(page_with(40), "summary.json has the variances of more than 32 heads"));
}

TEST(SaidInReports, WhatMadeTheResultsInWords) {
  const std::string page =
      page_of_document(R"({"headlab": {"simd": "AVX2", "version": "1"}, "results_id": "abc",
      "conditions": [{"queries": [{"head_covariance": [[1, 2], [2, 1]]}]}]})");
  EXPECT_TRUE(contains(page, "identifier of results"));
  EXPECT_TRUE(contains(page, "vector instructions"));
  EXPECT_FALSE(contains(page, "results_id</"));
  EXPECT_FALSE(contains(page, ">simd<"));
  EXPECT_TRUE(contains(page, "Commands that make the plots again:"));
}

TEST(SaidInReports, PairsOfOneSubspace) {
  const auto page_with = [](const char* own_keys) {
    return page_of_document(R"({"headlab": {}, "random_sets": 9, "d": 4, "kv_heads": )" +
                            std::string(own_keys) + R"(, "bandwidth": 1.5, "layers": [{"layer": 0,
        "heads": 3, "dim": 1, "indices": {"overlap": {"value": 0.5}},
        "principal_cosines": [[[1], [1], [0]], [[1], [1], [1]], [[0], [1], [1]]]}]})");
  };
  EXPECT_TRUE(contains(page_with("2"),
                       "each pair has one subspace, as heads that share their keys have; one of"));
  EXPECT_TRUE(contains(page_with("1"), "subspace for each group of heads that share keys"));
  const std::string page = page_with("3");
  EXPECT_FALSE(contains(page, "share keys"));
  EXPECT_TRUE(contains(page, "each pair has one subspace; one of"));
  EXPECT_TRUE(contains(page, ">Methods<"));
  EXPECT_TRUE(contains(page, "<dt>bandwidth b</dt><dd>1.5"));
}

TEST(SaidInReports, TheColumnsOfHeadsOnText) {
  const std::string page = page_of_document(R"({"headlab": {}, "words": ["a"], "file": "x",
      "layers": [{"layer": 0, "heads": 1, "sequences": 1, "documents": 1, "tokens": 9,
      "energy": [1], "spread": [1], "refit_cost": [1], "second_order": [1],
      "tokens_effective": [2]}]})");
  EXPECT_TRUE(contains(page, ">Methods<"));
  for (const char* column : {"replaced by its mean", "left out, the others fitted again",
                             "second-order prediction", "effective tokens"}) {
    EXPECT_TRUE(contains(page, "<dt>" + std::string(column) + "</dt>")) << column;
  }
  EXPECT_FALSE(contains(page, "<dt>explained by the others</dt>"));
  EXPECT_FALSE(contains(page, "ratio of means"));
  // A mean of shares is on another scale than a ratio of means.
  const std::string shares = page_of_document(R"({"headlab": {}, "words": ["a"], "file": "x",
      "layers": [{"layer": 0, "heads": 1, "spread_share": [1], "refit_cost": [1]}]})");
  EXPECT_TRUE(contains(shares, ": a ratio of means"));
  EXPECT_TRUE(contains(shares, "The two are not of one scale."));
}

TEST(SaidInReports, WhatAVerdictComparesInWords) {
  const std::string page = page_of_document(R"({"headlab": {}, "alpha": 0.01, "comparisons": 1,
      "claims": [{"claim": "a", "form": "f", "verdict": "supported", "signal": true,
      "effect": {"value": 1, "mcse": 0.1, "zone": "two-sided", "of":
      "mse at heads.dim = 8, heads.kernel.temperature = 2"}, "margin": 0.1}]})");
  EXPECT_TRUE(contains(page, "MSE at dimension of a head"));
  EXPECT_TRUE(contains(page, "temperature = 2"));
  EXPECT_FALSE(contains(page, "heads.kernel.temperature"));
}

}  // namespace
}  // namespace headlab::tools
