#include "tests/residency/fake_driver.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace tidepool::testing {
namespace {

FakeDriver* fake = nullptr;  // the driver's entry points take no context

}  // namespace

struct FakeCalls {
  static CUresult Name(CUresult, const char** name) {
    *name = "CUDA_ERROR_FAKE";
    return CUDA_SUCCESS;
  }
  static CUresult Granularity(size_t* out, const CUmemAllocationProp*,
                              CUmemAllocationGranularity_flags) {
    *out = fake->page_;
    return CUDA_SUCCESS;
  }
  static CUresult Reserve(CUdeviceptr* out, size_t bytes, size_t, CUdeviceptr, unsigned long long) {
    CUresult result;
    if (fake->Fails(&result)) return result;
    if (bytes > (uint64_t{1} << 40)) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = fake->next_address_;
    fake->reservations_[*out] = bytes;
    fake->next_address_ += bytes + 16 * fake->page_;
    return CUDA_SUCCESS;
  }
  static CUresult AddressFree(CUdeviceptr address, size_t bytes) {
    auto it = fake->reservations_.find(address);
    if (it == fake->reservations_.end() || it->second != bytes) {
      fake->Violation("cuMemAddressFree of something else than a reservation");
      return CUDA_ERROR_INVALID_VALUE;
    }
    fake->reservations_.erase(it);
    return CUDA_SUCCESS;
  }
  static CUresult Create(CUmemGenericAllocationHandle* out, size_t bytes,
                         const CUmemAllocationProp*, unsigned long long) {
    ++fake->create_calls;
    CUresult result;
    if (fake->Fails(&result)) return result;
    if (bytes == 0 || bytes % fake->page_ != 0) return CUDA_ERROR_INVALID_VALUE;
    if (fake->physical_ + bytes > fake->capacity_) return CUDA_ERROR_OUT_OF_MEMORY;
    fake->physical_ += bytes;
    fake->peak_physical_ = std::max(fake->peak_physical_, fake->physical_);
    *out = fake->next_handle_++;
    fake->chunks_[*out].data.assign(bytes, 0xdb);
    return CUDA_SUCCESS;
  }
  static void Reclaim(uint64_t handle) {
    auto it = fake->chunks_.find(handle);
    if (it->second.released && it->second.mappings == 0) {
      fake->physical_ -= it->second.data.size();
      fake->chunks_.erase(it);
    }
  }
  static CUresult Release(CUmemGenericAllocationHandle handle) {
    auto it = fake->chunks_.find(handle);
    if (it == fake->chunks_.end() || it->second.released) {
      fake->Violation("cuMemRelease of an unknown handle");
      return CUDA_ERROR_INVALID_VALUE;
    }
    it->second.released = true;
    Reclaim(handle);
    return CUDA_SUCCESS;
  }
  static CUresult Map(CUdeviceptr address, size_t bytes, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long) {
    ++fake->map_calls;
    CUresult result;
    if (fake->Fails(&result)) return result;
    auto chunk = fake->chunks_.find(handle);
    if (offset != 0 || chunk == fake->chunks_.end() || chunk->second.data.size() != bytes ||
        bytes != fake->page_ || address % fake->page_ != 0) {
      fake->Violation("cuMemMap with bad arguments");
      return CUDA_ERROR_INVALID_VALUE;
    }
    auto range = fake->reservations_.upper_bound(address);
    if (range == fake->reservations_.begin() ||
        address + bytes > std::prev(range)->first + std::prev(range)->second) {
      fake->Violation("cuMemMap outside of a reservation");
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (fake->pages_.contains(address / fake->page_)) {
      fake->Violation("cuMemMap over a mapping");
      return CUDA_ERROR_INVALID_VALUE;
    }
    fake->pages_[address / fake->page_] = {handle, false};
    ++chunk->second.mappings;
    return CUDA_SUCCESS;
  }
  static CUresult Unmap(CUdeviceptr address, size_t bytes) {
    ++fake->unmap_calls;
    CUresult result;
    if (fake->Fails(&result)) return result;
    for (uint64_t page = address / fake->page_; page < (address + bytes) / fake->page_; ++page) {
      auto it = fake->pages_.find(page);
      if (it == fake->pages_.end()) {
        fake->Violation("cuMemUnmap of what is not mapped");
        return CUDA_ERROR_INVALID_VALUE;
      }
      const uint64_t handle = it->second.chunk;
      --fake->chunks_[handle].mappings;
      fake->pages_.erase(it);
      Reclaim(handle);
    }
    return CUDA_SUCCESS;
  }
  static CUresult SetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc*, size_t) {
    CUresult result;
    if (fake->Fails(&result)) return result;
    for (uint64_t page = address / fake->page_; page < (address + bytes) / fake->page_; ++page) {
      auto it = fake->pages_.find(page);
      if (it == fake->pages_.end()) {
        fake->Violation("cuMemSetAccess of what is not mapped");
        return CUDA_ERROR_INVALID_VALUE;
      }
      it->second.access = true;
    }
    return CUDA_SUCCESS;
  }
  static CUresult CopyAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CUresult result;
    if (fake->Fails(&result)) return result;
    fake->Enqueue(stream, [=] { fake->Write(to, fake->Read(from, bytes)); });
    return CUDA_SUCCESS;
  }
  static CUresult HostAlloc(void** out, size_t bytes, unsigned int) {
    CUresult result;
    if (fake->Fails(&result)) return result;
    auto block = std::make_unique<std::vector<uint8_t>>(bytes, 0xa9);
    *out = block->data();
    fake->host_[block->data()] = std::move(block);
    return CUDA_SUCCESS;
  }
  static CUresult FreeHost(void* data) {
    if (fake->host_.erase(static_cast<uint8_t*>(data)) == 0) {
      fake->Violation("cuMemFreeHost of something else than pinned memory");
      return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
  }
  // Host memory is looked at when the copy runs: it must still be there.
  static bool HostRange(const void* data, size_t bytes) {
    auto it = fake->host_.find(static_cast<uint8_t*>(const_cast<void*>(data)));
    if (it != fake->host_.end() && bytes <= it->second->size()) return true;
    fake->Violation("a copy with host memory that is not there");
    return false;
  }
  static CUresult CopyIn(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    CUresult result;
    if (fake->Fails(&result)) return result;
    fake->Enqueue(stream, [=] {
      const auto* data = static_cast<const uint8_t*>(from);
      if (HostRange(from, bytes)) fake->Write(to, std::vector<uint8_t>(data, data + bytes));
    });
    return CUDA_SUCCESS;
  }
  static CUresult CopyOut(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    CUresult result;
    if (fake->Fails(&result)) return result;
    fake->Enqueue(stream, [=] {
      const std::vector<uint8_t> data = fake->Read(from, bytes);
      if (HostRange(to, bytes)) std::copy(data.begin(), data.end(), static_cast<uint8_t*>(to));
    });
    return CUDA_SUCCESS;
  }
  static CUresult StreamCreate(CUstream* out, unsigned int) {
    CUresult result;
    if (fake->Fails(&result)) return result;
    *out = fake->NewStream();
    return CUDA_SUCCESS;
  }
  static CUresult StreamDestroy(CUstream) { return CUDA_SUCCESS; }
  static CUresult EventCreate(CUevent* out, unsigned int) {
    CUresult result;
    if (fake->Fails(&result)) return result;
    *out = reinterpret_cast<CUevent>(fake->next_event_++);
    fake->events_[reinterpret_cast<uint64_t>(*out)] = {};
    return CUDA_SUCCESS;
  }
  static CUresult EventDestroy(CUevent event) {
    fake->events_.erase(reinterpret_cast<uint64_t>(event));
    return CUDA_SUCCESS;
  }
  static CUresult EventRecord(CUevent event, CUstream stream) {
    CUresult result;
    if (fake->Fails(&result)) return result;
    const uint64_t key = FakeDriver::Key(stream);
    fake->events_[reinterpret_cast<uint64_t>(event)] = {key, fake->streams_[key].enqueued};
    return CUDA_SUCCESS;
  }
  static CUresult EventQuery(CUevent event) {
    fake->RandomProgress();
    const FakeDriver::Event& e = fake->events_[reinterpret_cast<uint64_t>(event)];
    return fake->streams_[e.stream].done >= e.count ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  }
  static CUresult EventSynchronize(CUevent event) {
    CUresult result;
    if (fake->Fails(&result)) return result;
    const FakeDriver::Event e = fake->events_[reinterpret_cast<uint64_t>(event)];
    fake->RunUntil(e.stream, e.count);
    return CUDA_SUCCESS;
  }
  static CUresult Elapsed(float* out, CUevent, CUevent) {
    *out = 0.01f;
    return CUDA_SUCCESS;
  }
  static CUresult WaitEvent(CUstream stream, CUevent event, unsigned int) {
    CUresult result;
    if (fake->Fails(&result)) return result;
    const FakeDriver::Event e = fake->events_[reinterpret_cast<uint64_t>(event)];
    FakeDriver::Stream& waiter = fake->streams_[FakeDriver::Key(stream)];
    waiter.queue.push_back({nullptr, {{e.stream, e.count}}});
    ++waiter.enqueued;
    return CUDA_SUCCESS;
  }
};

