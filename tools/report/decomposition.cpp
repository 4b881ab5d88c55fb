// SPDX-License-Identifier: Apache-2.0
/// \file Squared bias, variance and covariance stacked, condition by condition.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine/files/words.h"
#include "tools/report/figure.h"
#include "tools/report/labels.h"
#include "tools/report/sweep.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_bars = 32, max_rows = 100;
constexpr double mark_height = 7;  ///< of the mark above a bar
constexpr double label_gap = 6;    ///< below a label above its bar: the mark covers no descender
constexpr double bar_height = 15, bar_step = mark_height + bar_height + 3;

using Terms = std::vector<Component>;

struct Stack {
  std::size_t condition;
  std::string label;
  double mse;
  std::vector<double> terms = {};
  bool whole() const {
    return std::isfinite(mse) &&
           std::ranges::all_of(terms, [](double term) { return std::isfinite(term); });
  }
  double below() const {
    double sum = 0;
    for (const double one : terms) sum += std::min(one, 0.0);
    return sum;
  }
  double above() const {
    double sum = 0;
    for (const double one : terms) sum += std::max(one, 0.0);
    return sum;
  }
};

/// Those of the conditions that have all terms of the error.
std::vector<Stack> stacks_of(const Value::Array& conditions, const Sweep& sweep,
                             const Terms& terms) {
  std::vector<Stack> stacks;
  for (std::size_t c = 0; c < conditions.size(); ++c) {
    const Value& condition = conditions[c];
    Stack stack{.condition = c,
                .label = sweep.condition_text(c),
                .mse = estimate_of(member(condition, "mse")).value};
    for (const Component& term : terms) {
      stack.terms.push_back(estimate_of(member(condition, term.key)).value);
    }
    if (stack.whole()) stacks.push_back(stack);
  }
  return stacks;
}

/// Hatching that tells the terms apart without their colour.
void hatch(Canvas& canvas, std::size_t color, const Box& box) {
  if (color == 2) return;
  std::string data;
  const auto add = [&](Point from, Point to) {
    data += formatted("M%.1f %.1fL%.1f %.1f", from.x, from.y, to.x, to.y);
  };
  constexpr double gap = 7;
  for (double x = std::ceil(box.left / gap) * gap; x < box.right; x += gap) {
    if (color == 3) {
      add({x, box.top}, {x, box.bottom});
    } else if (x + box.height() * 0.5 < box.right) {
      add({x, box.bottom}, {x + box.height() * 0.5, box.top});
    }
  }
  if (!data.empty()) canvas.path(data, "hatch");
}

/// An arrowhead whose point is at `at`: it stands above what it marks and covers none of it.
void draw_sum(Canvas& canvas, Point at) {
  canvas.polygon({at, {at.x - 4.5, at.y - mark_height}, {at.x + 4.5, at.y - mark_height}},
                 "mark c0");
}

