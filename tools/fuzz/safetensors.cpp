// SPDX-License-Identifier: Apache-2.0
// Every tensor that the safetensors reader lists can be read in full or is rejected.
#include "engine/files/models/safetensors.h"

#include <cmath>
#include <memory>
#include <sstream>

#include "engine/files/error.h"
#include "tools/fuzz/target.h"

namespace headlab::fuzz {
namespace {

void read_tensors(const std::string& bytes) {
  SafetensorsFile file(std::make_unique<std::istringstream>(bytes), "fuzz");
  std::size_t taken = 0;
  std::string rejected;
  for (const auto& [name, tensor] : file.tensors()) {
    taken += tensor.end - tensor.begin;
    try {
      for (const double value : file.read(name)) {
        require(std::isfinite(value), "a number that is not finite");
      }
    } catch (const InvalidInput& refusal) {
      rejected = refusal.what();
    }
  }
  require(taken <= bytes.size(), "tensors larger than the file");
  if (!rejected.empty()) throw InvalidInput(rejected);
}

}  // namespace

const Target reader::safetensors = {"safetensors", read_tensors};

}  // namespace headlab::fuzz
