// Pitched and three-dimensional memory: copies in every direction, fills, kernels on rows.
#include "trap.h"
using namespace trap;

constexpr int kWidth = 300, kHeight = 200;
__global__ void Rows(float* data, size_t pitch, int width, int height, float k) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < width && y < height) {
    float* row = reinterpret_cast<float*>(reinterpret_cast<char*>(data) + y * pitch);
    row[x] = row[x] * k + static_cast<float>(y);
  }
}
float* Pitched(size_t* pitch) {
  float* p = nullptr;
  OK(cudaMallocPitch(&p, pitch, kWidth * sizeof(float), kHeight));
  return p;
}
void PrintRows(const char* name, const float* device, size_t pitch) {
  std::vector<float> host(kWidth * kHeight);
  OK(cudaMemcpy2D(host.data(), kWidth * 4, device, pitch, kWidth * 4, kHeight,
                  cudaMemcpyDeviceToHost));
  PrintHost(name, host.data(), host.size() * 4);
}

int main() {
  Layers layers;
  std::vector<float> host(kWidth * kHeight);
  for (size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i % 91);
  size_t pitch_a = 0, pitch_b = 0;
  float* a = Pitched(&pitch_a);
  float* b = Pitched(&pitch_b);
  OK(cudaMemcpy2D(a, pitch_a, host.data(), kWidth * 4, kWidth * 4, kHeight,
                  cudaMemcpyHostToDevice));
  OK(cudaMemset2D(b, pitch_b, 0, kWidth * 4, kHeight));
  Rows<<<dim3(2, kHeight), 256>>>(b, pitch_b, kWidth, kHeight, 1.5f);
  layers.Forward(1);
  // A window of a into a window of b, and zeros into another.
  OK(cudaMemcpy2D(b + 10, pitch_b, a + 50, pitch_a, 100 * 4, 50, cudaMemcpyDeviceToDevice));
  OK(cudaMemset2D(a + 20, pitch_a, 1, 40 * 4, 30));
  Rows<<<dim3(2, kHeight), 256>>>(b, pitch_b, kWidth, kHeight, 0.5f);
  layers.Backward();
  PrintRows("a", a, pitch_a);
  PrintRows("b", b, pitch_b);
  // Boxes.
  const cudaExtent extent = make_cudaExtent(kWidth * 4, 40, 5);
  cudaPitchedPtr box, other;
  OK(cudaMalloc3D(&box, extent));
  OK(cudaMalloc3D(&other, extent));
  OK(cudaMemset3D(box, 2, extent));
  layers.Forward(2);
  cudaMemcpy3DParms in = {};
  in.srcPtr = make_cudaPitchedPtr(host.data(), kWidth * 4, kWidth, 40);
  in.dstPtr = box;
  in.srcPos = make_cudaPos(40, 2, 1);
  in.dstPos = make_cudaPos(16, 3, 1);
  in.extent = make_cudaExtent(400, 20, 3);
  in.kind = cudaMemcpyHostToDevice;
  OK(cudaMemcpy3D(&in));
  cudaMemcpy3DParms across = {};
  across.srcPtr = box;
  across.dstPtr = other;
  across.extent = extent;
  across.kind = cudaMemcpyDeviceToDevice;
  OK(cudaMemcpy3DAsync(&across));
  layers.Backward();
  layers.Forward(3);
  cudaMemcpy3DParms out = {};
  out.srcPtr = other;
  out.dstPtr = make_cudaPitchedPtr(host.data(), kWidth * 4, kWidth, 40);
  out.extent = extent;
  out.kind = cudaMemcpyDeviceToHost;
  OK(cudaMemcpy3D(&out));
  PrintHost("box", host.data(), kWidth * 4 * 40 * 5);
  layers.Backward();
}
