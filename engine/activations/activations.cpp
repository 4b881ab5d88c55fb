// SPDX-License-Identifier: Apache-2.0
#include "engine/activations/activations.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/words.h"
#include "kernels/counted.h"

namespace headlab {
namespace {

using Eigen::Index;

constexpr std::string_view layer_start = "layers.";
/// More would not fit into memory as pairs.
constexpr std::size_t max_attention_heads = 1024;

/// Layer and name of "layers.3.q"; layer 0 for a plain name.
std::optional<std::pair<int, std::string>> parts_of(const std::string& full) {
  if (!full.starts_with(layer_start)) return std::pair(0, full);
  const std::size_t dot = full.find('.', layer_start.size());
  int layer = -1;
  if (dot == std::string::npos) return {};
  const auto [end, error] =
      std::from_chars(full.data() + layer_start.size(), full.data() + dot, layer);
  if (error != std::errc() || end != full.data() + dot || layer < 0) return {};
  return std::pair(layer, full.substr(dot + 1));
}

const std::vector<std::string> settings = {"scale", "softcap", "window"};

/// The name of an axis, where that may have length 1 instead.
std::string without_or_one(const std::string& axis) {
  constexpr std::string_view or_one = "_or_1";
  return axis.ends_with(or_one) ? axis.substr(0, axis.size() - or_one.size()) : axis;
}

/// Dimensions that files of this program have as variables.
bool is_known(const std::string& name) {
  const auto& arrays = activation_arrays();
  return std::ranges::find(arrays, name, &ActivationArray::name) != arrays.end() ||
         std::ranges::find(settings, name) != settings.end();
}

}  // namespace

const std::vector<ActivationArray>& activation_arrays() {
  static const std::vector<ActivationArray> all = {
      {"q", {"sequence", "head", "query", "k"}, false, "queries, as the attention sees them"},
      {"k", {"sequence", "group", "key", "k"}, false, "keys, as the attention sees them"},
      {"v", {"sequence", "group", "key", "value"}, false, "values"},
      {"W_O", {"head", "value", "d"}, false, "output map of each head"},
      {"b_O", {"d"}, false, "bias of the output"},
      {"z", {"sequence", "head", "query", "value"}, false, "weighted values"},
      {"residual", {"sequence", "query", "d"}, false, "input of the block"},
      {"grad_z", {"sequence", "head", "query", "value"}, false, "gradient of the loss by z, nats"},
      {"grad_output", {"sequence", "query", "d"}, false, "gradient of the loss by the output"},
      {"W_V", {"group", "d", "value"}, false, "value map of each group"},
      {"attention", {"checked", "head", "query", "key"}, false, "the model's own weights"},
      {"output", {"checked", "query", "d"}, false, "output of the attention block"},
      {"bias", {"sequence_or_1", "head_or_1", "query", "key"}, false, "added to logits"},
      {"alibi", {"head"}, false, "slope of a bias in the distance"},
      {"sink", {"head"}, false, "logit that takes weight"},
      {"mask", {"sequence_or_1", "head_or_1", "query", "key"}, true, "1: seen"},
      {"valid", {"sequence", "key"}, true, "1: no padding"},
      {"length", {"sequence"}, true, "tokens that are not padding"},
      {"document", {"sequence"}, true, "document of a sequence"},
      {"tokens", {"sequence", "token"}, true, "tokens"},
      {"target", {"sequence", "query", "p"}, false, "what each query is to tell"}};
  return all;
}

std::shared_ptr<ArrayFile> open_activation_files(const std::vector<std::string>& paths) {
  NamedAxes axes{.items = "sequence"};
  for (const ActivationArray& array : activation_arrays()) {
    std::vector<std::string> names = array.axes;
    for (std::string& name : names) name = without_or_one(name);
    axes.of.emplace(array.name, std::move(names));
  }
  return open_array_files(paths, axes);
}

std::vector<int> layers_of(const ArrayFile& file) {
  std::set<int> found;
  for (const auto& [full, info] : file.arrays()) {
    const auto parts = parts_of(full);
    if (!parts || !is_known(parts->second)) {
      if (file.arrays().contains("subspaces")) {
        reject({file.source()}, "",
               "has heads by their weights, not what they did on text - give it to headlab hdi or "
               "headlab compress");
      }
      std::vector<std::string> names = settings;
      for (const ActivationArray& one : activation_arrays()) names.emplace_back(one.name);
      const std::string name = parts ? parts->second : full;
      reject({file.source()}, "",
             "has array " + one_line(full, 80) + ", which no layer has" + suggestion(name, names));
    }
    if (std::ranges::find(settings, parts->second) == settings.end()) found.insert(parts->first);
  }
  if (found.empty()) reject({file.source()}, "", "has no arrays of a layer");
  return {found.begin(), found.end()};
}

LayerActivations::LayerActivations(std::shared_ptr<ArrayFile> file, int number)
    : file_(std::move(file)), number_(number) {
  if (!has("W_O")) fail("W_O", "is missing: the output maps of the heads [H, e, d]");
  if (!has("z") && !(has("q") && has("k") && has("v"))) {
    fail("q", "q, k and v, or z, are needed: what the heads did");
  }
  if (has("q") != has("k") || has("q") != has("v")) fail("q", "q, k and v come together");
  for (const ActivationArray& array : activation_arrays()) {
    if (!has(array.name) || array.axes.size() == info(array.name).shape.size()) continue;
    fail(array.name,
         "has shape " + shape_text(info(array.name).shape) + ", needs " + listed(array.axes));
  }
  read_shape();
  check_shapes();
  read_rule();
  read_documents();
}

void LayerActivations::fail(const std::string& name, const std::string& problem) const {
  const bool named = file_->arrays().contains("layers." + std::to_string(number_) + ".W_O");
  reject({file_->source()}, (named ? "layers." + std::to_string(number_) + "." : "") + name,
         problem);
}

std::string LayerActivations::name_of(const std::string& name) const {
  const std::string own = "layers." + std::to_string(number_) + "." + name;
  if (file_->arrays().contains(own)) return own;
  return number_ == 0 && file_->arrays().contains(name) ? name : "";
}

const ArrayInfo& LayerActivations::info(const std::string& name) const {
  return file_->arrays().at(name_of(name));
}

std::vector<double> LayerActivations::all(const std::string& name) const {
  std::vector<double> numbers = file_->read(name_of(name));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (!std::isfinite(numbers[i]))
      fail(name, "is not finite at " + element_text(info(name).shape, i));
  }
  return numbers;
}

