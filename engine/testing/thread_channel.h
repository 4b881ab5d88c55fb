// SPDX-License-Identifier: Apache-2.0
/// \file Ranks as threads of one process, for tests.
#pragma once

#include <chrono>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/run/ranks.h"

namespace headlab {

/// The mailboxes of all ranks.
class ThreadJob {
 public:
  explicit ThreadJob(int size) : boxes_(static_cast<std::size_t>(size)) {}

  int size() const { return static_cast<int>(boxes_.size()); }
  void put(int to, Message message) {
    const std::lock_guard lock(mutex_);
    boxes_.at(static_cast<std::size_t>(to)).push_back(std::move(message));
  }
  std::optional<Message> take(int rank) {
    const std::lock_guard lock(mutex_);
    std::deque<Message>& box = boxes_.at(static_cast<std::size_t>(rank));
    if (box.empty()) return std::nullopt;
    Message message = std::move(box.front());
    box.pop_front();
    return message;
  }

 private:
  std::mutex mutex_;
  std::vector<std::deque<Message>> boxes_;
};

/// One rank. Some messages are late, which no order of two ranks' messages may depend on.
class ThreadChannel : public Channel {
 public:
  ThreadChannel(ThreadJob& job, int rank)
      : job_(job), rank_(rank), late_(static_cast<unsigned>(rank)) {}

  int rank() const override { return rank_; }
  int size() const override { return job_.size(); }
  void send(int to, std::string bytes) override { job_.put(to, {rank_, std::move(bytes)}); }
  std::optional<Message> receive() override {
    if (late_() % 3 == 0) return std::nullopt;
    return job_.take(rank_);
  }

 private:
  ThreadJob& job_;
  int rank_;
  std::minstd_rand late_;
};

}  // namespace headlab
