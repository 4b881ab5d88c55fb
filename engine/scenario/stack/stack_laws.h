// SPDX-License-Identifier: Apache-2.0
/// \file Laws of `[tokens]`, `[heads]` and `[layers]` in a study of depth (kernels/stack/stack.h
/// has the formulas).
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "kernels/law/design/designs.h"
#include "kernels/parameter.h"

namespace headlab {

using NumberRows = std::vector<std::vector<double>>;

/// Tokens as given, in float64.
struct GivenTokens {
  static constexpr const char* name = "points";
  static constexpr const char* summary = "the tokens as given";
  NumberRows points = {};  ///< [n][d]

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("points", points, within(-1e15, 1e15), "[n][d]");
  }
};

/// n equiangular tokens: |x_i - m|^2 = rho, |m|^2 = mu, m orthogonal to the differences.
struct SimplexTokens {
  static constexpr const char* name = "simplex";
  static constexpr const char* summary = "equiangular tokens";
  int dim = 1;
  double rho = 1;
  double mu = 0;
  bool centred = false;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("dim", dim, within(1, 4096), "d");
    visit.required("rho", rho, within(0, 1e30), "squared distance of a token from the mean");
    visit.required("mu", mu, within(0, 1e30), "squared length of the mean");
    visit.optional("centred", centred, "tokens orthogonal to (1, .., 1), default false");
  }
};

struct SoftmaxAttention {
  static constexpr const char* name = "softmax";
  static constexpr const char* summary = "softmax of Z M_h Z^T / temperature";
  double temperature = 1;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("temperature", temperature, above(0), "t");
  }
};

struct UniformAttention : NoParameters {
  static constexpr const char* name = "uniform";
  static constexpr const char* summary = "equal weights of the keys allowed";
};

struct IndependentLogits {
  static constexpr const char* name = "independent_logits";
  static constexpr const char* summary = "softmax of logits N(0, sd^2), drawn for each layer";
  double sd = 1;
  double correlation = 0;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("sd", sd, at_least(0), "of a logit");
    visit.optional("correlation", correlation, within(0, 1), "between heads, default 0");
  }
};

struct FixedAttention {
  static constexpr const char* name = "fixed";
  static constexpr const char* summary = "the weights as given, the same in all layers";
  std::vector<NumberRows> matrices = {};

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("matrices", matrices, at_least(0), "[H][n][n], rows that sum to 1");
  }
};

struct GaussianMapsLaw {
  static constexpr const char* name = "gaussian";
  static constexpr const char* summary = "independent normal entries";
  std::optional<double> query_key = {};
  double value = 1;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.optional("query_key", query_key, at_least(0),
                   "d times the variance of W_Q and W_K, default 1");
    visit.optional("value", value, at_least(0), "d times the variance of W_V, default 1");
  }
};

struct ScaledIdentityMaps {
  static constexpr const char* name = "scaled_identity";
  static constexpr const char* summary = "M_h = query_key[h] I, V_h = value[h] I";
  std::optional<std::vector<double>> query_key = {};
  std::vector<double> value = {};

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.optional("query_key", query_key, finite(), "[H], softmax needs it");
    visit.required("value", value, finite(), "[H], or one with averaged values");
  }
};

struct GivenMaps {
  static constexpr const char* name = "explicit";
  static constexpr const char* summary = "M_h and V_h as given";
  std::optional<std::vector<NumberRows>> query_key = {};
  std::vector<NumberRows> value = {};

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.optional("query_key", query_key, finite(), "[H][d][d], softmax needs it");
    visit.required("value", value, finite(), "[H][d][d], or one with averaged values");
  }
};

/// The law of the target of pruned maps.
struct TargetMaps {
  std::variant<GaussianMapsLaw> law;
};

struct PrunedMaps {
  static constexpr const char* name = "pruned";
  static constexpr const char* summary = "nearest subset sums to the entries of target maps";
  TargetMaps of = {};
  int hidden = 1;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("of", of, finite(), "law table of the target, { law = \"gaussian\" }");
    visit.required("hidden", hidden, at_least(1), "d times the samples of an entry");
  }
};

struct NoNorm : NoParameters {
  static constexpr const char* name = "none";
  static constexpr const char* summary = "no norm";
};

/// What the norms have in common.
struct NormParameters {
  std::string place = {};
  double epsilon = 0;
  std::optional<std::vector<double>> gain = {};
  std::optional<std::vector<double>> bias = {};

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("place", place, "\"pre\" or \"post\"");
    visit.optional("epsilon", epsilon, at_least(0), "added to the mean square, default 0");
    visit.optional("gain", gain, finite(), "[d], default 1");
    visit.optional("bias", bias, finite(), "[d], default 0");
  }
};

struct RmsNorm : NormParameters {
  static constexpr const char* name = "rms";
  static constexpr const char* summary = "token over its root mean square";
};

struct LayerNorm : NormParameters {
  static constexpr const char* name = "layer";
  static constexpr const char* summary = "token minus its mean, over its root mean square";
};

struct NoMlp : NoParameters {
  static constexpr const char* name = "none";
  static constexpr const char* summary = "no MLP";
};

struct ReluMlp {
  static constexpr const char* name = "relu";
  static constexpr const char* summary = "relu(x W_1 + b_1) W_2 with normal entries";
  int width = 1;
  double scale = 1;
  double bias = 0;

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("width", width, within(1, 65536), "hidden units");
    visit.optional("scale", scale, at_least(0), "W_2 has variance 2 scale^2/width, default 1");
    visit.optional("bias", bias, at_least(0), "standard deviation of b_1, default 0");
  }
};

struct GivenMlp {
  static constexpr const char* name = "explicit";
  static constexpr const char* summary = "W_1, b_1 and W_2 as given";
  NumberRows input = {};
  std::vector<double> bias = {};
  NumberRows output = {};

  template <class Visitor>
  void parameters(Visitor& visit) {
    visit.required("input", input, finite(), "[d][width]");
    visit.required("bias", bias, finite(), "[width]");
    visit.required("output", output, finite(), "[width][d]");
  }
};

/// Every design draws tokens.
template <class... Designs>
std::variant<Designs..., GivenTokens, SimplexTokens> with_tokens(const std::variant<Designs...>&);
using TokenDesign = decltype(with_tokens(DesignLaw()));
using AttentionLaw =
    std::variant<SoftmaxAttention, UniformAttention, IndependentLogits, FixedAttention>;
using MapsLaw = std::variant<GaussianMapsLaw, ScaledIdentityMaps, GivenMaps, PrunedMaps>;
using NormLaw = std::variant<NoNorm, RmsNorm, LayerNorm>;
using MlpLaw = std::variant<NoMlp, ReluMlp, GivenMlp>;

}  // namespace headlab