std::string LayerActivations::text(const std::string& name) const {
  for (const std::string& full : {"layers." + std::to_string(number_) + "." + name, name}) {
    const auto found = file_->texts().find(full);
    if (found != file_->texts().end()) return found->second;
  }
  return "";
}

/// A setting: a number of the layer or of the file, or the text of one.
std::optional<double> LayerActivations::number(const std::string& name) const {
  for (const std::string& full : {"layers." + std::to_string(number_) + "." + name, name}) {
    const auto found = file_->arrays().find(full);
    if (found == file_->arrays().end()) continue;
    if (!found->second.shape.empty()) fail(name, "is an array, needs a number");
    return file_->read(full)[0];
  }
  const std::string written = text(name);
  if (written.empty() || written == "none") return {};
  double value = 0;
  const auto [end, error] = std::from_chars(written.data(), written.data() + written.size(), value);
  if (error != std::errc() || end != written.data() + written.size()) {
    fail(name, "is \"" + one_line(written, 40) + "\", needs a number");
  }
  return value;
}

void LayerActivations::fail_not_finite(const std::string& name, std::size_t b,
                                       std::size_t position) const {
  std::vector<std::uint64_t> shape = info(name).shape;
  shape[0] = 1;
  fail(name,
       "is not finite at " + element_text(shape, position) + " of sequence " + std::to_string(b));
}

template <class T>
void LayerActivations::read_item(const std::string& name, std::size_t b,
                                 std::vector<T>& numbers) const {
  const std::string full = name_of(name);
  numbers.resize(file_->numbers_in_item(full));
  file_->read_item(full, b, numbers);
  const auto wrong = first_not_finite(std::span<const T>(numbers));
  if (!wrong) return;
  const bool may_hide = name == "bias";
  for (std::size_t i = *wrong; i < numbers.size(); ++i) {
    const bool hides = may_hide && numbers[i] == -std::numeric_limits<T>::infinity();
    if (!std::isfinite(numbers[i]) && !hides) fail_not_finite(name, b, i);
  }
}

std::vector<double> LayerActivations::item(const std::string& name, std::size_t b) const {
  std::vector<double> numbers;
  read_item(name, b, numbers);
  return numbers;
}

