// SPDX-License-Identifier: Apache-2.0
/// \file Strict reader of ZIP archives, as far as NumPy's NPZ needs it: stored and deflated
/// entries. Source: PKWARE's APPNOTE 6.3.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace headlab {

/// An archive in memory.
class ZipFile {
 public:
  /// Throws InvalidInput, one line that begins with `source`, unless the bytes are an archive whose
  /// entries lie within it.
  ZipFile(std::string bytes, std::string source);

  struct Entry {
    std::uint64_t begin = 0;   ///< of what is stored
    std::uint64_t stored = 0;  ///< bytes in the archive
    std::uint64_t size = 0;    ///< bytes of the content
    std::uint32_t checksum = 0;
    bool deflated = false;
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }

  /// The content of an entry, whose checksum is compared. Throws InvalidInput.
  std::string read(const std::string& name) const;

 private:
  std::string bytes_, source_;
  std::map<std::string, Entry> entries_;
};

}  // namespace headlab
