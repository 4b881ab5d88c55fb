// SPDX-License-Identifier: Apache-2.0
#include "tools/report/replicates_figure.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "validation/statistics/intervals.h"

namespace headlab::tools {
namespace {

constexpr std::size_t max_zip_groups = 100, min_zip_groups = 20, min_zip_group = 16;
constexpr double coverage = 0.95;

double mean_of(const double* first, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += (first[i] - first[0]) / static_cast<double>(count);
  return first[0] + sum;
}

struct Histogram {
  double low = 0, width = 1;
  std::vector<double> counts;
  double edge(std::size_t i) const { return low + width * static_cast<double>(i); }
};

/// Bins by the rule of Freedman and Diaconis, 5 to 60 of them.
Histogram histogram_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t count = values.size();
  const double range = values.back() - values.front();
  const double quartiles = values[count - 1 - count / 4] - values[count / 4];
  const double bin = 2 * quartiles / std::cbrt(static_cast<double>(count));
  const double bins = bin > 0 ? std::clamp(std::ceil(range / bin), 5.0, 60.0) : 5.0;
  Histogram histogram{.low = values.front(), .width = range / bins, .counts = {}};
  if (!(range > 0)) {
    // All values are one: a bar around it.
    histogram.width = values.front() != 0 ? 0.01 * std::abs(values.front()) : 1;
    histogram.low -= histogram.width / 2;
    histogram.counts = {static_cast<double>(count)};
    return histogram;
  }
  histogram.counts.assign(static_cast<std::size_t>(bins), 0);
  for (const double value : values) {
    const auto place = static_cast<std::size_t>((value - histogram.low) / histogram.width);
    ++histogram.counts[std::min(place, histogram.counts.size() - 1)];
  }
  return histogram;
}

void draw_upright(Canvas& canvas, const Axes& axes, double x, const std::string& classes) {
  if (!axes.x.holds(x)) return;
  canvas.line({axes.x(x), axes.box.top}, {axes.x(x), axes.box.bottom}, classes);
}

double height_of_panels(std::size_t count) {
  return count == 1 ? 240 : 160;
}

struct Interval {
  double mean, half, t;  ///< t: |mean - that of all| in standard errors
  bool holds() const { return t <= quantile; }
  double quantile;
};

std::vector<Interval> intervals_of(const ReplicateSample& sample) {
  const std::size_t size = zip_group(sample.values.size());
  const double all = mean_of(sample.values.data(), sample.values.size());
  const double quantile = student_quantile((1 + coverage) / 2, static_cast<double>(size) - 1);
  std::vector<Interval> intervals;
  for (std::size_t from = 0; from + size <= sample.values.size(); from += size) {
    const double* group = &sample.values[from];
    const double mean = mean_of(group, size);
    double squares = 0;
    for (std::size_t i = 0; i < size; ++i) squares += (group[i] - mean) * (group[i] - mean);
    const auto count = static_cast<double>(size);
    const double error = std::sqrt(squares / (count - 1) / count);
    const double off = std::abs(mean - all);
    intervals.push_back({mean, quantile * error, off > 0 ? off / error : 0, quantile});
  }
  std::ranges::stable_sort(intervals, {}, &Interval::t);
  return intervals;
}

}  // namespace

Picture histogram_picture(const std::string& figure, const std::vector<ReplicateSample>& samples) {
  const auto draw = [figure, samples](double width) {
    std::vector<AxesPanel> panels;
    std::vector<LegendEntry> legend = {{4, "mean of the replicates", false, false, "line"}};
    bool has_truth = false;
    for (const ReplicateSample& sample : samples) {
      const Histogram histogram = histogram_of(sample.values);
      const double mean = mean_of(sample.values.data(), sample.values.size());
      std::vector<double> x = {histogram.low, histogram.edge(histogram.counts.size())}, y = {0};
      if (std::isfinite(sample.truth)) x.push_back(sample.truth), has_truth = true;
      y.insert(y.end(), histogram.counts.begin(), histogram.counts.end());
      const double truth = sample.truth;
      panels.push_back({sample.title, ScaleKind::linear, x, y,
                        [histogram, mean, truth](Canvas& canvas, const Axes& axes) {
                          for (std::size_t i = 0; i < histogram.counts.size(); ++i) {
                            if (histogram.counts[i] == 0) continue;
                            const Point from = axes.at(histogram.edge(i), histogram.counts[i]);
                            const Point to = axes.at(histogram.edge(i + 1), 0);
                            canvas.rectangle({from.x, from.y, to.x, to.y}, "area c6");
                          }
                          draw_upright(canvas, axes, mean, "line c4");
                          if (std::isfinite(truth)) draw_upright(canvas, axes, truth, "target c0");
                        }});
    }
    if (has_truth) legend.push_back({0, "regression function m(x)", false, false, "target"});
    return draw_panels(width, panels, {figure, "replicates", height_of_panels(panels.size())},
                       legend);
  };
  return {.title = figure + " of single replicates",
          .finding = "Histograms by the rule of Freedman and Diaconis.",
          .draw = draw,
          .table = {}};
}

std::size_t zip_group(std::size_t replicates) {
  const std::size_t size =
      std::max((replicates + max_zip_groups - 1) / max_zip_groups, min_zip_group);
  return replicates / size < min_zip_groups ? 0 : size;
}

Picture zip_picture(const std::string& figure, const std::vector<ReplicateSample>& samples) {
  std::vector<AxesPanel> panels;
  std::string finding;
  for (const ReplicateSample& sample : samples) {
    const std::vector<Interval> intervals = intervals_of(sample);
    const double mean = mean_of(sample.values.data(), sample.values.size());
    const auto holding = std::ranges::count_if(intervals, &Interval::holds);
    const std::string found =
        std::to_string(holding) + " of " + std::to_string(intervals.size()) + " hold the mean";
    const std::string title = sample.title + (sample.title.empty() ? "" : ": ") + found;
    finding += title + ". ";
    std::vector<double> x;
    for (const Interval& one : intervals) {
      x.insert(x.end(), {one.mean - one.half, one.mean + one.half});
    }
    panels.push_back({title,
                      ScaleKind::linear,
                      x,
                      {0, 100},
                      [intervals, mean](Canvas& canvas, const Axes& axes) {
                        const auto count = static_cast<double>(intervals.size());
                        for (std::size_t i = 0; i < intervals.size(); ++i) {
                          const Interval& one = intervals[i];
                          const double centile = 100 * (static_cast<double>(i) + 0.5) / count;
                          canvas.line(axes.at(one.mean - one.half, centile),
                                      axes.at(one.mean + one.half, centile),
                                      one.holds() ? "whisker thin c1" : "whisker c4");
                        }
                        canvas.line(axes.at(axes.x.low(), 100 * coverage),
                                    axes.at(axes.x.high(), 100 * coverage), "axis");
                        draw_upright(canvas, axes, mean, "target c0");
                      }});
  }
  const std::string interval = "95 % interval of " +
                               std::to_string(zip_group(samples.front().values.size())) +
                               " replicates";
  const auto draw = [figure, panels, interval](double width) {
    return draw_panels(width, panels,
                       {figure, "centile of |t|; line at 95", height_of_panels(panels.size()), 0},
                       {{1, interval, false, false, "whisker thin"},
                        {4, "misses the mean of all", false, false, "whisker"},
                        {0, "mean of all replicates", false, false, "target"}});
  };
  return {.title = "95 % intervals for the mean of " + figure,
          .finding = finding,
          .draw = draw,
          .table = {}};
}

}  // namespace headlab::tools
