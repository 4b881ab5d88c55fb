// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "kernels/counted.h"
#include "kernels/parallel_for.h"
#include "tools/cli/commands/commands.h"

namespace headlab::tools {
namespace {

constexpr std::uint64_t max_top = 1'000'000;

std::string text_of(const std::optional<double>& number) {
  return short_number(number.value_or(std::numeric_limits<double>::quiet_NaN()));
}

/// One line a layer: each index with its z, then how far the keys are from orthonormal.
std::string layer_table(const HeadDiversity& diversity) {
  Columns columns;
  const auto column = [&](const std::string& heading, const auto& cell) {
    columns.add(heading, cells_of(diversity.layers, cell), true);
  };
  columns.add_key(
      "layer",
      cells_of(diversity.layers,
               [](const LayerDiversity& layer) { return std::to_string(layer.number); }),
      true);
  for (std::size_t i = 0; i < diversity.layers[0].indices.size(); ++i) {
    column(diversity.layers[0].indices[i].name,
           [i](const LayerDiversity& layer) { return text_of(layer.indices[i].value); });
    column("random " + diversity.layers[0].indices[i].name,
           [i](const LayerDiversity& layer) { return text_of(layer.indices[i].random_mean); });
    column("z " + diversity.layers[0].indices[i].name,
           [i](const LayerDiversity& layer) { return text_of(layer.indices[i].z); });
  }
  column("condition",
         [](const LayerDiversity& layer) { return median_text(layer.condition_numbers); });
  column("worst", [](const LayerDiversity& layer) {
    return short_number(*std::ranges::max_element(layer.condition_numbers));
  });
  return columns.text("  ");
}

/// Layers that lack heads of the model.
std::string absent_text(const HeadDiversity& diversity) {
  std::string text;
  for (const LayerDiversity& layer : diversity.layers) {
    if (layer.heads.empty()) continue;
    text += "layer " + std::to_string(layer.number) + " has " + std::to_string(layer.heads.size()) +
            " of " + std::to_string(diversity.heads) +
            " heads: the keys of the others have rank below k\n";
  }
  return text;
}

/// Whether some heads have the same subspace although the file names no groups.
bool has_equal_heads(const HeadDiversity& diversity) {
  constexpr double equal = 1 - 1e-10;
  if (diversity.groups < diversity.heads || diversity.k == diversity.d) return false;
  return std::ranges::any_of(diversity.layers, [&](const LayerDiversity& layer) {
    return std::ranges::any_of(
        layer.cosines, [&](const std::vector<double>& cosines) { return cosines.back() >= equal; });
  });
}

/// Takes the groups of --kv-heads for those that the file does not name.
void use_groups(HeadFile& file, const std::string& path, const std::string& text) {
  const auto heads = static_cast<std::uint64_t>(file.heads());
  const auto groups = static_cast<int>(parse_whole_number("--kv-heads", text, 1, heads));
  if (file.heads() % groups != 0) {
    throw InvalidInput("--kv-heads: " + std::to_string(groups) + " does not divide the " +
                       std::to_string(heads) + " heads into groups");
  }
  if (file.kv_heads > 0 && file.kv_heads != groups) {
    throw InvalidInput("--kv-heads: " + std::to_string(groups) + ", but " + path + " has " +
                       std::to_string(file.kv_heads) + " - leave out --kv-heads");
  }
  file.kv_heads = groups;
}

/// "layer 3", "layers 0 to 3", "layers 0, 2 and 5".
std::string layers_text(const std::vector<int>& layers) {
  if (layers.size() == 1) return "layer " + std::to_string(layers[0]);
  if (layers.back() - layers.front() + 1 == static_cast<int>(layers.size())) {
    return "layers " + std::to_string(layers.front()) + " to " + std::to_string(layers.back());
  }
  std::vector<std::string> words;
  for (const int layer : layers) words.push_back(std::to_string(layer));
  return "layers " + and_listed(words);
}

/// "heads 0 and 1; 2 and 3"
std::string groups_text(const std::vector<std::vector<int>>& groups) {
  std::string text;
  for (const std::vector<int>& group : groups) {
    std::vector<std::string> words;
    for (const int head : group) words.push_back(std::to_string(head));
    text += (text.empty() ? "heads " : "; ") + and_listed(words);
  }
  return text;
}

/// Layers whose heads with one subspace are the same, in one line; those that share keys apart.
std::string identical_text(const AlikeHeads& alike) {
  struct Sets {
    int layer;
    bool share_keys;
    std::vector<std::vector<int>> of_heads;
  };
  std::vector<Sets> all;
  for (const bool share_keys : {true, false}) {
    for (const IdenticalHeads& set : alike.identical) {
      if (set.share_keys != share_keys) continue;
      if (all.empty() || all.back().layer != set.layer || all.back().share_keys != share_keys) {
        all.push_back(Sets{set.layer, share_keys, std::vector<std::vector<int>>()});
      }
      all.back().of_heads.push_back(set.heads);
    }
  }
  std::vector<std::pair<const Sets*, std::vector<int>>> lines;
  for (const Sets& sets : all) {
    const auto same = std::ranges::find_if(lines, [&](const auto& line) {
      return line.first->of_heads == sets.of_heads && line.first->share_keys == sets.share_keys;
    });
    if (same == lines.end()) {
      lines.push_back({&sets, {sets.layer}});
    } else {
      same->second.push_back(sets.layer);
    }
  }
  std::string text;
  for (const auto& [sets, layers] : lines) {
    text += "  " + layers_text(layers) + ": " + groups_text(sets->of_heads) +
            ", mean squared cosine 1.00: " +
            (sets->share_keys ? "share keys by construction" : "one subspace") + "\n";
  }
  return text;
}

}  // namespace

std::string alike_text(const HeadDiversity& diversity, const AlikeHeads& alike) {
  std::string text;
  if (!alike.pairs.empty() || !alike.identical.empty()) {
    text += "\nmost alike heads (of random subspaces the mean squared cosine is k/d = " +
            short_number(static_cast<double>(diversity.k) / diversity.d) + ")\n" +
            identical_text(alike);
    for (const AlikePair& pair : alike.pairs) {
      text += "  layer " + std::to_string(pair.layer) + ": heads " + std::to_string(pair.first) +
              " and " + std::to_string(pair.second) + ", mean squared cosine " +
              fixed_number(pair.mean_squared_cosine, 2) + "\n";
    }
  }
  return text +
         "\ncompared are weights: a head that is like another may be needed on text, which headlab "
         "heads "
         "measures\n";
}

std::string median_text(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  return short_number(numbers[numbers.size() / 2]);
}

std::string diversity_text(const HeadDiversity& diversity, const std::string& file) {
  std::string text = file + "\n" + counted(diversity.layers.size(), "layer") + ", H " +
                     std::to_string(diversity.heads) + ", d " + std::to_string(diversity.d) +
                     ", k " + std::to_string(diversity.k) + ", temperature " +
                     short_number(diversity.temperature) + ", overlap at bandwidth " +
                     short_number(diversity.bandwidth) + "\n\n" + layer_table(diversity) + "\n";
  const std::string groups =
      diversity.groups == diversity.heads
          ? ""
          : " in " + counted(static_cast<std::uint64_t>(diversity.groups), "key-value group");
  text += "random: mean over random heads of that shape" + groups + ", seed " +
          std::to_string(diversity.seed) + "; z: standard deviations from it\n";
  text += "condition: median over heads of largest over smallest singular value of the keys\n";
  if (has_equal_heads(diversity)) {
    text +=
        "some heads have the same keys: if they share them, name their groups with --kv-heads\n";
  }
  if (diversity.rotary) text += "qk is undefined: positions are rotary\n";
  return text + absent_text(diversity);
}

namespace {

struct HdiArguments : CommonArguments {
  std::string file;
  std::optional<std::string> kv_heads;
  std::size_t top = 5;

