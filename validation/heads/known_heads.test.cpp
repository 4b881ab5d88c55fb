// SPDX-License-Identifier: Apache-2.0
// Known answers: made cases, and two layers captured from trained models.
#include <cmath>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "kernels/testing/known_layers.h"
#include "validation/heads/measure.h"
#include "validation/heads/testing/arrays_in_memory.h"

namespace headlab {
namespace {

using nlohmann::json;
using test::ArraysInMemory;

/// The shape of nested arrays.
std::vector<std::uint64_t> shape_of(const json& array) {
  std::vector<std::uint64_t> shape;
  for (const json* inner = &array; inner->is_array(); inner = &(*inner)[0]) {
    shape.push_back(inner->size());
  }
  return shape;
}

std::shared_ptr<ArraysInMemory> arrays_of(const json& given) {
  auto file = std::make_shared<ArraysInMemory>();
  for (const auto& [name, value] : given.items()) {
    if (value.is_array() && name != "document") file->put(name, shape_of(value), flat(value));
  }
  if (given.contains("scale")) file->put("scale", {}, {given["scale"].get<double>()});
  if (given.value("mask", json()).is_null()) file->say("mask", "full");
  return file;
}

/// Few documents and tokens do for what is compared.
HeadSetting of_small_cases() {
  return {.exact = true, .min_documents = 2, .refit_tokens = 1};
}

/// Within a tolerance, relative to the largest expected number.
void expect_figure(const MeasuredLayer& layer, const std::string& name, const json& expected,
                   double tolerance, bool errors = false) {
  SCOPED_TRACE(name);
  const HeadFigure* const found = layer.find(name);
  ASSERT_NE(found, nullptr);
  const std::vector<double> wanted = flat(expected);
  const std::vector<double>& values = errors ? found->errors : found->values;
  ASSERT_EQ(values.size(), wanted.size());
  double most = 0;
  for (const double one : wanted) most = std::max(most, std::abs(one));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    EXPECT_LE(std::abs(values[i] - wanted[i]), tolerance * most) << i << ": " << values[i];
  }
}

void expect_noise(const MeasuredLayer& layer, const json& expected, double tolerance) {
  for (const std::string& kind : noise_kinds()) {
    const std::string start = "noise_" + kind + "_";
    const json& of = expected[kind];
    // Terms that cancel are compared with the variance.
    const double variance = of["variance_term"];
    expect_figure(layer, start + "variance", of["variance_term"], tolerance);
    const double off =
        layer.find(start + "covariance")->values[0] - of["covariance_term"].get<double>();
    EXPECT_LE(std::abs(off), tolerance * variance) << kind;
    EXPECT_LE(
        std::abs(layer.find(start + "correlation")->values[0] - of["correlation"].get<double>()),
        tolerance)
        << kind;
  }
}

MeasuredLayer measured(const std::shared_ptr<ArrayFile>& file, const HeadSetting& setting) {
  return measure_heads(file, {}, setting, 2).layers.at(0);
}

TEST(KnownHeads, OfNoiseInTheValues) {
  const json known = known_layer_case("noise");
  const MeasuredLayer layer = measured(arrays_of(known["given"]), of_small_cases());
  expect_figure(layer, "overlap", known["expected"]["omega"], 1e-12);
  expect_figure(layer, "tokens_effective", known["expected"]["tokens_effective"], 1e-12);
  expect_noise(layer, known["expected"], 1e-12);
}

TEST(KnownHeads, OfPairs) {
  const json known = known_layer_case("pairs");
  const json& expected = known["expected"];
  const MeasuredLayer layer = measured(arrays_of(known["given"]), of_small_cases());
  expect_figure(layer, "total_variation", expected["total_variation"], 1e-12);
  expect_figure(layer, "exchange_error", expected["exchange_error"], 1e-12);
  expect_figure(layer, "covariance", expected["gram"], 1e-12);
}

TEST(KnownHeads, OfTheLoss) {
  json known = known_layer_case("loss");
  const json& expected = known["expected"];
  json identity = json::array();  // output maps, which the loss does not ask for
  for (int h = 0; h < 4; ++h) identity.push_back({{1, 0}, {0, 1}});
  known["given"].erase("note");
  const auto file = arrays_of(known["given"]);
  file->put("W_O", {4, 2, 2}, flat(identity));
  const MeasuredLayer layer = measured(file, of_small_cases());
  expect_figure(layer, "first_order", expected["first_order"], 1e-12);
  expect_figure(layer, "sensitivity", expected["sensitivity"], 1e-12);
  std::vector<double> diagonal;
  for (std::size_t h = 0; h < 4; ++h) diagonal.push_back(expected["second_order"][h][h]);
  expect_figure(layer, "second_order", diagonal, 1e-12);
}

/// 200 tokens of as many sequences, with the documents they come from.
std::shared_ptr<ArraysInMemory> scores_case(const json& given) {
  auto file = std::make_shared<ArraysInMemory>();
  file->put("z", {200, 4, 1, 2}, flat(given["z"]));
  file->put("W_O", {4, 2, 4}, flat(given["W_O"]));
  file->put("document", {200}, flat(given["document"]), NumberKind::whole);
  return file;
}

TEST(KnownHeads, OfRefits) {
  const json known = known_layer_case("scores");
  const json& expected = known["expected"];
  HeadSetting setting = of_small_cases();
  setting.ridge = 0;
  const MeasuredLayer layer = measured(scores_case(known["given"]), setting);
  expect_figure(layer, "energy", expected["energy"], 1e-12);
  expect_figure(layer, "spread", expected["spread"], 1e-12);
  expect_figure(layer, "shapley", expected["shapley"], 1e-12);
  expect_figure(layer, "covariance", expected["gram"], 1e-12);
  expect_figure(layer, "output_variance", expected["total"], 1e-12);
  expect_figure(layer, "refit_cost_in_sample", expected["refit_cost"], 1e-9);
  expect_figure(layer, "refit_cost", expected["refit_cost_cross"], 1e-9);
}

/// A captured layer, computed in float64 from q, k and v with the scale to all digits.
std::shared_ptr<ArraysInMemory> captured(const std::string& name,
                                         const std::vector<std::string>& without) {
  const auto file = open_array_file(layer_answers(name + ".npz").string());
  auto arrays = std::make_shared<ArraysInMemory>();
  arrays->take(*file, without);
  arrays->put("scale", {}, {1 / std::sqrt(8.0)});
  return arrays;
}

void expect_captured(const MeasuredLayer& layer, const json& expected, double tolerance) {
  for (const auto& [name, key] :
       std::vector<std::pair<std::string, std::string>>{{"overlap", "omega"},
                                                        {"tokens_effective", "tokens_effective"},
                                                        {"covariance", "gram"},
                                                        {"shapley", "shapley"},
                                                        {"share_covariance", "share_gram"},
                                                        {"energy", "energy"},
                                                        {"total_variation", "total_variation"},
                                                        {"exchange_error", "exchange_error"},
                                                        {"first_order", "first_order"},
                                                        {"sensitivity", "sensitivity"}}) {
    expect_figure(layer, name, expected[key], tolerance);
  }
  std::vector<double> diagonal;
  for (std::size_t h = 0; h < 8; ++h) diagonal.push_back(expected["second_order"][h][h]);
  expect_figure(layer, "second_order", diagonal, tolerance);
  expect_figure(layer, "output_correlation", expected["spread_correlation"]["value"],
                1e3 * tolerance);
  expect_noise(layer, expected["noise"], tolerance);
}

class CapturedLayer : public testing::TestWithParam<const char*> {};

TEST_P(CapturedLayer, HasTheKnownFigures) {
  const json expected =
      json::parse(std::ifstream(layer_answers(GetParam() + std::string(".json"))));
  const MeasuredLayer layer = measured(captured(GetParam(), {"z"}), of_small_cases());
  expect_captured(layer, expected, 1e-12);
  expect_figure(layer, "covariance", expected["gram_mcse"], 1e-11, true);
  expect_figure(layer, "output_correlation", expected["spread_correlation"]["mcse"], 1e-10, true);
  for (const char* kind : {"shared", "input"}) {  // that of values was computed with S fixed
    expect_figure(layer, std::string("noise_") + kind + "_correlation",
                  expected["noise"][kind]["correlation_mcse"], 1e-10, true);
  }
  expect_figure(layer, "refit_cost_in_sample", expected["refit_cost"], 1e-9);
  expect_figure(layer, "refit_cost", expected["refit_cost_cross"], 1e-9);
}

TEST_P(CapturedLayer, HasThemInFloat32) {
  const json expected =
      json::parse(std::ifstream(layer_answers(GetParam() + std::string(".json"))));
  HeadSetting setting = of_small_cases();
  setting.exact = false;
  expect_captured(measured(captured(GetParam(), {}), setting), expected, 2e-6);
}

TEST_P(CapturedLayer, IsWhatTheModelDid) {
  const json expected =
      json::parse(std::ifstream(layer_answers(GetParam() + std::string(".json"))))["identity"];
  const Identity found = measured(captured(GetParam(), {}), of_small_cases()).identity;
  // Both are rounding errors of the model's float32, seen from float64.
  EXPECT_NEAR(found.variation_mean, expected["total_variation_mean"].get<double>(), 1e-12);
  EXPECT_NEAR(found.variation_max, expected["total_variation_max"].get<double>(), 1e-12);
  EXPECT_NEAR(found.z_relative, expected["z_relative"].get<double>(), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(Real, CapturedLayer,
                         testing::Values("real-gpt-layer0", "real-llama-layer1"),
                         [](const auto& one) {
                           return std::string(one.param).substr(5, 3) == "gpt" ? "Gpt" : "Llama";
                         });

}  // namespace
}  // namespace headlab
