// SPDX-License-Identifier: Apache-2.0
#include "engine/files/models/changed_checkpoint.h"

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "engine/files/atomic_file.h"
#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/folder.h"
#include "engine/files/input_file.h"
#include "engine/files/json_reader.h"
#include "engine/files/json_writer.h"
#include "engine/files/models/model_checkpoint.h"
#include "engine/files/npy_file.h"
#include "engine/files/temporary_path.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

/// Bytes that go to a place of a file.
struct Patch {
  std::uint64_t at = 0;
  std::string bytes;
};

/// The safetensors files of a folder.
class Tensors {
 public:
  explicit Tensors(const std::string& folder) : folder_(folder) {
    for (const std::string& name : names_in(folder)) {
      const fs::path path = fs::path(folder) / name;
      if (path.extension() == ".safetensors") {
        files_.emplace(name, std::make_unique<SafetensorsFile>(path.string()));
      }
    }
    if (files_.empty()) reject({folder}, "", "has no safetensors file");
  }

  /// By the name of the file.
  const std::map<std::string, std::unique_ptr<SafetensorsFile>>& files() const { return files_; }
  const std::map<std::string, std::vector<Patch>>& patches() const { return patches_; }

  void change(const TensorChange& change) {
    const auto [file, tensor] = place_of(change.name);
    SafetensorsFile& from = *files_.at(file);
    const TensorInfo& info = from.tensors().at(tensor);
    if (info.shape != change.shape) {
      reject({folder_}, "",
             "tensor " + one_line(tensor, 80) + " has shape " + shape_text(info.shape) +
                 ", the plan has " + shape_text(change.shape));
    }
    if (!is_float_tensor(info)) {
      reject({folder_}, "",
             "tensor " + one_line(tensor, 80) + " has type " + info.type +
                 " (allowed: F64, F32, F16, BF16)");
    }
    std::vector<double> numbers = change.numbers;
    if (change.added) {
      const std::vector<double> before = from.read(tensor);
      for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] += before[i];
    }
    patches_[file].push_back({from.data() + info.begin, tensor_bytes(info.type, numbers)});
  }

  /// The cuts of each file.
  std::map<std::string, std::vector<TensorCut>> with(const std::vector<TensorCut>& cuts) const {
    std::map<std::string, std::vector<TensorCut>> all;
    for (const TensorCut& cut : cuts) all[place_of(cut.name).first].push_back(cut);
    return all;
  }

 private:
  /// File and name of a tensor.
  std::pair<std::string, std::string> place_of(const std::string& wanted) const {
    std::vector<std::pair<std::string, std::string>> found;
    for (const auto& [file, tensors] : files_) {
      for (const auto& [name, _] : tensors->tensors()) {
        if (name == wanted || name.ends_with("." + wanted) || wanted.ends_with("." + name)) {
          found.emplace_back(file, name);
        }
      }
    }
    if (found.size() == 1) return found[0];
    reject({folder_}, "",
           found.empty() ? "has no tensor " + one_line(wanted, 80)
                         : "has " + std::to_string(found.size()) + " tensors " +
                               one_line(wanted, 80) + " - write more of the name");
  }

  std::string folder_;
  std::map<std::string, std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, std::vector<Patch>> patches_;
};

/// The length of an axis after a cut.
std::uint64_t length_of(const TensorCut& cut) {
  std::uint64_t length = 0;
  for (const AxisPart& part : cut.kept) length += part.count;
  return length;
}

std::uint64_t product(const std::vector<std::uint64_t>& shape, std::size_t begin, std::size_t end) {
  std::uint64_t count = 1;
  for (std::size_t axis = begin; axis < end; ++axis) count *= shape[axis];
  return count;
}

/// The bytes of a tensor that stay.
std::string cut_bytes(const std::string& bytes, const std::vector<std::uint64_t>& shape,
                      const TensorCut& cut) {
  const std::uint64_t outer = product(shape, 0, cut.axis),
                      place = bytes.size() / product(shape, 0, cut.axis + 1);
  std::string kept;
  for (std::uint64_t i = 0; i < outer; ++i) {
    for (const AxisPart& part : cut.kept) {
      kept.append(bytes, (i * shape[cut.axis] + part.first) * place, part.count * place);
    }
  }
  return kept;
}

