// SPDX-License-Identifier: Apache-2.0
// Every CUDA thread is a thread. Threads run in order until they wait; a fiber that waits switches
// directly to the next that can run, and only the end of a thread block or an error leads back to
// `emulate`. When no thread can run, all of them are at the barrier, or the kernel is wrong.
#include "kernels/cuda/emulator/emulator.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cuda/emulator/fiber.h"

namespace headlab::emulated_cuda {
namespace {

constexpr unsigned warp = 32;

std::atomic<Order> thread_order = Order::ascending;
std::atomic<Order> block_order = Order::ascending;

struct Copy {
  float* to;
  const float* from;
  std::uint64_t group;
};

/// Operands of a lane in an operation of its warp, on the lane's stack while it waits.
struct WarpCall {
  const char* name;
  std::size_t bytes = 0;
  int mask = 0;
  int count = 0;  ///< matrices, or columns of a
  const void* a = nullptr;
  const void* b = nullptr;
  void* result = nullptr;
};

enum class State { ready, at_barrier, at_warp, ended };

/// A CUDA thread.
struct Thread : Fiber {
  unsigned number;
  State state = State::ended;
  bool inside = false;  ///< the kernel has started and not ended
  const WarpCall* call = nullptr;
  std::deque<Copy> copies;      ///< started and not made yet
  std::uint64_t committed = 0;  ///< groups of copies

  Thread(unsigned index, void (*entry)()) : Fiber(entry), number(index) {}
};

// ---- Operations of a warp ----

using Calls = const WarpCall* [warp];

void shuffle(const Calls& calls) {
  for (unsigned lane = 0; lane < warp; ++lane) {
    const WarpCall& call = *calls[lane];
    std::memcpy(call.result, calls[lane ^ static_cast<unsigned>(call.mask)]->a, call.bytes);
  }
}

/// x rounded towards zero, as tensor cores round their sums.
float towards_zero(double x) {
  const auto nearest = static_cast<float>(x);
  return std::abs(static_cast<double>(nearest)) > std::abs(x) ? std::nextafter(nearest, 0.0f)
                                                              : nearest;
}

void load_matrices(const Calls& calls) {
  for (unsigned lane = 0; lane < warp; ++lane) {
    auto* out = static_cast<std::uint32_t*>(calls[lane]->result);
    for (int matrix = 0; matrix < calls[0]->count; ++matrix) {
      std::uint32_t packed = 0;
      for (unsigned i = 0; i < 2; ++i) {
        const unsigned row = 8 * static_cast<unsigned>(matrix) + lane % 4 * 2 + i;
        std::uint16_t half = 0;
        std::memcpy(&half, static_cast<const char*>(calls[row]->a) + lane / 4 * 2, 2);
        packed |= std::uint32_t{half} << 16 * i;
      }
      out[matrix] = packed;
    }
  }
}

/// The float that tensor cores read as TF32.
float tf32(std::uint32_t bits) {
  return std::bit_cast<float>(bits & 0xffffe000u);
}

/// Adds products to a float as an A100 does (Khattak and Mikaitis, arXiv:2512.07004): all are
/// aligned to the largest, with one bit more than float32 has, and truncated; so is their sum.
float add_products(float to, const double* products, unsigned count) {
  double sum = static_cast<double>(to);
  double largest = std::abs(sum);
  for (unsigned i = 0; i < count; ++i) {
    sum += products[i];
    largest = std::max(largest, std::abs(products[i]));
  }
  if (!std::isfinite(sum) || largest == 0) return towards_zero(sum);
  const double unit = std::ldexp(1.0, std::ilogb(largest) - 24);
  double units = std::trunc(static_cast<double>(to) / unit);
  for (unsigned i = 0; i < count; ++i) units += std::trunc(products[i] / unit);
  return towards_zero(units * unit);
}

void multiply_add(const Calls& calls) {
  const auto k = static_cast<unsigned>(calls[0]->count);
  const unsigned together = calls[0]->bytes == 4 ? 4 : 8;
  float a[16][16];
  float b[16][8];
  for (unsigned lane = 0; lane < warp; ++lane) {
    const unsigned g = lane / 4;
    const auto* a_part = static_cast<const std::uint32_t*>(calls[lane]->a);
    const auto* b_part = static_cast<const std::uint32_t*>(calls[lane]->b);
    for (unsigned half = 0; half < 2 && calls[0]->bytes == 4; ++half) {
      const unsigned at = lane % 4 + 4 * half;
      a[g][at] = tf32(a_part[2 * half]);
      a[g + 8][at] = tf32(a_part[2 * half + 1]);
      b[at][g] = tf32(b_part[half]);
    }
    if (calls[0]->bytes == 4) continue;
    for (unsigned half = 0; half < k / 8; ++half) {
      const unsigned at = 2 * (lane % 4) + 8 * half;
      for (unsigned i = 0; i < 2; ++i) {
        a[g + 8 * i][at] = low_half(a_part[2 * half + i]);
        a[g + 8 * i][at + 1] = high_half(a_part[2 * half + i]);
      }
      b[at][g] = low_half(b_part[half]);
      b[at + 1][g] = high_half(b_part[half]);
    }
  }
  for (unsigned lane = 0; lane < warp; ++lane) {
    auto* d = static_cast<float*>(calls[lane]->result);
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = lane / 4 + 8 * (i / 2);
      const unsigned column = 2 * (lane % 4) + i % 2;
      for (unsigned first = 0; first < k; first += together) {
        double products[8];
        for (unsigned j = 0; j < together; ++j) {
          const unsigned at = first + j;
          products[j] = static_cast<double>(a[row][at]) * static_cast<double>(b[at][column]);
        }
        d[i] = add_products(d[i], products, together);
      }
    }
  }
}

// ---- The machine ----

/// Unwinds a thread whose block has failed.
struct Stopped {};

/// The emulated machine of one host thread. Threads are reused from block to block and from launch
/// to launch.
class Machine {
 public:
  void run(const Grid& grid, const std::function<void()>& kernel);
  /// Throws outside of a kernel.
  Thread& running(const char* caller) const;
  void wait_at_barrier();
  void wait_at_warp(const WarpCall& call);
  [[noreturn]] void run_thread();