  void list(Options& options) {
    options.text("FILE", "", "Heads: NPY of H x d x k, or NetCDF of import-heads", file);
    take(options, {"--json", "--report", "--table"});
    options.text("--kv-heads", "G", "Groups of heads that share keys, of a file that does not say",
                 kv_heads);
    take(options, {{"--seed", "Seed of the random heads; the default is 0"}});
    options.number("--top", "N", "Pairs of most alike heads to name; the default is 5", top, 0,
                   max_top);
    take(options, {"--threads"});
  }
};

ExitCode hdi(const HdiArguments& arguments) {
  const int threads = thread_count(threads_of(arguments));
  if (arguments.file.empty()) throw InvalidInput("hdi: no file given - write headlab hdi FILE");
  require_documents(arguments, {arguments.file});
  HeadFile file = read_head_file(arguments.file);
  if (arguments.kv_heads) use_groups(file, arguments.file, *arguments.kv_heads);
  const HeadDiversity diversity =
      head_diversity(file, arguments.file, arguments.seed.value_or(0), threads, stop_requested);
  end_on_signals();
  const AlikeHeads alike = alike_heads(diversity, arguments.top);
  std::string json;
  if (arguments.need_document()) {
    json = head_diversity_json(diversity, alike, arguments.file, provenance());
  }
  write_documents(arguments, json);
  print_document(arguments, json, [&] {
    return sentences(diversity_text(diversity, arguments.file) + alike_text(diversity, alike));
  });
  return ExitCode::done;
}

}  // namespace

Command hdi_command() {
  return make_command("hdi", "Compare the heads of a file with random ones", hdi);
}

}  // namespace headlab::tools
