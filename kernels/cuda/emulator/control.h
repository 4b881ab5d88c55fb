// SPDX-License-Identifier: Apache-2.0
/// \file Control of the emulated devices by tests. Counts are of all host threads.
#pragma once

#include <cstdint>

namespace headlab::emulated_cuda::control {

/// Restores one device of 1 GiB without failures and sets the peak to the memory in use. Keeps what
/// is allocated.
void reset();

/// Devices 0 to count - 1; with 0 none can be used.
void set_devices(int count);
/// Memory of each device [bytes]. Allocations beyond it fail.
void set_memory(std::uint64_t bytes);
/// Makes the k-th allocation from now fail, once: 1 is the next; 0 cancels it.
void fail_allocation(int k);
/// Makes the k-th launch from now fail for lack of memory, once: 1 is the next; 0 cancels it.
void fail_launch(int k);
/// Memory that has to be free at every launch from now on, until `reset`: of the kernel's local
/// variables [bytes].
void set_local_memory(std::uint64_t bytes);
/// Every `synchronise` on this device takes so long from now on, until `reset` [s].
void slow_down(int number, double seconds);
/// Every `synchronise` on this device throws from now on, until `reset`.
void lose_device(int number);

/// Memory in use on all devices, now and at its peak since `reset` [bytes].
std::uint64_t bytes_in_use();
std::uint64_t peak_bytes();
/// Allocations of device and page-locked memory since `reset`, and kernels that a stream let have
/// more shared memory.
int allocations();
int large_kernels();
/// Streams that have not been destroyed.
int open_streams();

}  // namespace headlab::emulated_cuda::control
