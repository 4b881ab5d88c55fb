// SPDX-License-Identifier: Apache-2.0
#include "engine/files/zip_file.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>
#include <zlib.h>

#include "engine/files/available_memory.h"
#include "engine/files/document.h"
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

/// Numbers and texts of a part of the file that is known to be there.
class ZipPart {
 public:
  ZipPart(std::string_view all, std::uint64_t begin, std::uint64_t size, const std::string& source)
      : source_(source) {
    if (begin > all.size() || size > all.size() - begin) damaged();
    bytes_ = all.substr(begin, size);
  }
  std::uint64_t number(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) damaged();
    return little_endian(bytes_.substr(at, size));
  }
  std::string_view text(std::size_t at, std::size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) damaged();
    return bytes_.substr(at, size);
  }
  [[noreturn]] void damaged() const { reject({source_}, "", "is a damaged ZIP archive"); }

 private:
  std::string_view bytes_;
  const std::string& source_;
};

/// Numbers that do not fit into 32 bits stand in the extra field 1, in this order.
void take_long_numbers(const ZipPart& file, std::size_t at, std::size_t size,
                       std::initializer_list<std::uint64_t*> numbers) {
  for (const std::size_t end = at + size; at + 4 <= end;) {
    const std::uint64_t kind = file.number(at, 2);
    const std::size_t length = file.number(at + 2, 2);
    std::size_t next = at + 4;
    at = next + length;
    if (kind != 1) continue;
    for (std::uint64_t* const number : numbers) {
      if (*number != elsewhere) continue;
      if (next + 8 > at) file.damaged();
      *number = file.number(next, 8);
      next += 8;
    }
  }
}

}  // namespace

ZipFile::ZipFile(std::string bytes, std::string source)
    : bytes_(std::move(bytes)), source_(std::move(source)) {
  const ZipPart file(bytes_, 0, bytes_.size(), source_);
  // The end is found from behind: a comment may follow it.
  const std::size_t end = bytes_.rfind(end_mark);
  if (end == std::string::npos) {
    reject({source_}, "", "is not a ZIP archive, or is cut short: it has no list of entries");
  }
  std::uint64_t count = file.number(end + 10, 2);
  std::uint64_t at = file.number(end + 16, 4);
  if (at == elsewhere && end >= locator_size &&
      file.text(end - locator_size, 4) == long_locator_mark) {
    const std::uint64_t long_end = file.number(end - locator_size + 8, 8);
    const ZipPart record(bytes_, long_end, 56, source_);
    if (record.text(0, 4) != long_end_mark) file.damaged();
    count = record.number(32, 8);
    at = record.number(48, 8);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    const ZipPart record(bytes_, at, entry_size, source_);
    if (record.text(0, 4) != entry_mark) file.damaged();
    const std::uint64_t method = record.number(10, 2);
    const std::uint64_t name_size = record.number(28, 2), extra_size = record.number(30, 2);
    const std::string name(file.text(at + entry_size, name_size));
    Entry entry{.stored = record.number(20, 4),
                .size = record.number(24, 4),
                .checksum = static_cast<std::uint32_t>(record.number(16, 4)),
                .deflated = method == 8};
    std::uint64_t local = record.number(42, 4);
    take_long_numbers(file, at + entry_size + name_size, extra_size,
                      {&entry.size, &entry.stored, &local});
    if ((method != 0 && method != 8) || (record.number(8, 2) & 1) != 0) {
      reject({source_}, "",
             "has entry " + one_line(name, 80) +
                 ", which is encrypted or compressed by other means than deflate");
    }
    const ZipPart header(bytes_, local, local_size, source_);
    if (header.text(0, 4) != local_mark) file.damaged();
    entry.begin = local + local_size + header.number(26, 2) + header.number(28, 2);
    file.text(entry.begin, entry.stored);
    const std::uint64_t most = entry.deflated ? entry.stored * max_deflation : entry.stored;
    if (entry.size > most || (!entry.deflated && entry.size != most)) file.damaged();
    if (!entries_.emplace(name, entry).second) {
      reject({source_}, "", "has entry " + one_line(name, 80) + " twice");
    }
    at += entry_size + name_size + extra_size + record.number(32, 2);
  }
}

std::string ZipFile::read(const std::string& name) const {
  const Entry& entry = entries_.at(name);
  const std::string_view stored = std::string_view(bytes_).substr(entry.begin, entry.stored);
  std::string content;
  if (entry.deflated) {
    require_file_memory(source_, entry.size, 1);
    content.resize(entry.size);
    z_stream stream = {};
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(stored.data()));
    stream.next_out = reinterpret_cast<Bytef*>(content.data());
    // Without a header of zlib's own.
    bool good = inflateInit2(&stream, -MAX_WBITS) == Z_OK;
    std::uint64_t in = stored.size(), out = content.size();
    constexpr std::uint64_t most = std::numeric_limits<uInt>::max();
    int status = Z_OK;
    while (good && status == Z_OK) {
      const auto some_in = static_cast<uInt>(std::min(in, most));
      const auto some_out = static_cast<uInt>(std::min(out, most));
      stream.avail_in = some_in;
      stream.avail_out = some_out;
      status = inflate(&stream, Z_NO_FLUSH);
      in -= some_in - stream.avail_in;
      out -= some_out - stream.avail_out;
    }
    inflateEnd(&stream);
    if (status != Z_STREAM_END || out != 0) {
      reject({source_}, "", "has entry " + one_line(name, 80) + " that does not unpack");
    }
  } else {
    content = stored;
  }
  const auto* const bytes = reinterpret_cast<const Bytef*>(content.data());
  if (crc32_z(0, bytes, content.size()) != entry.checksum) {
    reject({source_}, "", "has entry " + one_line(name, 80) + " with another checksum");
  }
  return content;
}

}  // namespace headlab
