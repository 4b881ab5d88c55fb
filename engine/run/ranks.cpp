// SPDX-License-Identifier: Apache-2.0
#include "engine/run/ranks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "engine/files/document.h"
#include "engine/files/error.h"
#include "engine/files/json_writer.h"
#include "engine/files/provenance.h"
#include "engine/files/sha256.h"
#include "engine/run/message_bytes.h"
#include "engine/scenario/plan_fingerprint.h"
#include "engine/scenario/scenario.h"
#include "kernels/learning/worker.h"

namespace headlab {
namespace {

using RankClock = std::chrono::steady_clock;

enum class Tag : char {
  serves,    ///< a rank is ready: its study and threads
  declines,  ///< it is not: why
  group,     ///< conditions that blocks are of from now on
  block,
  stop,  ///< give up blocks that are not begun
  end,
  moments,  ///< of a block
  dropped,  ///< a block was given up
  failed,   ///< the rank cannot go on: why
  ended     ///< the last message of a rank
};

constexpr std::chrono::microseconds shortest_wait{100}, longest_wait{8000};
/// A block that takes longer is dealt when the one before it has returned: to wait for it, some
/// three times longest_wait, costs little.
constexpr double long_block = 1;  // seconds

/// Waits a little longer each time that nothing happens: MPI has to be asked for messages.
class Patience {
 public:
  void wait() { std::this_thread::sleep_for(next()); }
  /// How long to wait this time.
  std::chrono::microseconds next() {
    return std::exchange(wait_, std::min(2 * wait_, longest_wait));
  }
  void reset() { wait_ = shortest_wait; }

 private:
  std::chrono::microseconds wait_ = shortest_wait;
};

void put_block(MessageWriter& message, const Block& block) {
  message.put(block.first);
  message.put(block.count);
  message.put(block.node);
}

Block take_block(MessageReader& message) {
  Block block{.first = message.number<std::uint64_t>()};
  block.count = message.number<std::uint64_t>();
  block.node = message.number<int>();
  return block;
}

std::string with_text(Tag tag, const std::string& text) {
  MessageWriter message;
  message.put(tag);
  message.put(text);
  return std::move(message).bytes();
}

std::string with_block(Tag tag, const Block& block) {
  MessageWriter message;
  message.put(tag);
  put_block(message, block);
  return std::move(message).bytes();
}

std::string alone(Tag tag) {
  MessageWriter message;
  message.put(tag);
  return std::move(message).bytes();
}

/// Bytes that the moments of a block take, or a little more.
std::size_t size_of(const std::vector<Moments>& moments) {
  constexpr std::size_t of_the_rest = 1024;  // counts and extremes
  std::size_t size = of_the_rest;
  for (const Moments& one : moments) {
    size += of_the_rest + sizeof(double) * (one.mean.size() + one.comoment.size());
  }
  return size;
}

/// The blocks that a rank was sent, and the threads that compute them.
class BlockService {
 public:
  BlockService(const Backend& backend, int threads) : backend_(backend) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] { work(); });
    }
  }
  ~BlockService() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
      stopping_ = true;
      blocks_.clear();
    }
    changed_.notify_all();
  }

  /// Blocks are of these plans from now on. To be called when all before have been returned.
  void set_plans(RankPlans plans) {
    const std::lock_guard lock(mutex_);
    plans_ = std::make_shared<const RankPlans>(std::move(plans));
    stopping_ = false;
  }

  void add(const Block& block) {
    {
      const std::lock_guard lock(mutex_);
      blocks_.push_back(block);
    }
    changed_.notify_one();
  }

  /// Gives up what is not begun.
  void stop() {
    stopping_ = true;
    const std::lock_guard lock(mutex_);
    for (const Block& block : blocks_) results_.push_back(with_block(Tag::dropped, block));
    blocks_.clear();
  }

  /// The messages that are to be sent; waits for one, at most so long.
  std::deque<std::string> take_results(std::chrono::microseconds wait) {
    std::unique_lock lock(mutex_);
    done_.wait_for(lock, wait, [&] { return failure_ || !results_.empty(); });
    if (failure_) std::rethrow_exception(failure_);
    return std::exchange(results_, {});
  }

 private:
  void work() {
    try {
      work_on_blocks();
    } catch (...) {  // what failed could not be told in a message
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      done_.notify_one();
    }
  }

  void work_on_blocks() {
    std::shared_ptr<const RankPlans> mine;
    SimulationHooks hooks{.stop = [this] { return stopping_.load(); }};
    std::unique_ptr<Worker> worker;
    for (;;) {
      Block block;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ended_ || !blocks_.empty(); });
        if (ended_) return;
        block = blocks_.front();
        blocks_.pop_front();
        if (mine != plans_) {
          worker.reset();
          mine = plans_;
          hooks.set_draw = mine->set_draw;
        }
      }
      std::string result;
      try {
        if (!worker) worker = make_block_worker(mine->plans, backend_, hooks);
        std::vector<Moments> moments(mine->plans.size() * block.nodes());
        worker->run(block, moments);
        MessageWriter message;
        message.reserve(size_of(moments));
        message.put(Tag::moments);
        put_block(message, block);
        for (const Moments& one : moments) put_moments(message, one);
        result = std::move(message).bytes();
      } catch (const WorkStopped&) {
        result = with_block(Tag::dropped, block);
      } catch (const std::exception& error) {
        result = with_text(Tag::failed, error.what());
      }
      {
        const std::lock_guard lock(mutex_);
        results_.push_back(std::move(result));
      }
      done_.notify_one();
    }
  }

  const Backend& backend_;
  std::mutex mutex_;
  std::condition_variable changed_;  ///< there is a block, or the end
  std::condition_variable done_;     ///< there is a result
  std::shared_ptr<const RankPlans> plans_;
  std::deque<Block> blocks_;
  std::deque<std::string> results_;
  std::exception_ptr failure_;
  std::atomic<bool> stopping_ = false;
  bool ended_ = false;
  std::vector<std::jthread> threads_;  ///< last: they end first
};

}  // namespace

