// SPDX-License-Identifier: Apache-2.0
#include "engine/files/changed_checkpoint.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <system_error>
#include <utility>

#include "engine/files/atomic_file.h"
#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/models/safetensors.h"
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
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() == ".safetensors") {
        files_.emplace(entry.path().filename().string(),
                       std::make_unique<SafetensorsFile>(entry.path().string()));
      }
    }
    if (files_.empty()) reject({folder}, "", "has no safetensors file");
  }

  /// By the name of the file.
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

void write_patches(const std::string& path, const std::vector<Patch>& patches) {
  errno = 0;
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  for (const Patch& patch : patches) {
    file.seekp(static_cast<std::streamoff>(patch.at));
    file.write(patch.bytes.data(), static_cast<std::streamsize>(patch.bytes.size()));
  }
  file.flush();
  if (!file) throw cannot_be_written(path, errno);
}

/// A folder that is taken away again where it did not become another one.
class MadeFolder {
 public:
  explicit MadeFolder(std::string path) : path_(std::move(path)), scratch_(path_) {}
  ~MadeFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  MadeFolder(const MadeFolder&) = delete;
  MadeFolder& operator=(const MadeFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  ScratchPath scratch_;
};

/// Puts a folder in the place of another, which stays where that fails.
void replace_folder(const std::string& made, const std::string& target) {
  const std::string before = made + "-before";
  fs::rename(target, before);
  std::error_code error;
  fs::rename(made, target, error);
  if (error) {
    fs::rename(before, target);
    throw fs::filesystem_error("", error);
  }
  fs::remove_all(before);
}

}  // namespace

void write_changed_checkpoint(const std::string& checkpoint, const std::string& out,
                              const std::vector<TensorChange>& changes, const std::string& record,
                              bool overwrite) {
  if (!fs::is_directory(checkpoint)) reject({checkpoint}, "", "is not the folder of a checkpoint");
  const bool there = fs::exists(out);
  if (there && fs::equivalent(checkpoint, out)) {
    reject({out}, "", "is the checkpoint itself");
  }
  if (there && !overwrite) reject({out}, "", "is there already - overwrite it, or name another");
  Tensors tensors(checkpoint);
  for (const TensorChange& change : changes) tensors.change(change);

  try {
    const fs::path parent = fs::path(out).parent_path();
    if (!parent.empty()) fs::create_directories(parent);
    const MadeFolder made(temporary_name(out));
    fs::copy(checkpoint, made.path(), fs::copy_options::recursive);
    for (const auto& [file, patches] : tensors.patches()) {
      const fs::path path = fs::path(made.path()) / file;
      // The copy of a file that may only be read may only be read too.
      fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
      write_patches(path.string(), patches);
    }
    write_atomically((fs::path(made.path()) / "headlab.json").string(), record);
    if (there) {
      replace_folder(made.path(), out);
    } else {
      fs::rename(made.path(), out);
    }
  } catch (const fs::filesystem_error& error) {
    throw RunFailed(one_line(out) + ": cannot be written (" + error.code().message() + ")");
  }
}

}  // namespace headlab
