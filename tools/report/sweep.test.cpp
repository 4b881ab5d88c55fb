// SPDX-License-Identifier: Apache-2.0
#include "tools/report/sweep.h"

#include <set>

#include <gtest/gtest.h>

#include "engine/scenario/condition.h"
#include "tools/report/figure.h"

namespace headlab::tools {
namespace {

Value::Array conditions_of(const std::vector<std::string>& parameters) {
  Value::Array all;
  for (const std::string& one : parameters) {
    all.push_back(parse_json("{\"parameters\": " + one + "}", MemberOrder::of_file).value());
  }
  return all;
}

TEST(Sweep, FindsNothingWhereNothingDiffers) {
  EXPECT_TRUE(sweep_of({}).keys.empty());
  EXPECT_TRUE(sweep_of(conditions_of({R"({"n": 1})"})).keys.empty());
  EXPECT_TRUE(sweep_of(conditions_of({R"({"n": 1})", R"({"n": 1})"})).keys.empty());
}

TEST(Sweep, OrdersNumbersAndKeepsLawsTogether) {
  const Sweep sweep = sweep_of(conditions_of({
      R"({"n": 200, "s": {"law": "haar", "seed": 1}})",
      R"({"n": 50, "s": {"law": "haar", "seed": 1}})",
      R"({"n": 200, "s": {"law": "angles", "angles": [1, 2]}})",
      R"({"n": 50, "s": {"law": "angles", "angles": [1, 2]}})",
  }));
  ASSERT_EQ(sweep.keys.size(), 2u);
  EXPECT_EQ(sweep.keys[0].key, "n");
  EXPECT_TRUE(sweep.keys[0].numeric);
  EXPECT_EQ(sweep.keys[0].levels[0].number, 50);
  EXPECT_EQ(sweep.keys[1].key, "s");
  EXPECT_FALSE(sweep.keys[1].numeric);
  EXPECT_EQ(sweep.keys[1].levels[1].text, "angles");
  EXPECT_EQ(sweep.condition_text(1), "n 50, s = haar");
}

TEST(Sweep, TellsLawsOfOneNameApartByWhatDiffers) {
  const Sweep sweep = sweep_of(conditions_of({R"({"x": {"law": "a", "p": 1, "q": 5}, "y": 1})",
                                              R"({"x": {"law": "a", "p": 2, "q": 5}, "y": 2})"}));
  ASSERT_EQ(sweep.keys.size(), 1u);  // y moves along
  EXPECT_EQ(sweep.keys[0].title(), "x.p (with y)");
  const Value one = parse_json(R"({"law": "a", "p": 1, "q": 5})").value();
  const Value two = parse_json(R"({"law": "a", "p": 2, "q": 5})").value();
  const Value three = parse_json(R"({"law": "b"})").value();
  EXPECT_EQ(level_texts({&one, &two, &three}), (std::vector<std::string>{"a p 1", "a p 2", "b"}));
}

TEST(Sweep, WritesNumbersWithAMinusSign) {
  const Value one = parse_json("[-1.5, 0]").value(), two = parse_json("[0, -2e-7]").value();
  EXPECT_EQ(level_texts({&one, &two}), (std::vector<std::string>{"(−1.5, 0)", "(0, −2e−07)"}));
  const Value three = parse_json("-3").value(), four = parse_json("\"a-b\"").value();
  EXPECT_EQ(level_texts({&three, &four}), (std::vector<std::string>{"−3", "a-b"}));
}

TEST(Sweep, LabelsMakeTheAxis) {
  const Sweep sweep = sweep_of(conditions_of(
      {R"({"n": 50, "labels": {"size": "small"}})", R"({"n": 200, "labels": {"size": "large"}})"}));
  ASSERT_EQ(sweep.keys.size(), 1u);
  EXPECT_EQ(sweep.keys[0].title(), "labels.size (with n)");
  EXPECT_EQ(sweep.condition_text(1), "size = large");
  // Of other texts the number does.
  const Sweep other = sweep_of(
      conditions_of({R"({"n": 50, "a": {"size": "s"}})", R"({"n": 200, "a": {"size": "l"}})"}));
  EXPECT_EQ(other.keys.at(0).key, "n");
}

TEST(Sweep, TakesAnArrayOfOneNumberForThatNumber) {
  const Sweep sweep = sweep_of(conditions_of({R"({"a": [0.5, 0.5]})", R"({"a": [0.25, 0.25]})"}));
  ASSERT_EQ(sweep.keys.size(), 1u);
  EXPECT_TRUE(sweep.keys[0].numeric);
  const Sweep other = sweep_of(conditions_of({R"({"a": [0.5, 0.6]})", R"({"a": [0.25, 0.25]})"}));
  EXPECT_FALSE(other.keys.at(0).numeric);
  // Of arrays of several lengths each is what was written.
  const Sweep lengths = sweep_of(conditions_of({R"({"a": [0.5, 0.5]})", R"({"a": [1.0]})"}));
  EXPECT_FALSE(lengths.keys.at(0).numeric);
  EXPECT_EQ(lengths.condition_text(0), "a = (0.5, 0.5)");
  const Sweep mixed = sweep_of(conditions_of({R"({"a": [30, 30]})", R"({"a": 60})"}));
  EXPECT_TRUE(mixed.keys.at(0).numeric);
  const Sweep alike =
      sweep_of(conditions_of({R"({"a": [0.123456789123456, 0.12345678912345, 1]})",
                              R"({"a": [0.123456789123456, 0.12345678912345, 2]})"}));
  EXPECT_NE(alike.condition_text(0), alike.condition_text(1));
}

TEST(Sweep, LaysManyConditionsOutInFewPanels) {
  std::vector<std::string> parameters;
  for (int a = 0; a < 100; ++a) {
    for (int b = 0; b < 20; ++b) {
      parameters.push_back("{\"a\": " + std::to_string(a) + ", \"b\": " + std::to_string(b) + "}");
    }
  }
  const Sweep sweep = sweep_of(conditions_of(parameters));
  const Layout layout = layout_of(sweep, 6, 30);
  ASSERT_EQ(layout.panels.size(), 6u);
  EXPECT_EQ(layout.along->key, "a");
  EXPECT_EQ(layout.panels[0].conditions.size(), 30u);
  EXPECT_EQ(layout.panels[0].title, "b 0");
  EXPECT_EQ(layout.panels[5].title, "b 19");
  EXPECT_EQ(layout.left_out, "Shows 180 of 2000 conditions.");
  EXPECT_EQ(layout_of(sweep, 100, 1000).left_out, "");
}

TEST(Sweep, SaysWhichConditionsAreShown) {
  const Sweep sweep = sweep_of(
      conditions_of({"{\"n\": 1}", "{\"n\": 2}", "{\"n\": 3}", "{\"n\": 4}", "{\"n\": 5}"}));
  EXPECT_EQ(sweep.shows_text({0, 1, 2, 3, 4}, 5), "");
  EXPECT_EQ(sweep.shows_text({0, 2, 4}, 5), "Shows 3 of 5 conditions, without n 2 and n 4.");
  EXPECT_EQ(sweep.shows_text({0, 1, 3, 4}, 5), "Shows 4 of 5 conditions, without n 3.");
  EXPECT_EQ(sweep.shows_text({3}, 5), "Shows 1 of 5 conditions, n 4.");
  EXPECT_EQ(sweep.shows_text({0, 4}, 6), "Shows 2 of 6 conditions.");
  EXPECT_EQ(sweep.shows_text({0, 4}, 60), "Shows 2 of 60 conditions.");
}

TEST(Sweep, ThinsEveryKeySoThatGroupsCompare) {
  std::vector<std::string> parameters;
  for (int a = 0; a < 20; ++a) {
    for (int b = 0; b < 5; ++b) {
      parameters.push_back("{\"a\": " + std::to_string(a) + ", \"b\": " + std::to_string(b) + "}");
    }
  }
  const Sweep sweep = sweep_of(conditions_of(parameters));
  const auto is_crossed = [&](const std::vector<std::size_t>& some) {
    std::set<std::size_t> a, b;
    for (const std::size_t c : some) a.insert(sweep.places[c][0]), b.insert(sweep.places[c][1]);
    return a.size() * b.size() == some.size() && a.contains(0) && a.contains(19) && b.contains(0) &&
           b.contains(4);
  };
  const std::vector<std::size_t> some = sweep.thinned(32);
  EXPECT_LE(some.size(), 32u);
  EXPECT_GT(some.size(), 20u);
  EXPECT_TRUE(is_crossed(some));
  EXPECT_FALSE(is_crossed(spread(100, 32)));  // the control
  EXPECT_EQ(sweep.thinned(1000).size(), 100u);
  EXPECT_EQ(sweep.thinned(3).size(), 3u);
}

TEST(Sweep, SpreadsConditionsThatVaryOneKeyAtATime) {
  const Sweep sweep = sweep_of(conditions_of(
      {R"({"a": 0, "b": 1, "c": 1})", R"({"a": 1, "b": 0, "c": 1})", R"({"a": 1, "b": 1, "c": 0})",
       R"({"a": 1, "b": 1, "c": 1})", R"({"a": 1, "b": 1, "c": 2})", R"({"a": 1, "b": 2, "c": 1})",
       R"({"a": 2, "b": 1, "c": 1})"}));
  ASSERT_EQ(sweep.keys.size(), 3u);
  EXPECT_EQ(sweep.thinned(6), spread(7, 6));
}

TEST(Sweep, HasPanelsOfEvenlySpreadLevelsOfEveryKey) {
  std::vector<std::string> parameters;
  for (const char* law : {"gaussian", "laplace", "epanechnikov"}) {
    for (const char* bandwidth : {"0.4", "0.6", "0.8"}) {
      for (const char* n : {"100", "200", "400"}) {
        parameters.push_back(std::string(R"({"n": )") + n + R"(, "kernel": {"law": ")" + law +
                             R"(", "bandwidth": )" + bandwidth + "}}");
      }
    }
  }
  const Sweep sweep = sweep_of(conditions_of(parameters));
  const Layout layout = layout_of(sweep, 6, 60);
  std::vector<std::string> titles;
  for (const Panel& panel : layout.panels) titles.push_back(panel.title);
  EXPECT_EQ(titles,
            (std::vector<std::string>{
                "kernel = gaussian, bandwidth 0.4", "kernel = gaussian, bandwidth 0.6",
                "kernel = gaussian, bandwidth 0.8", "kernel = epanechnikov, bandwidth 0.4",
                "kernel = epanechnikov, bandwidth 0.6", "kernel = epanechnikov, bandwidth 0.8"}));
  // Laws with bandwidths of their own are one key.
  const Sweep own = sweep_of(conditions_of({R"({"kernel": {"law": "gaussian", "bandwidth": 1}})",
                                            R"({"kernel": {"law": "gaussian", "bandwidth": 2}})",
                                            R"({"kernel": {"law": "laplace", "bandwidth": 3}})"}));
  ASSERT_EQ(own.keys.size(), 1u);
  EXPECT_EQ(own.condition_text(0), "kernel = gaussian bandwidth 1");
}

