// SPDX-License-Identifier: Apache-2.0
#include "engine/dataset/shard_output.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <unistd.h>

#include "engine/files/atomic_file.h"
#include "engine/files/error.h"
#include "engine/files/folder.h"
#include "engine/files/netcdf/file.h"
#include "engine/files/temporary_path.h"

namespace headlab {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "files hold the numbers as they are");

/// A file of known size.
class SizedFile {
 public:
  SizedFile(std::string path, std::string shown, int flags)
      : shown_(std::move(shown)),
        descriptor_(::open(path.c_str(), flags | O_WRONLY | O_CLOEXEC, 0666)) {
    if (descriptor_ < 0) throw cannot_be_written(shown_, errno);
  }
  SizedFile(SizedFile&& other) noexcept
      : shown_(std::move(other.shown_)), descriptor_(std::exchange(other.descriptor_, -1)) {}
  SizedFile& operator=(SizedFile&&) = delete;
  ~SizedFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  /// Has the disk set `bytes` aside, so that it is full now or not at all.
  void reserve(std::uint64_t bytes) {
    while (::fallocate(descriptor_, FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes)) != 0) {
      if (errno == EINTR) continue;
      if (errno == EOPNOTSUPP || errno == ENOSYS) return;  // not every file system can
      throw cannot_be_written(shown_, errno);
    }
  }

  void write(std::uint64_t at, std::span<const std::byte> bytes) {
    const std::size_t size = bytes.size();
    while (!bytes.empty()) {
      const ssize_t written =
          ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(at));
      if (written < 0) {
        if (errno == EINTR) continue;
        throw cannot_be_written(shown_, errno);
      }
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      at += static_cast<std::uint64_t>(written);
    }
    count_written(size);
  }

  /// Bytes have been written here, or past this descriptor. The disk begins on them once they are
  /// many: it works while more is drawn, and little waits in memory.
  void count_written(std::size_t bytes) {
    if ((waiting_ += bytes) < flushed_at_once) return;
    waiting_ = 0;
    start_flushing();
  }
  void start_flushing() { ::sync_file_range(descriptor_, 0, 0, SYNC_FILE_RANGE_WRITE); }

  /// Gives back what was set aside and not needed.
  void release() {
    const off_t size = ::lseek(descriptor_, 0, SEEK_END);
    if (size < 0 || ::ftruncate(descriptor_, size) != 0) throw cannot_be_written(shown_, errno);
  }

  /// Reports what a network file system keeps back until here.
  void close() {
    const int descriptor = std::exchange(descriptor_, -1);
    if (::close(descriptor) != 0 && errno != EINTR) throw cannot_be_written(shown_, errno);
  }

 private:
  static constexpr std::uint64_t flushed_at_once = std::uint64_t{16} << 20;

  std::string shown_;
  int descriptor_;
  std::atomic<std::uint64_t> waiting_ = 0;  ///< bytes written since the disk was last told to begin
};

/// A folder with one file a variable.
class NpyShard : public ShardOutput {
 public:
  NpyShard(const std::string& path, const std::string& shown,
           const std::vector<DatasetVariable>& variables) {
    std::error_code error;
    fs::create_directory(path, error);
    if (error) throw cannot_be_written(shown, error.value());
    for (const DatasetVariable& variable : variables) {
      const std::string name = variable.name + ".npy";
      const std::string header = npy_header(variable.type, variable.shape);
      SizedFile file(path + "/" + name, shown + "/" + name, O_CREAT | O_EXCL);
      file.reserve(header.size() + variable.bytes());
      file.write(0, std::as_bytes(std::span(header)));
      parts_.push_back({std::move(file), header.size(), size_of(variable.type)});
    }
  }

  void put(std::size_t variable, std::uint64_t first, std::span<const std::byte> bytes) override {
    Part& part = parts_[variable];
    part.file.write(part.header + first * part.number, bytes);
  }
  void close() override {
    for (Part& part : parts_) {
      part.file.start_flushing();
      part.file.close();
    }
  }

 private:
  struct Part {
    SizedFile file;
    std::uint64_t header;  ///< bytes
    std::uint64_t number;  ///< bytes of one
  };
  std::vector<Part> parts_;
};

NetcdfStream::Type type_of(NumberType type) {
  switch (type) {
    case NumberType::float32:
      return NetcdfStream::Type::float32;
    case NumberType::float64:
      return NetcdfStream::Type::float64;
    case NumberType::int64:
      break;
  }
  return NetcdfStream::Type::int64;
}

class NetcdfShard : public ShardOutput {
 public:
  NetcdfShard(const std::string& path, const std::string& shown,
              const std::vector<DatasetVariable>& variables, const DatasetAttributes& attributes)
      : shown_(shown), variables_(variables) {
    // The file is private to this process until it is renamed, and locks fail on network file
    // systems.
    ::setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
    in_words([&] {
      stream_.emplace(path);
      file_.emplace(path, shown_, 0);
      // The library crashes where a disk fills up under it; so it must not.
      std::uint64_t bytes = shard_overhead_bytes;
      for (const DatasetVariable& variable : variables_) bytes += variable.bytes();
      for (const auto& [name, text] : attributes.texts) bytes += 2 * text.size();
      file_->reserve(bytes);
      define(attributes);
    });
  }

