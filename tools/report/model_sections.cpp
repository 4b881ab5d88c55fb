// SPDX-License-Identifier: Apache-2.0
/// \file Texts of reports on the heads of trained models.
#include <algorithm>
#include <cmath>

#include "kernels/counted.h"
#include "tools/report/kinds_of_sections.h"
#include "tools/report/mathml.h"
#include "tools/report/scale.h"
#include "tools/report/scenario_sections.h"
#include "tools/report/symbols.h"

namespace headlab::tools {

std::vector<Section> head_sections(const Source& source) {
  const Value& document = source.document;
  DefinitionList indices, methods;
  const Value::Array& layers = items_of(member(document, "layers"));
  for (const auto& [name, formula] :
       {std::pair("chordal", "1 - \"mean\" frac{1}{d_k} sum_j cos^2 θ_j"),
        std::pair("spectral", "frac{exp(S) - d_k}{min(H d_k, d) - d_k}, S = - sum_i λ_i log λ_i"),
        std::pair("overlap", "1 - \"mean\" prod_j (1 + frac{sin^2 θ_j}{b^2 (2 + b^2)})^{-1/2}"),
        std::pair("qk", "1 - \"mean\" prod_j (1 + frac{sin^2 θ_j}{t^2})^{-1}")}) {
    const char* const index = name;
    const bool has = std::ranges::any_of(layers, [&](const Value& layer) {
      return std::isfinite(number_of(member(member(member(layer, "indices"), index), "value")));
    });
    if (has) indices.add(name, mathml(formula));
  }
  const auto add_numbers = [&](const char* name, const char* key) {
    std::vector<std::string> numbers;
    for (const Value& layer : layers) {
      const double number = number_of(member(layer, key));
      if (!std::isfinite(number)) continue;
      const std::string text = axis_number(number);
      if (std::ranges::count(numbers, text) == 0) numbers.push_back(text);
    }
    methods.add(name, prose(first_of(numbers)));
  };
  const auto add_number = [&](const char* name, const char* key) {
    const double number = number_of(member(document, key));
    if (std::isfinite(number)) methods.add(name, escaped(shown_number(number)));
  };
  methods.add("principal angles",
              prose("of the column spaces of the key projections of two heads: their cosines are "
                    "the singular values of the product of orthonormal bases"));
  add_numbers("heads of a layer H", "heads");
  add_number("sets of keys, each of as many heads", "kv_heads");
  add_numbers("dimension of a head d_k", "dim");
  add_number("bandwidth b", "bandwidth");
  add_number("temperature t", "temperature");
  const double own_keys = number_of(member(document, "kv_heads"));
  const bool share_keys = std::ranges::any_of(
      layers, [&](const Value& layer) { return own_keys < number_of(member(layer, "heads")); });
  methods.add(
      "random heads",
      with_formulas(
          std::string(share_keys ? "one independent and uniformly distributed subspace for each "
                                   "group of heads that share keys, as the heads of the largest "
                                   "possible index have; "
                                 : "independent and uniformly distributed; ") +
          axis_number(number_of(member(document, "random_sets"))) + " sets of $H$ heads"));
  std::vector<Section> all = {
      {"Aims", paragraph("How diverse are the heads of the model, compared with random heads of "
                         "the same shape?")},
      {"Data-generating mechanisms",
       paragraph("Heads of " + text_of(member(document, "file")) + ", hidden size d " +
                 axis_number(number_of(member(document, "d"))) + ".")},
      {"Estimands",
       paragraph("Diversity indices of each layer, 0 for heads on one subspace, from the principal "
                 "angles of pairs of heads; means are over pairs.") +
           indices.html()},
      {"Methods", methods.html()},
      {"Performance measures",
       element(
           "p",
           mathml("z = frac{\"index\u00a0\" - \"\u00a0mean over random heads\"}{\"sd over random "
                  "heads\"}")) +
           "\n"}};
  add_symbols(symbols_of_heads(), all);
  return all;
}

namespace {

/// What the columns of the table of heads are, of those that a layer has.
std::string estimands_of_text(const Value& document) {
  const Value::Array& layers = items_of(member(document, "layers"));
  const auto has = [&](const char* name) {
    return std::ranges::any_of(
        layers, [&](const Value& layer) { return member(layer, name).is<Value::Array>(); });
  };
  const bool shares = has("spread_share");
  DefinitionList columns;
  const auto add = [&](const char* key, const char* name, const std::string& words) {
    if (has(key)) columns.add(name, prose(words));
  };
  add("spread", "replaced by its mean",
      std::string("squared error of the layer's output where the head writes its mean over "
                  "tokens") +
          (shares ? ", over the square of the residual stream at the token" : "") +
          ", mean over tokens; 0 of a head that writes the same at every token, as one that writes "
          "nothing");
  add("refit_cost", "left out, the others fitted again",
      std::string("squared error of the layer's output without the head, after the output maps of "
                  "the others were fitted again, on other documents, mean over tokens") +
          (shares ? ", divided by the mean square of the residual stream: a ratio of means" : ""));
  add("explained_by_others", "explained by the others",
      std::string(
          "1 − the mean squared error without the head, others fitted again, over that with "
          "its mean in its place") +
          (shares ? ", neither divided by the residual stream" : "") +
          ": the share of what the head writes that the others can write; none where it writes "
          "nothing");
  add("second_order", "second-order prediction",
      "loss in nats that the head's mean in its place adds, as Fisher's information and the "
      "gradients of the file predict it; for labels drawn from the model");
  add("tokens_effective", "effective tokens",
      "1/(mean over queries of the sum of squared weights)");
  return columns.html();
}

}  // namespace

std::vector<Section> measured_sections(const Source& source) {
  const Value::Array& layers = items_of(member(source.document, "layers"));
  std::string text;
  for (const Value& layer : layers) {
    const auto number = [&](const char* name) {
      return axis_number(number_of(member(layer, name)));
    };
    const auto some = [&](const char* name, const std::string& noun) {
      return counted(static_cast<std::uint64_t>(std::max(number_of(member(layer, name)), 0.0)),
                     noun);
    };
    text += paragraph("Layer " + number("layer") + ": " + some("heads", "head") + ", " +
                      some("sequences", "sequence") + " of " + some("documents", "document") +
                      ", " + some("tokens", "token") + ".");
  }
  return {
      {"Aims", paragraph("What does each head of a trained model do to the output of its layer on "
                         "text?")},
      {"Data-generating mechanisms",
       paragraph("Attention layers of " + text_of(member(source.document, "file")) + ".") + text},
      {"Estimands", estimands_of_text(source.document)},
      {"Methods",
       paragraph("Each head's part of the output of its layer is measured token by token, with the "
                 "keys, queries, values and output maps of the model; means are over tokens. The "
                 "output maps of the other heads are fitted again by least squares on some "
                 "documents, and the error is that on the others.")},
      {"Performance measures",
       paragraph("Standard errors of the jackknife that leaves out one document.")}};
}

}  // namespace headlab::tools
