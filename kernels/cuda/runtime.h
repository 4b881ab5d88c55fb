// SPDX-License-Identifier: Apache-2.0
/// \file The CUDA runtime and cuBLAS behind owning types. Every call is checked. runtime.cpp
/// implements it for a GPU, emulator/runtime.cpp for the host.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/cuda/status/advice.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// No usable GPU: one line with the missing part and the remedy.
class Unavailable : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A failed call: one line with the call, the device and the remedy.
class DeviceError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A call that failed for lack of memory. Later calls can succeed.
class OutOfMemory : public DeviceError {
  using DeviceError::DeviceError;
};

/// Devices that this build runs on. Throws Unavailable where there is none: no driver, a driver too
/// old, no device, or none that this build has code for.
std::vector<cuda::GpuStatus> usable_devices();

/// Selects the device of the calls of this thread.
void use_device(int number);

/// Free memory of this thread's device, and all of it [bytes].
std::uint64_t free_memory();
std::uint64_t total_memory();

/// Memory that this thread's device takes at a kernel's first launch for local variables that are
/// not in registers: of all threads that it can hold, whatever the grid [bytes].
std::uint64_t local_memory_of(const void* kernel);

/// The highest clock of a device's multiprocessors [Hz].
double highest_clock(int number);

/// Frees what a runtime made; a failure was reported by an earlier call.
struct FreeOnDevice {
  void operator()(void* data) const noexcept;
};
struct FreeOnHost {
  void operator()(void* data) const noexcept;
};

/// An allocation. Empty where memory did not suffice.
template <class Free>
class Allocation {
 public:
  Allocation() = default;
  /// Tries to allocate; `empty()` afterwards if there was not enough.
  explicit Allocation(std::uint64_t bytes);

  bool empty() const { return data_ == nullptr; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_.get());
  }

 private:
  std::unique_ptr<void, Free> data_;
};

/// Memory of this thread's device.
using Memory = Allocation<FreeOnDevice>;
/// Page-locked memory of the host, which a device copies to without a copy in between.
using HostMemory = Allocation<FreeOnHost>;

/// Memory of this thread's device that only grows, from which arrays are taken. Allocating and
/// freeing wait for the device, and take longer than a small condition of a sweep.
class Arena {
 public:
  /// Room that an array takes [bytes].
  static std::uint64_t room(std::uint64_t bytes);

  /// Makes room for arrays of `bytes` in all; those taken before are lost. False where memory does
  /// not suffice: the arena is empty then.
  bool reserve(std::uint64_t bytes);
  /// Room that there is without another allocation.
  std::uint64_t capacity() const { return capacity_; }
  /// Gives the memory back. True if there was any.
  bool release();
  /// The next array, not initialised. Throws std::logic_error if the arena is full.
  template <class T>
  T* take(std::uint64_t count) {
    return static_cast<T*>(take_bytes(count * sizeof(T)));
  }

 private:
  void* take_bytes(std::uint64_t bytes);

  Memory memory_;
  std::uint64_t capacity_ = 0;
  std::uint64_t reserved_ = 0;
  std::uint64_t taken_ = 0;
};

/// A queue of work on this thread's device, with a cuBLAS handle of its own once it multiplies.
/// Work runs in the order of the queue; its errors show at the latest in `synchronise`.
class Stream {
 public:
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  void copy_to_device(void* device, const void* host, std::uint64_t bytes);
  void copy_to_host(void* host, const void* device, std::uint64_t bytes);
  /// Copies rows of `bytes`, `pitch` bytes apart on the device, one after another.
  void copy_rows_to_host(void* host, const void* device, std::uint64_t bytes, std::uint64_t pitch,
                         std::uint64_t rows);
  void clear(void* device, std::uint64_t bytes);
  void synchronise();

  /// Loads and starts cuBLAS; `multiply` would do so at its first call. Throws Unavailable where
  /// there is none.
  void start_products();
  /// keys [outputs][points] = w [outputs][d] x [d][points], all of them row by row, in full float32
  /// (no TF32). The bits depend only on the sizes.
  void multiply(const float* w, const float* x, float* keys, int outputs, int d,
                std::int64_t points);

  /// Page-locked memory for results, kept with the stream; what it held is lost. Throws
  /// OutOfMemory.
  void* host_buffer(std::uint64_t bytes);

  /// Lets a kernel have as much shared memory as the device has for a thread block.
  void allow_shared_memory(const void* kernel);
  /// Throws if the launch before it failed. `kernel` is named in the error.
  void check_launch(const char* kernel);

  /// cudaStream_t.
  void* handle() const { return stream_; }

  /// Memory of the worker that has the stream, kept for the next one: numbers of its plan, and all
  /// others.
  Arena constants, work;
  /// Beyond what was planned, of the work that is queued.
  std::vector<Memory> unplanned;

 private:
  void* stream_ = nullptr;
  void* blas_ = nullptr;
  Memory workspace_;
  HostMemory host_;
  std::uint64_t host_bytes_ = 0;
  std::set<const void*> large_kernels_;  ///< that may have more than 48 KiB of shared memory
};

/// A point in the work of a stream, to measure the time between two.
class Mark {
 public:
  /// After the work that is queued now.
  explicit Mark(Stream& stream);

  /// Time since `earlier` [s]; waits until the device has reached this mark.
  double seconds_since(const Mark& earlier) const;

 private:
  struct Free {
    void operator()(void* event) const noexcept;
  };
  std::unique_ptr<void, Free> event_;
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
