// SPDX-License-Identifier: Apache-2.0
#include "tools/report/labels.h"

#include <cmath>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "tools/report/curves_figure.h"
#include "tools/report/figure.h"
#include "tools/report/heat_map.h"
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
  // Places of a difference may be far apart.
  EXPECT_EQ(
      distinct_labels(
          {head + "1" + tail + "1" + tail, head + "1" + tail + "2" + tail, head + "2" + tail}, 16),
      (Texts{"…xxx1yyy…yyy1yy…", "…xxx1yyy…yyy2yy…", "…xxx2yyy…yyyyyyy"}));
  // Where there are more of them than have room their numbers tell them apart.
  Texts many;
  for (std::size_t bits = 0; bits < 32; ++bits) {
    std::string text;
    for (int bit = 0; bit < 5; ++bit) text += head + ((bits >> bit & 1) == 0 ? "1" : "2");
    many.push_back(text);
  }
  const Texts numbered = distinct_labels(many, 16);
  EXPECT_EQ(std::set(numbered.begin(), numbered.end()).size(), many.size());
  EXPECT_TRUE(numbered.back().ends_with(" #31")) << numbered.back();
  for (const std::string& one : numbered) EXPECT_LE(character_count(one), 16u) << one;
}

TEST(Labels, HaveLinesOfWholeWords) {
  EXPECT_EQ(in_lines("student_t df=3 scale=0.5", 14), "student_t df=3\nscale=0.5");
  EXPECT_EQ(in_lines("abcdefgh ij", 5), "abcde\nfgh\nij");
  EXPECT_EQ(in_lines("", 5), "");
  EXPECT_EQ(in_lines("smooth cosines, sd 0.3, haar", 18), "smooth cosines,\nsd 0.3, haar");
  EXPECT_EQ(labels_in_lines({"a first=1 last=1", "a first=1 last=2"}, 9, 2),
            (Texts{"a first=1\nlast=1", "a first=1\nlast=2"}));
  // Too long for its lines a text is shortened.
  const Texts shorter =
      labels_in_lines({std::string(50, 'x') + "1", std::string(50, 'x') + "2"}, 14, 2);
  for (const std::string& one : shorter) {
    EXPECT_LE(std::ranges::count(one, '\n'), 1) << one;
    EXPECT_LE(text_width(one), text_width(std::string(14, 'x'))) << one;
  }
  EXPECT_NE(shorter[0], shorter[1]);
}

TEST(Labels, AreCutBetweenWords) {
  EXPECT_EQ(
      labels_in_lines({"heads of dimension 8 have less error than heads of dimension 2, sharper",
                       "heads of dimension 16 have less bias than heads of dimension 8, sharper"},
                      34, 2),
      (Texts{"heads of dimension 8 have less …\nthan heads of dimension 2, sharper",
             "heads of dimension 16 have less …\nthan heads of dimension 8, sharper"}));
  // Within words where that alone tells them apart.
  const Texts alike = labels_in_lines({"alpha beta gamma delta one epsilon zeta eta",
                                       "alpha beta gamma delta two epsilon zeta eta"},
                                      12, 2);
  EXPECT_NE(alike[0], alike[1]);
}

/// A map of 84 mm over two keys of a sweep.
Canvas small_map(const SweptKey& x, const SweptKey& y) {
  FigureMap map{.title = "mse", .x_title = x.words(), .y_title = y.words()};
  for (const Level& level : x.levels) map.x.push_back(level.text);
  for (const Level& level : y.levels) map.y.push_back(level.text);
  map.values.assign(map.x.size() * map.y.size(), 0.5);
  return draw_map(map, 357);
}

TEST(Labels, OfALegendHaveTwoLines) {
  const std::string text = "design normal, subspaces orthogonal, points (1, 0, 0, 0)";
  Canvas canvas(368, 100);
  const double one = draw_legend(canvas, {{0, "short"}});
  EXPECT_GT(draw_legend(canvas, {{0, text}}), one);
  const std::string svg = canvas.svg("id", "title", "words");
  EXPECT_NE(svg.find(">design normal, subspaces orthogonal,<"), std::string::npos) << svg;
  EXPECT_EQ(svg.find("…"), std::string::npos) << svg;
}

TEST(Labels, OfNestedSettingsNameEveryLevel) {
  const std::vector<std::string> levels = {"gaussian bandwidth=0.4", "gaussian bandwidth=0.8",
                                           "epanechnikov"};
  FigureCurve curve{.name = ""};
  for (const double x : {0.0, 1.0, 2.0}) {
    curve.x.push_back(x);
    curve.y.push_back({.value = 1 + x});
    curve.computed.push_back(NAN);
  }
  NestedPicture picture{.y_title = "mse", .keys = {}, .curves = {}};
  picture.keys.push_back({"kernel", levels, {0, 1, 2}});
  picture.curves.push_back(curve);
  const std::string svg = draw_nested(picture, 357).svg("id", "", "");
  EXPECT_EQ(svg.find("…"), std::string::npos) << svg;
  for (const std::string& level : levels) EXPECT_NE(svg.find(level), std::string::npos) << level;
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
    std::string& label = labels.emplace_back();
    bool in_tag = false;
    for (const char c : svg.substr(begin, svg.find("</text>", begin) - begin)) {
      in_tag = c == '<' || (in_tag && c != '>');
      if (!in_tag && c != '>') label += c;
    }
  }
  return labels;
}

TEST(Labels, OfRandomSweepsAreDistinct) {
  std::mt19937_64 random(7);
  std::size_t alike_when_cut = 0, labels = 0, maps = 0;
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
    const Sweep swept = sweep_of(source.shown_conditions());
    for (std::size_t k = 0; k + 1 < swept.keys.size(); ++k) {
      for (const auto& [x, y] : {std::pair(k, k + 1), std::pair(k + 1, k)}) {
        const SweptKey &of_columns = swept.keys[x], &of_rows = swept.keys[y];
        const Texts all = labels_of(small_map(of_columns, of_rows));
        EXPECT_EQ(all.size(), of_columns.levels.size() + of_rows.levels.size()) << sweep;
        for (const auto& [from, to] : {std::pair(std::size_t{0}, of_rows.levels.size()),
                                       std::pair(of_rows.levels.size(), all.size())}) {
          const std::set<std::string> distinct(all.begin() + static_cast<std::ptrdiff_t>(from),
                                               all.begin() + static_cast<std::ptrdiff_t>(to));
          EXPECT_EQ(distinct.size(), to - from) << sweep << ": " << swept.keys[x].key;
        }
        for (const std::string& one : all) {
          EXPECT_EQ(one.find('#'), std::string::npos) << sweep << ": " << one;
        }
        ++maps;
      }
    }
    for (const SweptKey& key : swept.keys) {
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
  EXPECT_GT(maps, 300u);
  EXPECT_GT(alike_when_cut, 20u);  // the control: their beginnings do not tell values apart
}

}  // namespace
}  // namespace headlab::tools