TEST(Sweep, LeavesOutWhatAllShare) {
  const Sweep sweep = sweep_of(
      conditions_of({R"({"a": 1, "b": 1})", R"({"a": 1, "b": 2})", R"({"a": 2, "b": 3})"}));
  EXPECT_EQ(sweep.condition_texts({0, 1}), (std::vector<std::string>{"b 1", "b 2"}));
  EXPECT_EQ(sweep.condition_texts({0, 2}), (std::vector<std::string>{"a 1, b 1", "a 2, b 3"}));
  EXPECT_EQ(sweep.condition_texts({1}), (std::vector<std::string>{"a 1, b 2"}));
}

TEST(Sweep, SaysOfWhatANumberIs) {
  const Sweep sweep =
      sweep_of(conditions_of({R"({"heads": {"count": 1}, "queries": {"count": 8}})",
                              R"({"heads": {"count": 2}, "queries": {"count": 9}})",
                              R"({"heads": {"count": 1}, "queries": {"count": 9}})"}));
  EXPECT_EQ(sweep.condition_text(1), "H 2, queries count 9");
}

TEST(Sweep, NamesAxesInWordsWithUnits) {
  EXPECT_EQ(axis_title("data.n"), "training points n");
  EXPECT_EQ(axis_title("heads.subspaces.angle"), "angle (rad)");
  EXPECT_EQ(axis_title("data.noise.sd"), "standard deviation");
  EXPECT_EQ(axis_title("data.regression.frequency"), "frequency");  // radians a unit of x
  EXPECT_EQ(axis_title("heads.kernel.bandwidth"), "bandwidth");
}

