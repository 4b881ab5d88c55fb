// SPDX-License-Identifier: Apache-2.0
// Every entry that the ZIP reader lists can be read in full or is rejected.
#include <memory>
#include <sstream>

#include "engine/files/error.h"
#include "engine/files/zip_file.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {

const Target reader::npz = {
    "npz", [](const std::string& bytes) {
      ZipFile zip(std::make_unique<std::istringstream>(bytes), "fuzz");
      for (const auto& [name, entry] : zip.entries()) {
        require(entry.begin <= bytes.size() && entry.stored <= bytes.size() - entry.begin,
                "an entry outside the file");
        zip.check(name);
        require(zip.read(name, 0, entry.size).size() == entry.size, "an entry of another size");
      }
    }};

}  // namespace headlab::fuzz
