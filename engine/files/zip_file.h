// SPDX-License-Identifier: Apache-2.0
/// \file Strict reader of ZIP archives, as far as NumPy's NPZ needs it: stored and deflated
/// entries. Source: PKWARE's APPNOTE 6.3.
#pragma once

#include <cstdint>
#include <istream>
#include <map>
#include <memory>
#include <span>
#include <string>

namespace headlab {

/// An archive that is open: the list of entries is read at once, content when it is asked for.
class ZipFile {
 public:
  /// Throws InvalidInput, one line that begins with `source`, unless the bytes, which must be
  /// seekable, are an archive whose entries lie within it.
  ZipFile(std::unique_ptr<std::istream> bytes, std::string source);
  ~ZipFile();

  struct Entry {
    std::uint64_t begin = 0;   ///< of what is stored
    std::uint64_t stored = 0;  ///< bytes in the archive
    std::uint64_t size = 0;    ///< bytes of the content
    std::uint32_t checksum = 0;
    bool deflated = false;
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }

  /// Reads an entry from end to end. Throws InvalidInput where its checksum is another.
  void check(const std::string& name);
  /// At most `count` bytes of the content from byte `first` on. What is deflated is unpacked from
  /// where the last part of the entry ended, or from its beginning. Throws InvalidInput.
  std::string read(const std::string& name, std::uint64_t first, std::uint64_t count);
  /// The same, put where they are wanted; the content has as many.
  void read(const std::string& name, std::uint64_t first, std::span<char> to);

 private:
  class Unpacking;

  void read_entries();

  std::unique_ptr<std::istream> bytes_;
  std::string source_;
  std::map<std::string, Entry> entries_;
  std::map<std::string, std::unique_ptr<Unpacking>> unpackings_;  ///< of entries read in part
};

}  // namespace headlab
