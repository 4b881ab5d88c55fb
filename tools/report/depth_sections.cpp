// SPDX-License-Identifier: Apache-2.0
#include "tools/report/depth_sections.h"

#include <string>
#include <utility>

#include "engine/files/json_writer.h"
#include "engine/moments/layer_estimates.h"
#include "tools/report/mathml.h"
#include "tools/report/sweep.h"

namespace headlab::tools {
namespace {

/// The parameter at `table.key` of the first condition, as JSON.
std::string setting(const Value& condition, const char* table, const char* key) {
  const Value& value = member(member(member(condition, "parameters"), table), key);
  if (value.is<Value::Null>()) return "";
  if (value.is<Value::Members>()) {
    std::string text = text_of(member(value, "law"));
    for (const auto& [name, location, of] : members_of(value)) {
      if (name != "law") text += ", " + name + " " + shortened(words_of(of), 60);
    }
    return text;
  }
  return value.is<std::string>() ? text_of(value) : shortened(to_json(value), 60);
}

}  // namespace

bool is_study_of_depth(const Source& source) {
  const Value::Array& conditions = source.shown_conditions();
  return !conditions.empty() && member(conditions.front(), "layers").is<Value::Array>();
}

std::vector<Section> depth_sections(const Source& source) {
  const Value::Array& conditions = source.shown_conditions();
  const Value& first = conditions.front();
  const std::string aims = setting(first, "scenario", "aims");
  DefinitionList tokens;
  using Keys = std::initializer_list<std::pair<const char*, const char*>>;
  const auto add_all = [&](DefinitionList& list, const char* table, const Keys& keys) {
    for (const auto& [key, name] : keys) list.add(name, escaped(setting(first, table, key)));
  };
  add_all(tokens, "tokens",
          {{"n", "tokens n"}, {"design", "design"}, {"fixed_design", "fixed design"}});
  std::string varied;
  for (const SweptKey& key : sweep_of(conditions).keys) {
    std::string values;
    for (const Level& level : key.levels) values += (values.empty() ? "" : ", ") + level.text;
    varied += element("li", escaped(key.title() + ": " + shortened(values, 200)));
  }
  if (!varied.empty()) tokens.add("varied", element("ul", varied));

  DefinitionList estimands;
  estimands.add("mean token, residual", mathml("X = 1 m^T + R"));
  const Value::Array& layers = items_of(member(first, "layers"));
  for (const LayerMetricDescription& metric : layer_metric_descriptions()) {
    if (layers.empty() || !member(layers[0], metric.name).is<Value::Members>()) continue;
    estimands.add(metric.name, escaped(metric.doc));
  }

  DefinitionList methods;
  methods.add("a layer",
              mathml("X' = s X + b sum_h A_h Z V_h, A_h = softmax(Z M_h Z^T / t)", true));
  add_all(methods, "heads",
          {{"count", "heads H"},
           {"dim", "dimension d_k"},
           {"value_dim", "dimension d_v"},
           {"kernel", "kernel"},
           {"maps", "maps"},
           {"values", "values"},
           {"order", "order"}});
  add_all(methods, "layers",
          {{"count", "layers L"},
           {"skip", "skip s"},
           {"branch", "branch b"},
           {"norm", "norm"},
           {"memory", "memory a"},
           {"mask", "mask"},
           {"mlp", "MLP"},
           {"weights", "weights"}});
  const Value& replicates = member(first, "replicates");
  if (replicates.number()) methods.add("replicates", escaped(to_json(replicates)));

  const std::string errors =
      replicates.number()
          ? "Every figure is a mean over replicates, each with tokens and weights of its own, and "
            "has its Monte Carlo standard error (MCSE), a jackknife over groups of replicates. A "
            "metric that is undefined in any replicate is undefined. What differs between tokens "
            "is computed from differences, so that it keeps its digits below the rounding of the "
            "tokens themselves."
          : "Closed forms have no Monte Carlo error.";
  return {{"Aims", element("p", escaped(aims.empty() ? "The scenario states no aims." : aims))},
          {"Tokens", tokens.html()},
          {"Estimands", estimands.html()},
          {"Methods", methods.html()},
          {"Performance measures", element("p", escaped(errors))}};
}

}  // namespace headlab::tools
