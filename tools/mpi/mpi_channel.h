// SPDX-License-Identifier: Apache-2.0
/// \file Messages by MPI, point to point alone.
#pragma once

#include <list>

#include "engine/run/ranks.h"

namespace headlab::tools {

/// The ranks of MPI_COMM_WORLD. One for a process, which ends as a rank with it.
class MpiChannel : public Channel {
 public:
  MpiChannel();
  ~MpiChannel() override;
  MpiChannel(const MpiChannel&) = delete;
  MpiChannel& operator=(const MpiChannel&) = delete;

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void send(int to, std::string bytes) override;
  std::optional<Message> receive() override;

 private:
  struct Sent;

  void forget_sent();

  int rank_ = 0;
  int size_ = 1;
  std::list<Sent> sent_;  ///< what MPI may still read
};

}  // namespace headlab::tools
