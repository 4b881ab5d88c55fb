// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "engine/activations/activations.h"
#include "kernels/parallel_for.h"
#include "tools/cli/commands/commands.h"
#include "validation/heads/contexts.h"

namespace headlab::tools {
namespace {

constexpr std::uint64_t max_top_pairs = 1'000'000, max_queries = std::uint64_t{1} << 31;

/// Figures of rows of a table: some item of a figure of some layer.
struct FigurePlace {
  const MeasuredLayer* layer;
  std::size_t at;
};

/// A column of the figure, where a layer has it.
void add_column(Columns& columns, const std::string& heading, const char* name,
                const std::vector<FigurePlace>& rows) {
  std::vector<Estimate> figures;
  bool any = false, errors = false;
  for (const FigurePlace& row : rows) {
    Estimate& one = figures.emplace_back();
    const HeadFigure* const figure = row.layer->find(name);
    if (figure == nullptr) continue;
    any = true;
    one.value = figure->values[row.at];
    if (figure->errors.empty()) continue;
    errors = true;
    one.mcse = figure->errors[row.at];
  }
  if (!any) return;
  if (errors) return columns.add_figures(heading, figures);
  columns.add(heading,
              cells_of(figures, [](const Estimate& one) { return short_number(one.value); }), true);
}

void add_numbers(Columns& columns, const std::string& heading, std::vector<std::size_t> numbers) {
  columns.add_key(heading, cells_of(numbers, [](std::size_t n) { return std::to_string(n); }),
                  true);
}

std::vector<std::size_t> layers_of_rows(const std::vector<FigurePlace>& rows) {
  return cells_of(
      rows, [](const FigurePlace& row) { return static_cast<std::size_t>(row.layer->number); });
}

std::string heads_table(const MeasuredHeads& heads) {
  std::vector<FigurePlace> rows;
  std::vector<std::size_t> numbers;
  for (const MeasuredLayer& layer : heads.layers) {
    for (std::size_t h = 0; h < layer.shape.heads; ++h) {
      rows.push_back({&layer, h});
      numbers.push_back(h);
    }
  }
  Columns columns;
  add_numbers(columns, "layer", layers_of_rows(rows));
  add_numbers(columns, "head", numbers);
  const bool shares = heads.layers.front().find("spread_share") != nullptr;
  add_column(columns, shares ? "spread/stream" : "spread", shares ? "spread_share" : "spread",
             rows);
  add_column(columns, shares ? "refit/stream" : "refit", shares ? "refit_cost_share" : "refit_cost",
             rows);
  add_column(columns, "explained", "explained_by_others", rows);
  add_column(columns, "nats", "second_order", rows);
  add_column(columns, "tokens", "tokens_effective", rows);
  add_column(columns, "self", "self", rows);
  add_column(columns, "first", "first", rows);
  return columns.text(table_margin);
}

std::string layers_table(const MeasuredHeads& heads, const std::string& noise) {
  std::vector<FigurePlace> rows;
  for (const MeasuredLayer& layer : heads.layers) rows.push_back({&layer, 0});
  Columns columns;
  add_numbers(columns, "layer", layers_of_rows(rows));
  add_column(columns, "output variance", "output_variance", rows);
  add_column(columns, "output correlation", "output_correlation", rows);
  add_column(columns, "noise correlation", ("noise_" + noise + "_correlation").c_str(), rows);
  add_column(columns, "stream", "stream", rows);
  return columns.text(table_margin);
}

/// A table of figures of layers whose names begin alike; empty where they were not found.
std::string layer_figures_table(
    const MeasuredHeads& heads, const std::string& title, const std::string& start,
    const std::vector<std::pair<const char*, const char*>>& columns_of) {
  if (heads.layers.front().find(start + columns_of.front().first) == nullptr) return "";
  std::vector<FigurePlace> rows;
  for (const MeasuredLayer& layer : heads.layers) rows.push_back({&layer, 0});
  Columns columns;
  add_numbers(columns, "layer", layers_of_rows(rows));
  for (const auto& [name, heading] : columns_of) {
    add_column(columns, heading, (start + name).c_str(), rows);
  }
  return "\n" + title + "\n\n" + columns.text(table_margin);
}

std::string contexts_table(const MeasuredHeads& heads) {
  return layer_figures_table(heads, contexts_title(heads.setting), "contexts_",
                             {{"mse", "MSE"},
                              {"bias_squared", "bias²"},
                              {"variance", "variance"},
                              {"covariance", "covariance"},
                              {"target_variance", "target"},
                              {"alignment", "alignment"},
                              {"tokens_used", "tokens used"}});
}

std::string leave_one_out_table(const MeasuredHeads& heads) {
  return layer_figures_table(heads, "heads as predictors of what follows, the own key left out",
                             "loo_",
                             {{"mse", "MSE"},
                              {"mean_head_mse", "of single heads"},
                              {"ambiguity", "ambiguity"},
                              {"uniform_mse", "of equal weights"},
                              {"weighted_mse", "heads weighted"},
                              {"equal_mse", "unweighted"}});
}

/// The pairs of which one head changes least if it attends as the other does.
std::string pairs_table(const MeasuredHeads& heads, std::size_t top) {
  std::vector<FigurePlace> rows;
  for (const MeasuredLayer& layer : heads.layers) {
    if (layer.find("exchange_share") == nullptr) continue;
    for (std::size_t at = 0; at < layer.shape.heads * layer.shape.heads; ++at) {
      if (at / layer.shape.heads != at % layer.shape.heads) rows.push_back({&layer, at});
    }
  }
  const auto share = [](const FigurePlace& row) {
    const double value = row.layer->find("exchange_share")->values[row.at];
    return std::isnan(value) ? std::numeric_limits<double>::infinity() : value;
  };
  std::ranges::stable_sort(rows, {}, share);
  rows.resize(std::min(rows.size(), top));
  if (rows.empty()) return "";
  Columns columns;
  add_numbers(columns, "layer", layers_of_rows(rows));
  add_numbers(columns, "head", cells_of(rows, [](const FigurePlace& row) {
                return row.at / row.layer->shape.heads;
              }));
  add_numbers(columns, "as", cells_of(rows, [](const FigurePlace& row) {
                return row.at % row.layer->shape.heads;
              }));
  add_column(columns, "exchange/spread", "exchange_share", rows);
  add_column(columns, "total variation", "total_variation", rows);
  add_column(columns, "weights", "weight_correlation", rows);
  add_column(columns, "outputs", "spread_correlation", rows);
  return "\nleast changed by the attention of another head\n\n" + columns.text(table_margin);
}

void list_share(Options& options, const char* name, const std::string& help, double& to) {
  options.value(name, "SHARE", help,
                [name, &to](const std::string& text) { to = parse_share(name, text); });
}

struct HeadsArguments : CommonArguments {
  std::string file;
  std::optional<int> layer;
  HeadSetting setting;
  std::string layout = "bhtk";
  std::string noise = "values";
  std::size_t top = 5;

