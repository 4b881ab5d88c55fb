// SPDX-License-Identifier: Apache-2.0
#include "validation/theory/model/model.h"

#include <algorithm>
#include <cstddef>
#include <numbers>
#include <type_traits>
#include <variant>

#include "engine/scenario/condition.h"
#include "engine/scenario/setup_laws.h"
#include "kernels/laws.h"
#include "kernels/plan.h"

namespace headlab {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;
using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr double radians_a_turn = 2 * std::numbers::pi;
/// E m^2 takes a number a pair of cosines or bumps.
constexpr int max_terms = 2048;

/// Numbers of a plan's table.
VectorXd vector_of(const Table& table, std::int64_t offset, int size) {
  return Eigen::Map<const VectorXd>(table.exact() + offset, size);
}
MatrixXd matrix_of(const Table& table, std::int64_t offset, int rows, int columns) {
  return Eigen::Map<const RowMajor>(table.exact() + offset, rows, columns);
}

template <class Laws>
std::string name_of(const Laws& laws) {
  return std::visit([](const auto& law) { return std::string(law.name); }, laws);
}

GaussianLaw gaussian(const Table& table, int d, std::int64_t mean, std::int64_t factor) {
  const MatrixXd root = matrix_of(table, factor, d, d);
  return {vector_of(table, mean, d), root * root.transpose()};
}

void read_design(const Condition& condition, const Plan& plan, const std::string& way_out,
                 TheoryModel& model) {
  const int d = plan.d;
  if (const auto* normal = std::get_if<NormalDesign::Sampler>(&*plan.design)) {
    model.standard_design = normal->standard;
    model.design.weights = {1.0};
    model.design.components = {normal->standard
                                   ? GaussianLaw{VectorXd::Zero(d), MatrixXd::Identity(d, d)}
                                   : gaussian(plan.table, d, normal->mean, normal->factor)};
    return;
  }
  if (const auto* mixture = std::get_if<MixtureDesign::Sampler>(&*plan.design)) {
    const auto& weights = std::get<MixtureDesign>(*condition.design).weights;
    for (int c = 0; c < mixture->components; ++c) {
      const double weight = weights[static_cast<std::size_t>(c)];
      if (weight == 0) continue;
      model.design.weights.push_back(weight);
      model.design.components.push_back(
          gaussian(plan.table, d, mixture->means + c * d, mixture->factors + c * d * d));
    }
    return;
  }
  reject(condition, "data.design",
         "closed forms need a normal or mixture design; law \"" + name_of(*condition.design) +
             "\" is neither" + way_out);
}

void require_few(const Condition& condition, int terms, const std::string& way_out) {
  if (terms > max_terms) {
    reject(condition, "data.regression",
           "closed forms take a number for each pair of terms, at most " +
               std::to_string(max_terms) + " terms, here " + std::to_string(terms) + way_out);
  }
}

void read_regression(const Condition& condition, const Plan& plan, const std::string& way_out,
                     TheoryModel& model) {
  const Table& table = plan.table;
  const int d = plan.d;
  auto cosines = [&](int terms, std::int64_t amplitudes, const MatrixXd& frequency,
                     std::int64_t phases) {
    model.regression = std::make_shared<CosineSumFunction>(
        vector_of(table, amplitudes, terms), radians_a_turn * frequency,
        radians_a_turn * vector_of(table, phases, terms));
  };
  std::visit(
      [&](const auto& m) {
        using Function = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<Function, ZeroRegression::Function>) {
          model.zero_regression = true;
          model.regression = std::make_shared<PolynomialFunction>(0, VectorXd::Zero(d));
        } else if constexpr (std::is_same_v<Function, LinearRegression::Function>) {
          model.regression =
              std::make_shared<PolynomialFunction>(0, vector_of(table, m.coefficients, d));
        } else if constexpr (std::is_same_v<Function, CosineSum>) {
          require_few(condition, m.terms, way_out);
          cosines(m.terms, m.amplitudes, matrix_of(table, m.frequencies, m.terms, d), m.phases);
        } else if constexpr (std::is_same_v<Function, AdditiveRegression::Function>) {
          require_few(condition, d, way_out);
          cosines(d, m.amplitudes, vector_of(table, m.frequencies, d).asDiagonal(), m.phases);
        } else if constexpr (std::is_same_v<Function, BumpsRegression::Function>) {
          require_few(condition, m.bumps, way_out);
          model.regression = std::make_shared<BumpSumFunction>(
              vector_of(table, m.heights, m.bumps), matrix_of(table, m.centres, m.bumps, d),
              2 * vector_of(table, m.rates, m.bumps));
        } else {
          reject(condition, "data.regression",
                 "closed forms need a regression whose Gaussian expectations are known (zero, "
                 "linear, cosines, random_cosines, additive, single_index, bumps); law \"" +
                     name_of(*condition.regression) + "\" is none of them" + way_out);
        }
      },
      *plan.regression);
}

