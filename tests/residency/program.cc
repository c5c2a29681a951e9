#include "tests/residency/program.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace tidepool::testing {
namespace {

uint64_t Mix(uint64_t x) {
  x ^= x >> 33;
  x *= 0xff51afd7ed558ccdull;
  x ^= x >> 33;
  x *= 0xc4ceb9fe1a85ec53ull;
  return x ^ (x >> 33);
}

// Issues the op again; what a LaunchReplay does for a kernel.
class TestReplay final : public Replay {
 public:
  TestReplay(FakeDriver* driver, OpShape op) : driver_(driver), op_(std::move(op)) {}
  CUresult Issue(CUstream stream) const override {
    FakeDriver* driver = driver_;
    OpShape op = op_;
    driver_->Enqueue(stream, [driver, op] {
      Execute(
          op, [&](uint64_t a, uint64_t n) { return driver->Read(a, n); },
          [&](uint64_t a, const std::vector<uint8_t>& d) { driver->Write(a, d); });
    });
    return CUDA_SUCCESS;
  }
  uint64_t footprint() const override { return sizeof(*this); }

 private:
  FakeDriver* driver_;
  OpShape op_;
};

// The program: buffers with their contents as they ought to be.
class Runner {
 public:
  explicit Runner(const ProgramOptions& options)
      : options_(options),
        driver_(options.page_bytes, options.budget_pages * options.page_bytes, options.seed),
        random_(options.seed * 7919 + 17) {}

  ProgramResult Run();

 private:
  struct TestBuffer {
    uint64_t address = 0;
    std::vector<uint8_t> content;
    bool written = false;
    int last_writer = -1;  // stream index
    std::vector<bool> read_by;
  };

  uint64_t Pick(uint64_t n) { return random_() % n; }
  bool Chance(double p) { return std::uniform_real_distribution<>(0, 1)(random_) < p; }
  TestBuffer* PickWritten();
  bool Issue(OpKind kind, OpShape op, bool replayable, int stream,
             const std::vector<TestBuffer*>& buffers);
  void OrderStreams(const OpShape::Use& use, TestBuffer* buffer, int stream);
  void Allocate();
  void FreeOne();
  void Upload();
  void Download(TestBuffer* buffer);
  void Compute();
  void Memset();
  void Fail(const std::string& text) {
    if (result_.difference.empty()) result_.difference = text;
  }

  ProgramOptions options_;
  FakeDriver driver_;
  std::mt19937 random_;
  std::unique_ptr<Engine> engine_;
  std::vector<CUstream> streams_;
  std::vector<std::unique_ptr<TestBuffer>> buffers_;
  ProgramResult result_;
  int step_ = 0;
};

Runner::TestBuffer* Runner::PickWritten() {
  std::vector<TestBuffer*> written;
  for (auto& buffer : buffers_) {
    if (buffer->written) written.push_back(buffer.get());
  }
  return written.empty() ? nullptr : written[Pick(written.size())];
}

void Runner::OrderStreams(const OpShape::Use& use, TestBuffer* buffer, int stream) {
  // A correct program: readers behind the writer, a writer behind everybody.
  if (buffer->last_writer >= 0 && buffer->last_writer != stream) {
    driver_.ProgramWait(streams_[stream], streams_[buffer->last_writer]);
  }
  buffer->read_by.resize(streams_.size());
  if (Writes(use.mode)) {
    for (size_t s = 0; s < streams_.size(); ++s) {
      if (buffer->read_by[s] && static_cast<int>(s) != stream) {
        driver_.ProgramWait(streams_[stream], streams_[s]);
      }
      buffer->read_by[s] = false;
    }
    buffer->last_writer = stream;
  }
  buffer->read_by[stream] = true;
}

bool Runner::Issue(OpKind kind, OpShape op, bool replayable, int stream,
                   const std::vector<TestBuffer*>& buffers) {
  OpRequest request;
  request.kind = kind;
  request.name = kind == OpKind::kUpload     ? "upload"
                 : kind == OpKind::kDownload ? "download"
                                             : "compute";
  request.stream.handle = streams_[stream];
  request.cost_key = 1 + op.salt % 5;
  for (const OpShape::Use& use : op.uses) {
    const bool whole = use.covers;
    request.regions.push_back(
        {use.address + (whole ? 0 : use.first), whole ? use.bytes : 0, use.mode, use.covers});
  }
  auto replay = std::make_shared<TestReplay>(&driver_, op);
  if (replayable) request.replay = replay;
  for (size_t i = 0; i < buffers.size(); ++i) OrderStreams(op.uses[i], buffers[i], stream);
  CUresult result = engine_->Run(request, [&] { return replay->Issue(streams_[stream]); });
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    ++result_.out_of_memory;
    return false;
  }
  if (result != CUDA_SUCCESS) {
    ++result_.errors;
    return false;
  }
  auto find = [&](uint64_t address) -> TestBuffer* {
    for (TestBuffer* buffer : buffers) {
      if (address >= buffer->address && address < buffer->address + buffer->content.size()) {
        return buffer;
      }
    }
    return nullptr;
  };
  Execute(
      op,
      [&](uint64_t a, uint64_t n) {
        TestBuffer* buffer = find(a);
        auto first = buffer->content.begin() + static_cast<ptrdiff_t>(a - buffer->address);
        return std::vector<uint8_t>(first, first + static_cast<ptrdiff_t>(n));
      },
      [&](uint64_t a, const std::vector<uint8_t>& d) {
        TestBuffer* buffer = find(a);
        std::copy(d.begin(), d.end(),
                  buffer->content.begin() + static_cast<ptrdiff_t>(a - buffer->address));
      });
  for (size_t i = 0; i < buffers.size(); ++i) {
    if (Writes(op.uses[i].mode)) buffers[i]->written = true;
  }
  return true;
}

