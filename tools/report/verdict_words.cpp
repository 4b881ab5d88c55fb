// SPDX-License-Identifier: Apache-2.0
#include "tools/report/verdict_words.h"

#include <cmath>

#include "tools/cli/figure_text.h"
#include "tools/report/figure.h"

namespace headlab::tools {

std::string reading_text(const Value& verdict) {
  std::string text = text_of(member(verdict, "form"));
  const std::string index = text_of(member(verdict, "index"));
  if (!index.empty()) text += (text.empty() ? "" : ", ") + index;
  return text;
}

std::string kernel_text(const Value& verdict) {
  const std::string kernel = text_of(member(verdict, "kernel"));
  return kernel == "varies" ? "kernels vary" : kernel;
}

std::string setting_text(const Value& verdict) {
  std::string text = kernel_text(verdict);
  const Value& signal = member(verdict, "signal");
  if (!text.empty() && signal.is<bool>()) {
    text += is_true(signal) ? ", signal" : ", noise alone";
  }
  if (const std::string stages = text_of(member(verdict, "stages")); !stages.empty()) {
    text += (text.empty() ? "" : ", ") + stages;
  }
  return text;
}

std::string effect_text(const Value& verdict) {
  const Value& effect = member(verdict, "effect");
  return effect.is<Value::Members>() ? estimate_text(estimate_of(effect)) : "–";
}

std::string allowed_text(const Value& verdict) {
  const double margin = number_of(member(verdict, "margin"));
  if (std::isnan(margin)) return "–";
  if (text_of(member(member(verdict, "effect"), "zone")) != "one-sided") {
    return "± " + short_number(margin);
  }
  return margin > 0 ? "≥ −" + short_number(margin) : "≥ 0";
}

std::string outcome_text(const Value& verdict) {
  const std::string outcome = text_of(member(verdict, "verdict"));
  const std::string expected = text_of(member(verdict, "expected"));
  if (expected.empty() || expected == outcome) return outcome;
  return outcome + " (expected " + expected + ")";
}

std::string counterexample_text(const Value& verdict) {
  const Value& certificate = member(verdict, "certificate");
  if (!certificate.is<Value::Members>()) return "";
  std::string text;
  const Value::Array* both = &items_of(member(certificate, "values"));
  // Before 2026-11-24 a counterexample was of the MSE alone, under this name.
  if (both->empty()) both = &items_of(member(certificate, "mse"));
  std::vector<std::string> labels;
  for (const Value& name : items_of(member(certificate, "figures"))) {
    labels.push_back(text_of(name) == "mse" ? "MSE" : text_of(name));
  }
  if (labels.size() != 2) labels = {"MSE", "MSE"};
  if (both->size() == 2) {
    text = labels[0] + " " + estimate_text(estimate_of((*both)[0])) + " against " +
           (labels[0] == labels[1] ? "" : labels[1] + " ") + estimate_text(estimate_of((*both)[1]));
  }
  const double z = number_of(member(certificate, "z"));
  if (!std::isnan(z)) text += (text.empty() ? "z " : ", z ") + short_number(z, 3);
  return text.empty() ? "one was found" : text;
}

}  // namespace headlab::tools
