// SPDX-License-Identifier: Apache-2.0
#include "engine/files/zip_file.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <zlib.h>

#include "engine/files/available_memory.h"
#include "engine/files/document.h"
#include "engine/files/input_file.h"
#include "engine/files/npy_file.h"

namespace headlab {
namespace {

constexpr std::string_view end_mark = "PK\5\6", entry_mark = "PK\1\2", local_mark = "PK\3\4",
                           long_end_mark = "PK\6\6", long_locator_mark = "PK\6\7";
constexpr std::size_t entry_size = 46, local_size = 30, locator_size = 20;
/// Stands for a number of 64 bits that is somewhere else.
constexpr std::uint64_t elsewhere = 0xffffffff;
/// Deflate expands by no more.
constexpr std::uint64_t max_deflation = 1032;

/// What may follow the end of the list: its own fields and a comment.
constexpr std::uint64_t max_end_size = 22 + 0xffff;
/// What is unpacked at a time.
constexpr std::size_t piece_size = std::size_t{1} << 16;

/// Numbers and texts of a part of the file that is known to be there.
class ZipPart {
 public:
  ZipPart(std::string bytes, const std::string& source)
      : bytes_(std::move(bytes)), source_(source) {}
  std::uint64_t number(std::size_t at, std::size_t size) const {
    return little_endian(text(at, size));
  }
  std::string_view text(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) damaged();
    return std::string_view(bytes_).substr(at, size);
  }
  std::size_t size() const { return bytes_.size(); }
  std::size_t last(std::string_view text) const { return bytes_.rfind(text); }
  [[noreturn]] void damaged() const { reject({source_}, "", "is a damaged ZIP archive"); }

 private:
  std::string bytes_;
  const std::string& source_;
};

/// Numbers that do not fit into 32 bits stand in the extra field 1, in this order.
void take_long_numbers(const ZipPart& extra, std::initializer_list<std::uint64_t*> numbers) {
  for (std::size_t at = 0; at + 4 <= extra.size();) {
    const std::uint64_t kind = extra.number(at, 2);
    const std::size_t length = extra.number(at + 2, 2);
    std::size_t next = at + 4;
    at = next + length;
    if (kind != 1) continue;
    for (std::uint64_t* const number : numbers) {
      if (*number != elsewhere) continue;
      if (next + 8 > at) extra.damaged();
      *number = extra.number(next, 8);
      next += 8;
    }
  }
}

}  // namespace

/// The content of a deflated entry, part by part.
class ZipFile::Unpacking {
 public:
  // Without a header of zlib's own.
  Unpacking() : good_(inflateInit2(&stream_, -MAX_WBITS) == Z_OK) {}
  ~Unpacking() { inflateEnd(&stream_); }
  Unpacking(const Unpacking&) = delete;
  Unpacking& operator=(const Unpacking&) = delete;

  std::uint64_t position() const { return out_; }
  /// Whether this part was the last to be asked for.
  bool has(std::uint64_t first, std::uint64_t count) const {
    return last_.size() == count && out_ == first + count;
  }
  const std::string& last() const { return last_; }

  /// The next `count` bytes; fewer where the entry ends, or does not unpack.
  const std::string& next(ZipFile& file, const Entry& entry, std::uint64_t count) {
    last_.resize(count);
    std::uint64_t done = 0;
    while (good_ && done < count) {
      if (stream_.avail_in == 0) {
        in_ = read_bytes(*file.bytes_, file.source_, entry.begin + taken_,
                         std::min<std::uint64_t>(entry.stored - taken_, piece_size));
        taken_ += in_.size();
        stream_.next_in = reinterpret_cast<Bytef*>(in_.data());
        stream_.avail_in = static_cast<uInt>(in_.size());
      }
      const auto room = static_cast<uInt>(
          std::min<std::uint64_t>(count - done, std::numeric_limits<uInt>::max()));
      stream_.next_out = reinterpret_cast<Bytef*>(last_.data() + done);
      stream_.avail_out = room;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      done += room - stream_.avail_out;
      good_ = status == Z_OK;
      ended_ = status == Z_STREAM_END;
    }
    out_ += done;
    last_.resize(done);
    return last_;
  }

  /// Whether the content ends here.
  bool at_end(ZipFile& file, const Entry& entry) { return next(file, entry, 1).empty() && ended_; }

 private:
  z_stream stream_ = {};
  bool good_, ended_ = false;
  std::string in_, last_;
  std::uint64_t taken_ = 0, out_ = 0;  ///< bytes read and given
};

ZipFile::ZipFile(std::unique_ptr<std::istream> bytes, std::string source)
    : bytes_(std::move(bytes)), source_(std::move(source)) {
  read_entries();
}

ZipFile::~ZipFile() = default;