void Runner::Allocate() {
  // From a slab's crumbs to seven pages.
  const uint64_t page = options_.page_bytes;
  const uint64_t bytes = Chance(0.2) ? 1 + Pick(page / 2) : 1 + page / 2 + Pick(6 * page);
  CUdeviceptr address = 0;
  CUresult result = engine_->Allocate(bytes, &address);
  if (result != CUDA_SUCCESS) {
    ++(result == CUDA_ERROR_OUT_OF_MEMORY ? result_.out_of_memory : result_.errors);
    return;
  }
  auto buffer = std::make_unique<TestBuffer>();
  buffer->address = address;
  buffer->content.resize(bytes);
  buffers_.push_back(std::move(buffer));
}

void Runner::FreeOne() {
  if (buffers_.empty()) return;
  const size_t i = Pick(buffers_.size());
  // cuMemFree waits for the device (the hooks see to it); half of the programs free in stream
  // order, with the work still in flight.
  if (Chance(0.5)) driver_.Drain();
  if (!engine_->Free(buffers_[i]->address)) Fail("Free of a live buffer failed");
  buffers_.erase(buffers_.begin() + static_cast<ptrdiff_t>(i));
}

void Runner::Upload() {
  if (buffers_.empty()) return;
  TestBuffer* buffer = buffers_[Pick(buffers_.size())].get();
  OpShape op;
  op.salt = random_();
  const uint64_t bytes = buffer->content.size();
  if (buffer->written && Chance(0.3)) {
    const uint64_t first = Pick(bytes);
    op.uses.push_back(
        {buffer->address, bytes, AccessMode::kWrite, false, first, 1 + Pick(bytes - first)});
  } else {
    op.uses.push_back({buffer->address, bytes, AccessMode::kWrite, true, 0, bytes});
  }
  Issue(OpKind::kUpload, op, false, static_cast<int>(Pick(streams_.size())), {buffer});
}

void Runner::Memset() {
  if (buffers_.empty()) return;
  TestBuffer* buffer = buffers_[Pick(buffers_.size())].get();
  OpShape op;
  op.salt = random_();
  op.uses.push_back({buffer->address, buffer->content.size(), AccessMode::kWrite, true, 0,
                     buffer->content.size()});
  Issue(OpKind::kMemset, op, true, static_cast<int>(Pick(streams_.size())), {buffer});
}

void Runner::Compute() {
  OpShape op;
  op.salt = random_();
  std::vector<TestBuffer*> used;
  auto add = [&](TestBuffer* buffer, AccessMode mode, bool covers, uint64_t first, uint64_t count) {
    if (buffer == nullptr || std::find(used.begin(), used.end(), buffer) != used.end()) return;
    used.push_back(buffer);
    op.uses.push_back({buffer->address, buffer->content.size(), mode, covers, first, count});
  };
  const int inputs = static_cast<int>(Pick(3));
  for (int i = 0; i < inputs; ++i) add(PickWritten(), AccessMode::kRead, false, 0, 0);
  const int outputs = 1 + static_cast<int>(Pick(2));
  for (int i = 0; i < outputs && !buffers_.empty(); ++i) {
    TestBuffer* buffer = buffers_[Pick(buffers_.size())].get();
    const uint64_t bytes = buffer->content.size();
    if (buffer->written && Chance(0.4)) {
      const uint64_t first = Chance(0.5) ? 0 : Pick(bytes);
      const uint64_t count = first == 0 ? bytes : 1 + Pick(bytes - first);
      add(buffer, Chance(0.5) ? AccessMode::kUpdate : AccessMode::kWrite, false, first, count);
    } else {
      // Written whole; the engine may or may not be told so. Not told, a fresh buffer is what
      // counts.
      const bool told = buffer->written ? Chance(0.7) : Chance(0.5);
      add(buffer, AccessMode::kWrite, told, 0, bytes);
    }
  }
  if (op.uses.empty()) return;
  Issue(OpKind::kLaunch, op, !Chance(options_.opaque_share),
        static_cast<int>(Pick(streams_.size())), used);
}

