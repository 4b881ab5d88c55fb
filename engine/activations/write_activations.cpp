// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "engine/activations/activations.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/provenance.h"

namespace headlab {
namespace {

/// Dimensions of an array, which are made where the group has none of that length: an axis that may
/// be 1 has a name of its own then.
std::vector<std::string> dimensions_of(const NetcdfGroup& group, const ActivationArray& array,
                                       const std::vector<std::uint64_t>& shape) {
  std::vector<std::string> names;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    std::string name = array.axes[axis];
    if (name.ends_with("_or_1")) name = shape[axis] == 1 ? "one" : name.substr(0, name.size() - 5);
    if (name == "checked") name += "_" + std::string(array.name);
    if (!group.has_dimension(name)) group.define_dimension(name, shape[axis]);
    names.push_back(name);
  }
  return names;
}

void put_layer(const NetcdfGroup& root, const std::shared_ptr<ArrayFile>& file, int number) {
  const auto layer = std::make_shared<const LayerActivations>(file, number);
  const NetcdfGroup group = root.define_group("layer_" + std::to_string(number));
  if (layer->has_attention()) {
    const AttentionRule& rule = layer->rule();
    group.put_attribute("scale", rule.scale);
    if (rule.softcap > 0) group.put_attribute("softcap", rule.softcap);
    if (rule.window > 0) group.put_attribute("window", static_cast<std::int64_t>(rule.window));
    if (layer->precision() == NumberKind::half) group.put_attribute("precision", "half");
    if (!layer->has("mask")) group.put_attribute("mask", rule.causal ? "causal" : "full");
  }
  for (const ActivationArray& array : activation_arrays()) {
    if (!layer->has(array.name)) continue;
    const ArrayInfo& info = layer->info(array.name);
    const std::vector<std::string> dimensions = dimensions_of(group, array, info.shape);
    if (info.kind == NumberKind::whole) {
      std::vector<std::int64_t> numbers;
      for (const double one : layer->all(array.name)) numbers.push_back(std::llround(one));
      group.write(array.name, dimensions, {.long_name = array.meaning}, std::move(numbers));
    } else {
      group.write(
          array.name, dimensions, {.long_name = array.meaning},
          [layer, name = std::string(array.name)] { return layer->all(name); },
          info.kind != NumberKind::exact);
    }
  }
}

}  // namespace

void write_activations(const std::string& path, const std::shared_ptr<ArrayFile>& file) {
  NetcdfImage image;
  const NetcdfGroup root = image.root();
  const Provenance program = provenance();
  root.put_attribute("title", "Activations of attention layers");
  root.put_attribute("source", "headlab " + program.version);
  root.put_attribute("git", program.git);
  for (const int number : layers_of(*file)) put_layer(root, file, number);
  image.save(path);
}

}  // namespace headlab
