// SPDX-License-Identifier: Apache-2.0
// Devices made of host memory. A stream executes its work at once; an array of a device is
// an allocation of exactly its size, so that AddressSanitizer sees where it ends.
#include "kernels/cuda/runtime.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <type_traits>

#include "kernels/cuda/emulator/control.h"

namespace headlab::emulated_cuda {
namespace {

/// As cudaMalloc has it.
constexpr std::align_val_t alignment{256};

struct DeviceArray {
  std::uint64_t bytes;
  int device;
};

/// What tests set and count.
struct Settings {
  int devices = 1;
  std::uint64_t memory = std::uint64_t{1} << 30;
  int failing_allocation = 0;
  int failing_launch = 0;
  std::uint64_t local_memory = 0;
  int allocations = 0;
  int large_kernels = 0;
  std::set<int> lost;
  std::map<int, double> delays;
};

/// What the emulated hardware is and holds, for all host threads.
struct Hardware {
  Settings set;
  std::map<const unsigned char*, DeviceArray> arrays;
  std::uint64_t in_use = 0;
  std::uint64_t peak = 0;
  int streams = 0;

  std::uint64_t free(int device) const {
    std::uint64_t used = 0;
    for (const auto& [data, array] : arrays) used += array.device == device ? array.bytes : 0;
    return set.memory - std::min(set.memory, used);
  }
};

std::mutex mutex;
thread_local constinit int current_device = 0;

Hardware& hardware() {
  static Hardware one;
  return one;
}

DeviceError device_error(int device, const std::string& what) {
  return DeviceError("cuda device " + std::to_string(device) + " (emulated): " + what);
}

int device_of(const void* stream) {
  return *static_cast<const int*>(stream);
}

void check_thread(const void* stream, const std::string& what) {
  if (device_of(stream) != current_device) {
    throw device_error(device_of(stream), what + ": this thread uses device " +
                                              std::to_string(current_device) +
                                              " - call use_device first");
  }
}

/// Throws unless the bytes are in one array of the stream's device.
void check_range(const void* stream, const void* data, std::uint64_t bytes,
                 const std::string& what) {
  check_thread(stream, what);
  if (bytes == 0) return;
  const std::lock_guard lock(mutex);
  const auto* begin = static_cast<const unsigned char*>(data);
  auto array = hardware().arrays.upper_bound(begin);
  if (array != hardware().arrays.begin()) {
    --array;
    const auto offset = static_cast<std::uint64_t>(begin - array->first);
    if (array->second.device == device_of(stream) && offset <= array->second.bytes &&
        bytes <= array->second.bytes - offset)
      return;
  }
  throw device_error(device_of(stream), what + ": " + std::to_string(bytes) +
                                            " bytes that are not in one array of this device");
}

}  // namespace

// ---- Devices and memory ----

std::vector<cuda::GpuStatus> usable_devices() {
  const std::lock_guard lock(mutex);
  if (hardware().set.devices == 0)
    throw Unavailable("cuda: no device (emulated) - use the cpu backend");
  std::vector<cuda::GpuStatus> devices;
  for (int number = 0; number < hardware().set.devices; ++number) {
    devices.push_back({.number = number,
                       .name = "emulated",
                       .capability = {9, 0},
                       .multiprocessors = 2,
                       .memory = hardware().set.memory,
                       .shared_memory = max_shared_bytes,
                       .problem = {}});
  }
  return devices;
}

void use_device(int number) {
  const std::lock_guard lock(mutex);
  if (number < 0 || number >= hardware().set.devices) {
    throw device_error(number,
                       "no such device - there are " + std::to_string(hardware().set.devices));
  }
  current_device = number;
}

std::uint64_t free_memory() {
  const std::lock_guard lock(mutex);
  return hardware().free(current_device);
}

std::uint64_t total_memory() {
  const std::lock_guard lock(mutex);
  return hardware().set.memory;
}

std::uint64_t local_memory_of(const void*) {
  const std::lock_guard lock(mutex);
  return hardware().set.local_memory;
}

double highest_clock(int) {
  return 1e9;
}

void FreeOnDevice::operator()(void* data) const noexcept {
  const std::lock_guard lock(mutex);
  const auto array = hardware().arrays.find(static_cast<unsigned char*>(data));
  hardware().in_use -= array->second.bytes;
  hardware().arrays.erase(array);
  ::operator delete(data, alignment);
}
void FreeOnHost::operator()(void* data) const noexcept {
  ::operator delete(data, alignment);
}

template <class Free>
Allocation<Free>::Allocation(std::uint64_t bytes) {
  constexpr bool on_device = std::is_same_v<Free, FreeOnDevice>;
  const std::lock_guard lock(mutex);
  Hardware& m = hardware();
  const bool fails = m.set.failing_allocation > 0 && --m.set.failing_allocation == 0;
  if (fails || bytes == 0 || (on_device && bytes > m.free(current_device))) return;
  void* const data = ::operator new(bytes, alignment, std::nothrow);
  if (data == nullptr) return;
  std::memset(data, 0xff, bytes);
  data_.reset(data);
  ++m.set.allocations;
  if constexpr (on_device) {
    m.arrays[static_cast<unsigned char*>(data)] = {bytes, current_device};
    m.in_use += bytes;
    m.peak = std::max(m.peak, m.in_use);
  }
}
template class Allocation<FreeOnDevice>;
template class Allocation<FreeOnHost>;

// ---- Streams ----

Stream::Stream() : stream_(new int(current_device)) {
  const std::lock_guard lock(mutex);
  ++hardware().streams;
}

Stream::~Stream() {
  delete static_cast<int*>(stream_);
  const std::lock_guard lock(mutex);
  --hardware().streams;
}

void Stream::copy_to_device(void* device, const void* host, std::uint64_t bytes) {
  check_range(stream_, device, bytes, "copy to the device");
  if (bytes > 0) std::memcpy(device, host, bytes);
}

void Stream::copy_to_host(void* host, const void* device, std::uint64_t bytes) {
  check_range(stream_, device, bytes, "copy to the host");
  if (bytes > 0) std::memcpy(host, device, bytes);
}

void Stream::copy_rows_to_host(void* host, const void* device, std::uint64_t bytes,
                               std::uint64_t pitch, std::uint64_t rows) {
  for (std::uint64_t row = 0; row < rows; ++row) {
    copy_to_host(static_cast<unsigned char*>(host) + row * bytes,
                 static_cast<const unsigned char*>(device) + row * pitch, bytes);
  }
}

void Stream::clear(void* device, std::uint64_t bytes) {
  check_range(stream_, device, bytes, "clear");
  if (bytes > 0) std::memset(device, 0, bytes);
}

void Stream::synchronise() {
  check_thread(stream_, "synchronise");
  double delay = 0;
  {
    const std::lock_guard lock(mutex);
    const auto found = hardware().set.delays.find(device_of(stream_));
    if (found != hardware().set.delays.end()) delay = found->second;
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(delay));
  const std::lock_guard lock(mutex);
  if (hardware().set.lost.contains(device_of(stream_)))
    throw device_error(device_of(stream_), "lost (a test said so) - run again on another device");
}

void Stream::start_products() {}

void Stream::multiply(const float* w, const float* x, float* keys, int outputs, int d,
                      std::int64_t points) {
  const auto rows = static_cast<std::uint64_t>(outputs);
  const auto depth = static_cast<std::uint64_t>(d);
  const auto columns = static_cast<std::uint64_t>(points);
  check_range(stream_, w, rows * depth * sizeof(float), "multiply, w");
  check_range(stream_, x, depth * columns * sizeof(float), "multiply, x");
  check_range(stream_, keys, rows * columns * sizeof(float), "multiply, keys");
  for (std::uint64_t row = 0; row < rows; ++row) {
    for (std::uint64_t column = 0; column < columns; ++column) {
      float sum = 0;
      for (std::uint64_t c = 0; c < depth; ++c)
        sum = std::fma(w[row * depth + c], x[c * columns + column], sum);
      keys[row * columns + column] = sum;
    }
  }
}

void Stream::allow_shared_memory(const void* kernel) {
  if (large_kernels_.insert(kernel).second) {
    const std::lock_guard lock(mutex);
    ++hardware().set.large_kernels;
  }
}

void Stream::check_launch(const char* kernel) {
  check_thread(stream_, std::string("launch of ") + kernel);
  const std::lock_guard lock(mutex);
  Hardware& m = hardware();
  const bool fails = m.set.failing_launch > 0 && --m.set.failing_launch == 0;
  if (fails || m.set.local_memory > m.free(current_device)) {
    throw OutOfMemory("cuda device " + std::to_string(current_device) + " (emulated): launch of " +
                      kernel + ": out of memory (" +
                      (fails ? "a test said so" : "for its local variables") + ")");
  }
}

// ---- Time ----

// A stream executes its work at once, so that the wall clock is its time.
using Time = std::chrono::steady_clock::time_point;

void Mark::Free::operator()(void* event) const noexcept {
  delete static_cast<Time*>(event);
}

Mark::Mark(Stream& stream) {
  check_thread(stream.handle(), "mark");
  event_.reset(new Time(std::chrono::steady_clock::now()));
}

double Mark::seconds_since(const Mark& earlier) const {
  return std::chrono::duration<double>(*static_cast<const Time*>(event_.get()) -
                                       *static_cast<const Time*>(earlier.event_.get()))
      .count();
}

// ---- What tests control ----

void control::reset() {
  const std::lock_guard lock(mutex);
  hardware().set = {};
  hardware().peak = hardware().in_use;
}

void control::set_devices(int count) {
  const std::lock_guard lock(mutex);
  hardware().set.devices = count;
}

void control::set_memory(std::uint64_t bytes) {
  const std::lock_guard lock(mutex);
  hardware().set.memory = bytes;
}

void control::fail_allocation(int k) {
  const std::lock_guard lock(mutex);
  hardware().set.failing_allocation = k;
}

void control::fail_launch(int k) {
  const std::lock_guard lock(mutex);
  hardware().set.failing_launch = k;
}

void control::set_local_memory(std::uint64_t bytes) {
  const std::lock_guard lock(mutex);
  hardware().set.local_memory = bytes;
}

void control::slow_down(int number, double seconds) {
  const std::lock_guard lock(mutex);
  hardware().set.delays[number] = seconds;
}

int control::allocations() {
  const std::lock_guard lock(mutex);
  return hardware().set.allocations;
}

int control::large_kernels() {
  const std::lock_guard lock(mutex);
  return hardware().set.large_kernels;
}

void control::lose_device(int number) {
  const std::lock_guard lock(mutex);
  hardware().set.lost.insert(number);
}

std::uint64_t control::bytes_in_use() {
  const std::lock_guard lock(mutex);
  return hardware().in_use;
}

std::uint64_t control::peak_bytes() {
  const std::lock_guard lock(mutex);
  return hardware().peak;
}

int control::open_streams() {
  const std::lock_guard lock(mutex);
  return hardware().streams;
}

}  // namespace headlab::emulated_cuda
