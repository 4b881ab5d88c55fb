// SPDX-License-Identifier: Apache-2.0
#include "engine/moments/error_terms.h"
#include "engine/moments/layer_estimates.h"
#include "tools/cli/commands/commands.h"
#include "tools/cli/layer_table.h"

namespace headlab::tools {
namespace {

/// Visitor that writes a paragraph for each field.
struct FigureParagraphs {
  std::size_t width;
  std::string text = {};
  template <class T>
  void operator()(const char* name, const T&, const char* doc, const FieldText& field = {}) {
    const std::string label = *field.title ? field.title : field.label;
    text += wrapped("  " + left(name, 22) + doc +
                        (label.empty() ? "" : "; in tables \"" + label + "\""),
                    width, 24) +
            "\n";
  }
};

std::string layers_help(std::size_t width) {
  std::string text;
  for (const LayerMetricDescription& metric : layer_metric_descriptions()) {
    const std::string heading = layer_heading(metric.name);
    text += wrapped("  " + left(metric.name, 22) + metric.doc +
                        (heading.empty() ? "" : "; in tables \"" + heading + "\""),
                    width, 24) +
            "\n";
  }
  return text;
}

}  // namespace

std::string figures_help(std::size_t width) {
  FigureParagraphs averages{width}, of_query{width}, indices{width};
  const ErrorTerms<Estimate> terms;
  terms.fields(averages);
  terms.index_fields(indices);
  QueryErrorTerms<Estimate>().fields(of_query);
  return wrapped(
             "figures, by their names in summary.json and results.nc\n"
             "f_h is the estimate of head h at a query x, a_h its weight in the ensemble, m the "
             "regression function, V_h = Var f_h, C_hl = Cov(f_h, f_l).\n\naveraged over queries\n",
             width) +
         averages.text + "\nat each query\n" + of_query.text +
         "\ndiversity indices of the simulation\n" + indices.text +
         "\nof each layer, in studies of depth (X = 1 m^T + R, m the mean token, R the "
         "residual)\n" +
         layers_help(width) + "\n" +
         wrapped(
             "0.0046240 ± 0.0000064 is a figure and one Monte Carlo standard error (mcse). In a "
             "narrow table 4.6240(64) under a heading with /1e-3 is the same: the figure is "
             "4.6240e-3, and 64 its standard error in units of the last digit. z is (simulation "
             "- theory)/sqrt(MCSE² + remainder² + rounding²). Numbers in parentheses behind a "
             "closed form are its remainder.\n",
             width);
}

}  // namespace headlab::tools
