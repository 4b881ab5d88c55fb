// SPDX-License-Identifier: Apache-2.0
/// \file Stacks and tokens from the known answers, whose keys are those of a scenario.
#pragma once

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <Eigen/Core>
#include <nlohmann/json.hpp>

#include "kernels/stack/metrics.h"
#include "kernels/stack/stack.h"
#include "kernels/testing/known_cases.h"

namespace headlab {

/// Cases of a kind.
inline std::vector<nlohmann::json> known_depth_cases(const std::string& kind) {
  return test::known_cases("depth", kind);
}

inline Eigen::MatrixXd matrix_from(const nlohmann::json& rows) {
  Eigen::MatrixXd matrix(rows.size(), rows[0].size());
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) {
      matrix(i, j) = rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)].get<double>();
    }
  }
  return matrix;
}

inline Eigen::RowVectorXd row_from(const nlohmann::json& numbers) {
  return matrix_from(nlohmann::json::array({numbers}));
}

/// n equiangular tokens of mean sqrt(mu) in coordinate n - 1: Helmert rows, each of squared length
/// rho.
inline Eigen::MatrixXd simplex_tokens(int n, int d, double rho, double mu) {
  Eigen::MatrixXd x = Eigen::MatrixXd::Zero(n, d);
  for (int k = 1; k < n; ++k) {
    const double unit = std::sqrt(rho * n / (n - 1) / (k * (k + 1.0)));
    x.col(k - 1).head(k).setConstant(unit);
    x(k, k - 1) = -k * unit;
  }
  if (mu > 0) x.col(n - 1).array() += std::sqrt(mu);
  return x;
}

/// Tokens of designs `points` and `simplex`.
inline Eigen::MatrixXd known_tokens(const nlohmann::json& scenario) {
  const nlohmann::json& design = scenario["tokens"]["design"];
  if (design["law"] == "points") return matrix_from(design["points"]);
  return simplex_tokens(scenario["tokens"]["n"], design["dim"], design["rho"], design["mu"]);
}

inline Stack known_stack(const nlohmann::json& scenario) {
  const nlohmann::json& heads = scenario["heads"];
  const nlohmann::json& layers = scenario["layers"];
  const int d = scenario["tokens"]["design"].contains("dim")
                    ? scenario["tokens"]["design"]["dim"].get<int>()
                    : static_cast<int>(scenario["tokens"]["design"]["points"][0].size());
  Stack stack;
  stack.layers = layers["count"];
  stack.heads = heads["count"];
  const nlohmann::json& kernel = heads["kernel"];
  if (kernel["law"] == "softmax") stack.temperature = kernel["temperature"];
  if (kernel["law"] == "independent_logits") {
    stack.kernel = AttentionKernel::independent_logits;
    stack.logit_sd = kernel["sd"];
  }
  if (kernel["law"] == "fixed") {
    stack.kernel = AttentionKernel::fixed;
    for (const auto& rows : kernel["matrices"]) stack.fixed.push_back(matrix_from(rows));
  }
  const nlohmann::json& maps = heads["maps"];
  if (maps["law"] == "gaussian") {
    GaussianMaps gaussian;
    gaussian.query_key = maps.value("query_key", 1.0);
    gaussian.value = maps.value("value", 1.0);
    gaussian.k = heads.value("dim", d);
    gaussian.value_dim = heads.value("value_dim", gaussian.k);
    stack.maps = gaussian;
  } else {
    const bool scaled = maps["law"] == "scaled_identity";
    auto read = [&](const nlohmann::json& all) {
      Matrices matrices;
      for (const auto& one : all) {
        matrices.push_back(
            scaled ? Eigen::MatrixXd(one.get<double>() * Eigen::MatrixXd::Identity(d, d))
                   : matrix_from(one));
      }
      return matrices;
    };
    stack.maps = ExplicitMaps{.query_key = read(maps["query_key"]), .value = read(maps["value"])};
  }
  stack.averaged = heads.value("values", "independent") == "averaged";
  stack.skip = layers.value("skip", 0.0);
  stack.branch = layers.value("branch", 1.0);
  stack.memory = layers.value("memory", 0.0);
  stack.causal = layers.value("mask", "none") == "causal";
  const nlohmann::json norm = layers.value("norm", nlohmann::json{{"law", "none"}});
  if (norm["law"] != "none") {
    stack.norm.kind = norm["law"] == "rms" ? NormKind::rms : NormKind::layer;
    stack.norm.place = norm["place"] == "pre" ? NormPlace::pre : NormPlace::post;
    stack.norm.epsilon = norm.value("epsilon", 0.0);
    if (norm.contains("gain")) stack.norm.gain = row_from(norm["gain"]);
    if (norm.contains("bias")) stack.norm.bias = row_from(norm["bias"]);
  }
  if (layers.contains("mlp")) {
    const nlohmann::json& mlp = layers["mlp"];
    stack.mlp = Mlp{.input = matrix_from(mlp["input"]),
                    .bias = row_from(mlp["bias"]),
                    .output = matrix_from(mlp["output"])};
  }
  stack.spectra = scenario["run"].value("spectra", false);
  return stack;
}

/// A metric by its name; throws std::out_of_range for one that there is none of.
inline double metric_named(const LayerMetrics& metrics, const std::string& name) {
  struct Find {
    const std::string& name;
    bool found = false;
    double value = 0;
    void operator()(const char* other, double number, const char*) {
      if (name != other) return;
      found = true;
      value = number;
    }
  } find{name};
  metrics.fields(find);
  if (!find.found) throw std::out_of_range(name);
  return find.value;
}

/// Largest |got - expected| over its tolerance; infinite for a number that is not one.
inline double largest_miss(const std::vector<LayerMetrics>& rows, const nlohmann::json& known) {
  const double relative = known["tolerance"]["relative"].get<double>();
  const double absolute = known["tolerance"]["absolute"].get<double>();
  double largest = 0;
  const nlohmann::json& expected = known["expected"]["layers"];
  if (rows.size() != expected.size()) return HUGE_VAL;
  for (std::size_t l = 0; l < rows.size(); ++l) {
    for (const auto& [name, value] : expected[l].items()) {
      const double right = value.get<double>();
      const double miss =
          std::abs(metric_named(rows[l], name) - right) / (relative * std::abs(right) + absolute);
      largest = std::max(largest, miss <= HUGE_VAL ? miss : HUGE_VAL);
    }
  }
  return largest;
}

}  // namespace headlab
