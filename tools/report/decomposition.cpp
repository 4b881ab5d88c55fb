// SPDX-License-Identifier: Apache-2.0
/// \file Squared bias, variance and covariance stacked, condition by condition.
#include <algorithm>
#include <cmath>

#include "engine/files/words.h"
#include "tools/cli/figure_text.h"
#include "tools/report/figure.h"
#include "tools/report/sweep.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_bars = 32;
constexpr double bar_step = 22;
constexpr std::size_t longest_bar_label = 40;

const Component& term_of_error(std::size_t t) {
  return error_components()[1 + t];
}

struct Stack {
  std::string label;
  double mse;
  double terms[3];
  bool whole() const {
    return std::isfinite(mse) && std::isfinite(terms[0]) && std::isfinite(terms[1]) &&
           std::isfinite(terms[2]);
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

std::vector<Stack> stacks_of(const Value::Array& conditions, const Sweep& sweep) {
  std::vector<Stack> stacks;
  for (std::size_t c = 0; c < conditions.size(); ++c) {
    Stack stack{sweep.condition_text(c), estimate_of(member(conditions[c], "mse")).value, {}};
    for (std::size_t t = 0; t < 3; ++t) {
      stack.terms[t] = estimate_of(member(conditions[c], term_of_error(t).key)).value;
    }
    if (stack.whole()) stacks.push_back(stack);
  }
  return stacks;
}

/// Hatching that tells the terms apart without their colour.
void hatch(Canvas& canvas, std::size_t term, const Box& box) {
  if (term == 1) return;
  std::string data;
  const auto add = [&](Point from, Point to) {
    data += formatted("M%.1f %.1fL%.1f %.1f", from.x, from.y, to.x, to.y);
  };
  constexpr double gap = 7;
  for (double x = std::ceil(box.left / gap) * gap; x < box.right; x += gap) {
    if (term == 2) {
      add({x, box.top}, {x, box.bottom});
    } else if (x + box.height() * 0.5 < box.right) {
      add({x, box.bottom}, {x + box.height() * 0.5, box.top});
    }
  }
  if (!data.empty()) canvas.path(data, "hatch");
}

Canvas draw_stacks(const std::vector<Stack>& stacks) {
  double widest = 40;
  double low = 0, high = 0;
  for (const Stack& stack : stacks) {
    widest = std::max(widest, text_width(shortened(stack.label, longest_bar_label)));
    low = std::min(low, stack.below());
    high = std::max(high, std::max(stack.above(), stack.mse));
  }
  const bool labels = stacks.size() > 1;
  const double top = 34;
  const double left = labels ? 16 + widest : 20;
  const double bottom = top + bar_step * static_cast<double>(stacks.size());
  Canvas canvas(figure_width, bottom + 42);
  const Axes axes{{left, top, figure_width - 20, bottom},
                  Scale(ScaleKind::linear, low, high * 1.02, left, figure_width - 20),
                  {}};
  double x = 20;
  for (std::size_t t = 0; t < 3; ++t) {
    const Box key{x, 6, x + 22, 20};
    canvas.rectangle(key, "area c" + std::to_string(term_of_error(t).color));
    hatch(canvas, t, key);
    canvas.text({x + 28, 17}, term_of_error(t).name);
    x += 46 + text_width(term_of_error(t).name);
  }
  canvas.mark(error_components()[0].color, {x + 6, 13});
  canvas.text({x + 18, 17}, error_components()[0].name);

  for (const Tick& tick : axes.x.ticks(6)) {
    canvas.line({axes.x(tick.value), top}, {axes.x(tick.value), bottom}, "grid");
  }
  draw_x_axis(canvas, axes, {"error", axes.x.ticks(6)});
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    const double y = top + bar_step * static_cast<double>(i);
    if (labels) {
      canvas.text({left - 8, y + 15}, shortened(stacks[i].label, longest_bar_label), "end");
    }
    double above = 0, below = 0;
    for (std::size_t t = 0; t < 3; ++t) {
      const double term = stacks[i].terms[t];
      double& from = term < 0 ? below : above;
      const double a = axes.x(from), b = axes.x(from + term);
      from += term;
      const Box bar{std::min(a, b), y + 3, std::max(a, b), y + bar_step - 3};
      if (bar.width() < 0.05) continue;
      canvas.rectangle(bar, "area c" + std::to_string(term_of_error(t).color));
      hatch(canvas, t, bar);
    }
    canvas.mark(error_components()[0].color, {axes.x(stacks[i].mse), y + bar_step / 2});
  }
  if (low < 0) canvas.line({axes.x(0), top}, {axes.x(0), bottom}, "axis");
  return canvas;
}

/// "bias² is 57 %, variance 33 % and covariance 9.9 %"
std::string shares_text(const Stack& stack) {
  std::string text;
  for (std::size_t t = 0; t < 3; ++t) {
    if (t > 0) text += t == 2 ? " and " : ", ";
    text += term_of_error(t).name + std::string(t == 0 ? " is " : " ") +
            percent_text(stack.terms[t] / stack.mse);
  }
  return text;
}

}  // namespace

std::vector<Picture> decomposition_figures(const Source& source) {
  const Value::Array& conditions = source.shown_conditions();
  const Sweep sweep = sweep_of(conditions);
  const std::vector<Stack> all = stacks_of(conditions, sweep);
  if (all.empty()) return {};
  const Stack* best = &all.front();
  Table table{.caption = "Shares of the MSE", .headings = {"condition", "MSE"}};
  for (std::size_t t = 0; t < 3; ++t) table.headings.emplace_back(term_of_error(t).name);
  for (const Stack& stack : all) {
    if (stack.mse < best->mse) best = &stack;
    std::vector<std::string> row = {stack.label.empty() ? "the only one" : stack.label,
                                    short_number(stack.mse)};
    for (const double term : stack.terms) row.push_back(percent_text(term / stack.mse));
    table.rows.push_back(row);
  }
  std::vector<Stack> shown;
  for (const std::size_t i : spread(all.size(), max_bars)) shown.push_back(all[i]);
  const std::string where =
      best->label.empty()
          ? "Of the MSE of " + short_number(best->mse) + ", "
          : "At " + best->label + ", where the MSE is smallest (" + short_number(best->mse) + "), ";
  const std::string finding = best->mse > 0
                                  ? where + shares_text(*best) + "."
                                  : "The smallest MSE is not positive, so that it has no shares.";
  const bool negative =
      std::ranges::any_of(shown, [](const Stack& stack) { return stack.below() < 0; });
  return {{.title = "Decomposition of the error",
           .finding = finding,
           .canvas = draw_stacks(shown),
           .table = std::move(table),
           .note = sentences(
               {negative ? "Terms below 0 stand to the left of it, and the mark is the sum." : "",
                shows_text(shown.size(), all.size(), "conditions, evenly spaced.")})}};
}

}  // namespace headlab::tools
