// SPDX-License-Identifier: Apache-2.0
/// \file What tests tell the emulated devices, and ask them. Counts are of all host threads.
#pragma once

#include <cstdint>

namespace headlab::emulated_cuda::control {

/// One device of 1 GiB, nothing lost, nothing about to fail, the peak forgotten. What is allocated
/// stays so.
void reset();

/// Numbers 0 to count - 1; with 0 there is none that can be used.
void set_devices(int count);
/// Memory of each device [bytes]. What would go beyond it is not allocated.
void set_memory(std::uint64_t bytes);
/// The k-th allocation from now fails, once: 1 is the next; 0 takes it back.
void fail_allocation(int k);
/// Every `synchronise` on this device throws from now on, until `reset`.
void lose_device(int number);

/// Of all devices, now and at most since `reset` [bytes].
std::uint64_t bytes_in_use();
std::uint64_t peak_bytes();
/// Streams that have not been destroyed.
int open_streams();

}  // namespace headlab::emulated_cuda::control
