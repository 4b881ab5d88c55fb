// SPDX-License-Identifier: Apache-2.0
#include "kernels/statistics/stopping.h"

#include <utility>

namespace headlab {
namespace {

thread_local const std::function<bool()>* current = nullptr;

}  // namespace

StopScope::StopScope(std::function<bool()> stop) : stop_(std::move(stop)), outer_(current) {
  current = &stop_;
}

StopScope::~StopScope() {
  current = outer_;
}

void stop_point() {
  if (current != nullptr && *current && (*current)()) throw WorkStopped();
}

std::function<bool()> stop_of_scope() {
  return current == nullptr ? std::function<bool()>() : *current;
}

}  // namespace headlab