  std::uint64_t shared_bytes() const { return grid_.shared_bytes; }

 private:
  void run_block();
  Thread& at(unsigned position) const;
  Context& next();
  void perform(unsigned first);
  void leave(Thread& self);
  void wait(Thread& self);
  bool release_barrier();
  std::logic_error deadlock() const;
  std::logic_error error(const std::string& what) const;

  std::vector<std::unique_ptr<Thread>> threads_;
  Context host_;
  Grid grid_;
  bool descending_ = false;
  const std::function<void()>* kernel_ = nullptr;
  Thread* running_ = nullptr;
  unsigned position_ = 0;  ///< in the order of threads; all before it wait or have ended
  std::exception_ptr failure_;
  bool stopping_ = false;
};

Machine& machine() {
  thread_local Machine here;
  return here;
}

void thread_entry() {
  machine().run_thread();
}

std::logic_error Machine::error(const std::string& what) const {
  return std::logic_error("emulated kernel, block (" + std::to_string(detail::place.block_x) +
                          ", " + std::to_string(detail::place.block_y) + "): " + what);
}

Thread& Machine::running(const char* caller) const {
  if (running_ == nullptr)
    throw std::logic_error(std::string(caller) + " outside of a kernel - call it under emulate");
  return *running_;
}

Thread& Machine::at(unsigned position) const {
  return *threads_[descending_ ? grid_.threads - 1 - position : position];
}

bool Machine::release_barrier() {
  for (unsigned t = 0; t < grid_.threads; ++t)
    if (threads_[t]->state != State::at_barrier) return false;
  for (unsigned t = 0; t < grid_.threads; ++t) threads_[t]->state = State::ready;
  position_ = 0;
  return true;
}

/// Why no thread can run: names a thread that waits and one that it waits for in vain.
std::logic_error Machine::deadlock() const {
  const auto find = [&](unsigned begin, unsigned end, auto holds) {
    while (begin < end && !holds(threads_[begin]->state)) ++begin;
    return begin;
  };
  const auto said = [&](unsigned t) {
    const Thread& thread = *threads_[t];
    const std::string who = "thread " + std::to_string(t);
    return thread.state == State::ended        ? who + " has ended"
           : thread.state == State::at_barrier ? who + " waits at synchronise_block"
                                               : who + " waits at " + thread.call->name;
  };
  const unsigned all = grid_.threads;
  unsigned waits = find(0, all, [](State s) { return s == State::at_warp; });
  if (waits < all) {
    const unsigned first = waits - waits % warp;
    const unsigned absent = find(first, first + warp, [](State s) { return s != State::at_warp; });
    return error(said(waits) + " but " + said(absent) +
                 " - all 32 lanes of a warp have to call it");
  }
  waits = find(0, all, [](State s) { return s == State::at_barrier; });
  const unsigned absent = find(0, all, [](State s) { return s != State::at_barrier; });
  return error(said(waits) + " but " + said(absent) + " - every thread of a block has to call it");
}

/// The next to run; the host when all have ended or one has failed.
Context& Machine::next() {
  running_ = nullptr;
  if (failure_ || stopping_) return host_;
  do {
    while (position_ < grid_.threads) {
      Thread& thread = at(position_++);
      if (thread.state == State::ready) {
        running_ = &thread;
        detail::place.thread = thread.number;
        return thread;
      }
    }
  } while (release_barrier());
  for (unsigned t = 0; t < grid_.threads; ++t) {
    if (threads_[t]->state != State::ended) {
      failure_ = std::make_exception_ptr(deadlock());
      break;
    }
  }
  return host_;
}

void Machine::leave(Thread& self) {
  Context& to = next();
  if (&to != &self) switch_stacks(self, to);
}

void Machine::wait(Thread& self) {
  leave(self);
  if (stopping_) throw Stopped{};
}

void Machine::wait_at_barrier() {
  Thread& self = running("synchronise_block");
  self.state = State::at_barrier;
  wait(self);
}

void Machine::wait_at_warp(const WarpCall& call) {
  Thread& self = running(call.name);
  self.state = State::at_warp;
  self.call = &call;
  const unsigned lane = self.number % warp;
  // Lanes come in order, so the last of them finds the others here, or there is a deadlock.
  if (lane == (descending_ ? 0 : warp - 1)) perform(self.number - lane);
  wait(self);
}

void Machine::perform(unsigned first) {
  Calls calls;
  for (unsigned lane = 0; lane < warp; ++lane) {
    if (threads_[first + lane]->state != State::at_warp) return;
    calls[lane] = threads_[first + lane]->call;
  }
  for (const WarpCall* call : calls) {
    if (std::strcmp(call->name, calls[0]->name) != 0 || call->bytes != calls[0]->bytes ||
        call->count != calls[0]->count) {
      throw error("warp " + std::to_string(first / warp) + " calls " + calls[0]->name + " and " +
                  call->name + " (or types of two sizes) - all 32 lanes have to call the same");
    }
  }
  (calls[0]->b != nullptr ? multiply_add : calls[0]->count != 0 ? load_matrices : shuffle)(calls);
  for (unsigned lane = 0; lane < warp; ++lane) threads_[first + lane]->state = State::ready;
  // The warp runs before the others.
  position_ = descending_ ? grid_.threads - first - warp : first;
}

void Machine::run_thread() {
  arrive(*running_);
  Thread* self = running_;
  for (;;) {
    self->inside = true;
    try {
      (*kernel_)();
    } catch (const Stopped&) {
    } catch (...) {
      failure_ = std::current_exception();
    }
    self->inside = false;
    self->state = State::ended;
    leave(*self);
  }
}

void Machine::run_block() {
  for (unsigned t = 0; t < grid_.threads; ++t) {
    Thread& thread = *threads_[t];
    thread.state = State::ready;
    thread.copies.clear();
    thread.committed = 0;
  }
  position_ = 0;
  switch_stacks(host_, next());
  if (!failure_) return;
  stopping_ = true;
  for (unsigned t = 0; t < grid_.threads; ++t) {
    Thread& thread = *threads_[t];
    if (thread.inside) {
      running_ = &thread;
      switch_stacks(host_, thread);
    }
  }
  stopping_ = false;
  std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Machine::run(const Grid& grid, const std::function<void()>& kernel) {
  const auto reject = [](bool wrong, const char* why) {
    if (wrong) throw std::logic_error(std::string("emulate: ") + why);
  };
  reject(kernel_ != nullptr, "a kernel cannot launch another");
  reject(grid.threads == 0 || grid.threads % warp != 0 || grid.threads > 1024,
         "a block has 32, 64, ... 1024 threads");
  reject(grid.blocks_x == 0 || grid.blocks_x > 0x7fffffff, "a grid has 1 to 2^31 - 1 blocks in x");
  reject(grid.blocks_y == 0 || grid.blocks_y > 65535, "a grid has 1 to 65535 blocks in y");
  reject(grid.shared_bytes > max_shared_bytes, "a block has 227 KiB of shared memory at most");

  while (threads_.size() < grid.threads) {
    threads_.push_back(
        std::make_unique<Thread>(static_cast<unsigned>(threads_.size()), &thread_entry));
  }
  host_.mark_host();
  const auto shared = std::make_unique_for_overwrite<unsigned char[]>(grid.shared_bytes);
  static_assert(__STDCPP_DEFAULT_NEW_ALIGNMENT__ >= 16);

  struct Reset {
    Machine& machine;
    ~Reset() {
      machine.kernel_ = nullptr;
      machine.running_ = nullptr;
      detail::place = {};
    }
  } const reset{*this};
  grid_ = grid;
  kernel_ = &kernel;
  descending_ = thread_order == Order::descending;
  const bool last_block_first = block_order == Order::descending;
  const std::uint64_t blocks = std::uint64_t{grid.blocks_x} * grid.blocks_y;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t block = last_block_first ? blocks - 1 - i : i;
    std::memset(shared.get(), 0xff, grid.shared_bytes);
    detail::place = {.thread = 0,
                     .threads = grid.threads,
                     .block_x = static_cast<unsigned>(block % grid.blocks_x),
                     .block_y = static_cast<unsigned>(block / grid.blocks_x),
                     .shared = shared.get()};
    run_block();
  }
}

/// Throws unless 16 aligned bytes at an address are in the shared memory of the block.
void check_shared(const void* address, const char* caller) {
  machine().running(caller);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto base = reinterpret_cast<std::uintptr_t>(detail::place.shared);
  if (at % 16 != 0)
    throw std::logic_error(std::string(caller) + ": both ends have to be aligned to 16 bytes");
  if (at < base || at - base + 16 > machine().shared_bytes())
    throw std::logic_error(std::string(caller) + ": not in the shared memory of the block");
}

}  // namespace