FakeDriver::FakeDriver(uint64_t page_bytes, uint64_t capacity, uint32_t seed)
    : page_(page_bytes), capacity_(capacity), random_(seed) {
  fake = this;
  api_.GetErrorName = FakeCalls::Name;
  api_.MemGetAllocationGranularity = FakeCalls::Granularity;
  api_.MemAddressReserve = FakeCalls::Reserve;
  api_.MemAddressFree = FakeCalls::AddressFree;
  api_.MemCreate = FakeCalls::Create;
  api_.MemRelease = FakeCalls::Release;
  api_.MemMap = FakeCalls::Map;
  api_.MemUnmap = FakeCalls::Unmap;
  api_.MemSetAccess = FakeCalls::SetAccess;
  api_.MemcpyDtoDAsync = FakeCalls::CopyAsync;
  api_.MemHostAlloc = FakeCalls::HostAlloc;
  api_.MemFreeHost = FakeCalls::FreeHost;
  api_.MemcpyHtoDAsync = FakeCalls::CopyIn;
  api_.MemcpyDtoHAsync = FakeCalls::CopyOut;
  api_.StreamCreate = FakeCalls::StreamCreate;
  api_.StreamDestroy = FakeCalls::StreamDestroy;
  api_.EventCreate = FakeCalls::EventCreate;
  api_.EventDestroy = FakeCalls::EventDestroy;
  api_.EventRecord = FakeCalls::EventRecord;
  api_.EventQuery = FakeCalls::EventQuery;
  api_.EventSynchronize = FakeCalls::EventSynchronize;
  api_.EventElapsedTime = FakeCalls::Elapsed;
  api_.StreamWaitEvent = FakeCalls::WaitEvent;
}