void Runner::Download(TestBuffer* buffer) {
  if (buffer == nullptr) return;
  std::vector<uint8_t> got;
  OpRequest request;
  request.kind = OpKind::kDownload;
  request.name = "download";
  const int stream = static_cast<int>(Pick(streams_.size()));
  request.stream.handle = streams_[stream];
  request.regions.push_back({buffer->address, buffer->content.size(), AccessMode::kRead, false});
  request.blocking = true;
  OrderStreams({buffer->address, 0, AccessMode::kRead, false, 0, 0}, buffer, stream);
  CUresult result = engine_->Run(request, [&] {
    driver_.Enqueue(streams_[stream],
                    [&] { got = driver_.Read(buffer->address, buffer->content.size()); });
    driver_.Drain();
    return CUDA_SUCCESS;
  });
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    ++result_.out_of_memory;
  } else if (result != CUDA_SUCCESS) {
    ++result_.errors;
  } else if (got != buffer->content) {
    size_t at = 0;
    while (at < got.size() && got[at] == buffer->content[at]) ++at;
    Fail(absl::StrCat("step ", step_, ": buffer of ", got.size(), " bytes differs at byte ", at));
  }
}

ProgramResult Runner::Run() {
  EngineOptions options;
  options.budget_bytes = options_.budget_pages * options_.page_bytes;
  options.strict = options_.strict;
  options.policy = options_.policy;
  options.host_budget_bytes = options_.host_pages * options_.page_bytes;
  absl::StatusOr<std::unique_ptr<Engine>> engine =
      Engine::Create(driver_.api(), 0, options, nullptr);
  if (!engine.ok()) {
    Fail(std::string(engine.status().message()));
    return result_;
  }
  engine_ = *std::move(engine);
  for (int s = 0; s < options_.streams; ++s) {
    streams_.push_back(s == 0 ? nullptr : driver_.NewStream());
  }
  driver_.FailCall(options_.fail_call, options_.fail_with);
  for (step_ = 0; step_ < options_.ops && result_.difference.empty(); ++step_) {
    const uint64_t what = Pick(100);
    if (buffers_.size() < 3 || (what < 12 && buffers_.size() < 24)) {
      Allocate();
    } else if (what < 22) {
      FreeOne();
    } else if (what < 30) {
      Upload();
    } else if (what < 36) {
      Memset();
    } else if (what < 44) {
      Download(PickWritten());
    } else {
      Compute();
    }
  }
  for (auto& buffer : buffers_) {
    if (buffer->written) Download(buffer.get());
  }
  result_.driver_calls = driver_.calls();
  for (auto& buffer : buffers_) engine_->Free(buffer->address);
  driver_.Drain();
  result_.statistics = engine_->GetStatistics();
  if (driver_.peak_physical_bytes() > options.budget_bytes) {
    Fail(absl::StrCat("physical memory ", driver_.peak_physical_bytes(), " above the budget"));
  }
  engine_ = nullptr;
  result_.physical_after = driver_.physical_bytes();
  result_.violations = driver_.violations();
  return result_;
}

}  // namespace

void Execute(const OpShape& op, const MemoryRead& read, const MemoryWrite& write) {
  uint64_t hash = Mix(op.salt);
  for (const OpShape::Use& use : op.uses) {
    if (!Reads(use.mode)) continue;
    for (uint8_t byte : read(use.address, use.bytes)) hash = (hash ^ byte) * 0x100000001b3ull;
  }
  for (const OpShape::Use& use : op.uses) {
    if (!Writes(use.mode)) continue;
    std::vector<uint8_t> data(use.count);
    uint64_t state = Mix(hash ^ use.address);
    for (uint8_t& byte : data) {
      state = state * 6364136223846793005ull + 1442695040888963407ull;
      byte = static_cast<uint8_t>(state >> 56);
    }
    write(use.address + use.first, data);
  }
}

ProgramResult RunProgram(const ProgramOptions& options) { return Runner(options).Run(); }

}  // namespace tidepool::testing
