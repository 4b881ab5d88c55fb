// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/counted.h"
#include "validation/heads/contexts.h"
#include "validation/heads/measure.h"

namespace headlab {
namespace {

/// Where more of the heads are named, what is true of each is not of all of them together.
constexpr double max_named = 0.25;
constexpr double large_document = 0.25;

std::string percent(double share) {
  return rounded_text(100 * share) + " %";
}

std::string with_error(const HeadFigure& figure, std::size_t at) {
  return rounded_text(100 * figure.values[at]) + " ± " + rounded_text(100 * figure.errors[at]) +
         " %";
}

/// "head 2", "heads 2, 3 and 5".
std::string heads_text(const std::vector<std::size_t>& heads) {
  std::string text = heads.size() == 1 ? "head " : "heads ";
  for (std::size_t i = 0; i < heads.size(); ++i) {
    if (i > 0) text += i + 1 == heads.size() ? " and " : ", ";
    text += std::to_string(heads[i]);
  }
  return text;
}

std::string layer_start(const MeasuredLayer& layer) {
  return "layer " + std::to_string(layer.number) + ": ";
}

/// One sentence on the heads, by name or by their number.
void say(const MeasuredLayer& layer, const NamedHeads& named, bool by_name, const char* figure,
         const char* one_does, const char* all_do, const char* of_what,
         std::vector<std::string>& words) {
  if (named.heads.empty()) return;
  const bool one = named.heads.size() == 1;
  const std::string count = one ? "one" : std::to_string(named.heads.size());
  const std::string who = by_name
                              ? heads_text(named.heads)
                              : count + " of its " + std::to_string(layer.shape.heads) + " heads";
  std::string size = "together " + percent(named.together);
  if (one) {
    size = by_name ? with_error(*layer.find(figure), named.heads[0]) : percent(named.together);
  }
  words.push_back(layer_start(layer) + who + (one ? one_does : all_do) + size + of_what);
}

/// The heads of a layer that write nothing.
std::vector<std::size_t> silent_heads(const MeasuredLayer& layer) {
  const HeadFigure* const energy = layer.find("energy");
  std::vector<std::size_t> silent;
  for (std::size_t h = 0; energy != nullptr && h < energy->values.size(); ++h) {
    if (energy->values[h] == 0) silent.push_back(h);
  }
  return silent;
}

/// Pairs of which the first head hardly changes if it attends as the second, by their places.
std::vector<std::size_t> exchangeable_pairs(const MeasuredLayer& layer, double limit) {
  const HeadFigure* const share = layer.find("exchange_share");
  std::vector<std::size_t> found;
  if (share == nullptr || share->errors.empty()) return found;
  for (std::size_t at = 0; at < share->values.size(); ++at) {
    const bool own = at / layer.shape.heads == at % layer.shape.heads;
    if (!own && share->values[at] + 2 * share->errors[at] < limit) found.push_back(at);
  }
  return found;
}

void say_exchangeable(const MeasuredLayer& layer, double limit, std::vector<std::string>& words) {
  const HeadFigure* const share = layer.find("exchange_share");
  const std::vector<std::size_t> pairs = exchangeable_pairs(layer, limit);
  const std::size_t all = layer.shape.heads * (layer.shape.heads - 1);
  if (static_cast<double>(pairs.size()) > max_named * static_cast<double>(all)) {
    words.push_back(layer_start(layer) + std::to_string(pairs.size()) + " of " +
                    std::to_string(all) +
                    " pairs of heads are exchangeable in attention: its heads attend alike");
    return;
  }
  for (const std::size_t at : pairs) {
    const std::size_t h = at / layer.shape.heads, l = at % layer.shape.heads;
    words.push_back(layer_start(layer) + "heads " + std::to_string(h) + " and " +
                    std::to_string(l) + " are exchangeable in attention: " +
                    with_error(*share, at) + " of head " + std::to_string(h) +
                    "'s output changes if it attends as head " + std::to_string(l) + " does");
  }
}

void say_conditions(const MeasuredHeads& heads, std::vector<std::string>& words) {
  const MeasuredLayer& first = heads.layers.front();
  if (first.documents < heads.setting.min_documents) {
    words.push_back(counted(first.documents, "document") +
                    ": no standard errors, and nothing said of single heads; they need " +
                    std::to_string(heads.setting.min_documents));
  }
  if (first.largest_document > large_document) {
    words.push_back("one document has " + percent(first.largest_document) +
                    " of the tokens: standard errors over documents are rough");
  }
  for (const MeasuredLayer& layer : heads.layers) {
    if (layer.blind > 0) {
      words.push_back(layer_start(layer) + counted(layer.blind, "query sees", "queries see") +
                      " no key and " + (layer.blind == 1 ? "is" : "are") + " left out");
    }
  }
  if (!first.no_refit.empty()) words.push_back(first.no_refit);
  const bool residual = first.find("stream") != nullptr,
             loss = first.find("second_order") != nullptr;
  if (heads.layers.size() > 1 && !residual && !loss) {
    words.emplace_back("ranks hold within layers: give residual or gradients to compare layers");
  }
  if (first.find("tokens_effective") == nullptr) {
    words.emplace_back("without q, k and v there are no figures of attention");
  }
}

/// Fits to few tokens follow them too closely.
void say_in_sample(const MeasuredLayer& layer, std::vector<std::string>& words) {
  constexpr std::size_t enough = 64;
  const HeadFigure* const held_out = layer.find("refit_cost");
  const HeadFigure* const in_sample = layer.find("refit_cost_in_sample");
  if (in_sample == nullptr || layer.tokens >= enough * layer.shape.heads * layer.shape.e) return;
  double out = 0, in = 0;
  for (const double cost : held_out->values) out += cost;
  for (const double cost : in_sample->values) in += cost;
  words.push_back(layer_start(layer) + "errors of refits are " + rounded_text(out / in) +
                  " times those in the tokens that were fitted to: more tokens would lower them");
}

/// What the terms across contexts and leave one out do not say by themselves.
void say_of_targets(const MeasuredHeads& heads, std::vector<std::string>& words) {
  const std::string& target = heads.setting.target;
  if (!target.empty()) {
    std::string text = contexts_title(heads.setting);
    text += target == "output"
                ? ": the variances of the output, of which no error is left"
                : ": read from the output by a ridge regression fitted to documents 0, 2, 4, ..; "
                  "bias², variance and covariance alone are not the error: alignment, what the "
                  "context tells of the target, belongs to it";
    words.push_back(text);
  }
  if (!heads.setting.leave_one_out) return;
  std::size_t better = 0;
  for (const MeasuredLayer& layer : heads.layers) {
    if (layer.find("loo_mse")->values[0] < layer.find("loo_uniform_mse")->values[0]) ++better;
  }
  words.push_back(
      "as predictors of what follows the heads' mean is better than equal weights on "
      "all keys in " +
      std::to_string(better) + " of " + counted(heads.layers.size(), "layer") +
      ": ambiguity says how far heads differ, not that they predict well");
}

}  // namespace

std::vector<std::string> words_of(const MeasuredHeads& heads) {
  std::vector<std::string> words;
  double all = 0, little = 0, refitted = 0;
  for (const MeasuredLayer& layer : heads.layers) {
    all += static_cast<double>(layer.shape.heads);
    little += static_cast<double>(layer.little.heads.size());
    refitted += static_cast<double>(layer.refitted.heads.size());
  }
  for (const MeasuredLayer& layer : heads.layers) {
    const std::vector<std::size_t> silent = silent_heads(layer);
    if (!silent.empty()) {
      words.push_back(layer_start(layer) + heads_text(silent) +
                      (silent.size() == 1 ? " writes nothing" : " write nothing"));
    }
    // Nothing more is to be said of these.
    const auto others_than_silent = [&](const NamedHeads& named) {
      return std::ranges::includes(silent, named.heads) ? NamedHeads() : named;
    };
    say(layer, others_than_silent(layer.little), little <= max_named * all, "spread_share",
        " writes little: ", " write little: ", " of the residual stream's square", words);
    say(layer, others_than_silent(layer.refitted), refitted <= max_named * all, "refit_cost_share",
        ", which the other heads can write: ", ", which the other heads can write: ",
        " of the residual stream's square remains after refitting W_O", words);
    say_exchangeable(layer, heads.setting.exchangeable, words);
    say_in_sample(layer, words);
  }
  if (heads.layers.front().find("second_order") != nullptr) {
    words.emplace_back(
        "the predicted loss (second-order prediction) is best where labels are drawn from the "
        "model, and "
        "orders heads better than it sizes their costs: in small models most true costs were 0.25 "
        "to 3.7 times "
        "as much, some up to 8.8 times");
  }
  say_of_targets(heads, words);
  say_conditions(heads, words);
  return words;
}

}  // namespace headlab
