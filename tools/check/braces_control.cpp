// SPDX-License-Identifier: Apache-2.0
// Braces that GCC 12 may get wrong, which braces.py has to find, and those that it gets right,
// which it has to leave. Run, it says what the compiler at hand makes of each.
#include <array>
#include <cstdio>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace {

int alive = 0;

struct Counted {
  Counted(const char* text) : name(text) { ++alive; }
  Counted(const Counted& other) : name(other.name) { ++alive; }
  ~Counted() { --alive; }
  const char* name;
};

struct Machine {
  Counted name;
  int threads = 1;
};
struct Checkpoint {
  Machine machine;
  int precision = 0;
};
struct Deep {
  Checkpoint checkpoint;
  int more = 0;
};
struct Listed {
  Counted name;
  std::vector<int> list = {};
};
struct WithList {
  Listed listed;
  int more = 0;
};
struct Base : Machine {
  int more = 0;
};
struct OwnInitialiser {
  Machine machine = {"own"};  // fault
  int more = 0;
};
struct OwnTypedInitialiser {
  Machine machine = Machine{"own"};  // fault
  int more = 0;
};
Machine made() {
  return {"made"};
}
struct CalledInitialiser {
  Machine machine = made();
  int more = 0;
};
struct Arrays {
  std::vector<std::string> list;
  std::string text;
  std::array<std::string, 2> pair;
  int more = 0;
};

int throws() {
  throw 1;
}

Checkpoint returned() {
  return {{"a"}, throws()};  // fault
}

void taken(const Checkpoint&) {}

/// Whether as many objects were destroyed as were made.
bool is_right(const std::function<void()>& make) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      make();
    } catch (int) {
    }
    ::_exit(alive == 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

int main() {
  const char* const a = "a";
  const std::vector<std::function<void()>> doubtful = {
      [&] {
        Checkpoint c{.machine = {.name = a, .threads = 3}, .precision = throws()};  // fault
      },
      [&] {
        Checkpoint c{{a, 3}, throws()};  // fault
      },
      [&] {
        Checkpoint c{{a}, throws()};  // fault
      },
      [&] {
        Checkpoint c{a, 1, throws()};  // fault
      },
      [&] { returned(); },
      [&] {
        taken({{a, 3}, throws()});  // fault
      },
      [&] {
        std::vector<Checkpoint>().push_back({{a, 3}, throws()});  // fault
      },
      [&] {
        delete new Checkpoint{{a, 3}, throws()};  // fault
      },
      [&] {
        Deep c{Checkpoint{{a, 3}, throws()}, 1};  // fault
      },
      [&] {
        WithList c{.listed = {.name = a}, .more = throws()};  // fault
      },
      [&] {
        Base c{{a, 3}, throws()};  // fault
      },
      [&] { OwnInitialiser c{.more = throws()}; },
      [&] { OwnTypedInitialiser c{.more = throws()}; },
  };
  const std::vector<std::function<void()>> right = {
      [&] {
        Deep c{Checkpoint{Machine{a, 3}, 1}, throws()};
      },
      [&] { Checkpoint c{.machine = Machine{.name = a, .threads = 3}, .precision = throws()}; },
      [&] {
        Checkpoint c{Machine{a, 3}, throws()};
      },
      [&] {
        taken({Machine{a, 3}, throws()});
      },
      [&] {
        std::vector<Checkpoint>().push_back({Machine{a, 3}, throws()});
      },
      [&] { WithList c{.listed = Listed{.name = a}, .more = throws()}; },
      [&] {
        Base c{Machine{a, 3}, throws()};
      },
      [&] {
        Checkpoint c{made(), throws()};
      },
      [&] { CalledInitialiser c{.more = throws()}; },
      [&] {
        Arrays c{.list = {"x", "y"}, .text = {}, .pair = {"x", "y"}, .more = throws()};
      },
      [&] {
        std::vector<Machine> c{{a, 1}, {a, throws()}};
      },
  };
  int destroyed_twice = 0;
  for (const auto& make : doubtful) destroyed_twice += is_right(make) ? 0 : 1;
  int wrong = 0;
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (is_right(right[i])) continue;
    std::printf("case %zu of those that should be right is not\n", i);
    ++wrong;
  }
  std::printf("%zu doubtful cases, %d wrong; %zu others, %d wrong\n", doubtful.size(),
              destroyed_twice, right.size(), wrong);
  return wrong == 0 ? 0 : 1;
}