void LayerActivations::read_shape() {
  const std::vector<std::uint64_t>& maps = info("W_O").shape;
  shape_.heads = shape_.groups = maps[0];
  shape_.e = maps[1];
  if (shape_.heads < 1 || shape_.heads > max_attention_heads || shape_.e < 1) {
    fail("W_O", "has shape " + shape_text(maps) + " (allowed: H x e x d with H from 1 to 1024)");
  }
  const std::vector<std::uint64_t>& first = info(has("q") ? "q" : "z").shape;
  sequences_ = first[0];
  shape_.queries = shape_.keys = first[2];
  if (!has("q")) return;
  if (first[1] != shape_.heads && first[2] == shape_.heads) {
    fail("q", "has shape " + shape_text(first) + " where W_O has " + counted(shape_.heads, "head") +
                  ": its heads are third - give another layout (bhtk, bthk)");
  }
  const std::vector<std::uint64_t>& keys = info("k").shape;
  shape_.groups = keys[1];
  shape_.keys = keys[2];
  shape_.k = first[3];
  for (const char* name : {"q", "k", "v"}) precision_ = std::min(precision_, info(name).kind);
  if (text("precision") == "half") precision_ = NumberKind::half;
  if (shape_.groups < 1 || shape_.heads % shape_.groups != 0) {
    fail("k", "has " + counted(shape_.groups, "group") + ", which do not divide the " +
                  counted(shape_.heads, "head") + " of W_O");
  }
  if (shape_.keys < shape_.queries) {
    fail("k", "has " + counted(shape_.keys, "key") + ", fewer than the " +
                  counted(shape_.queries, "query", "queries") + " of q");
  }
}

void LayerActivations::check_shapes() const {
  std::map<std::string, std::uint64_t> lengths = {
      {"sequence", sequences_},   {"head", shape_.heads}, {"group", shape_.groups},
      {"query", shape_.queries},  {"key", shape_.keys},   {"value", shape_.e},
      {"d", info("W_O").shape[2]}};
  if (has("q")) lengths["k"] = shape_.k;
  for (const ActivationArray& array : activation_arrays()) {
    if (!has(array.name)) continue;
    const ArrayInfo& found = info(array.name);
    if (array.whole != (found.kind == NumberKind::whole)) {
      fail(array.name, array.whole ? "has fractions, needs whole numbers or booleans"
                                   : "has whole numbers, needs floats");
    }
    for (std::size_t axis = 0; axis < array.axes.size(); ++axis) {
      const std::string name = without_or_one(array.axes[axis]);
      const std::uint64_t length = found.shape[axis];
      if (name != array.axes[axis] && length == 1) continue;
      const auto wanted = lengths.find(name);
      const bool fits = wanted == lengths.end() || length == wanted->second;
      if (fits && length > 0 && (name != "checked" || length <= sequences_)) continue;
      fail(array.name, "has shape " + shape_text(found.shape) + ": its axis " + name + " needs " +
                           (wanted == lengths.end() ? "at most the number of sequences"
                                                    : std::to_string(wanted->second)));
    }
  }
}

void LayerActivations::read_rule() {
  if (!has("q")) return;
  rule_.scale = number("scale").value_or(1 / std::sqrt(static_cast<double>(shape_.k)));
  if (!(rule_.scale > 0 && std::isfinite(rule_.scale))) fail("scale", "needs a number above 0");
  const std::optional<double> cap = number("softcap"), window = number("window");
  if (cap && !(*cap > 0 && std::isfinite(*cap))) fail("softcap", "needs a number above 0");
  rule_.softcap = cap.value_or(0);
  if (window && !(*window >= 1 && *window < 0x1p53 && *window == std::floor(*window))) {
    fail("window", "needs a whole number of keys, at least 1");
  }
  rule_.window = static_cast<std::size_t>(window.value_or(0));
  const std::string mask = text("mask");
  if (!mask.empty() && mask != "causal" && mask != "full") {
    fail("mask", "is \"" + one_line(mask, 40) + "\" (allowed: causal, full, or an array)");
  }
  rule_.causal = !has("mask") && mask != "full";
  if (has("alibi")) rule_.alibi = all("alibi");
  if (has("sink")) rule_.sink = all("sink");
}

void LayerActivations::read_documents() {
  std::vector<double> numbers(sequences_);
  std::iota(numbers.begin(), numbers.end(), 0.0);
  if (has("document")) numbers = all("document");
  const std::set<double> distinct(numbers.begin(), numbers.end());
  documents_ = distinct.size();
  for (const double number : numbers) {
    const auto before = std::distance(distinct.begin(), distinct.find(number));
    document_of_.push_back(static_cast<std::size_t>(before));
  }
}

template <class T>
AttentionSequence<T> LayerActivations::sequence(std::size_t b) const {
  AttentionSequence<T> out;
  read_sequence(b, {}, out);
  return out;
}

