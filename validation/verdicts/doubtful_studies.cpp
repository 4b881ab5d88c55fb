// SPDX-License-Identifier: Apache-2.0
// Claims that are easily decided wrongly: rare events, denominators that are noise, heavy tails,
// zeros, many comparisons.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include "engine/files/words.h"
#include "kernels/statistics/stopping.h"
#include "validation/statistics/comparison.h"
#include "validation/verdicts/calibration_worlds.h"

namespace headlab {
namespace {

std::string stating(const World& world, std::uint64_t replicates,
                    const std::vector<std::string>& claims) {
  World rest = world;
  rest.run.clear();
  return stating_scenario(rest.text(), replicates, claims, world.run);
}

/// A number of which claims are made: `what` is "of = ..." or "ratio = ...".
struct Setting {
  std::string name;
  World world;
  std::uint64_t replicates;
  std::string what;
  double truth;
  double margin;       ///< of claims off by their margin
  double room;         ///< of claims far from their margin
  bool exact = false;  ///< without Monte Carlo error, so that nothing is off by just its margin
};

std::string number(double value) {
  return formatted("%.17g", value);
}

std::string figure(const std::string& name) {
  return "of = { figure = \"" + name + "\" }";
}

std::string head_bias(int query) {
  return "{ figure = \"head_bias[" + std::to_string(query) + ",0]\" }";
}

const std::string bias = "of = " + head_bias(0);
const std::string variance = figure("head_variance_mean");
const std::string letter = "true, no margin";

/// The studies of a setting: true to the letter, off by just its margin on either side, and far
/// from it.
void add_studies(const Setting& s, const BackendChoice& backend,
                 std::vector<CalibrationStudy>& all) {
  // Of what has no Monte Carlo error: clearly beyond the margin, and by less than any error.
  const double beyond = s.exact ? 1e-3 * s.margin : 0;
  const auto claim = [&](const char* relation, double value, double margin) {
    return s.what + "\n" + relation + " = " + number(value) + "\nmargin = " + number(margin) + "\n";
  };
  const auto add = [&](const std::vector<std::string>& claims, std::vector<CalibrationRate> rates,
                       std::uint64_t trials = study_trials) {
    all.push_back(stated_study(stating(s.world, s.replicates, claims), backend, std::move(rates)));
    all.back().trials = trials;
  };
  const auto add_edge = [&](const std::string& off, const std::string& claim_off) {
    std::vector<CalibrationRate> rates = {support_rate(s.name, off)};
    if (!s.exact) rates.insert(rates.begin(), alarm_rate(s.name, off));
    add({claim_off}, std::move(rates));
  };
  add({claim("equals", s.truth, no_margin * s.room)}, {alarm_rate(s.name, letter)});
  add_edge("above by its margin", claim("at_most", s.truth - s.margin - beyond, s.margin));
  add_edge("below by its margin", claim("at_least", s.truth + s.margin + beyond, s.margin));
  add({claim("at_most", s.truth + s.room, 0) + "expected = \"supported\"\n",
       claim("at_most", s.truth - s.room, 0) + "expected = \"refuted\"\n"},
      {decided_rate(s.name, "room of " + formatted("%.2g", s.room))}, study_trials / 10);
}

/// P(X > t) of a standard normal X.
double beyond_normal(double t) {
  return std::erfc(t / std::numbers::sqrt2) / 2;
}

World step_world(const std::string& threshold) {
  return {.regression = "{ law = \"step\", direction = [1], threshold = " + threshold + " }"};
}

// One point beyond the threshold t has the response 1, all others 0: at n = 1 the head's estimate
// is that of an event of share p = P(X > t), so that B = p and V = p (1 - p) + sd^2.
void add_rare_events(const Session& session, std::vector<Setting>& all) {
  const double often = beyond_normal(2.5), sometimes = beyond_normal(3),
               seldom = beyond_normal(3.5);
  all.push_back({"event of 1 in 161, bias", step_world("2.5"), smallest_scenario, bias, often,
                 0.2 * often, 0.9 * often});
  all.push_back({"event of 1 in 161, V", step_world("2.5"), smallest_scenario, variance,
                 often * (1 - often) + 0.01, 0.2 * often, 0.9 * often});
  all.push_back({"event of 1 in 741, bias, R 32768", step_world("3.0"), 32768, bias, sometimes,
                 0.2 * sometimes, 0.99 * sometimes});
  all.push_back({"event of 1 in 4298, bias", step_world("3.5"), smallest_scenario, bias, seldom,
                 0.2 * seldom, 0.99 * seldom});
  // A narrow bump behind noise that is integrated, whose share of V varies by itself.
  for (const std::uint64_t replicates : {smallest_scenario, 4 * smallest_scenario}) {
    const World bump = {
        .n = "3",
        .regression = R"({ law = "bumps", heights = [1], centres = [[3.2]], widths = [0.1] })",
        .kernel = R"({ law = "gaussian", bandwidth = 3.0 })"};
    World without = bump;
    without.regression = R"({ law = "zero" })";
    const double v = exact_theory(bump.text(), session.threads).figures.head_variance_mean.value;
    const double signal =
        v - exact_theory(without.text(), session.threads).figures.head_variance_mean.value;
    all.push_back({"narrow bump behind noise, V, R " + std::to_string(replicates), bump, replicates,
                   variance, v, 0.2 * signal, 0.9 * signal});
  }
}

/// Mean over k independent distances u in [0, 1] from the centre of a window, with weights 1 - u^2,
/// of sum w^2 of the two largest less sum w^2 of all, by the midpoint rule with m points each.
double gain_of_all(int k, int m) {
  std::vector<int> at(static_cast<std::size_t>(k), 0);
  double sum = 0, cells = 0;
  for (;;) {
    double total = 0, squares = 0, first = 0, second = 0;
    for (const int i : at) {
      const double u = (i + 0.5) / m;
      const double w = 1 - u * u;
      total += w;
      squares += w * w;
      if (w > first) {
        second = first;
        first = w;
      } else {
        second = std::max(second, w);
      }
    }
    sum += (first * first + second * second) / ((first + second) * (first + second)) -
           squares / (total * total);
    ++cells;
    std::size_t i = 0;
    while (i < at.size() && ++at[i] == m) at[i++] = 0;
    if (i == at.size() - 1) stop_point();
    if (i == at.size()) return sum / cells;
  }
}

// The errors of the two nearest keys and of all differ where three points or more are in the window
// q +- b, K of which there are binomial(n, p). With noise alone an error is that of sum w^2, and
// the density is the same over the window up to b^2.
Setting kept_keys(double width) {
  constexpr int n = 50;
  constexpr double q = 2;
  const double p = beyond_normal(q - width) - beyond_normal(q + width);
  double gain = 0, share = 0;
  double probability = std::pow(1 - p, n);  // of K = k
  for (int k = 1; k <= 6; ++k) {
    probability *= (n - k + 1.0) / k * p / (1 - p);
    if (k < 3) continue;
    constexpr std::array points = {120, 40, 16, 10};
    gain += probability * gain_of_all(k, points.at(static_cast<std::size_t>(k - 3)));
    share += probability;
  }
  const World world = {.n = std::to_string(n),
                       .noise = R"({ law = "normal", sd = 1.0 })",
                       .heads =
                           "count = 1\ndim = 1\nsubspaces = { law = \"aligned\" }\n"
                           "mechanism = { keep = { top = 2 } }",
                       .kernel = "{ law = \"epanechnikov\", bandwidth = " + number(width) + " }",
                       .points = "[[2.0]]",
                       .sweep = "\"heads.mechanism.keep.top\" = [2, 50]"};
  return {"two nearest keys or all, 1 in " + formatted("%.0f", 1 / share) + " differ",
          world,
          smallest_scenario,
          {},
          gain,
          0.2 * gain,
          0.99 * gain};
}

/// Claims of the difference of two figures, which a file states as an order.
void add_kept_keys(const Setting& s, const BackendChoice& backend,
                   std::vector<CalibrationStudy>& all) {
  const auto at = [](const char* top) {
    return std::string("{ figure = \"mse\", at = { \"heads.mechanism.keep.top\" = ") + top + " } }";
  };
  const auto add = [&](const std::string& claim, double margin,
                       std::vector<CalibrationRate> rates) {
    all.push_back(stated_study(
        stating(s.world, s.replicates, {claim + "\nmargin = " + number(margin) + "\n"}), backend,
        std::move(rates)));
  };
  const std::string off = "off by its margin";
  const std::string equal = "equal = [" + at("2") + ", " + at("50") + "]";
  const std::string less = "less = " + at("2") + "\nthan = " + at("50");
  add(less, s.truth, {alarm_rate(s.name, off), support_rate(s.name, off)});
  add(equal, s.truth, {alarm_rate(s.name + ", equal", off), support_rate(s.name + ", equal", off)});
  all.push_back(stated_study(
      stating(s.world, s.replicates,
              {less + "\nmargin = " + number(2 * s.truth) + "\nexpected = \"supported\"\n",
               less + "\nmargin = " + number(s.truth - s.room) + "\nexpected = \"refuted\"\n"}),
      backend, {decided_rate(s.name, "room of " + formatted("%.2g", s.room))}));
  all.back().trials = study_trials / 10;
}

// m and the noise are odd, and the design is symmetric: the bias at -x is minus that at x.
World odd_world(const std::string& x) {
  return {.n = "5",
          .design = R"({ law = "normal", dim = 2 })",
          .regression = R"({ law = "linear", coefficients = [1, 1] })",
          .noise = R"({ law = "normal", sd = 0.7 })",
          .heads = "count = 2\ndim = 1\nsubspaces = { law = \"orthogonal\" }",
          .kernel = R"({ law = "gaussian", bandwidth = 0.6 })",
          .points = "[[-" + x + ", -" + x + "], [" + x + ", " + x + "]]"};
}

/// Windows of ten tokens each, of equal weights but for 1e-6.
World windows(int n, const std::string& skip, int heads) {
  return {.n = std::to_string(n),
          .regression = R"({ law = "linear", coefficients = [1] })",
          .noise = R"({ law = "normal", sd = 0.5 })",
          .heads = "count = " + std::to_string(heads) +
                   "\ndim = 1\nsubspaces = { law = \"aligned\" }\n"
                   "mechanism = { window = 10, skip = [" +
                   skip + "] }",
          .kernel = R"({ law = "gaussian", bandwidth = 1000.0 })"};
}

void add_denominators(std::vector<Setting>& all) {
  const std::string ratio = "ratio = [" + head_bias(0) + ", " + head_bias(1) + "]";
  for (const char* x : {"0.002", "0.05", "0.065", "0.2"}) {
    all.push_back({std::string("ratio of biases at -x and x, x ") + x, odd_world(x),
                   smallest_scenario, ratio, -1, 0.5, 0.9});
  }
  // Two windows that share one token of ten: C = V / 10.
  all.push_back({"C of windows over another", windows(28, "0, 9, 18", 3), smallest_scenario,
                 "ratio = [{ figure = \"head_covariance[0,0,1]\" }, { figure = "
                 "\"head_covariance[0,1,2]\" }]",
                 1, 0.3, 0.9});
  all.push_back({"C/V of windows that share one token", windows(19, "0, 9", 2), smallest_scenario,
                 figure("output_correlation"), 0.1, 0.02, 0.08});
}

const std::string plain_estimator = "estimator = \"plain\"\n";

World t_noise(const std::string& df, const std::string& run = {}) {
  return {.noise = "{ law = \"student_t\", sd = 1.0, df = " + df + " }", .run = run};
}
World t_design(const std::string& df) {
  return {.design = "{ law = \"student_t\", dim = 1, df = " + df + " }",
          .regression = R"({ law = "linear", coefficients = [1] })"};
}

// Of one point the estimate is its response: V = sd^2 with noise alone, and of m(x) = x in a t
// design df/(df - 2) + sd^2, B = 0.
void add_heavy_tails(const Session& session, std::vector<Setting>& all) {
  for (const char* df : {"2.5", "3", "4", "5", "8"}) {
    all.push_back({std::string("t noise, plain, V, df ") + df, t_noise(df, plain_estimator),
                   smallest_scenario, variance, 1, 0.1, 0.5});
  }
  all.push_back({"t noise, plain, V, df 5, R 32768", t_noise("5", plain_estimator), 32768, variance,
                 1, 0.05, 0.3});
  all.push_back({"t noise, plain, bias, df 3", t_noise("3", plain_estimator), smallest_scenario,
                 bias, 0, 0.1, 0.15});
  // Integrated, noise counts by its variance alone.
  for (const char* df : {"3", "5"}) {
    World five = t_noise(df);
    five.n = "5";
    World normal = five;
    normal.noise = R"({ law = "normal", sd = 1.0 })";
    const double v = exact_theory(normal.text(), session.threads).figures.head_variance_mean.value;
    all.push_back({std::string("t noise, conditional, V, df ") + df, five, smallest_scenario,
                   variance, v, 0.02, 0.02});
  }
  all.push_back({"t design, V, df 3", t_design("3"), smallest_scenario, variance, 3.01, 0.3, 2});
  all.push_back({"t design, bias, df 3", t_design("3"), smallest_scenario, bias, 0, 0.1, 0.25});
  for (const std::uint64_t replicates : {smallest_scenario, 4 * smallest_scenario}) {
    all.push_back({"t design, V, df 5, R " + std::to_string(replicates), t_design("5"), replicates,
                   variance, 5.0 / 3 + 0.01, 0.2, 0.8});
  }
}

void add_zeros(std::vector<Setting>& all) {
  const World noise = {.n = "8", .noise = R"({ law = "normal", sd = 1.0 })"};
  World plain = noise;
  plain.run = plain_estimator;
  all.push_back({"bias of noise, integrated", noise, smallest_scenario, bias, 0, 0.1, 0.1, true});
  all.push_back({"bias of noise, plain", plain, smallest_scenario, bias, 0, 0.05, 0.05});
  World apart = windows(20, "0, 10", 2);
  const std::string covariance = figure("head_covariance_mean");
  all.push_back(
      {"C of windows apart, signal", apart, smallest_scenario, covariance, 0, 0.01, 0.01});
  apart.regression = R"({ law = "zero" })";
  all.push_back(
      {"C of windows apart, noise", apart, smallest_scenario, covariance, 0, 0.01, 0.01, true});
  World alike = {.n = "8",
                 .regression = R"({ law = "linear", coefficients = [1] })",
                 .heads = "count = 2\ndim = 1\nsubspaces = { law = \"aligned\" }"};
  all.push_back({"C/V of heads alike", alike, smallest_scenario, figure("output_correlation"), 1,
                 0.1, 0.1, true});
}

/// Twenty claims of one file: of figures of a small world, and of events from rare to frequent.
void add_many(const Session& session, std::vector<CalibrationStudy>& all) {
  const auto add = [&](const std::string& name, const std::string& scenario) {
    all.push_back(stated_study(scenario, session.backend, {alarm_rate(name, letter)}));
  };
  const auto bounds = [](std::vector<std::string>& claims, const std::string& what, double truth,
                         const std::string& rest = {}) {
    for (const char* relation : {"at_most", "at_least", "equals"}) {
      claims.push_back(what + "\n" + relation + " = " + number(truth) +
                       "\nmargin = { relative = " + number(no_margin) + " }\n" + rest);
    }
  };
  const auto figures = exact_theory(gaussian_world, session.threads).figures;
  std::vector<std::string> claims;
  bounds(claims, figure("mse"), figures.mse.value);
  bounds(claims, figure("head_variance_mean"), figures.head_variance_mean.value);
  bounds(claims, figure("head_covariance_mean"), figures.head_covariance_mean.value);
  bounds(claims, figure("output_correlation"), figures.output_correlation.value);
  bounds(claims, figure("variance_term"), figures.variance_term.value);
  bounds(claims, figure("head_bias[0,0]"), figures.queries.at(0).head_bias.at(0).value);
  bounds(claims, figure("head_bias[0,1]"), figures.queries.at(0).head_bias.at(1).value);
  claims.resize(20);
  add("any of 20 claims of a small world",
      stating_scenario(gaussian_world, smallest_scenario, claims));

  claims.clear();
  std::string thresholds;
  for (int i = 0; i < 7; ++i) {
    const double t = 1.0 + 0.25 * i;
    thresholds += (i > 0 ? ", " : "") + number(t);
    const std::string side =
        "of = { figure = \"head_bias[0,0]\", at = { \"data.regression."
        "threshold\" = " +
        number(t) + " } }";
    bounds(claims, side, beyond_normal(t));
  }
  claims.resize(20);
  World steps = step_world("1.0");
  steps.sweep = "\"data.regression.threshold\" = [" + thresholds + "]";
  add("any of 20 claims of events of 1 in 6 to 161", stating(steps, smallest_scenario, claims));
}

}  // namespace

std::vector<CalibrationStudy> doubtful_studies(const Session& session) {
  std::vector<Setting> settings;
  add_rare_events(session, settings);
  add_denominators(settings);
  add_heavy_tails(session, settings);
  add_zeros(settings);
  std::vector<CalibrationStudy> all;
  for (const Setting& one : settings) add_studies(one, session.backend, all);
  for (const double width : {0.03, 0.06}) add_kept_keys(kept_keys(width), session.backend, all);

  // A relative margin of 2: at x the bias is minus that at -x, and twice its size below it.
  for (const char* x : {"0.05", "0.065"}) {
    const std::string name = std::string("bias less than another, relative margin, x ") + x;
    const std::string off = "off by the margin, 200 %";
    all.push_back(stated_study(stating(odd_world(x), smallest_scenario,
                                       {"less = " + head_bias(0) + "\nthan = " + head_bias(1) +
                                        "\nmargin = { relative = 2 }\n"}),
                               session.backend, {alarm_rate(name, off), support_rate(name, off)}));
  }
  add_many(session, all);
  return all;
}

}  // namespace headlab
