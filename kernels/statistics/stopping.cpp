// SPDX-License-Identifier: Apache-2.0
#include "kernels/statistics/stopping.h"

#include <utility>

namespace headlab {
namespace {

thread_local const std::function<bool()>* current = nullptr;
thread_local WorkScope* work = nullptr;

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

void stop_point(double share) {
  if (work != nullptr) {
    work->done_.store(work->begin_ + share * work->width_, std::memory_order_relaxed);
  }
  stop_point();
}

WorkScope::WorkScope(std::atomic<double>& done, double amount)
    : done_(done), width_(amount), outer_(work) {
  done_.store(0, std::memory_order_relaxed);
  work = this;
}

WorkScope::~WorkScope() {
  work = outer_;
  done_.store(0, std::memory_order_relaxed);
}

WorkPart::WorkPart(double begin, double end) {
  if (work == nullptr) return;
  begin_ = work->begin_;
  width_ = work->width_;
  work->begin_ += begin * work->width_;
  work->width_ *= end - begin;
  work->done_.store(work->begin_, std::memory_order_relaxed);
}

WorkPart::~WorkPart() {
  if (work == nullptr) return;
  work->begin_ = begin_;
  work->width_ = width_;
}

std::function<bool()> stop_of_scope() {
  return current == nullptr ? std::function<bool()>() : *current;
}

}  // namespace headlab
