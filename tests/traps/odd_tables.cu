// Pointers at addresses that are no multiple of eight: in packed records, in host memory that is
// not aligned, in rows of a pitched upload, and behind the end of their array.
#include <cstring>

#include "trap.h"
using namespace trap;

struct __attribute__((packed)) Record {
  char kind;
  const float* data;
  unsigned short weight;
};

__global__ void Packed(float* out, const Record* records, int count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < count; ++k) sum += records[k].data[i] * records[k].weight;
  out[i] = sum;
}
__global__ void Column(float* out, const char* rows, size_t pitch, int count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < count; ++k) {
    sum += *(*reinterpret_cast<const float* const*>(rows + k * pitch) + i);
  }
  out[i] = sum;
}
__global__ void FromEnds(float* out, float* const* ends, int count, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float sum = 0;
  for (int k = 0; k < count; ++k) sum += ends[k][-1 - i];
  out[i] = sum;
}

int main() {
  Layers layers;
  float* out = Alloc();
  {
    Record records[2] = {};
    for (int k = 0; k < 2; ++k) records[k] = {'x', Filled(k), static_cast<unsigned short>(k + 2)};
    Record* device = nullptr;
    OK(cudaMalloc(&device, sizeof(records)));
    OK(cudaMemcpy(device, records, sizeof(records), cudaMemcpyHostToDevice));
    layers.Forward(1);
    Packed<<<Blocks(kCount), 256>>>(out, device, 2, kCount);
    Print("packed", out);
    layers.Backward();
    for (const Record& r : records) OK(cudaFree(const_cast<float*>(r.data)));
  }
  {
    // Host memory that is not aligned: the pointers are, on the device.
    const float* data[2] = {Filled(5), Filled(6)};
    char host[5 + sizeof(data)];
    std::memcpy(host + 5, data, sizeof(data));
    char* device = nullptr;
    OK(cudaMalloc(&device, sizeof(data)));
    OK(cudaMemcpy(device, host + 5, sizeof(data), cudaMemcpyHostToDevice));
    layers.Forward(2);
    Column<<<Blocks(kCount), 256>>>(out, device, sizeof(float*), 2, kCount);
    Print("unaligned", out);
    layers.Backward();
    // The same in the rows of a pitched upload, out of wider rows on the host.
    char wide[2 * 20 + 4] = {};
    for (int k = 0; k < 2; ++k) std::memcpy(wide + 4 + k * 20, &data[1 - k], sizeof(float*));
    char* rows = nullptr;
    size_t pitch = 0;
    OK(cudaMallocPitch(&rows, &pitch, 16, 2));
    OK(cudaMemcpy2D(rows, pitch, wide + 4, 20, sizeof(float*), 2, cudaMemcpyHostToDevice));
    layers.Forward(3);
    Column<<<Blocks(kCount), 256>>>(out, rows, pitch, 2, kCount);
    Print("rows", out);
    layers.Backward();
    for (const float* p : data) OK(cudaFree(const_cast<float*>(p)));
  }
  {
    float* data[2] = {Filled(7), Filled(8)};
    float* ends[2] = {data[0] + kCount, data[1] + kCount};
    float** device = nullptr;
    OK(cudaMalloc(&device, sizeof(ends)));
    OK(cudaMemcpy(device, ends, sizeof(ends), cudaMemcpyHostToDevice));
    layers.Forward(4);
    FromEnds<<<Blocks(kCount), 256>>>(out, device, 2, kCount);
    Print("ends", out);
    layers.Backward();
  }
}
