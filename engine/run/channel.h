// SPDX-License-Identifier: Apache-2.0
/// \file Messages between the processes of one job, whatever carries them.
#pragma once

#include <optional>
#include <string>

namespace headlab {

struct Message {
  int from = 0;  ///< rank
  std::string bytes;
};

/// Point-to-point messages between ranks 0 .. size() - 1. Messages of one rank to another arrive in
/// the order in which they were sent. One thread at a time calls these functions.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Returns at once, whether or not the other rank receives.
  virtual void send(int to, std::string bytes) = 0;
  /// The next message, if one has arrived.
  virtual std::optional<Message> receive() = 0;
};

}  // namespace headlab