template <class T>
void LayerActivations::read_sequence(std::size_t b, std::span<const std::uint32_t> queries,
                                     AttentionSequence<T>& out) const {
  out.shape = shape_;
  read_item("k", b, out.k);
  read_item("v", b, out.v);
  const auto place = [&](const char* name) { return info(name).shape[0] == 1 ? 0 : b; };
  if (has("bias")) read_item("bias", place("bias"), out.bias);
  out.unseen.clear();
  if (has("mask")) {
    for (const double seen : item("mask", place("mask"))) out.unseen.push_back(seen == 0 ? 1 : 0);
  }
  out.padding = padding(b);
  out.held.clear();
  if (queries.empty()) return read_item("q", b, out.q);
  out.held.assign(queries.begin(), queries.end());
  out.q.resize(shape_.heads * queries.size() * shape_.k);
  file_->read_rows(name_of("q"), b, queries, out.q);
  if (const auto wrong = first_not_finite(std::span<const T>(out.q))) {
    const std::size_t row = *wrong / shape_.k, head = row / queries.size();
    const std::size_t at = (head * shape_.queries + queries[row % queries.size()]) * shape_.k;
    fail_not_finite("q", b, at + *wrong % shape_.k);
  }
}

template AttentionSequence<float> LayerActivations::sequence(std::size_t) const;
template AttentionSequence<double> LayerActivations::sequence(std::size_t) const;
template void LayerActivations::read_sequence(std::size_t, std::span<const std::uint32_t>,
                                              AttentionSequence<float>&) const;
template void LayerActivations::read_sequence(std::size_t, std::span<const std::uint32_t>,
                                              AttentionSequence<double>&) const;

/// Of each key, not 0 where it is padding; empty where none is.
std::vector<unsigned char> LayerActivations::padding(std::size_t b) const {
  std::vector<unsigned char> all;
  if (has("valid")) {
    for (const double valid : item("valid", b)) all.push_back(valid == 0 ? 1 : 0);
  } else if (has("length")) {
    const double length = item("length", b)[0];
    for (std::size_t s = 0; s < shape_.keys; ++s) {
      all.push_back(static_cast<double>(s) < length ? 0 : 1);
    }
  }
  return all;
}

std::vector<std::uint32_t> LayerActivations::keys(std::size_t b) const {
  const std::vector<unsigned char> hidden = padding(b);
  std::vector<std::uint32_t> found;
  for (std::size_t s = 0; s < shape_.keys; ++s) {
    if (hidden.empty() || hidden[s] == 0) found.push_back(static_cast<std::uint32_t>(s));
  }
  return found;
}

/// Queries stand at the last keys.
std::vector<std::uint32_t> LayerActivations::tokens(std::size_t b) const {
  const auto before = static_cast<std::uint32_t>(shape_.keys - shape_.queries);
  std::vector<std::uint32_t> found;
  for (const std::uint32_t s : keys(b)) {
    if (s >= before) found.push_back(s - before);
  }
  return found;
}

TokenRows LayerActivations::rows(const std::string& name, std::size_t b) const {
  const std::vector<double> numbers = item(name, b);
  const auto queries = static_cast<Index>(shape_.queries);
  if (info(name).shape.size() == 3) {
    return Eigen::Map<const TokenRows>(numbers.data(), queries,
                                       static_cast<Index>(info(name).shape[2]));
  }
  const auto heads = static_cast<Index>(shape_.heads), e = static_cast<Index>(info(name).shape[3]);
  TokenRows side_by_side(queries, heads * e);
  for (Index h = 0; h < heads; ++h) {
    side_by_side.middleCols(h * e, e) =
        Eigen::Map<const TokenRows>(numbers.data() + h * queries * e, queries, e);
  }
  return side_by_side;
}

template <class T>
Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> LayerActivations::output_map()
    const {
  Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> maps(
      static_cast<Index>(columns()), static_cast<Index>(d()));
  const std::size_t size = shape_.e * d();
  for (std::size_t h = 0; h < shape_.heads; ++h) {
    const std::span<T> own(maps.data() + h * size, size);
    file_->read_item(name_of("W_O"), h, own);
    const auto wrong = first_not_finite(std::span<const T>(own));
    if (wrong)
      fail("W_O", "is not finite at " + element_text(info("W_O").shape, h * size + *wrong));
  }
  return maps;
}

template Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>
LayerActivations::output_map() const;
template Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>
LayerActivations::output_map() const;

}  // namespace headlab
