// SPDX-License-Identifier: Apache-2.0
#include "engine/files/notes.h"

#include <mutex>
#include <set>
#include <utility>

namespace headlab {
namespace {

struct Notes {
  std::mutex mutex;
  std::function<void(const std::string& line)> listener;
  std::set<std::string> said;
};

Notes& notes() {
  static Notes all;
  return all;
}

}  // namespace

void set_notes(std::function<void(const std::string& line)> listener) {
  const std::lock_guard lock(notes().mutex);
  notes().listener = std::move(listener);
}

void note(const std::string& line) {
  const std::lock_guard lock(notes().mutex);
  if (notes().listener && notes().said.insert(line).second) notes().listener(line);
}

}  // namespace headlab
