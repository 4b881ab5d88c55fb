// SPDX-License-Identifier: Apache-2.0
/// \file What the CUDA backend asks of the CUDA runtime and of cuBLAS, behind owning types. Every
/// call is checked. runtime.cpp gives it its meaning on a GPU, emulator/runtime.cpp on the host.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/cuda/device.h"

namespace headlab::HEADLAB_CUDA_NAMESPACE {

/// No GPU that can be used: one line that says what is missing and what to do.
class Unavailable : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A call that failed: what failed, on which device, and what to do.
class DeviceError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct DeviceInfo {
  int number = 0;
  std::string name;
  int major = 0, minor = 0;  ///< compute capability
  int multiprocessors = 0;
  std::uint64_t memory = 0;         ///< [bytes]
  std::uint64_t shared_memory = 0;  ///< that a block may have [bytes]
};

/// The devices that this build can run on. Throws Unavailable where there is none: no driver, a
/// driver too old, no device, or none that this build has code for.
std::vector<DeviceInfo> usable_devices();

/// Makes a device the one that the calls of this thread go to.
void use_device(int number);

/// Memory that is free on this thread's device [bytes].
std::uint64_t free_memory();

/// The highest clock of a device's multiprocessors [Hz].
double highest_clock(int number);

/// Memory of this thread's device. Empty where it could not be had.
class Memory {
 public:
  Memory() = default;
  /// Tries to allocate; `empty()` afterwards if there was not enough.
  explicit Memory(std::uint64_t bytes);
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;
  ~Memory();

  bool empty() const { return data_ == nullptr; }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

/// A queue of work on this thread's device, with its own cuBLAS handle. What is queued is done in
/// order; errors of earlier work show at the latest in `synchronise`.
class Stream {
 public:
  Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream();

  void copy_to_device(void* device, const void* host, std::uint64_t bytes);
  void copy_to_host(void* host, const void* device, std::uint64_t bytes);
  void clear(void* device, std::uint64_t bytes);
  void synchronise();

  /// keys [outputs][points] = w [outputs][d] x [d][points], all of them row by row, in full float32
  /// (no TF32). The bits depend on the shape alone.
  void multiply(const float* w, const float* x, float* keys, int outputs, int d,
                std::int64_t points);

  /// Throws if the launch before it failed. `kernel` is named in the error.
  void check_launch(const char* kernel);

  /// cudaStream_t.
  void* handle() const { return stream_; }

 private:
  void* stream_ = nullptr;
  void* blas_ = nullptr;
  Memory workspace_;
};

/// A place in the work of a stream, to measure the time between two of them.
class Mark {
 public:
  /// Behind what is queued now.
  explicit Mark(Stream& stream);
  Mark(Mark&& other) noexcept;
  Mark& operator=(Mark&&) = delete;
  ~Mark();

  /// Time from `earlier` to here [s]; waits until the device is here.
  double seconds_since(const Mark& earlier) const;

 private:
  void* event_ = nullptr;
};

}  // namespace headlab::HEADLAB_CUDA_NAMESPACE
