#include "runtime/residency/vmm_device.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace tidepool {
namespace {

constexpr char kResultPayload[] = "tidepool/CUresult";

}  // namespace

absl::Status DriverStatus(const DriverApi& api, const char* call, CUresult result) {
  if (result == CUDA_SUCCESS) return absl::OkStatus();
  const char* name = nullptr;
  if (api.GetErrorName == nullptr || api.GetErrorName(result, &name) != CUDA_SUCCESS) name = "?";
  std::string message = absl::StrCat(call, ": ", name, " (", static_cast<int>(result), ")");
  absl::Status status = result == CUDA_ERROR_OUT_OF_MEMORY ? absl::ResourceExhaustedError(message)
                                                           : absl::InternalError(message);
  status.SetPayload(kResultPayload, absl::Cord(absl::StrCat(static_cast<int>(result))));
  return status;
}

CUresult ResultOf(const absl::Status& status) {
  if (status.ok()) return CUDA_SUCCESS;
  absl::optional<absl::Cord> payload = status.GetPayload(kResultPayload);
  int result = 0;
  if (payload.has_value() && absl::SimpleAtoi(std::string(*payload), &result)) {
    return static_cast<CUresult>(result);
  }
  return absl::IsResourceExhausted(status) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_UNKNOWN;
}

VmmDevice::VmmDevice(const DriverApi& api, CUdevice device) : api_(&api) {
  properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties_.location.id = device;
  access_.location = properties_.location;
  access_.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

absl::StatusOr<VmmDevice> VmmDevice::Create(const DriverApi& api, CUdevice device) {
  if (api.MemAddressReserve == nullptr || api.MemAddressFree == nullptr ||
      api.MemCreate == nullptr || api.MemRelease == nullptr || api.MemMap == nullptr ||
      api.MemUnmap == nullptr || api.MemSetAccess == nullptr ||
      api.MemGetAllocationGranularity == nullptr) {
    return absl::UnimplementedError("the driver has no virtual memory management (cuMemCreate)");
  }
  VmmDevice vmm(api, device);
  size_t granularity = 0;
  absl::Status status =
      DriverStatus(api, "cuMemGetAllocationGranularity",
                   api.MemGetAllocationGranularity(&granularity, &vmm.properties_,
                                                   CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  if (!status.ok()) return status;
  if (granularity == 0) return absl::InternalError("the driver reports a granularity of 0");
  vmm.granularity_ = granularity;
  return vmm;
}

absl::StatusOr<uint64_t> VmmDevice::CreateChunk(uint64_t bytes) {
  CUmemGenericAllocationHandle handle = 0;
  absl::Status status =
      DriverStatus(*api_, "cuMemCreate", api_->MemCreate(&handle, bytes, &properties_, 0));
  if (!status.ok()) return status;
  return static_cast<uint64_t>(handle);
}

absl::Status VmmDevice::ReleaseChunk(uint64_t handle) {
  if (abandoned_) return absl::OkStatus();
  return DriverStatus(*api_, "cuMemRelease", api_->MemRelease(handle));
}

absl::StatusOr<uint64_t> VmmDevice::Reserve(uint64_t bytes) {
  CUdeviceptr address = 0;
  absl::Status status =
      DriverStatus(*api_, "cuMemAddressReserve", api_->MemAddressReserve(&address, bytes, 0, 0, 0));
  if (!status.ok()) return status;
  return static_cast<uint64_t>(address);
}

absl::Status VmmDevice::Unreserve(uint64_t address, uint64_t bytes) {
  if (abandoned_) return absl::OkStatus();
  return DriverStatus(*api_, "cuMemAddressFree", api_->MemAddressFree(address, bytes));
}

absl::Status VmmDevice::Map(uint64_t address, uint64_t bytes, uint64_t handle) {
  return DriverStatus(*api_, "cuMemMap", api_->MemMap(address, bytes, 0, handle, 0));
}

absl::Status VmmDevice::SetAccess(uint64_t address, uint64_t bytes) {
  return DriverStatus(*api_, "cuMemSetAccess", api_->MemSetAccess(address, bytes, &access_, 1));
}

absl::Status VmmDevice::Unmap(uint64_t address, uint64_t bytes) {
  if (abandoned_) return absl::OkStatus();
  return DriverStatus(*api_, "cuMemUnmap", api_->MemUnmap(address, bytes));
}

absl::StatusOr<void*> VmmDevice::AllocateHost(uint64_t bytes) {
  if (abandoned_) return nullptr;
  void* data = nullptr;
  absl::Status status = DriverStatus(*api_, "cuMemHostAlloc",
                                     api_->MemHostAlloc(&data, bytes, CU_MEMHOSTALLOC_PORTABLE));
  // Whatever the reason, it means that there is no room on the host.
  if (!status.ok()) return absl::ResourceExhaustedError(status.message());
  return data;
}

absl::Status VmmDevice::FreeHost(void* data) {
  if (abandoned_) return absl::OkStatus();
  return DriverStatus(*api_, "cuMemFreeHost", api_->MemFreeHost(data));
}

}  // namespace tidepool