  void list(Options& options) {
    options.text("FILE", "", "Activations: NetCDF of import-activations, NPZ or safetensors", file);
    list_layer(options, layer);
    list_layout(options, layout);
    options.number("--queries", "N",
                   "Queries of each sequence whose weights are compared; the default is all",
                   setting.queries, 1, max_queries);
    options.word("--noise", "KIND",
                 "Noise in the values: values (the default), shared, input or cache", noise,
                 noise_kinds());
    options.word(
        "--target", "TARGET",
        "Split the error of the output as what tells of the target across contexts: output "
        "(no error), next_token, or array, that of the file",
        setting.target, context_targets());
    options.word("--strata", "STRATA",
                 "What is fixed across contexts: token, the current one (the default), or none",
                 setting.strata, context_strata());
    options.flag("--loo", "Take each head as a predictor of what follows, its own key left out",
                 setting.leave_one_out);
    list_share(options, "--little",
               "Spread over the stream of heads that write little, 1% at first",
               setting.writes_little);
    list_share(options, "--written",
               "What may remain of heads that the others can write, 0.3% at first",
               setting.can_be_written);
    list_share(options, "--exchangeable",
               "What may change of heads that are exchangeable, 10% at first",
               setting.exchangeable);
    options.flag("--float64", "Compute weights in float64, whatever the numbers are",
                 setting.exact);
    options.number("--top", "N", "Pairs of heads to name; the default is 5", top, 0, max_top_pairs);
    take(options, {{"--seed", "Seed of the draw of queries; the default is 0"},
                   {"--out", "Write all figures as NetCDF", "FILE"},
                   "--overwrite",
                   "--json",
                   "--report",
                   "--table",
                   "--threads"});
  }
};

ExitCode heads_on_text(const HeadsArguments& arguments) {
  const int threads = thread_count(threads_of(arguments));
  if (arguments.file.empty()) {
    throw InvalidInput("heads: no file given - write headlab heads FILE");
  }
  require_out(arguments.overwrite, arguments.out);
  if (arguments.out) {
    require_netcdf_out(*arguments.out, {arguments.file}, arguments.overwrite);
  }
  require_documents(arguments, {arguments.file});
  HeadSetting setting = arguments.setting;
  setting.seed = arguments.seed.value_or(setting.seed);
  const MeasuredHeads heads =
      measure_heads(heads_second(open_activation_files({arguments.file}), arguments.layout),
                    arguments.layer, setting, threads, stop_requested);
  end_on_signals();
  std::string json;
  if (arguments.need_document()) json = measured_heads_json(heads, provenance());
  if (arguments.out) {
    NetcdfImage image;
    put_measured_heads(image.root(), heads, provenance());
    image.save(*arguments.out);
    std::cerr << "headlab: wrote " << *arguments.out << "\n";
  }
  write_documents(arguments, json);
  print_document(arguments, json,
                 [&] { return measured_text(heads, arguments.noise, arguments.top); });
  return ExitCode::done;
}

}  // namespace

double parse_share(const std::string& option, const std::string& text,
                   const std::string& alternative) {
  double share = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, share);
  std::string rest(stop, end);
  std::erase(rest, ' ');
  if (rest == "%") share /= 100;
  const bool read = error == std::errc() && (rest.empty() || rest == "%");
  if (!read || !(share > 0 && share < 1)) {
    throw InvalidInput(option + ": \"" + one_line(text) + "\" does not fit (allowed: " +
                       alternative + "a share between 0 and 1, as 1% or 0.01)");
  }
  return share;
}