Canvas draw_stacks(const std::vector<Stack>& stacks, const Terms& terms, double width) {
  double widest = 40;
  double low = 0, high = 0;
  std::vector<std::string> texts;
  for (const Stack& stack : stacks) texts.push_back(stack.label);
  texts = labels_in_lines(texts, characters_in(width - 40), 2);
  double tallest = text_height("");
  for (const std::string& text : texts) {
    widest = std::max(widest, text_width(text));
    tallest = std::max(tallest, text_height(text));
  }
  for (const Stack& stack : stacks) {
    low = std::min(low, stack.below());
    high = std::max(high, std::max(stack.above(), stack.mse));
  }
  const bool labels = stacks.size() > 1;
  // Labels that would take more than half of the width stand above their bars.
  const bool over = labels && widest > width / 2;
  const double left = labels && !over ? 16 + widest : 20;
  const double label_height = over ? tallest + label_gap : 0;
  const double step = bar_step + label_height;
  // The key, on a second line where it has no room on one.
  Point place = {20, 6};
  std::vector<Point> keys;
  for (const Component& term : terms) {
    const double room = 46 + text_width(term.name);
    if (place.x + room > width && place.x > 20) place = {20, place.y + 20};
    keys.push_back(place);
    place.x += room;
  }
  if (place.x + 18 + text_width("MSE") > width) place = {20, place.y + 20};
  const double top = place.y + 28;
  const double bottom = top + step * static_cast<double>(stacks.size());
  Canvas canvas(width, bottom + 42);
  const Axes axes{{left, top, width - 20, bottom},
                  Scale(ScaleKind::linear, low, high * 1.02, left, width - 20),
                  {}};
  for (std::size_t t = 0; t < terms.size(); ++t) {
    const Box key{keys[t].x, keys[t].y, keys[t].x + 22, keys[t].y + 14};
    canvas.rectangle(key, "area c" + std::to_string(terms[t].color));
    hatch(canvas, terms[t].color, key);
    canvas.text({keys[t].x + 28, keys[t].y + 11}, terms[t].name, "start", "label");
  }
  draw_sum(canvas, {place.x + 6, place.y + 7 + mark_height / 2});
  canvas.text({place.x + 18, place.y + 11}, "MSE", "start", "label");

  for (const Tick& tick : axes.x.ticks(6)) {
    canvas.line({axes.x(tick.value), top}, {axes.x(tick.value), bottom}, "grid");
  }
  draw_x_axis(canvas, axes, {"mean squared error", axes.x.ticks(6)});
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    const double y = top + step * static_cast<double>(i) + label_height;
    if (over) {
      canvas.text({left, y - label_gap + 2 - (text_height(texts[i]) - text_height(""))}, texts[i],
                  "start", "halo label");
    } else if (labels) {
      canvas.text({left - 8, y + mark_height + bar_height / 2 + 4}, texts[i], "end", "label");
    }
    double above = 0, below = 0;
    for (std::size_t t = 0; t < terms.size(); ++t) {
      const double term = stacks[i].terms[t];
      double& from = term < 0 ? below : above;
      const double a = axes.x(from), b = axes.x(from + term);
      from += term;
      const Box bar{std::min(a, b), y + mark_height, std::max(a, b), y + mark_height + bar_height};
      if (bar.width() < 0.05) continue;
      canvas.rectangle(bar, "area c" + std::to_string(terms[t].color));
      hatch(canvas, terms[t].color, bar);
    }
    draw_sum(canvas, {axes.x(stacks[i].mse), y + mark_height});
  }
  if (low < 0) canvas.line({axes.x(0), top}, {axes.x(0), bottom}, "axis");
  return canvas;
}

/// "bias² is 57 %, variance 33 % and covariance 9.9 %"
std::string shares_text(const Stack& stack, const Terms& terms) {
  std::string text;
  for (std::size_t t = 0; t < terms.size(); ++t) {
    if (t > 0) text += t + 1 == terms.size() ? " and " : ", ";
    text += terms[t].name + std::string(t == 0 ? " is " : " ") +
            percent_text(stack.terms[t] / stack.mse);
  }
  return text;
}

}  // namespace

std::vector<Picture> decomposition_figures(const Source& source) {
  const Value::Array& conditions = source.shown_conditions();
  const Sweep sweep = sweep_of(conditions);
  Terms terms = components_of(conditions);
  terms.erase(terms.begin());  // the MSE itself
  const std::vector<Stack> all = stacks_of(conditions, sweep, terms);
  if (all.empty()) return {};
  const Stack* best = &*std::ranges::min_element(all, {}, &Stack::mse);
  // Few conditions have bars, and of many these alone have rows: what the caption says is in both.
  std::vector<std::size_t> numbers = sweep.thinned(max_bars);
  numbers.push_back(best->condition);
  std::vector<Stack> shown;
  std::ranges::copy_if(all, std::back_inserter(shown), [&](const Stack& stack) {
    return std::ranges::find(numbers, stack.condition) != numbers.end();
  });
  std::vector<std::size_t> drawn;
  for (const Stack& stack : shown) drawn.push_back(stack.condition);
  Table table{.caption = "Shares of the MSE", .headings = {"condition", "MSE"}};
  for (const Component& term : terms) table.headings.emplace_back(term.name);
  for (const Stack& stack : all.size() > max_rows ? shown : all) {
    std::vector<std::string> row = {stack.label.empty() ? "the only condition" : stack.label,
                                    measured_number(stack.mse)};
    for (const double term : stack.terms) row.push_back(percent_text(term / stack.mse));
    table.rows.push_back(row);
  }
  const std::string where = best->label.empty()
                                ? "Of the MSE of " + measured_number(best->mse) + ", "
                                : "At " + best->label + ", where the MSE is smallest (" +
                                      measured_number(best->mse) + "), ";
  const std::string finding = best->mse > 0
                                  ? where + shares_text(*best, terms) + "."
                                  : "The smallest MSE is not positive, so that it has no shares.";
  const bool negative =
      std::ranges::any_of(shown, [](const Stack& stack) { return stack.below() < 0; });
  return {{.title = "Decomposition of the error",
           .finding = finding,
           .draw = [=](double width) { return draw_stacks(shown, terms, width); },
           .table = std::move(table),
           .note = sentences(
               {negative ? "Terms below 0 stand to the left of it, and the mark is the sum." : "",
                sweep.shows_text(drawn, conditions.size())})}};
}

}  // namespace headlab::tools