void ZipFile::read_entries() {
  bytes_->seekg(0, std::ios::end);
  const auto size = static_cast<std::uint64_t>(std::max<std::streamoff>(bytes_->tellg(), 0));
  const auto part = [&](std::uint64_t begin, std::uint64_t count) {
    // No more than there is, whatever the file says.
    const std::uint64_t there = begin < size ? size - begin : 0;
    return ZipPart(there == 0 ? "" : read_bytes(*bytes_, source_, begin, std::min(count, there)),
                   source_);
  };
  // The end is found from behind: a comment may follow it.
  const std::uint64_t tail = size - std::min(size, max_end_size + locator_size);
  const ZipPart file = part(tail, size);
  const std::size_t end = file.last(end_mark);
  if (end == std::string::npos) {
    reject({source_}, "", "is not a ZIP archive, or is cut short: it has no list of entries");
  }
  std::uint64_t count = file.number(end + 10, 2);
  std::uint64_t at = file.number(end + 16, 4);
  if (at == elsewhere && end >= locator_size &&
      file.text(end - locator_size, 4) == long_locator_mark) {
    const ZipPart record = part(file.number(end - locator_size + 8, 8), 56);
    if (record.text(0, 4) != long_end_mark) file.damaged();
    count = record.number(32, 8);
    at = record.number(48, 8);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const ZipPart record = part(at, entry_size);
    if (record.text(0, 4) != entry_mark) file.damaged();
    const std::uint64_t method = record.number(10, 2);
    const std::uint64_t name_size = record.number(28, 2), extra_size = record.number(30, 2);
    const ZipPart names = part(at + entry_size, name_size + extra_size);
    const std::string name(names.text(0, name_size));
    Entry entry{.stored = record.number(20, 4),
                .size = record.number(24, 4),
                .checksum = static_cast<std::uint32_t>(record.number(16, 4)),
                .deflated = method == 8};
    std::uint64_t local = record.number(42, 4);
    take_long_numbers(ZipPart(std::string(names.text(name_size, extra_size)), source_),
                      {&entry.size, &entry.stored, &local});
    if ((method != 0 && method != 8) || (record.number(8, 2) & 1) != 0) {
      reject({source_}, "",
             "has entry " + one_line(name, 80) +
                 ", which is encrypted or compressed by other means than deflate");
    }
    const ZipPart header = part(local, local_size);
    if (header.text(0, 4) != local_mark) file.damaged();
    entry.begin = local + local_size + header.number(26, 2) + header.number(28, 2);
    if (entry.begin > size || entry.stored > size - entry.begin) file.damaged();
    const std::uint64_t most = entry.deflated ? entry.stored * max_deflation : entry.stored;
    if (entry.size > most || (!entry.deflated && entry.size != most)) file.damaged();
    if (!entries_.emplace(name, entry).second) {
      reject({source_}, "", "has entry " + one_line(name, 80) + " twice");
    }
    at += entry_size + name_size + extra_size + record.number(32, 2);
  }
}

void ZipFile::check(const std::string& name) {
  const Entry& entry = entries_.at(name);
  unpackings_.erase(name);
  uLong sum = crc32_z(0, nullptr, 0);
  std::string room(std::min<std::uint64_t>(piece_size, entry.size), '\0');
  for (std::uint64_t at = 0; at < entry.size; at += piece_size) {
    const auto piece = std::span(room).first(std::min<std::uint64_t>(piece_size, entry.size - at));
    read(name, at, piece);
    sum = crc32_z(sum, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
  }
  // No more comes out than its size says.
  const auto unpacking = unpackings_.find(name);
  if (unpacking != unpackings_.end() && !unpacking->second->at_end(*this, entry)) {
    reject({source_}, "", "has entry " + one_line(name, 80) + " that does not unpack");
  }
  unpackings_.erase(name);
  if (sum != entry.checksum) {
    reject({source_}, "", "has entry " + one_line(name, 80) + " with another checksum");
  }
}

std::string ZipFile::read(const std::string& name, std::uint64_t first, std::uint64_t count) {
  const Entry& entry = entries_.at(name);
  first = std::min(first, entry.size);
  count = std::min(count, entry.size - first);
  if (count > piece_size) require_file_memory(source_, count, 1);
  std::string content(count, '\0');
  read(name, first, std::span(content));
  return content;
}

void ZipFile::read(const std::string& name, std::uint64_t first, std::span<char> to) {
  const Entry& entry = entries_.at(name);
  if (!entry.deflated) return read_bytes(*bytes_, source_, entry.begin + first, to);
  const std::uint64_t count = to.size();
  std::unique_ptr<Unpacking>& from = unpackings_[name];
  if (from && from->has(first, count)) {
    std::ranges::copy(from->last(), to.begin());
    return;
  }
  if (!from || from->position() > first) from = std::make_unique<Unpacking>();
  while (from->position() < first) {
    const std::uint64_t left = first - from->position();
    if (from->next(*this, entry, std::min<std::uint64_t>(left, piece_size)).empty()) break;
  }
  const std::string& content = from->next(*this, entry, count);
  if (content.size() != count) {
    reject({source_}, "", "has entry " + one_line(name, 80) + " that does not unpack");
  }
  std::ranges::copy(content, to.begin());
}

}  // namespace headlab