/// The header of a safetensors file with its length in front.
std::string header_bytes(const std::vector<std::pair<std::string, TensorInfo>>& tensors,
                         const std::map<std::string, std::string>& metadata) {
  std::string text;
  JsonWriter json([&](std::string_view part) { text += part; }, {.lines = 0});
  json.begin_object();
  if (!metadata.empty()) {
    json.key("__metadata__");
    json.begin_object();
    for (const auto& [name, value] : metadata) {
      json.key(name);
      json.string(value);
    }
    json.end_object();
  }
  for (const auto& [name, tensor] : tensors) {
    const auto numbers = [&](const char* key, const std::vector<std::uint64_t>& all) {
      json.key(key);
      json.begin_array();
      for (const std::uint64_t one : all) json.number(one);
      json.end_array();
    };
    json.key(name);
    json.begin_object();
    json.key("dtype");
    json.string(tensor.type);
    numbers("shape", tensor.shape);
    numbers("data_offsets", {tensor.begin, tensor.end});
    json.end_object();
  }
  json.end_object();
  json.finish();
  // The tensors begin at a multiple of eight bytes.
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes += static_cast<char>(text.size() >> 8 * i & 255);
  return bytes + text;
}

/// Rewrites the file with only the kept parts of some tensors. Returns how many bytes shorter it
/// is.
std::uint64_t write_cuts(const std::string& path, const std::vector<TensorCut>& cuts) {
  const SafetensorsFile before(path);
  std::vector<std::pair<std::string, TensorInfo>> in_order(before.tensors().begin(),
                                                           before.tensors().end());
  std::ranges::sort(in_order, {},
                    [](const auto& one) { return std::pair(one.second.begin, one.second.end); });
  const auto cut_of = [&](const std::string& name) {
    const auto found = std::ranges::find(cuts, name, &TensorCut::name);
    return found == cuts.end() ? nullptr : &*found;
  };
  std::vector<std::pair<std::string, TensorInfo>> after = in_order;
  std::uint64_t at = 0;
  for (auto& [name, tensor] : after) {
    std::uint64_t size = tensor.end - tensor.begin;
    if (const TensorCut* const cut = cut_of(name)) {
      std::uint64_t& length = tensor.shape[cut->axis];
      size = size / length * length_of(*cut);
      length = length_of(*cut);
    }
    tensor.begin = at;
    tensor.end = at += size;
  }
  const std::unique_ptr<std::istream> from = open_regular(path);
  write_atomically(path, [&](const TextSink& out) {
    out(header_bytes(after, before.metadata()));
    for (const auto& [name, tensor] : in_order) {
      const std::string bytes =
          read_bytes(*from, path, before.data() + tensor.begin, tensor.end - tensor.begin);
      const TensorCut* const cut = cut_of(name);
      out(cut == nullptr ? bytes : cut_bytes(bytes, tensor.shape, *cut));
    }
  });
  return in_order.back().second.end - at;
}

/// The bytes that the index of several files says there are.
void write_total_size(const std::string& path, std::uint64_t lost) {
  std::optional<Value> index = parse_json(read_file(path, max_index_bytes), MemberOrder::of_file);
  Value* const metadata = index ? index->find("metadata") : nullptr;
  Value* const total = metadata != nullptr ? metadata->find("total_size") : nullptr;
  const auto before = total != nullptr ? count_of(*total) : std::nullopt;
  if (!before || *before < lost) return;  // nothing depends on it
  total->data = static_cast<std::int64_t>(*before - lost);
  write_atomically(path, to_json(*index, {}) + "\n");
}

/// Copies a file with its permissions and with the patches in their places.
void copy_file(const fs::path& from, const fs::path& to, const std::vector<Patch>& patches) {
  InputFile file(from.string());
  write_atomically(to.string(), [&](const TextSink& out) {
    std::string block(std::size_t{1} << 20, '\0');
    std::uint64_t begin = 0;
    while (const std::size_t count = file.read(block.data(), block.size())) {
      const std::uint64_t end = begin + count;
      for (const Patch& patch : patches) {
        const std::uint64_t first = std::max(begin, patch.at),
                            last = std::min(end, patch.at + patch.bytes.size());
        if (first < last) {
          patch.bytes.copy(&block[first - begin], last - first, first - patch.at);
        }
      }
      out(std::string_view(block).substr(0, count));
      begin = end;
    }
  });
  fs::permissions(to, fs::status(from).permissions());
}