FakeDriver::~FakeDriver() { fake = nullptr; }

uint64_t FakeDriver::Key(CUstream stream) {
  return stream == nullptr ? 1 : reinterpret_cast<uint64_t>(stream);
}

CUstream FakeDriver::NewStream() { return reinterpret_cast<CUstream>(next_stream_++); }

void FakeDriver::FailCall(uint64_t n, CUresult result) {
  fail_at_ = n == 0 ? 0 : calls_ + n;
  fail_with_ = result;
}

bool FakeDriver::Fails(CUresult* result) {
  if (++calls_ != fail_at_) return false;
  fail_at_ = 0;
  *result = fail_with_;
  return true;
}

void FakeDriver::Violation(const std::string& text) { violations_.push_back(text); }

uint8_t* FakeDriver::Translate(uint64_t address) {
  auto it = pages_.find(address / page_);
  if (it == pages_.end() || !it->second.access) return nullptr;
  return chunks_[it->second.chunk].data.data() + address % page_;
}

std::vector<uint8_t> FakeDriver::Read(uint64_t address, uint64_t bytes) {
  std::vector<uint8_t> data(bytes);
  for (uint64_t i = 0; i < bytes;) {
    const uint64_t run = std::min(bytes - i, page_ - (address + i) % page_);
    const uint8_t* at = Translate(address + i);
    if (at == nullptr) {
      Violation("the device reads memory that is not mapped");
      return data;
    }
    std::memcpy(data.data() + i, at, run);
    i += run;
  }
  return data;
}

void FakeDriver::Write(uint64_t address, const std::vector<uint8_t>& data) {
  for (uint64_t i = 0; i < data.size();) {
    const uint64_t run = std::min<uint64_t>(data.size() - i, page_ - (address + i) % page_);
    uint8_t* at = Translate(address + i);
    if (at == nullptr) {
      Violation("the device writes memory that is not mapped");
      return;
    }
    std::memcpy(at, data.data() + i, run);
    i += run;
  }
}

void FakeDriver::Enqueue(CUstream stream, std::function<void()> work) {
  Stream& queue = streams_[Key(stream)];
  queue.queue.push_back({std::move(work), {}});
  ++queue.enqueued;
  RandomProgress();
}

void FakeDriver::ProgramWait(CUstream waiter, CUstream on) {
  Stream& queue = streams_[Key(waiter)];
  const Stream& other = streams_[Key(on)];
  queue.queue.push_back({nullptr, {{Key(on), other.enqueued}}});
  ++queue.enqueued;
}

bool FakeDriver::Runnable(const Stream& stream) const {
  if (stream.queue.empty()) return false;
  for (const auto& [other, count] : stream.queue.front().after) {
    auto it = streams_.find(other);
    if (it != streams_.end() && it->second.done < count) return false;
  }
  return true;
}

void FakeDriver::Step(uint64_t key) {
  Stream& stream = streams_[key];
  Item item = std::move(stream.queue.front());
  stream.queue.pop_front();
  if (item.work) item.work();
  ++stream.done;
}

void FakeDriver::RandomProgress() {
  // Mostly nothing happens: the device is as late as it can be.
  while (random_() % 4 == 0) {
    std::vector<uint64_t> ready;
    for (const auto& [key, stream] : streams_) {
      if (Runnable(stream)) ready.push_back(key);
    }
    if (ready.empty()) return;
    Step(ready[random_() % ready.size()]);
  }
}

void FakeDriver::RunUntil(uint64_t key, uint64_t count) {
  while (streams_[key].done < count) {
    // Only what is needed: follow the first unmet wait.
    uint64_t next = key;
    for (;;) {
      const Stream& stream = streams_[next];
      if (stream.queue.empty()) {
        Violation("a wait for something that was never enqueued");
        return;
      }
      if (Runnable(stream)) break;
      for (const auto& [other, wanted] : stream.queue.front().after) {
        if (streams_[other].done < wanted) {
          next = other;
          break;
        }
      }
    }
    Step(next);
  }
}

void FakeDriver::Drain() {
  std::vector<uint64_t> keys;
  for (const auto& [key, stream] : streams_) keys.push_back(key);
  std::shuffle(keys.begin(), keys.end(), random_);
  for (uint64_t key : keys) RunUntil(key, streams_[key].enqueued);
}

}  // namespace tidepool::testing
