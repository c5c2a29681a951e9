// The engine: decides for every op of the program which values must be resident, makes them so
// (evicting others, rebuilding dropped ones), lets the program's own driver call happen, and
// records lineage.
//
// One engine per process, for the first context that allocates. Thread-safe: one mutex, released
// while a blocking driver call of the program runs. All results are the CUDA codes that the program
// is to see.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "runtime/driver/driver_api.h"
#include "runtime/residency/op_request.h"
#include "runtime/residency/statistics.h"

namespace tidepool {

class Recorder;  // profiler/recorder.h

struct EngineOptions {
  uint64_t budget_bytes = 0;
  double high_watermark = 1.0;  // of the budget; eviction starts above it ...
  double low_watermark = 1.0;   // ... and goes on down to this
  bool strict = false;          // unmap at eviction
  std::string policy = "dtr-eq";
  uint64_t host_budget_bytes = 0;  // pinned host memory for swapping; 0: no swapping
};

struct BufferInfo {
  CUdeviceptr address = 0;
  uint64_t bytes = 0;  // as the program asked
  uint64_t id = 0;
};

class Engine {
 public:
  // `api` and `recorder` (may be null) must outlive the engine. `device` is the device of the
  // current context. Errors: the driver lacks what is needed. A budget
  // below one page is no error: nothing can be allocated then, which is what it asks for.
  static absl::StatusOr<std::unique_ptr<Engine>> Create(const DriverApi& api, CUdevice device,
                                                        const EngineOptions& options,
                                                        Recorder* recorder);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // --- Allocation (cuMemAlloc, cuMemAllocAsync, ...) ---

  // Reserves an address; memory is bound at the first use. CUDA_ERROR_OUT_OF_MEMORY if it can never
  // fit beside what is pinned; CUDA_ERROR_INVALID_VALUE for 0 bytes.
  CUresult Allocate(uint64_t bytes, CUdeviceptr* out);
  // False: not the address of a live buffer of Tidepool's: the real driver is to answer. Waits for
  // nothing: the caller gives cuMemFree its documented synchronisation.
  bool Free(CUdeviceptr address);
  // The same in the order of a stream (cuMemFreeAsync): whoever gets the memory next comes behind
  // all that the stream has been given so far, uses that nobody told the engine of included.
  bool FreeOrdered(CUdeviceptr address, StreamRef stream);
  // Frees everything (context destroyed or reset): no driver call is made on the old context's
  // memory that could fail; addresses of before are forgotten.
  void Reset();

  // True if the address lies in memory that the engine manages, or just beside a buffer, or in a
  // module variable that is watched. Fast where it is false; for every word of every launch.
  bool InPool(CUdeviceptr address) const;
  // Where [address, address + bytes) lies. kBeyond: in the engine's memory, but not in one live
  // buffer; the driver, which knows only chunks, might take it for valid.
  enum class Place : uint8_t { kElsewhere, kInside, kBeyond };
  Place Locate(CUdeviceptr address, uint64_t bytes) const;
  // The live buffer that contains `address`; false if none.
  bool Find(CUdeviceptr address, BufferInfo* info) const;
  void MemGetInfo(size_t* free_bytes, size_t* total_bytes) const;

  // A module variable whose address the host has got, of this code: what reads or writes it is told
  // of like a use of a buffer from now on. It is memory of the driver's and no buffer of the
  // program's: not counted, not found by Find. Until OnCodeUnload.
  void WatchVariable(const std::string& name, CUdeviceptr address, uint64_t bytes,
                     const void* code);
  // How many were watched so far.
  uint64_t watched_variables() const;

  // --- Pinning ---

  // Makes the buffer that contains `address` resident and keeps it so until it is freed; of an
  // address at the end of a buffer or close to one, the buffers beside it. Addresses outside the
  // pool are ignored. CUDA_ERROR_OUT_OF_MEMORY if it does not fit.
  CUresult Pin(CUdeviceptr address, PinReason reason);
  // Pins every buffer named by eight bytes of [data, data + bytes), at whatever alignment: records
  // may be packed.
  CUresult PinPointersIn(const void* data, uint64_t bytes);
  // Everything stays resident from now on: the program uses something that cannot be followed.
  CUresult PinAll(PinReason reason);

  // --- Ops ---

  // Makes the regions resident, calls `issue` (the program's own driver call, unchanged) and
  // records what happened. Returns issue's result, or CUDA_ERROR_OUT_OF_MEMORY when the operands do
  // not fit the budget together (one line on stderr says which op needs how much; `issue` is then
  // not called).
  CUresult Run(const OpRequest& request, absl::FunctionRef<CUresult()> issue);

  // Code that goes away (called before the driver's own unload): nothing is replayed with it any
  // more. What only it could rebuild is made resident first.
  CUresult OnCodeUnload(const void* code);
  // The same for one kernel of the code, whose attributes change so that it may not run as before.
  CUresult OnKernelChange(const void* code, std::string_view name);
  // Before a stream (null: any stream) may become part of a capture: waits for all that the engine
  // knows to have been given to it, so that no event has to be recorded on it meanwhile.
  void Settle(const StreamRef* stream);
  // Streams that go away (called before the driver's own destroy).
  void OnStreamDestroy(CUstream stream);

  // --- Tags and statistics ---

  // `tag` is copied. False if no buffer contains the range's start.
  bool Tag(CUdeviceptr address, const std::string& tag);
  Statistics GetStatistics() const;

  class Impl;

 private:
  explicit Engine(std::unique_ptr<Impl> impl);
  // By bounds alone.
  bool MayBeInPool(CUdeviceptr address) const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tidepool