std::string measured_text(const MeasuredHeads& heads, const std::string& noise, std::size_t top) {
  std::string text = heads.source + "\n";
  for (const MeasuredLayer& layer : heads.layers) {
    text +=
        "layer " + std::to_string(layer.number) + ": H " + std::to_string(layer.shape.heads) +
        (layer.shape.groups == layer.shape.heads ? ""
                                                 : " in " + counted(layer.shape.groups, "group")) +
        ", d " + std::to_string(layer.d) + ", values of " + std::to_string(layer.shape.e) + "; " +
        counted(layer.sequences, "sequence") + " of " + counted(layer.documents, "document") +
        ", " + counted(layer.tokens, "token") + "\n  " + identity_text(layer.identity) + "\n";
  }
  text += "\n" + heads_table(heads) + "\n" + layers_table(heads, noise) + contexts_table(heads) +
          leave_one_out_table(heads) + pairs_table(heads, top);
  text +=
      "\nspread: error of the output with the head replaced by its mean; refit: the same with the "
      "output maps of the others fitted again, on other documents; explained: 1 - refit/spread; "
      "stream: square of the residual stream; nats: predicted loss a token; tokens: effective "
      "number; ± is one standard error over documents\n";
  for (const std::string& words : words_of(heads)) text += words + "\n";
  return sentences(text);
}

Command heads_command() {
  return make_command("heads", "Say what the heads of a trained model do on text", heads_on_text);
}

}  // namespace headlab::tools