TEST(Sweep, HasRoundNumbersAlongAnAxis) {
  const auto labels = [](ScaleKind kind, double low, double high, const std::vector<double>& of) {
    std::vector<std::string> all;
    for (const Tick& tick : ticks_for(Scale(kind, low, high, 0, 300), of))
      all.push_back(tick.label);
    return all;
  };
  EXPECT_EQ(labels(ScaleKind::logarithmic, 18, 440, {20, 40, 110, 400}),
            (std::vector<std::string>{"20", "50", "100", "200"}));
  EXPECT_EQ(labels(ScaleKind::logarithmic, 95, 423, {100, 200, 400}),
            (std::vector<std::string>{"100", "200", "300", "400"}));
  EXPECT_EQ(labels(ScaleKind::linear, 0.9, 3.1, {1, 2, 3}),
            (std::vector<std::string>{"1", "2", "3"}));
  // The control: of numbers that are not whole there are ticks between.
  EXPECT_EQ(labels(ScaleKind::linear, 0.9, 3.1, {1, 2.5, 3}),
            (std::vector<std::string>{"1.0", "1.5", "2.0", "2.5", "3.0"}));
}

TEST(Sweep, SpreadsFromTheFirstToTheLast) {
  EXPECT_EQ(spread(10, 4), (std::vector<std::size_t>{0, 3, 6, 9}));
  EXPECT_EQ(spread(3, 5), (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_TRUE(spread(0, 5).empty());
}

}  // namespace
}  // namespace headlab::tools
