// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/head_cuts.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/input_file.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_writer.h"
#include "engine/files/models/model_checkpoint.h"
#include "engine/files/models/model_config.h"
#include "engine/files/npy_file.h"
#include "kernels/counted.h"

namespace headlab {
namespace {

using Numbers = std::vector<std::size_t>;

/// Heads and groups of a layer that stay, ascending.
struct Kept {
  Numbers heads, groups;

  std::string text(int layer) const {
    return "layer " + std::to_string(layer) + " keeps " + counted(heads.size(), "head") + " in " +
           counted(groups.size(), "group");
  }
};

/// Places of `numbers` where each has `size` of them, behind `offset` others.
std::vector<AxisPart> parts_of(const Numbers& numbers, std::uint64_t size,
                               std::uint64_t offset = 0) {
  std::vector<AxisPart> parts;
  for (const std::size_t one : numbers) parts.push_back({offset + one * size, size});
  return parts;
}

class HeadCutter {
 public:
  HeadCutter(const std::string& checkpoint, const HeadsOfLayers& removed)
      : checkpoint_(checkpoint),
        config_(config_next_to(checkpoint)),
        tensors_(checkpoint_tensors(checkpoint)) {
    if (config_.empty()) fail("has no config.json");
    model_ = read_model_config(config_, nullptr);
    if (family().head_dim.empty() || family().layout == ProjectionLayout::by_group) {
      fail("models of type " + family().name +
           " have no size of a head of their own in config.json: heads cannot be cut");
    }
    if (!model_.counts.layers) fail("has no " + family().layers + " in config.json");
    for (int layer = 0; layer < *model_.counts.layers; ++layer) {
      const auto found = removed.find(layer);
      kept_.push_back(kept_of(layer, found == removed.end() ? Numbers() : found->second));
    }
    require_even();
  }

