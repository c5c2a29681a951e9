// A driver in a few hundred lines for testing the engine: virtual memory as a page table in
// software, streams as queues that run as late, and in as strange an order, as the program's waits
// allow, and every call able to fail on demand. It is strict: what the driver forbids, or what
// would read or write memory that is not mapped at the moment the device gets there, is a recorded
// violation.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "runtime/driver/driver_api.h"

namespace tidepool::testing {

class FakeDriver {
 public:
  // `capacity`: physical bytes. `seed` decides the order in which streams make progress.
  FakeDriver(uint64_t page_bytes, uint64_t capacity, uint32_t seed);
  ~FakeDriver();
  FakeDriver(const FakeDriver&) = delete;
  FakeDriver& operator=(const FakeDriver&) = delete;

  const DriverApi& api() const { return api_; }

  // Device side access, made when the op runs: a violation if a page is not mapped with access.
  std::vector<uint8_t> Read(uint64_t address, uint64_t bytes);
  void Write(uint64_t address, const std::vector<uint8_t>& data);

  // Queues device work on a stream (null and 0x1 are the same stream here).
  void Enqueue(CUstream stream, std::function<void()> work);
  CUstream NewStream();
  // Runs everything.
  void Drain();

  // The program's own ordering, as it would use the driver.
  void ProgramWait(CUstream waiter, CUstream on);

  // Makes the n-th counted driver call from now fail with `result` (0: none). Returns to 0 once it
  // did.
  void FailCall(uint64_t n, CUresult result);
  uint64_t calls() const { return calls_; }

  uint64_t physical_bytes() const { return physical_; }
  uint64_t peak_physical_bytes() const { return peak_physical_; }
  const std::vector<std::string>& violations() const { return violations_; }
  uint64_t map_calls = 0, unmap_calls = 0, create_calls = 0;

 private:
  friend struct FakeCalls;
  struct Item {
    std::function<void()> work;  // null for a wait
    std::vector<std::pair<uint64_t, uint64_t>>
        after;  // (stream, count): that stream ran so many items
  };
  struct Stream {
    std::deque<Item> queue;
    uint64_t enqueued = 0;
    uint64_t done = 0;
  };
  struct Event {
    uint64_t stream = 0;
    uint64_t count = 0;  // complete once the stream has run so many items
  };
  struct Page {
    uint64_t chunk = 0;
    bool access = false;
  };
  struct Chunk {
    std::vector<uint8_t> data;
    uint32_t mappings = 0;
    bool released = false;
  };

  bool Fails(CUresult* result);
  void Violation(const std::string& text);
  bool Runnable(const Stream& stream) const;
  void Step(uint64_t stream);
  void RunUntil(uint64_t stream, uint64_t count);
  void RandomProgress();
  uint8_t* Translate(uint64_t address);
  static uint64_t Key(CUstream stream);

  DriverApi api_;
  uint64_t page_;
  uint64_t capacity_;
  std::mt19937 random_;
  uint64_t physical_ = 0, peak_physical_ = 0;
  uint64_t next_handle_ = 1, next_address_ = 0x100000000000, next_stream_ = 16;
  std::map<uint64_t, Chunk> chunks_;
  std::map<uint64_t, Page> pages_;             // by page number
  std::map<uint64_t, uint64_t> reservations_;  // address -> bytes
  std::map<uint64_t, Stream> streams_;
  std::map<uint64_t, Event> events_;
  std::map<uint8_t*, std::unique_ptr<std::vector<uint8_t>>> host_;  // pinned memory
  uint64_t next_event_ = 1;
  uint64_t calls_ = 0, fail_at_ = 0;
  CUresult fail_with_ = CUDA_SUCCESS;
  std::vector<std::string> violations_;
};

}  // namespace tidepool::testing