// ---- What kernels and tests call ----

void emulate(const Grid& grid, const std::function<void()>& kernel) {
  machine().run(grid, kernel);
}

void set_thread_order(Order order) {
  thread_order = order;
}

void set_block_order(Order order) {
  block_order = order;
}

void synchronise_block() {
  machine().wait_at_barrier();
}

void detail::shuffle_xor(const void* value, void* result, std::size_t bytes, int mask) {
  if (mask < 0 || mask >= static_cast<int>(warp))
    throw std::logic_error("shuffle_xor: the mask is 0 to 31, not " + std::to_string(mask));
  machine().wait_at_warp(
      {.name = "shuffle_xor", .bytes = bytes, .mask = mask, .a = value, .result = result});
}

void detail::load_transposed(std::uint32_t* out, int count, const std::uint32_t* row) {
  check_shared(row, "load_transposed");
  machine().wait_at_warp({.name = "load_transposed", .count = count, .a = row, .result = out});
}

void detail::multiply_add_f16(float* d, const std::uint32_t* a, const std::uint32_t* b, int k) {
  machine().wait_at_warp({.name = "multiply_add_f16", .count = k, .a = a, .b = b, .result = d});
}

void detail::multiply_add_tf32(float* d, const std::uint32_t* a, const std::uint32_t* b) {
  machine().wait_at_warp(
      {.name = "multiply_add_tf32", .bytes = 4, .count = 8, .a = a, .b = b, .result = d});
}

float exp2_unit(float t) {
  const float y = std::exp2(t);
  return y < std::numeric_limits<float>::min() ? 0.0f : y;
}

void copy_async(float* shared, const float* global) {
  Thread& self = machine().running("copy_async");
  check_shared(shared, "copy_async");
  if (reinterpret_cast<std::uintptr_t>(global) % 16 != 0)
    throw std::logic_error("copy_async: both ends have to be aligned to 16 bytes");
  self.copies.push_back({shared, global, self.committed});
}

void commit_copies() {
  ++machine().running("commit_copies").committed;
}

void detail::wait_copies(std::uint64_t pending) {
  Thread& self = machine().running("wait_copies");
  while (!self.copies.empty() && self.copies.front().group + pending < self.committed) {
    std::memcpy(self.copies.front().to, self.copies.front().from, 16);
    self.copies.pop_front();
  }
}

}  // namespace headlab::emulated_cuda
