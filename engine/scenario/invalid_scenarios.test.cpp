// SPDX-License-Identifier: Apache-2.0
// Everything that can be wrong with a scenario, and the whole line that says so.
#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/scenario/law_reader.h"
#include "engine/scenario/scenario.h"
#include "engine/testing/folder_test.h"

namespace headlab {
namespace {

/// A scenario without fault; a case replaces some of its lines.
const std::vector<std::string> good_lines = {
    "[scenario]",
    R"(name = "base")",
    "[data]",
    "n = 50",
    R"(design = { law = "normal", dim = 4 })",
    R"(regression = { law = "zero" })",
    R"(noise = { law = "normal", sd = 0.5 })",
    "[heads]",
    "count = 2",
    "dim = 2",
    R"(subspaces = { law = "orthogonal" })",
    R"(kernel = { law = "gaussian", bandwidth = 0.5 })",
    R"(weights = { law = "uniform" })",
    "[queries]",
    R"(law = "points")",
    "points = [[0, 0, 0, 0]]",
    "[run]",
    "seed = 7",
    "replicates = 100",
};

/// Names of the laws of a family as a message lists them.
std::string laws_of(const std::string& family) {
  std::string names;
  for (const LawDescription& law : describe_laws()) {
    if (law.family == family) names += (names.empty() ? "" : ", ") + law.name;
  }
  return names;
}

std::string refusal(const std::string& text, const std::vector<std::string>& sets,
                    const std::string& directory) {
  return refusal_line([&] { parse_scenario(text, "s.toml", sets, directory); });
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// Replaces the first `from`, where there is one.
std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

/// A case is its lines up to the refusal, "! LINE": "4 n = 0" puts n = 0 in place of line 4 of the
/// good scenario, "--set n=0" is an argument; | is a line break. In a refusal DIR stands for the
/// directory of the scenario, DESIGNS, KERNELS and REGRESSIONS for the laws of these.
void expect_refusals(const std::string& cases, const std::string& directory = ".") {
  std::vector<std::string> lines = good_lines, sets;
  std::istringstream in(cases.substr(1));
  for (std::string line; std::getline(in, line);) {
    std::replace(line.begin(), line.end(), '|', '\n');
    if (line.starts_with("--set ")) {
      sets.push_back(line.substr(6));
    } else if (!line.starts_with("! ")) {
      std::size_t behind = 0;
      const std::size_t number = std::stoul(line, &behind);
      lines.at(number - 1) = line.substr(std::min(behind + 1, line.size()));
    } else {
      std::string wanted = with(line.substr(2), "DIR", directory);
      wanted = with(wanted, "DESIGNS", laws_of("design"));
      wanted = with(wanted, "KERNELS", laws_of("kernel"));
      wanted = with(wanted, "REGRESSIONS", laws_of("regression"));
      const std::string found = refusal(joined(lines), sets, directory);
      EXPECT_EQ(found, wanted);
      EXPECT_TRUE(found.starts_with("s.toml:") || found.starts_with("--set ")) << found;
      lines = good_lines;
      sets.clear();
    }
  }
  EXPECT_EQ(lines, good_lines) << "a case has no refusal";
}

TEST(bad_scenarios, the_scenario_that_they_change_is_good) {
  EXPECT_EQ(refusal(joined(good_lines), {}, "."), "accepted");
}

TEST(bad_scenarios, sections_and_their_keys) {
  expect_refusals(R"(
1 [scenary]
! s.toml:1:2: scenary: unknown key (allowed: scenario, data, heads, queries, run, measures, labels, sweep, claim) - did you mean "scenario"?
2 title = "base"
! s.toml:2:1: scenario.title: unknown key (allowed: name, aims)
2 name = 3
! s.toml:2:8: scenario.name: is 3, needs a string - text stands in quotes
2 name = "base"|aim = "x"
! s.toml:3:1: scenario.aim: unknown key (allowed: name, aims) - did you mean "aims"?
3 [dat]
! s.toml:3:2: dat: unknown key (allowed: scenario, data, heads, queries, run, measures, labels, sweep, claim) - did you mean "data"?
4
! s.toml:3:1: data.n: is missing - training points in one training set
4 m = 50
! s.toml:4:1: data.m: unknown key (allowed: n, design, regression, noise, sequence, fixed_design, design_seed)
4 n = 0
! s.toml:4:5: data.n: is 0, must be in [1, 1099511627776)
4 n = -5
! s.toml:4:5: data.n: is -5, must be in [1, 1099511627776)
4 n = 2.5
! s.toml:4:5: data.n: is 2.5, needs a whole number
4 n = 1099511627776
! s.toml:4:5: data.n: is 1099511627776, must be in [1, 1099511627776)
4 n = "50"
! s.toml:4:5: data.n: is "50", needs a whole number - write 50
4 n = [50]
! s.toml:4:5: data.n: is an array, needs a whole number - values to compare stand in [sweep]
4 n = nan
! s.toml:4:5: data.n: is nan, needs a finite number
4 n = 1e300
! s.toml:4:5: data.n: is 1e+300, must be in [1, 1099511627776)
5
! s.toml:3:1: data.design: is missing - a law table such as { law = "normal", dim = 6 }
6
! s.toml:3:1: data.regression: is missing - a law table such as { law = "zero" }
7
! s.toml:3:1: data.noise: is missing - a law table such as { law = "normal", sd = 0.5 }
5 design = "normal"
! s.toml:5:10: data.design: is a string, needs a table - write { law = "normal" }
5 design = 4
! s.toml:5:10: data.design: is 4, needs a table
5 design = [1]
! s.toml:5:10: data.design: is an array, needs a table - values to compare stand in [sweep]
7 noise = { law = "normal", sd = 0.5 }|fixed_design = 1
! s.toml:8:16: data.fixed_design: is 1, needs true or false - write true
7 noise = { law = "normal", sd = 0.5 }|design_seed = 3
! s.toml:8:15: data.design_seed: has no effect without fixed_design = true - add that, or remove this
7 noise = { law = "normal", sd = 0.5 }|fixed_design = true|design_seed = -1
! s.toml:9:15: data.design_seed: is -1, must be in [0, 9007199254740992)
9 count = 0
! s.toml:9:9: heads.count: is 0, must be in [1, 1024]
9 count = 1025
! s.toml:9:9: heads.count: is 1025, must be in [1, 1024]
9 count = true
! s.toml:9:9: heads.count: is true, needs a whole number
10 dim = 5
! s.toml:10:7: heads.dim: is 5, the design has dim 4
10 dim = 0
! s.toml:10:7: heads.dim: is 0, must be in [1, 4096]
10 dims = 2
! s.toml:10:1: heads.dims: unknown key (allowed: count, dim, subspaces, kernel, weights, mechanism) - did you mean "dim"?
11
! s.toml:8:1: heads.subspaces: is missing - a law table such as { law = "orthogonal" }
12
! s.toml:8:1: heads.kernel: is missing - a law table such as { law = "gaussian", bandwidth = 0.5 }
14 [query]
! s.toml:14:2: query: unknown key (allowed: scenario, data, heads, queries, run, measures, labels, sweep, claim) - did you mean "queries"?
15 lw = "points"
! s.toml:14:1: queries.law: is missing - one of points, design
17 [runs]
! s.toml:17:2: runs: unknown key (allowed: scenario, data, heads, queries, run, measures, labels, sweep, claim) - did you mean "run"?
18 seed = -1
! s.toml:18:8: run.seed: is -1, must be in [0, 9007199254740992)
18 seed = 9007199254740992
! s.toml:18:8: run.seed: is 9007199254740992, must be in [0, 9007199254740992)
18 seed = 0.5
! s.toml:18:8: run.seed: is 0.5, needs a whole number
19 replicate = 100
! s.toml:19:1: run.replicate: unknown key (allowed: seed, replicates, estimator, moments, controls) - did you mean "replicates"?
19
! s.toml:17:1: run.replicates: is missing - number of training sets
19 replicates = 0
! s.toml:19:14: run.replicates: is 0, must be in [1, 1099511627776)
19 replicates = 100|estimator = "plane"
! s.toml:20:13: run.estimator: is "plane" (allowed: conditional, plain) - did you mean "plain"?
19 replicates = 100|moments = "mean"
! s.toml:20:11: run.moments: is "mean" (allowed: pairwise, aggregate)
19 replicates = 100|estimator = true
! s.toml:20:13: run.estimator: is true, needs a string
19 replicates = 100|[claim]|name = "hdi"|margins = 1
! s.toml:22:1: claim.margins: unknown key (allowed: name, form, index, expected, margin, compare, statement, assumptions, refuted_by, origin, pairs, note) - did you mean "margin"?
19 replicates = 100|[claim]|name = 3
! s.toml:21:8: claim.name: is 3, needs a string - text stands in quotes
19 replicates = 100|[claim]|margin = -1
! s.toml:21:10: claim.margin: is -1, must be >= 0
19 replicates = 100|claim = 3
! s.toml:20:1: run.claim: unknown key (allowed: seed, replicates, estimator, moments, controls)
)");
}

TEST(bad_scenarios, laws_and_their_parameters) {
  expect_refusals(R"(
5 design = { dim = 4 }
! s.toml:5:10: data.design.law: is missing - one of DESIGNS
5 design = { law = "gaussian", dim = 4 }
! s.toml:5:18: data.design.law: is "gaussian" (allowed: DESIGNS)
5 design = { law = "norml", dim = 4 }
! s.toml:5:18: data.design.law: is "norml" (allowed: DESIGNS) - did you mean "normal"?
5 design = { law = 3, dim = 4 }
! s.toml:5:18: data.design.law: is 3, needs a string - text stands in quotes
5 design = { law = "normal" }
! s.toml:5:10: data.design.dim: is missing - d
5 design = { law = "normal", dim = 4097 }
! s.toml:5:34: data.design.dim: is 4097, must be in [1, 4096]
5 design = { law = "normal", dim = 4, ar1 = 1 }
! s.toml:5:43: data.design.ar1: is 1, must be inside (-1, 1)
5 design = { law = "normal", dim = 4, ar1 = "0.5" }
! s.toml:5:43: data.design.ar1: is "0.5", needs a number - write 0.5
5 design = { law = "normal", dim = 4, mean = [1, 2] }
! s.toml:5:44: data.design.mean: has 2 elements, needs 4
5 design = { law = "normal", dim = 4, mean = 1 }
! s.toml:5:44: data.design.mean: is 1, needs an array of numbers
5 design = { law = "normal", dim = 4, mean = [] }
! s.toml:5:44: data.design.mean: is an empty array
5 design = { law = "normal", dim = 4, mean = [0, 0, 0, inf] }
! s.toml:5:54: data.design.mean[3]: is inf, needs a finite number
5 design = { law = "normal", dim = 4, mean = [0, 0, 1e6, 0] }
! s.toml:5:44: data.design.mean: coordinate 2 has mean 1000000 and standard deviation 1, a ratio of 1000000 (allowed: 16384, points are float32) - subtract the mean from the design and the queries
5 design = { law = "normal", dim = 1, mean = [-2], covariance = [[1e-8]] }
! s.toml:5:44: data.design.mean: coordinate 0 has mean -2 and standard deviation 1e-04, a ratio of 20000 (allowed: 16384, points are float32) - subtract the mean from the design and the queries
5 design = { law = "mixture", weights = [1], means = [[0, 0, 0, 2e4]] }
! s.toml:5:52: data.design.means: component 0, coordinate 3 has mean 20000 and standard deviation 1, a ratio of 20000 (allowed: 16384, points are float32) - subtract the mean from the design and the queries
5 design = { law = "normal", dim = 4, mean = [0, 0, 0, [1]] }
! s.toml:5:54: data.design.mean[3]: is an array, needs a number
5 design = { law = "normal", dim = 2, covariance = [[1, 0], [0]] }
! s.toml:5:59: data.design.covariance[1]: has 1 element, data.design.covariance[0] has 2
5 design = { law = "normal", dim = 2, covariance = [[1, 2], [2, 1]] }
! s.toml:5:50: data.design.covariance: is not positive definite
5 design = { law = "normal", dim = 2, ar1 = 0.5, covariance = [[1, 0], [0, 1]] }
! s.toml:5:43: data.design.ar1: cannot be given with covariance - give one of the two
5 design = { law = "mixture", weights = [0.5, 0.4], means = [[0, 0, 0, 0], [1, 1, 1, 1]] }
! s.toml:5:39: data.design.weights: sum to 0.900000, must sum to 1
5 design = { law = "mixture", weights = [0.5, 0.5], means = [[0, 0], [1, 1]], covariances = [[[1, 0], [0, 1]], [[1]]] }
! s.toml:5:110: data.design.covariances[1]: has 1 x 1 elements, data.design.covariances[0] has 2 x 2
5 design = { law = "student_t", dim = 4, df = 0 }
! s.toml:5:45: data.design.df: is 0, must be in [0.01, 1000000]
6 regression = { law = "linear", coefficients = [1, 2, 3] }
! s.toml:6:47: data.regression.coefficients: has 3 elements, the design has dim 4
6 regression = { law = "zero", height = 1 }
! s.toml:6:30: data.regression.height: unknown key (allowed: law)
6 regression = { law = "cosines", amplitude = [1], frequency = [[1, 2, 3, "4"]] }
! s.toml:6:73: data.regression.frequency[0][3]: is "4", needs a number - write 4
6 regression = { law = "cosines", amplitude = [1], frequency = [[1, 2, 3, 4]], phase = [90] }
! s.toml:6:87: data.regression.phase[0]: is 90, must be in [-6.2832, 6.2832] - in radians: 90 degrees are 1.5708
6 regression = { law = "random_cosines", length_scale = 1, seed = -1 }
! s.toml:6:65: data.regression.seed: is -1, must be in [0, 9007199254740992)
6 regression = { law = "cosine", amplitude = [1] }
! s.toml:6:22: data.regression.law: is "cosine" (allowed: REGRESSIONS) - did you mean "cosines"?
7 noise = { law = "normal", sd = -1 }
! s.toml:7:32: data.noise.sd: is -1, must be in [0, 1000000]
7 noise = { law = "student_t", sd = 1, df = 2 }
! s.toml:7:43: data.noise.df: is 2, must be inside (2, 1000000)
7 noise = { law = "normal", sd = 0.5, df = 3 }
! s.toml:7:37: data.noise.df: unknown key (allowed: law, sd)
9 count = 3
! s.toml:11:13: heads.subspaces: needs H k <= d, here 3 x 2 > 4
11 subspaces = { law = "principal_angles", angles = [1] }
! s.toml:11:50: heads.subspaces.angles: has 1 element, needs k = 2, one for each dimension of a head
11 subspaces = { law = "equiangular", angle = 1.6 }
! s.toml:11:44: heads.subspaces.angle: is 1.6, must be inside (0, 1.5707963267948966) - in radians: 1.6 degrees are 0.0279
11 subspaces = { law = "explicit", matrices = [[[1, 0], [0, 1], [0, 0], [0, 0]], [[1], [0], [0], [0]]] }
! s.toml:11:79: heads.subspaces.matrices[1]: has 4 x 1 elements, heads.subspaces.matrices[0] has 4 x 2
11 subspaces = { law = "explicit", matrices = [[1, 0], [0, 1]] }
! s.toml:11:46: heads.subspaces.matrices[0][0]: is 1, needs an array of numbers - rows have brackets of their own: [[1, 2], [3, 4]]
11 subspaces = { law = "haar", sed = 1 }
! s.toml:11:29: heads.subspaces.sed: unknown key (allowed: law, seed, redraw) - did you mean "seed"?
11 subspaces = { law = "orthogonal", redraw = true }
! s.toml:11:35: heads.subspaces.redraw: unknown key (allowed: law)
16 points = [[0, 0, 0, 0]]|redraw = true
! s.toml:17:1: queries.redraw: unknown key (allowed: law, points, truth)
11 subspaces = { law = "haar", redraw = true }
! s.toml:19:14: run.replicates: is 100, must be a multiple of 8: heads are drawn again for every 8 replicates
15 law = "design"
16 count = 2|redraw = true
19 replicates = 12
! s.toml:20:14: run.replicates: is 12, must be a multiple of 8: queries are drawn again for every 8 replicates
11 subspaces = { law = "coordinates", redraw = true }
13 weights = { law = "optimal" }
19 replicates = 104
! s.toml:13:11: heads.weights: of law "optimal" are found once, but heads are drawn again for every 8 replicates - use uniform weights, or leave redraw out
12 kernel = { law = "gaussian", bandwith = 0.5 }
! s.toml:12:30: heads.kernel.bandwith: unknown key (allowed: law, bandwidth) - did you mean "bandwidth"?
12 kernel = { law = "gaussian", bandwidth = -1 }
! s.toml:12:42: heads.kernel.bandwidth: is -1, must be in [1e-06, 1000000]
12 kernel = { law = "gaussian", bandwidth = nan }
! s.toml:12:42: heads.kernel.bandwidth: is nan, needs a finite number
12 kernel = { law = "softmax", bandwidth = 0.5 }
! s.toml:12:29: heads.kernel.bandwidth: unknown key (allowed: law, temperature)
12 kernel = { law = "gaussian\nx", bandwidth = 1 }
! s.toml:12:18: heads.kernel.law: is "gaussian x" (allowed: KERNELS) - did you mean "gaussian"?
13 weights = { law = "explicit", values = [1] }
! s.toml:13:40: heads.weights.values: has 1 element, needs 2, one for each head
13 weights = { law = "geometric", ratio = 0 }
! s.toml:13:40: heads.weights.ratio: is 0, must be in (0, 1000]
13 weights = { law = "optimal", source = "guess" }
! s.toml:13:39: heads.weights.source: is "guess" (allowed: pilot)
16 points = [[0, 0, 0]]
! s.toml:16:11: queries.points[0]: has 3 coordinates, the design has dim 4
16 points = [[0, 0, 0, 0], [0]]
! s.toml:16:25: queries.points[1]: has 1 element, queries.points[0] has 4
16 points = [0, 0, 0, 0]
! s.toml:16:11: queries.points[0]: is 0, needs an array of numbers - rows have brackets of their own: [[1, 2], [3, 4]]
16 count = 4
! s.toml:16:1: queries.count: unknown key (allowed: law, points, truth)
)");
}

TEST(bad_scenarios, sweeps) {
  expect_refusals(R"(
19 replicates = 100|[sweep]
! s.toml:20:1: sweep: has no keys - write a line such as "heads.kernel.bandwidth" = [0.2, 0.4]
19 replicates = 100|sweep = 3
! s.toml:20:1: run.sweep: unknown key (allowed: seed, replicates, estimator, moments, controls) - did you mean "seed"?
19 replicates = 100|[sweep]|"data.n" = []
! s.toml:21:1: sweep.data.n: is an empty array
19 replicates = 100|[sweep]|"data.n" = 5
! s.toml:21:12: sweep.data.n: is 5, needs an array of values, or { linspace = [first, last, number] }
19 replicates = 100|[sweep]|"data.n" = [5, 0]
! s.toml:21:16: data.n: is 0, must be in [1, 1099511627776)
19 replicates = 100|[sweep]|"heads.kernel.bandwith" = [0.1]
! s.toml:21:28: heads.kernel.bandwith: unknown key (allowed: law, bandwidth) - did you mean "bandwidth"?
19 replicates = 100|[sweep]|"heads..dim" = [1]
! s.toml:21:1: heads..dim: is not a key - keys look like heads.kernel.bandwidth
19 replicates = 100|[sweep]|"data.n.x" = [1]
! s.toml:21:15: data.n: is an integer and has no x
19 replicates = 100|[sweep]|"data.n" = [5]|"data" = [{}]
! s.toml:21:1: sweep.data.n: is swept together with data, which holds it
19 replicates = 100|[sweep]|"data.n" = [5]|data.n = [6]
! s.toml:22:6: sweep.data.n: is swept twice, first at s.toml:21:1 - leave one out
19 replicates = 100|[sweep]|zip = 1|"data.n" = [5]
! s.toml:21:7: sweep.zip: is 1, needs true or false - write true
19 replicates = 100|[sweep]|zip = true|"data.n" = [5, 6]|"heads.count" = [1]
! s.toml:23:1: sweep.heads.count: has 1 value, data.n has 2 - with zip = true all need the same number
19 replicates = 100|[sweep]|"heads.count" = [1, 3]
! s.toml:11:13: heads.subspaces: needs H k <= d, here 3 x 2 > 4 (in the condition heads.count = 3)
19 replicates = 100|[sweep]|"sweep.x" = [1]
! s.toml:21:1: sweep.sweep.x: is part of the sweep itself
19 replicates = 100|[sweep]|"heads.kernel.law" = ["gaussian", "softmax"]
! s.toml:12:30: heads.kernel.bandwidth: unknown key (allowed: law, temperature) (in the condition heads.kernel.law = "softmax")
)");
  std::string values = "[1";
  for (int i = 2; i <= 1001; ++i) values += ", " + std::to_string(i);
  const std::string sweep =
      "[sweep]\n\"data.n\" = " + values + "]\n\"run.replicates\" = " + values + "]\n";
  EXPECT_EQ(refusal(joined(good_lines) + sweep, {}, "."),
            "s.toml:20:1: sweep: has 1002001 conditions (allowed: at most 1000000)");
}

TEST(bad_scenarios, settings) {
  expect_refusals(R"(
--set data.n
! --set data.n: needs KEY=VALUE - as in --set run.replicates=1000
--set =3
! --set =3: needs KEY=VALUE - as in --set run.replicates=1000
--set data.n=
! --set data.n=: data.n: has no value
--set scenario.name=base
! --set scenario.name=base: scenario.name: is base, which is not a TOML value - write text in quotes: 'scenario.name="base"'
--set scenario.name="base
! --set scenario.name="base: scenario.name: is "base, which is not a TOML value - write text in quotes: 'scenario.name="..."'
--set data.n=5|seed = 3
! --set data.n=5 seed = 3: data.n: is 5 seed = 3, which is not a number of TOML - as in 0.5, 20 or 1e-3
--set data..n=5
! --set data..n=5: data..n: is not a key - keys look like heads.kernel.bandwidth
--set data n=5
! --set data n=5: data n: is not a key - keys look like heads.kernel.bandwidth
--set data.m=5
! --set data.m=5: data.m: unknown key (allowed: n, design, regression, noise, sequence, fixed_design, design_seed)
--set dat.n=5
! --set dat.n=5: dat: unknown key (allowed: scenario, data, heads, queries, run, measures, labels, sweep, claim) - did you mean "data"?
--set heads.kernel.bandwidth=-1
! --set heads.kernel.bandwidth=-1: heads.kernel.bandwidth: is -1, must be in [1e-06, 1000000]
--set heads.kernal.bandwidth=1
! --set heads.kernal.bandwidth=1: heads.kernal: unknown key (allowed: count, dim, subspaces, kernel, weights, mechanism) - did you mean "kernel"?
--set run.seed.x=1
! --set run.seed.x=1: run.seed: is an integer and has no x
--set heads.kernel={law="gaussian"}
! --set heads.kernel={law="gaussian"}: heads.kernel.bandwidth: is missing - b, in units of the design
--set data.n=1979-05-27
! --set data.n=1979-05-27: data.n: is a date or time, which no parameter takes - write text in quotes
--set data.design.mean=[1, 2, 3, "x"]
! --set data.design.mean=[1, 2, 3, "x"]: data.design.mean[3]: is "x", needs a number
--set sweep."data.n"=5
! --set sweep."data.n"=5: sweep.data.n: is 5, needs an array of values, or { linspace = [first, last, number] }
--set heads.kernel.bandwidth=0,4
! --set heads.kernel.bandwidth=0,4: heads.kernel.bandwidth: is 0,4, which is not a TOML value - numbers have a decimal point (0.4), arrays brackets ([1, 2])
--set heads.kernel.bandwidth=1e400
! --set heads.kernel.bandwidth=1e400: heads.kernel.bandwidth: is 1e400, which is not a number of TOML - as in 0.5, 20 or 1e-3
19 replicates = 100|[sweep]|"data.n" = [5]
--set sweep."data.n"=[]
! --set sweep."data.n"=[]: sweep.data.n: is an empty array
19 replicates = 100|[sweep]|"data.n" = [5]
--set data.n=6
! --set data.n=6: data.n: is swept by the scenario - set the sweep itself: 'sweep."data.n"=[...]'
19 replicates = 100|[sweep]|"heads.kernel" = [{ law = "laplace", bandwidth = 1 }]
--set heads.kernel.bandwidth=6
! --set heads.kernel.bandwidth=6: heads.kernel.bandwidth: is swept by the scenario - set the sweep itself: 'sweep."heads.kernel"=[...]'
19 replicates = 100|[sweep]|"heads.kernel.bandwidth" = [1, 2]
--set heads.kernel={law="laplace",bandwidth=9}
! --set heads.kernel={law="laplace",bandwidth=9}: heads.kernel: holds heads.kernel.bandwidth, which the scenario sweeps - leave it out, or set the sweep itself: 'sweep."heads.kernel.bandwidth"=[...]'
19 replicates = 100|[sweeps]|"data.n" = [5]
! s.toml:20:2: sweeps: unknown key (allowed: scenario, data, heads, queries, run, measures, labels, sweep, claim) - did you mean "sweep"?
--set scenario.name="a'
! --set scenario.name="a': scenario.name: is "a', which is not a TOML value - write text in quotes: 'scenario.name="..."'
)");
}

class BadDataFiles : public FolderTest {};

TEST_F(BadDataFiles, AreRefused) {
  write("good.csv", "1,2,3,4,5\n6,7,8,9,0\n");
  write("one.csv", "1\n2\n");
  write("text.csv", "1,2\n3,x\n");
  write("large.csv", "1,2,3,4\n1,2,3,1e9\n");
  write("far.csv", "1,2,500001,4\n1,3,499999,5\n");
  // In float32 both rows are 500000.
  write("lost.csv", "1,500000.0009765625\n1,499999.9990234375\n");
  write("cut.npy", "\x93NUM");
  expect_refusals(R"(
5 design = { law = "file", path = "missing.csv" }
! s.toml:5:33: data.design.path: DIR/missing.csv: cannot be opened: No such file or directory
5 design = { law = "file", path = "text.csv" }
! s.toml:5:33: data.design.path: DIR/text.csv:2: cell 2 is not a number: "x"
5 design = { law = "file", path = "cut.npy" }
! s.toml:5:33: data.design.path: DIR/cut.npy: is not an NPY file: it begins with other bytes
5 design = { law = "file", path = "" }
! s.toml:5:33: data.design.path: is empty
5 design = { law = "file", path = "good.csv", columns = [0, 7] }
! s.toml:5:55: data.design.columns: names column 7, the file has columns 0 to 4
5 design = { law = "file", path = "good.csv", columns = [0, 0.5] }
! s.toml:5:55: data.design.columns: has 0.5, needs whole numbers
5 design = { law = "file", path = "good.csv", columns = [1, 1] }
! s.toml:5:55: data.design.columns: names column 1 twice
5 design = { law = "file", path = "large.csv" }
! s.toml:5:33: data.design.path: file has 1000000000 in row 1, must be in [-1000000, 1000000] - try standardise = true
5 design = { law = "file", path = "far.csv" }
! s.toml:5:33: data.design.path: column 2 has mean 500000 and standard deviation 1, a ratio of 500000 (allowed: 16384, points are float32) - write standardise = true, or subtract the mean in the file
5 design = { law = "file", path = "lost.csv" }
! s.toml:5:33: data.design.path: column 1 has mean 500000 and standard deviation 0.0009765625, a ratio of 512000000 (allowed: 16384, points are float32) - write standardise = true, or subtract the mean in the file
5 design = { law = "file", path = "good.csv", standardize = true }
! s.toml:5:45: data.design.standardize: unknown key (allowed: law, path, columns, standardise, header) - did you mean "standardise"?
6 regression = { law = "file", column = 0 }
! s.toml:6:22: data.regression.law: is "file", which needs a design of law "file" to go with
5 design = { law = "file", path = "good.csv" }
6 regression = { law = "file", column = 9 }
! s.toml:6:39: data.regression.column: names column 9, the file has columns 0 to 4
5 design = { law = "file", path = "good.csv" }
6 regression = { law = "file", column = 0 }
! s.toml:15:7: queries.law: must be "design": a regression of law "file" is known at the rows of the file only - or give the truth at the points
5 design = { law = "file", path = "one.csv" }
6 regression = { law = "file", column = 0 }
15 law = "design"
16 count = 3
! s.toml:5:33: data.design.path: file has no column except the regression's
)",
                  folder_.string());
}

}  // namespace
}  // namespace headlab
