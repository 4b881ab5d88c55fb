// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/model_checkpoint.h"

#include <algorithm>
#include <filesystem>

#include "engine/files/document.h"
#include "engine/files/folder.h"
#include "engine/files/input_file.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_writer.h"
#include "engine/files/words.h"

namespace headlab {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view index_ending = ".index.json";

bool is_pytorch(const std::string& path) {
  for (const char* ending : {".bin", ".pt", ".pth", ".ckpt", ".bin.index.json"}) {
    if (path.ends_with(ending)) return true;
  }
  return false;
}

[[noreturn]] void reject_pytorch(const std::string& path) {
  const std::string input = path.ends_with(index_ending) ? "SHARD.bin" : one_line(path);
  reject({path}, "",
         "is PyTorch's own format and not safetensors - convert " +
             std::string(path.ends_with(index_ending) ? "each shard" : "it") +
             " with: python3 -c \"import sys, torch; from safetensors.torch import save_file; "
             "save_file({k: v.clone().contiguous() for k, v in torch.load(sys.argv[1], "
             "map_location='cpu', weights_only=True).items()}, sys.argv[2])\" " +
             input + " model.safetensors");
}

/// The file that a folder holds its model in: the usual names first, as Transformers reads them,
/// then the only index, then the only safetensors file.
std::string model_in_folder(const std::string& folder) {
  const std::vector<std::string> names = names_in(folder);
  const auto full = [&](const std::string& name) { return (fs::path(folder) / name).string(); };
  for (const char* usual : {"model.safetensors", "model.safetensors.index.json"}) {
    if (std::ranges::find(names, usual) != names.end()) return full(usual);
  }
  for (const char* ending : {".safetensors.index.json", ".safetensors"}) {
    std::vector<std::string> found;
    std::ranges::copy_if(names, std::back_inserter(found),
                         [&](const std::string& name) { return name.ends_with(ending); });
    if (found.size() == 1) return full(found[0]);
    const std::size_t number = found.empty() ? 0 : found[0].find("-00001-of-");
    if (found.size() > 1 && number != std::string::npos) {
      reject({folder}, "",
             "has shards of a model and no index - download " +
                 one_line(found[0].substr(0, number)) + ".safetensors.index.json too");
    }
    if (found.size() > 1) {
      reject({folder}, "",
             "has " + std::to_string(found.size()) +
                 " models and none is called model.safetensors - name one: " +
                 one_line(listed(found), 400));
    }
  }
  for (const std::string& name : names) {
    if (is_pytorch(name)) reject_pytorch(full(name));
  }
  reject({folder}, "", "has no safetensors file (looked for model.safetensors, *.safetensors)");
}

bool is_plain_name(const std::string& name) {
  return name.find('/') == std::string::npos && name.find('\0') == std::string::npos &&
         name.ends_with(".safetensors");
}

}  // namespace

ShardIndex parse_shard_index(std::string_view text, const std::string& source) {
  const std::optional<Value> json = parse_json(text);
  if (!json) reject({source}, "", "is not JSON" + end_of_json(text));
  const Value::Members map = members_of(member(*json, "weight_map"));
  if (map.empty()) {
    reject({source}, "",
           "is not an index of shards: needs an object \"weight_map\" {TENSOR: SHARD}");
  }
  ShardIndex index;
  for (const auto& [tensor, location, shard] : map) {
    if (!is_plain_name(text_of(shard))) {
      reject({source}, "weight_map",
             "tensor \"" + one_line(tensor, 80) + "\" is in " +
                 one_line(to_json(shard, {.lines = 0, .ascii = true}), 80) +
                 " (allowed: the name of a .safetensors file in the same folder)");
    }
    index.emplace(tensor, text_of(shard));
  }
  return index;
}

void require_model(const std::string& path) {
  std::error_code error;
  if (fs::status(path, error).type() != fs::file_type::not_found) return;
  reject({path}, "",
         "is not there - download the model first, then give its folder or safetensors file");
}

ModelCheckpoint::ModelCheckpoint(const std::string& path) : source_(path) {
  std::error_code error;
  if (fs::is_directory(path, error)) source_ = model_in_folder(path);
  if (is_pytorch(source_)) reject_pytorch(source_);
  require_model(path);
  if (source_.ends_with(index_ending)) {
    index_ = parse_shard_index(read_file(source_, max_index_bytes), source_);
  } else {
    single_ = std::make_unique<SafetensorsFile>(source_);
  }
}

bool ModelCheckpoint::has(const std::string& tensor) const {
  return single_ ? single_->tensors().contains(tensor) : index_.contains(tensor);
}

bool ModelCheckpoint::has_names_from(const std::string& prefix) const {
  const auto in = [&](const auto& names) {
    const auto at = names.lower_bound(prefix);
    return at != names.end() && at->first.starts_with(prefix);
  };
  return single_ ? in(single_->tensors()) : in(index_);
}

SafetensorsFile& ModelCheckpoint::file_of(const std::string& tensor) {
  if (single_) return *single_;
  const std::string& shard = index_.at(tensor);
  auto& file = open_[shard];
  if (!file) {
    const std::string path = (fs::path(source_).parent_path() / shard).string();
    std::error_code error;
    if (!fs::exists(path, error)) {
      reject({path}, "",
             "is missing - " + source_ + " places tensor " + one_line(tensor) + " there");
    }
    file = std::make_unique<SafetensorsFile>(path);
  }
  if (!file->tensors().contains(tensor)) {
    reject({file->source()}, "",
           "has no tensor " + one_line(tensor) + ", which " + source_ + " places there");
  }
  return *file;
}

const std::string& ModelCheckpoint::source_of(const std::string& tensor) {
  return file_of(tensor).source();
}

const TensorInfo& ModelCheckpoint::info(const std::string& tensor) {
  return file_of(tensor).tensors().at(tensor);
}

std::vector<double> ModelCheckpoint::read(const std::string& tensor) {
  return file_of(tensor).read(tensor);
}

std::string config_next_to(const std::string& path) {
  std::error_code error;
  const fs::path folder =
      fs::is_directory(path, error) ? fs::path(path) : fs::path(path).parent_path();
  const fs::path config = folder / "config.json";
  return fs::exists(config, error) ? config.string() : "";
}

}  // namespace headlab