RankStudy rank_study(const Scenario& scenario, Plans plans, const Machine& machine) {
  std::vector<std::string> read = {to_json(scenario_tree(scenario))};
  for (const Plan* plan : plans) read.push_back(plan_sha256(*plan));
  const Provenance program = provenance();
  return {.program = program.version + " " + program.git + " " + program.compiler + " " +
                     program.build_type,
          .machine = machine.backend + "/" + machine.simd +
                     (machine.backend == "cuda" ? " on " + machine.device : ""),
          .plans = sha256_of_texts(read)};
}

/// Another rank, as rank 0 sees it.
struct Ranks::Peer {
  bool answered = false;
  int threads = 0;         ///< 0: it does not serve
  std::string why = {};    ///< it does not
  RankStudy study = {};    ///< that it serves
  bool has_group = false;  ///< knows the conditions of the blocks to come
  struct Dealt {
    Block block;
    RankClock::time_point at;
  };
  std::vector<Dealt> dealt = {};  ///< and not returned
  /// That a thread took for the last block.
  double seconds = std::numeric_limits<double>::infinity();
  bool ended = false;

  std::size_t most() const {
    const auto each = static_cast<std::size_t>(threads);
    return seconds > long_block ? each : 2 * each;
  }
};

Ranks::Ranks(Channel& channel)
    : channel_(channel), peers_(static_cast<std::size_t>(channel.size())) {}

Ranks::~Ranks() = default;

bool Ranks::gather(const RankStudy& study, const std::function<bool()>& stop) {
  Patience patience;
  for (std::size_t rank = 1; rank < peers_.size();) {
    if (peers_[rank].answered) {
      ++rank;
      continue;
    }
    if (stop && stop()) return false;
    if (const auto message = channel_.receive()) {
      take_answer(*message);
      patience.reset();
    } else {
      patience.wait();
    }
  }
  for (std::size_t rank = 1; rank < peers_.size(); ++rank) {
    const Peer& peer = peers_[rank];
    const std::string name = "rank " + std::to_string(rank);
    if (peer.threads == 0) throw InvalidInput(name + ": " + one_line(peer.why));
    const auto require = [&](const char* what, const std::string& there, const std::string& here) {
      if (there == here) return;
      throw InvalidInput(name + ": has " + what + " " + one_line(there, 60) + ", and rank 0 has " +
                         one_line(here, 60) + " - start one program on machines of one kind");
    };
    require("headlab", peer.study.program, study.program);
    require("backend", peer.study.machine, study.machine);
    if (peer.study.plans != study.plans) {
      throw InvalidInput(name +
                         ": reads another scenario or data file than rank 0 - give all "
                         "ranks the same files");
    }
  }
  return true;
}

void Ranks::take_answer(const Message& message) {
  Peer& peer = peers_.at(static_cast<std::size_t>(message.from));
  MessageReader reader(message.bytes);
  const Tag tag = reader.number<Tag>();
  if (tag == Tag::declines) {
    peer.why = reader.text();
  } else if (tag == Tag::serves) {
    peer.study.program = reader.text();
    peer.study.machine = reader.text();
    peer.study.plans = reader.text();
    peer.threads = reader.number<int>();
  } else {
    throw RunFailed("rank " + std::to_string(message.from) + ": an unexpected message");
  }
  peer.answered = true;
}

int Ranks::capacity() const {
  int sum = 0;
  for (const Peer& peer : peers_) sum += peer.threads;
  return sum;
}

bool Ranks::is_busy() const {
  return std::ranges::any_of(peers_, [](const Peer& peer) { return !peer.dealt.empty(); });
}