  void put(std::size_t variable, std::uint64_t first, std::span<const std::byte> bytes) override {
    const DatasetVariable& of = variables_[variable];
    const std::size_t number = size_of(of.type);
    const std::byte* from = bytes.data();
    const std::lock_guard lock(mutex_);
    in_words([&] {
      for_each_slab(of.shape, first, bytes.size() / number,
                    [&](const std::vector<std::size_t>& start,
                        const std::vector<std::size_t>& count, std::uint64_t elements) {
                      stream_->put(of.name, {start, count}, from);
                      from += elements * number;
                    });
    });
    file_->count_written(bytes.size());
  }

  void close() override {
    in_words([&] { stream_->close(); });
    file_->release();
    file_->start_flushing();
    file_->close();
  }

 private:
  void define(const DatasetAttributes& attributes) {
    const NetcdfGroup root = stream_->root();
    for (const auto& [name, text] : attributes.texts) root.put_attribute(name, text);
    for (const auto& [name, number] : attributes.numbers) root.put_attribute(name, number);
    std::vector<std::string> known;
    for (const DatasetVariable& variable : variables_) {
      for (std::size_t i = 0; i < variable.shape.size(); ++i) {
        const std::string& dimension = variable.dimensions[i];
        if (std::ranges::find(known, dimension) != known.end()) continue;
        root.define_dimension(dimension, variable.shape[i]);
        known.push_back(dimension);
      }
    }
    for (const DatasetVariable& variable : variables_) {
      stream_->define_array(variable.name, type_of(variable.type), variable.dimensions,
                            {variable.meaning});
    }
    stream_->begin_data();
  }

  template <class Work>
  void in_words(const Work& work) const {
    try {
      work();
    } catch (const NetcdfError& error) {
      throw RunFailed(shown_ + ": cannot be written (" + error.what() + ")");
    }
  }

  std::string shown_;
  std::vector<DatasetVariable> variables_;
  std::optional<NetcdfStream> stream_;
  std::optional<SizedFile> file_;  ///< the same file, past the library
  std::mutex mutex_;
};

}  // namespace

TemporaryPath::TemporaryPath(std::string target)
    : target_(std::move(target)), name_(temporary_name(target_)), scratch_(name_) {
  const std::string folder = folder_of(target_);
  make_folder(folder);
  clear_temporaries(folder);
}

TemporaryPath::~TemporaryPath() {
  if (renamed_) return;
  remove_made(name_);
  ::rmdir(folder_of(name_).c_str());  // where nothing else is in it
}

void TemporaryPath::rename() {
  move_made(name_, target_);
  renamed_ = true;
  flush_folder_of(target_);
}

std::unique_ptr<ShardOutput> open_shard(DatasetFormat format, const std::string& path,
                                        const std::string& shown,
                                        const std::vector<DatasetVariable>& variables,
                                        const DatasetAttributes& attributes) {
  if (format == DatasetFormat::npy) return std::make_unique<NpyShard>(path, shown, variables);
  return std::make_unique<NetcdfShard>(path, shown, variables, attributes);
}

void for_each_slab(
    std::span<const std::uint64_t> shape, std::uint64_t first, std::uint64_t elements,
    const std::function<void(const std::vector<std::size_t>&, const std::vector<std::size_t>&,
                             std::uint64_t)>& part) {
  while (elements > 0) {
    // The last dimension that is more than one step away from `first` and fits into what is left.
    std::size_t level = shape.size() - 1;
    std::uint64_t step = 1;  // elements from one index of `level` to the next
    while (level > 0 && first % (step * shape[level]) == 0 && elements >= step * shape[level]) {
      step *= shape[level];
      --level;
    }
    std::vector<std::size_t> start(shape.size(), 0);
    std::vector<std::size_t> count(shape.begin(), shape.end());
    std::uint64_t rest = first / step;
    for (std::size_t i = level + 1; i-- > 0;) {
      start[i] = static_cast<std::size_t>(rest % shape[i]);
      rest /= shape[i];
      count[i] = 1;
    }
    count[level] = static_cast<std::size_t>(
        std::min<std::uint64_t>(shape[level] - start[level], elements / step));
    const std::uint64_t done = count[level] * step;
    part(start, count, done);
    first += done;
    elements -= done;
  }
}

std::string npy_header(NumberType type, const std::vector<std::uint64_t>& shape) {
  std::string text = "{'descr': '";
  text += type == NumberType::float32 ? "<f4" : type == NumberType::float64 ? "<f8" : "<i8";
  text += "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += std::to_string(shape[i]) + (shape.size() == 1 ? "," : i + 1 < shape.size() ? ", " : "");
  }
  text += "), }";
  constexpr std::size_t before = 10;  // magic, version, length
  text.append(63 - (before + text.size()) % 64, ' ');
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 255);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

}  // namespace headlab
