// SPDX-License-Identifier: Apache-2.0
#include "tools/mpi/mpi_channel.h"

#include <limits>
#include <mpi.h>
#include <stdexcept>
#include <utility>

namespace headlab::tools {

struct MpiChannel::Sent {
  std::string bytes;
  MPI_Request request = MPI_REQUEST_NULL;
};

MpiChannel::MpiChannel() {
  // Several threads of a run call MPI, one at a time.
  int provided = MPI_THREAD_SINGLE;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  if (provided < MPI_THREAD_SERIALIZED) {
    throw std::runtime_error("this MPI allows one thread alone - build it with threads");
  }
}

MpiChannel::~MpiChannel() {
  for (Sent& one : sent_) MPI_Wait(&one.request, MPI_STATUS_IGNORE);
  MPI_Finalize();
}

void MpiChannel::forget_sent() {
  for (auto one = sent_.begin(); one != sent_.end();) {
    int done = 0;
    MPI_Test(&one->request, &done, MPI_STATUS_IGNORE);
    one = done != 0 ? sent_.erase(one) : std::next(one);
  }
}

void MpiChannel::send(int to, std::string bytes) {
  forget_sent();
  if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max())) {
    throw std::runtime_error("a block's moments are too large for a message - use --shard");
  }
  Sent& one = sent_.emplace_back(std::move(bytes));
  MPI_Isend(one.bytes.data(), static_cast<int>(one.bytes.size()), MPI_BYTE, to, 0, MPI_COMM_WORLD,
            &one.request);
}

std::optional<Message> MpiChannel::receive() {
  forget_sent();
  int arrived = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &arrived, &status);
  if (arrived == 0) return std::nullopt;
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  Message message{status.MPI_SOURCE, std::string(static_cast<std::size_t>(size), '\0')};
  MPI_Recv(message.bytes.data(), size, MPI_BYTE, status.MPI_SOURCE, 0, MPI_COMM_WORLD,
           MPI_STATUS_IGNORE);
  return message;
}

}  // namespace headlab::tools
