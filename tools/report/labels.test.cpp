// SPDX-License-Identifier: Apache-2.0
#include "tools/report/labels.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

#include "tools/report/figure.h"
#include "tools/report/markup.h"
#include "tools/report/sweep.h"

namespace headlab::tools {
namespace {

using Texts = std::vector<std::string>;

TEST(Labels, AreShortenedInTheMiddle) {
  EXPECT_EQ(shortened_in_the_middle("abcdefgh", 8), "abcdefgh");
  EXPECT_EQ(shortened_in_the_middle("abcdefghi", 8), "abcd…ghi");
  EXPECT_EQ(shortened_in_the_middle("äöüäöüäöü", 5), "äö…öü");
}

TEST(Labels, KeepTheirDifference) {
  EXPECT_EQ(distinct_labels({"n 20", "n 40"}, 20), (Texts{"n 20", "n 40"}));
  const std::string head(40, 'x'), tail(40, 'y');
  const Texts labels = distinct_labels({head + "1" + tail, head + "2" + tail, "z"}, 16);
  EXPECT_EQ(labels, (Texts{"…xxx1yyy…yyyyyyy", "…xxx2yyy…yyyyyyy", "z"}));
  // A text that is given twice has one label.
  EXPECT_EQ(distinct_labels({tail, tail}, 16), (Texts{"yyyyyyyy…yyyyyyy", "yyyyyyyy…yyyyyyy"}));
  // Where they differ in two places far apart their numbers tell them apart.
  const Texts apart = distinct_labels(
      {head + "1" + tail + "1" + tail, head + "1" + tail + "2" + tail, head + "2" + tail}, 16);
  EXPECT_EQ(std::set(apart.begin(), apart.end()).size(), 3u);
  for (const std::string& one : apart) EXPECT_LE(character_count(one), 16u) << one;
}

/// A run of a random sweep: two to four keys of two to four values, crossed.
Source random_sweep(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const auto number = [&](std::uint64_t n) { return std::to_string(1 + below(n)); };
  const std::string same(60, 'a');
  using Draw = std::function<std::string()>;
  const std::vector<std::pair<std::string, Draw>> keys = {
      {"n", [&] { return number(5000); }},
      {"bandwidth", [&] { return "0." + number(1000000000); }},
      {"points",
       [&] {
         std::string point;
         for (int i = 0; i < 6; ++i) point += (i ? "," : "") + number(3);
         return "[[" + point + "]]";
       }},
      {"design",
       [&] { return R"({"law": "file", "path": ")" + same + number(900) + same + R"(.npy"})"; }},
      {"subspaces",
       [&] {
         return R"({"law": "angles", "angles": [0.5, 0.25, )" + number(99) + ", 0.5, 0.25, " +
                number(3) + ", 0.25]}";
       }},
      {"regression",
       [&] { return R"-({"law": "formula", "formula": "sin()-" + number(700) + R"-(*x1)"})-"; }},
      {"words", [&] { return "\"" + same + number(800) + "b" + same + "\""; }},
  };
  std::vector<std::size_t> some;
  while (some.size() < 2 + below(3)) {
    const std::size_t one = below(keys.size());
    if (std::ranges::find(some, one) == some.end()) some.push_back(one);
  }
  std::vector<Texts> levels;
  for (const std::size_t key : some) {
    std::set<std::string> values;
    const std::size_t count = 2 + below(3);
    while (values.size() < count) values.insert(keys[key].second());
    levels.emplace_back(values.begin(), values.end());
  }
  std::string text = R"({"headlab": {}, "results_id": "x", "conditions": [)";
  std::size_t all = 1;
  for (const Texts& of_key : levels) all *= of_key.size();
  for (std::size_t c = 0; c < all; ++c) {
    text += std::string(c ? "," : "") + R"({"parameters": {"heads": {"count": 2})";
    for (std::size_t k = 0, rest = c; k < some.size(); rest /= levels[k].size(), ++k) {
      text += ", \"" + keys[some[k]].first + "\": " + levels[k][rest % levels[k].size()];
    }
    text += R"(}, "mse": {"value": 3, "mcse": 0.1}, "bias_squared": {"value": 1, "mcse": 0.1},
      "variance_term": {"value": 1, "mcse": 0.1}, "covariance_term": {"value": 1, "mcse": 0.1},
      "queries": [{"head_covariance": [[2, 1], [1, 2]]}]})";
  }
  Source source = read_document(text + "]}", "a random sweep").value();
  for (const std::size_t c : precision_conditions(all)) {
    source.precision.push_back(
        {c, {{320, 40, {.value = 3, .mcse = 0.1}}, {640, 80, {.value = 3, .mcse = 0.07}}}});
  }
  return source;
}

/// The texts of a picture that tell what its parts stand for.
Texts labels_of(const Canvas& canvas) {
  const std::string svg = canvas.svg("id", "title", "description");
  Texts labels;
  for (std::size_t at = svg.find("label\""); at != std::string::npos;
       at = svg.find("label\"", at + 1)) {
    const std::size_t begin = svg.find('>', at) + 1;
    labels.push_back(svg.substr(begin, svg.find('<', begin) - begin));
  }
  return labels;
}

TEST(Labels, OfRandomSweepsAreDistinct) {
  std::mt19937_64 random(7);
  std::size_t alike_when_cut = 0, labels = 0;
  for (int sweep = 0; sweep < 200; ++sweep) {
    const Source source = random_sweep(random);
    for (const Picture& picture : figures_of(source)) {
      for (const double width : {page_width, 357.0}) {
        const Texts all = labels_of(picture.draw(width));
        const std::set<std::string> distinct(all.begin(), all.end());
        EXPECT_EQ(distinct.size(), all.size()) << sweep << ": " << picture.title;
        labels += all.size();
      }
    }
    for (const SweptKey& key : sweep_of(source.shown_conditions()).keys) {
      std::set<std::string> distinct, cut;
      for (const Level& level : key.levels) {
        distinct.insert(level.text);
        cut.insert(shortened(level.text, 24));
      }
      EXPECT_EQ(distinct.size(), key.levels.size()) << sweep << ": " << key.key;
      alike_when_cut += cut.size() < key.levels.size();
    }
  }
  EXPECT_GT(labels, 2000u);
  EXPECT_GT(alike_when_cut, 20u);  // the control: their beginnings do not tell values apart
}

}  // namespace
}  // namespace headlab::tools