  void cut(CheckpointChanges& changes) {
    for (int layer = 0; layer < *model_.counts.layers; ++layer) cut_layer(layer, changes.cuts);
    changes.config = smaller_config();
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const { reject({checkpoint_}, "", problem); }

  const Architecture& family() const { return *model_.architecture; }
  std::size_t heads() const { return static_cast<std::size_t>(model_.counts.heads); }
  std::size_t groups() const { return static_cast<std::size_t>(model_.counts.kv_heads); }

  Kept kept_of(int layer, const Numbers& removed) const {
    Kept kept;
    for (std::size_t h = 0; h < heads(); ++h) {
      if (std::ranges::find(removed, h) == removed.end()) kept.heads.push_back(h);
    }
    const std::size_t shared = heads() / groups();
    std::size_t most = 0;
    std::vector<std::size_t> of_group(groups());
    for (const std::size_t h : kept.heads) most = std::max(most, ++of_group[h / shared]);
    for (std::size_t g = 0; g < groups(); ++g) {
      if (of_group[g] > 0) kept.groups.push_back(g);
      if (of_group[g] > 0 && of_group[g] < most) {
        fail("layer " + std::to_string(layer) + " keeps " + counted(of_group[g], "head") +
             " of group " + std::to_string(g) + ", " + std::to_string(most) +
             " of another: groups that stay have to keep as many, or the shapes of tensors stay");
      }
    }
    if (kept.heads.empty()) fail("layer " + std::to_string(layer) + " keeps no head");
    return kept;
  }

  void require_even() const {
    for (std::size_t i = 1; i < kept_.size(); ++i) {
      const bool same = kept_[i].heads.size() == kept_[0].heads.size() &&
                        kept_[i].groups.size() == kept_[0].groups.size();
      if (!same) {
        fail(kept_[i].text(static_cast<int>(i)) + ", " + kept_[0].text(0) +
             ": all layers have to keep as many, or the shapes of tensors stay");
      }
    }
    const auto left = static_cast<int>(kept_[0].heads.size());
    const auto& divided = family().of_divided_width;
    Value json = read_config();
    const std::string type = text_of(member(model_of(json), "model_type"));
    const int width = model_.counts.dimensions.value_or(0);
    if (std::ranges::find(divided, type) != divided.end() && width % left != 0) {
      fail("would have " + std::to_string(left) + " heads, which do not divide its " +
           family().hidden + " of " + std::to_string(width) +
           ": transformers opens no such model of type " + type);
    }
  }

  Value read_config() const {
    const std::string text = read_file(config_, max_config_bytes);
    std::optional<Value> json = parse_json(text, MemberOrder::of_file);
    // What reads a model takes NaN as well, with which no JSON can be written.
    if (!json) reject({config_}, "", "is not JSON" + end_of_json(text) + ": heads cannot be cut");
    return *std::move(json);
  }

  /// The part of config.json that is of the text model.
  static Value& model_of(Value& json) {
    Value* const text = json.find("text_config");
    return text != nullptr && text->is<Value::Members>() ? *text : json;
  }

  std::string smaller_config() const {
    Value json = read_config();
    Value& model = model_of(json);
    const auto set = [&](const std::string& key, std::size_t number) {
      const auto whole = static_cast<std::int64_t>(number);
      if (Value* const there = model.find(key)) {
        there->data = whole;
      } else {
        std::get<Value::Members>(model.data).push_back({key, {}, {whole, {}}});
      }
    };
    set(family().heads, kept_[0].heads.size());
    set(family().kv_heads, kept_[0].groups.size());
    set(family().head_dim, size_);
    return to_json(json, {}) + "\n";
  }

  /// Empty where there is none.
  std::string name_of(std::string pattern, int layer) const {
    if (pattern.empty()) return "";
    pattern.replace(pattern.find('#'), 1, std::to_string(layer));
    for (const std::string& prefix : family().prefixes) {
      if (tensors_.contains(prefix + pattern)) return prefix + pattern;
    }
    return "";
  }
  std::string need(const std::string& pattern, int layer) const {
    std::string name = name_of(pattern, layer);
    if (name.empty()) fail("has no tensor " + pattern + " of layer " + std::to_string(layer));
    return name;
  }

  void cut_layer(int layer, std::vector<TensorCut>& cuts) {
    const Kept& kept = kept_[static_cast<std::size_t>(layer)];
    const std::string output = need(family().output, layer);
    const std::vector<std::uint64_t>& map = tensors_.at(output).shape;
    size_ = map.empty() ? 0 : map.back() / heads();
    std::vector<std::string> known;
    const auto cut = [&](const std::string& name, std::size_t axis, std::uint64_t length,
                         const std::vector<AxisPart>& parts) {
      const std::vector<std::uint64_t>& shape = tensors_.at(name).shape;
      if (shape.size() <= axis || shape[axis] != length || length == 0) {
        fail("tensor " + one_line(name, 80) + " has shape " + shape_text(shape) + ": its axis " +
             std::to_string(axis) + " needs " + std::to_string(length));
      }
      cuts.push_back({name, axis, parts});
      known.push_back(name);
    };
    // With its bias, if it has one.
    const auto cut_rows = [&](const std::string& pattern, std::uint64_t length,
                              const std::vector<AxisPart>& parts) {
      const std::string weight = need(pattern, layer), bias = bias_of(weight);
      cut(weight, 0, length, parts);
      if (tensors_.contains(bias)) cut(bias, 0, length, parts);
    };
    const std::uint64_t of_heads = heads() * size_, of_groups = groups() * size_;
    const auto queries = parts_of(kept.heads, size_), keys = parts_of(kept.groups, size_);
    if (family().layout == ProjectionLayout::separate) {
      cut_rows(family().query, of_heads, queries);
      cut_rows(family().key, of_groups, keys);
      cut_rows(family().value, of_groups, keys);
    } else {
      std::vector<AxisPart> all = queries;
      for (const std::uint64_t before : {of_heads, of_heads + of_groups}) {
        for (const AxisPart& part : parts_of(kept.groups, size_, before)) all.push_back(part);
      }
      cut_rows(family().query, of_heads + 2 * of_groups, all);
    }
    cut(output, 1, of_heads, queries);
    known.push_back(bias_of(output));
    if (const std::string sink = name_of(family().sink, layer); !sink.empty()) {
      cut(sink, 0, heads(), parts_of(kept.heads, 1));
    }
    for (const std::string* norm : {&family().query_norm, &family().key_norm}) {
      const std::string name = name_of(*norm, layer);
      if (name.empty()) continue;
      if (tensors_.at(name).shape != std::vector<std::uint64_t>{size_}) {
        fail("tensor " + one_line(name, 80) + " is a norm over all heads: heads cannot be cut");
      }
      known.push_back(name);
    }
    require_known(output, known);
  }

  static std::string bias_of(const std::string& weight) {
    return weight.substr(0, weight.rfind('.')) + ".bias";
  }

  /// Another tensor of the attention may have a place for each head too.
  void require_known(const std::string& output, const std::vector<std::string>& known) const {
    const std::string module = output.substr(0, output.rfind('.', output.rfind('.') - 1) + 1);
    for (auto at = tensors_.lower_bound(module);
         at != tensors_.end() && at->first.starts_with(module); ++at) {
      if (std::ranges::find(known, at->first) != known.end()) continue;
      fail("has tensor " + one_line(at->first, 80) + ", which models of type " + family().name +
           " lack: heads cannot be cut");
    }
  }

  std::string checkpoint_, config_;
  TensorTable tensors_;
  ModelConfig model_;
  std::vector<Kept> kept_;
  std::uint64_t size_ = 0;  ///< of a head
};

}  // namespace

void cut_heads(const std::string& checkpoint, const HeadsOfLayers& removed,
               CheckpointChanges& changes) {
  HeadCutter(checkpoint, removed).cut(changes);
}

}  // namespace headlab