/// W without its columns of zeros, which a head of a smaller size has.
MatrixXd without_zeros(const MatrixXd& w) {
  Index columns = w.cols();
  while (columns > 1 && w.col(columns - 1).isZero(0)) --columns;
  return w.leftCols(columns);
}

void read_noise(const Condition& condition, const Plan& plan, const std::string& way_out,
                TheoryModel& model) {
  std::visit(
      [&](const auto& noise) {
        using Sampler = std::decay_t<decltype(noise)>;
        if constexpr (Sampler::constant_scale) {
          model.noise_sd = noise.sd;
          model.noise_variance =
              std::make_shared<PolynomialFunction>(noise.sd * noise.sd, VectorXd::Zero(plan.d));
        } else if constexpr (std::is_same_v<Sampler, FormulaNoise::Sampler>) {
          reject(condition, "data.noise",
                 "closed forms need noise whose variance has a known Gaussian expectation; law "
                 "\"formula\" has none" +
                     way_out);
        } else {
          model.constant_noise = false;
          model.noise_variance = std::make_shared<FoldedScaleFunction>(
              noise.sd, noise.slope, vector_of(plan.table, noise.direction, noise.d));
        }
      },
      *plan.noise);
}

/// Tokens in both [a, b) and [c, e).
std::uint64_t common(std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t e) {
  const std::uint64_t from = std::max(a, c);
  return std::max(std::min(b, e), from) - from;
}

}  // namespace

bool TheoryModel::is_softmax() const {
  return std::holds_alternative<SoftmaxKernel>(*kernel);
}

std::uint64_t shared_tokens(const SeenTokens& a, const SeenTokens& b) {
  return common(0, a.sinks, 0, b.sinks) + common(0, a.sinks, b.begin, b.end) +
         common(a.begin, a.end, 0, b.sinks) + common(a.begin, a.end, b.begin, b.end);
}

TheoryModel theory_model(const Condition& condition) {
  const std::string way_out = simulation_instead;
  const Plan plan = make_plan(condition);
  if (!plan.mechanism.off()) {
    reject(condition, "heads.mechanism",
           "closed forms are for heads without stages, or with transform alone" + way_out);
  }
  if (!std::holds_alternative<IndependentSequence>(*condition.sequence)) {
    reject(condition, "data.sequence", "closed forms are for independent points" + way_out);
  }
  return point_model(condition, plan, way_out);
}

TheoryModel point_model(const Condition& condition, const Plan& plan, const std::string& way_out) {
  TheoryModel model;
  model.n = plan.n;
  read_design(condition, plan, way_out, model);
  read_regression(condition, plan, way_out, model);
  read_noise(condition, plan, way_out, model);
  if (!std::holds_alternative<GaussianKernel>(*plan.kernel) && !is_softmax(plan)) {
    reject(condition, "heads.kernel",
           "closed forms need a gaussian or softmax kernel; law \"" + name_of(*plan.kernel) +
               "\" is neither" + way_out);
  }
  model.kernel = plan.kernel;
  const Index frame = Index{plan.d} * plan.k;
  for (int h = 0; h < plan.heads; ++h) {
    model.projections.push_back(without_zeros(
        Eigen::Map<const RowMajor>(plan.projections.data() + h * frame, plan.d, plan.k)));
    if (plan.query_projections.empty()) continue;
    const Eigen::Map<const RowMajor> queries(plan.query_projection(h), plan.d, plan.k);
    model.query_projections.push_back(queries.leftCols(model.projections.back().cols()));
  }
  model.head_weights = Eigen::Map<const VectorXd>(plan.head_weights.data(), plan.heads);
  for (int q = 0; q < plan.queries; ++q) {
    model.queries.push_back(
        Eigen::Map<const VectorXd>(plan.query_points.data() + Index{q} * plan.d, plan.d));
  }
  model.truth = plan.truth;
  return model;
}

}  // namespace headlab