/// Copies a folder, of links to files what they lead to, with the patches of each file at its top.
void copy_folder(const fs::path& from, const fs::path& to,
                 const std::map<std::string, std::vector<Patch>>& patches) {
  fs::create_directory(to);
  fs::permissions(to, fs::status(from).permissions() | fs::perms::owner_all);
  for (const std::string& name : names_in(from.string())) {
    const fs::path path = from / name;
    if (fs::is_directory(path) && fs::is_symlink(path)) {
      fs::copy_symlink(path, to / name);
    } else if (fs::is_directory(path)) {
      copy_folder(path, to / name, {});
    } else {
      const auto of_file = patches.find(name);
      copy_file(path, to / name, of_file == patches.end() ? std::vector<Patch>() : of_file->second);
    }
  }
}

/// A folder that is taken away again where it did not become another one.
class MadeFolder {
 public:
  explicit MadeFolder(std::string path) : path_(std::move(path)), scratch_(path_) {}
  ~MadeFolder() { remove_made(path_); }
  MadeFolder(const MadeFolder&) = delete;
  MadeFolder& operator=(const MadeFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  ScratchPath scratch_;
};

/// Exchanges two folders, as one step where the file system can: then a kill leaves either whole in
/// the place of the old one. Elsewhere it may leave the old one as MADE-before.
void exchange_folders(const std::string& made, const std::string& target) {
  if (::renameat2(AT_FDCWD, made.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return;
  const std::string before = made + "-before";
  fs::rename(target, before);
  std::error_code error;
  fs::rename(made, target, error);
  if (error) {
    fs::rename(before, target);
    throw fs::filesystem_error("", error);
  }
  fs::rename(before, made);
}

}  // namespace

TensorTable checkpoint_tensors(const std::string& checkpoint) {
  if (!fs::is_directory(checkpoint)) reject({checkpoint}, "", "is not the folder of a checkpoint");
  TensorTable all;
  const Tensors tensors(checkpoint);
  for (const auto& [_, file] : tensors.files()) {
    all.insert(file->tensors().begin(), file->tensors().end());
  }
  return all;
}

void write_changed_checkpoint(const std::string& checkpoint, const std::string& out,
                              const CheckpointChanges& changes, bool overwrite) {
  if (!fs::is_directory(checkpoint)) reject({checkpoint}, "", "is not the folder of a checkpoint");
  const bool there = fs::exists(out);
  if (there && fs::equivalent(checkpoint, out)) {
    reject({out}, "", "is the checkpoint itself");
  }
  if (there && !overwrite) reject({out}, "", "is there already - overwrite it, or name another");
  Tensors tensors(checkpoint);
  for (const TensorChange& change : changes.tensors) tensors.change(change);

  const std::string name = temporary_name(out);
  try {
    fs::create_directories(folder_of(out));
    clear_temporaries(folder_of(out));
    const MadeFolder made(name);
    copy_folder(checkpoint, made.path(), tensors.patches());
    const auto inside = [&](const std::string& file) {
      return (fs::path(made.path()) / file).string();
    };
    std::uint64_t lost = 0;
    for (const auto& [file, cuts] : tensors.with(changes.cuts)) {
      lost += write_cuts(inside(file), cuts);
    }
    const std::string index = inside("model.safetensors.index.json");
    if (lost > 0 && fs::exists(index)) write_total_size(index, lost);
    if (!changes.config.empty()) write_atomically(inside("config.json"), changes.config);
    write_atomically(inside("headlab.json"), changes.record);
    if (there) {
      exchange_folders(made.path(), out);
    } else {
      fs::rename(made.path(), out);
    }
  } catch (const fs::filesystem_error& error) {
    throw cannot_be_written(one_line(out), error.code().value());
  } catch (const RunFailed& error) {
    std::string said = error.what();
    if (said.starts_with(name)) said.replace(0, name.size(), out);
    throw RunFailed(said);
  }
}

}  // namespace headlab