bool Ranks::deal_round(const std::vector<std::size_t>& conditions, BlockQueue& queue, bool& ended) {
  bool any = false;
  for (std::size_t rank = 1; rank < peers_.size() && !ended; ++rank) {
    Peer& peer = peers_[rank];
    if (peer.dealt.size() >= peer.most()) continue;
    const std::optional<Block> block = queue.try_next();
    if (!block) return any;
    if (block->count == 0) {
      ended = true;
      return any;
    }
    const int to = static_cast<int>(rank);
    if (!peer.has_group) {
      MessageWriter message;
      message.put(Tag::group);
      message.put(std::vector<std::uint64_t>(conditions.begin(), conditions.end()));
      channel_.send(to, std::move(message).bytes());
      peer.has_group = true;
    }
    channel_.send(to, with_block(Tag::block, *block));
    peer.dealt.push_back({*block, RankClock::now()});
    any = true;
  }
  return any;
}

void Ranks::deal(const std::vector<std::size_t>& conditions, BlockQueue& queue) {
  for (Peer& peer : peers_) peer.has_group = false;
  Patience patience;
  bool ended = false, told = false;
  while (!ended || is_busy()) {
    bool idle = true;
    while (const auto message = channel_.receive()) {
      take_result(*message, queue);
      idle = false;
    }
    while (!ended && deal_round(conditions, queue, ended)) idle = false;
    if (!told && is_busy() && queue.stopping()) {
      for (std::size_t rank = 1; rank < peers_.size(); ++rank) {
        if (!peers_[rank].dealt.empty()) channel_.send(static_cast<int>(rank), alone(Tag::stop));
      }
      told = true;
    }
    if (idle) {
      patience.wait();
    } else {
      patience.reset();
    }
  }
}

void Ranks::take_result(const Message& message, BlockQueue& queue) {
  Peer& peer = peers_.at(static_cast<std::size_t>(message.from));
  MessageReader reader(message.bytes);
  const Tag tag = reader.number<Tag>();
  const std::string name = "rank " + std::to_string(message.from);
  if (tag == Tag::failed) {
    const std::string why = reader.text();
    peer.dealt.clear();
    throw RunFailed(name + ": " + why);
  }
  const Block block = take_block(reader);
  const auto dealt = std::ranges::find_if(
      peer.dealt, [&](const Peer::Dealt& one) { return one.block.first == block.first; });
  if (dealt == peer.dealt.end()) throw RunFailed(name + ": returns what it was not sent");
  // With more blocks under way than threads it waited for those before it.
  const double threads = peer.threads;
  peer.seconds = std::chrono::duration<double>(RankClock::now() - dealt->at).count() *
                 std::min(1.0, threads / static_cast<double>(peer.dealt.size()));
  peer.dealt.erase(dealt);
  if (tag == Tag::dropped) return;
  std::vector<Moments> moments;
  while (!reader.at_end()) moments.push_back(take_moments(reader));
  queue.collect(block, std::move(moments));
}

void Ranks::serve(const RankStudy& study, const Backend& backend, int threads,
                  const FindPlans& find) {
  BlockService service(backend, threads);
  MessageWriter answer;
  answer.put(Tag::serves);
  answer.put(study.program);
  answer.put(study.machine);
  answer.put(study.plans);
  answer.put(threads);
  channel_.send(0, std::move(answer).bytes());
  answered_ = true;
  Patience patience;
  while (!ended_) {
    bool idle = true;
    while (const auto message = channel_.receive()) {
      idle = false;
      MessageReader reader(message->bytes);
      switch (reader.number<Tag>()) {
        case Tag::group: {
          const auto conditions = reader.numbers<std::uint64_t>();
          service.set_plans(find({conditions.begin(), conditions.end()}));
          break;
        }
        case Tag::block:
          service.add(take_block(reader));
          break;
        case Tag::stop:
          service.stop();
          break;
        default:
          ended_ = true;
      }
    }
    if (!idle) patience.reset();
    std::deque<std::string> results =
        service.take_results(idle ? patience.next() : std::chrono::microseconds(0));
    if (!results.empty()) patience.reset();
    for (std::string& result : results) channel_.send(0, std::move(result));
  }
}

void Ranks::decline(const std::string& why) {
  if (answered_) return;
  channel_.send(0, with_text(Tag::declines, why));
  answered_ = true;
}

void Ranks::end() {
  Patience patience;
  if (leads()) {
    for (int rank = 1; rank < size(); ++rank) channel_.send(rank, alone(Tag::end));
    // No message is left on its way.
    while (!std::ranges::all_of(peers_.begin() + 1, peers_.end(), &Peer::ended)) {
      if (const auto message = channel_.receive()) {
        const bool last = MessageReader(message->bytes).number<Tag>() == Tag::ended;
        peers_.at(static_cast<std::size_t>(message->from)).ended = last;
      } else {
        patience.wait();
      }
    }
    return;
  }
  while (!ended_) {
    if (const auto message = channel_.receive()) {
      ended_ = MessageReader(message->bytes).number<Tag>() == Tag::end;
    } else {
      patience.wait();
    }
  }
  channel_.send(0, alone(Tag::ended));
}

}  // namespace headlab
