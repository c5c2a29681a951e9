// Trains a deep multi-layer perceptron to tell the next byte of a text file from those before it.
// Every buffer is allocated once, at the start, and overwritten in every step, as most small
// trainers do it. Prints the loss of each step and a digest of all weights as bits.
#include <cinttypes>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

constexpr int kClasses = 256;

#define CHECK(call)                                                                         \
  do {                                                                                      \
    const cudaError_t error = (call);                                                       \
    if (error != cudaSuccess) {                                                             \
      std::fprintf(stderr, "CUDA error: %s (%s:%d)\n", cudaGetErrorString(error), __FILE__, \
                   __LINE__);                                                               \
      std::exit(1);                                                                         \
    }                                                                                       \
  } while (0)

// z = x w + b, one thread an element; w is [in][out].
__global__ void LinearForward(float* z, const float* x, const float* w, const float* b, int rows,
                              int in, int out) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= out) return;
  float sum = b[column];
  for (int k = 0; k < in; ++k) sum += x[row * in + k] * w[k * out + column];
  z[row * out + column] = sum;
}

__global__ void ReluForward(float* y, const float* z, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = z[i] > 0 ? z[i] : 0.01f * z[i];
}

__global__ void ReluBackward(float* dz, const float* dy, const float* z, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) dz[i] = z[i] > 0 ? dy[i] : 0.01f * dy[i];
}

__global__ void LinearBackwardInput(float* dx, const float* dz, const float* w, int rows, int in,
                                    int out) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= in) return;
  float sum = 0;
  for (int k = 0; k < out; ++k) sum += dz[row * out + k] * w[column * out + k];
  dx[row * in + column] = sum;
}

__global__ void LinearBackwardWeight(float* dw, float* db, const float* dz, const float* x,
                                     int rows, int in, int out) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= in || column >= out) return;
  float sum = 0, bias = 0;
  for (int r = 0; r < rows; ++r) {
    sum += x[r * in + row] * dz[r * out + column];
    bias += dz[r * out + column];
  }
  dw[row * out + column] = sum;
  if (row == 0) db[column] = bias;
}

// One block a row: losses, and the gradient of their mean.
__global__ void SoftmaxLoss(float* losses, float* dz, const float* z, const int* labels, int rows) {
  __shared__ float shared[kClasses];
  const int row = blockIdx.x, c = threadIdx.x;
  const float value = z[row * kClasses + c];
  shared[c] = value;
  __syncthreads();
  for (int half = kClasses / 2; half > 0; half /= 2) {
    if (c < half) shared[c] = fmaxf(shared[c], shared[c + half]);
    __syncthreads();
  }
  const float largest = shared[0];
  __syncthreads();
  shared[c] = expf(value - largest);
  __syncthreads();
  for (int half = kClasses / 2; half > 0; half /= 2) {
    if (c < half) shared[c] += shared[c + half];
    __syncthreads();
  }
  const float p = expf(value - largest) / shared[0];
  dz[row * kClasses + c] = (p - (c == labels[row] ? 1.0f : 0.0f)) / rows;
  if (c == labels[row]) losses[row] = -logf(fmaxf(p, 1e-20f));
}

__global__ void Momentum(float* w, float* v, const float* dw, int n, float rate) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    v[i] = 0.9f * v[i] + dw[i];
    w[i] -= rate * v[i];
  }
}

float* Allocate(size_t count) {
  void* data = nullptr;
  CHECK(cudaMalloc(&data, count * sizeof(float)));
  return static_cast<float*>(data);
}

struct Layer {
  int in, out;
  float *w, *b, *dw, *db, *vw, *vb;  // parameters, gradients, momenta
  float *z, *y, *dz, *dx;            // activations and their gradients
};

int Argument(int argc, char** argv, const char* name, int otherwise) {
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], name) == 0) return std::atoi(argv[i + 1]);
  }
  return otherwise;
}

}  // namespace

int main(int argc, char** argv) {
  std::string path = "/usr/share/common-licenses/GPL-3";
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const bool known = name == "--data" || name == "--steps" || name == "--layers" ||
                       name == "--width" || name == "--batch";
    if (!known || i + 1 >= argc) {
      std::fprintf(stderr,
                   "usage: mlp [--data FILE] [--steps N] [--layers N] [--width N] [--batch N]\n");
      return 2;
    }
    ++i;
    if (name == "--data") path = argv[i];
  }
  const int steps = Argument(argc, argv, "--steps", 3),
            depth = Argument(argc, argv, "--layers", 12);
  const int width = Argument(argc, argv, "--width", 64),
            rows = Argument(argc, argv, "--batch", 512);
  if (steps < 1 || depth < 1 || width < 1 || rows < 1 || width > 4096 || rows > 65535) {
    std::fprintf(stderr, "mlp: a number is out of range\n");
    return 2;
  }
  constexpr int kContext = 16;
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> text((std::istreambuf_iterator<char>(file)),
                               std::istreambuf_iterator<char>());
  if (text.size() < kContext + 2) {
    std::fprintf(stderr, "mlp: cannot read enough of %s\n", path.c_str());
    return 2;
  }

  uint64_t state = 42;
  const auto uniform = [&] {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<float>(state >> 40) / static_cast<float>(1 << 24) - 0.5f;
  };
  std::vector<Layer> layers(static_cast<size_t>(depth));
  for (int l = 0; l < depth; ++l) {
    Layer& layer = layers[l];
    layer.in = l == 0 ? kContext : width;
    layer.out = l + 1 == depth ? kClasses : width;
    const size_t weights = static_cast<size_t>(layer.in) * layer.out;
    const size_t inputs = static_cast<size_t>(rows) * layer.in,
                 outputs = static_cast<size_t>(rows) * layer.out;
    for (float** p : {&layer.w, &layer.dw, &layer.vw}) *p = Allocate(weights);
    for (float** p : {&layer.b, &layer.db, &layer.vb}) *p = Allocate(layer.out);
    for (float** p : {&layer.z, &layer.y, &layer.dz}) *p = Allocate(outputs);
    layer.dx = Allocate(inputs);
    std::vector<float> values(weights);
    const float scale = std::sqrt(12.0f / static_cast<float>(layer.in));
    for (float& value : values) value = uniform() * scale;
    CHECK(cudaMemcpy(layer.w, values.data(), weights * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(layer.vw, 0, weights * sizeof(float)));
    CHECK(cudaMemset(layer.b, 0, layer.out * sizeof(float)));
    CHECK(cudaMemset(layer.vb, 0, layer.out * sizeof(float)));
  }
  float* input = Allocate(static_cast<size_t>(rows) * kContext);
  float* losses = Allocate(rows);
  int* labels = nullptr;
  CHECK(cudaMalloc(&labels, rows * sizeof(int)));

  const dim3 tile(16, 16);
  const auto tiles = [&](int columns, int height) {
    return dim3((columns + 15) / 16, (height + 15) / 16);
  };
  size_t at = 0;
  for (int step = 0; step < steps; ++step) {
    std::vector<float> x(static_cast<size_t>(rows) * kContext);
    std::vector<int> y(static_cast<size_t>(rows));
    for (int r = 0; r < rows; ++r, at = (at + 7) % (text.size() - kContext - 1)) {
      for (int c = 0; c < kContext; ++c) {
        x[r * kContext + c] =
            static_cast<float>(static_cast<unsigned char>(text[at + c])) / 128 - 0.7f;
      }
      y[r] = static_cast<unsigned char>(text[at + kContext]);
    }
    CHECK(cudaMemcpy(input, x.data(), x.size() * sizeof(float), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(labels, y.data(), y.size() * sizeof(int), cudaMemcpyHostToDevice));
    for (int l = 0; l < depth; ++l) {
      const Layer& layer = layers[l];
      const float* from = l == 0 ? input : layers[l - 1].y;
      LinearForward<<<tiles(layer.out, rows), tile>>>(layer.z, from, layer.w, layer.b, rows,
                                                      layer.in, layer.out);
      const int n = rows * layer.out;
      if (l + 1 < depth) ReluForward<<<(n + 255) / 256, 256>>>(layer.y, layer.z, n);
    }
    Layer& last = layers.back();
    SoftmaxLoss<<<rows, kClasses>>>(losses, last.dz, last.z, labels, rows);
    for (int l = depth - 1; l >= 0; --l) {
      const Layer& layer = layers[l];
      const float* from = l == 0 ? input : layers[l - 1].y;
      LinearBackwardWeight<<<tiles(layer.out, layer.in), tile>>>(layer.dw, layer.db, layer.dz, from,
                                                                 rows, layer.in, layer.out);
      if (l == 0) break;
      LinearBackwardInput<<<tiles(layer.in, rows), tile>>>(layer.dx, layer.dz, layer.w, rows,
                                                           layer.in, layer.out);
      const int n = rows * layer.in;
      ReluBackward<<<(n + 255) / 256, 256>>>(layers[l - 1].dz, layer.dx, layers[l - 1].z, n);
    }
    for (const Layer& layer : layers) {
      const int n = layer.in * layer.out;
      Momentum<<<32, 256>>>(layer.w, layer.vw, layer.dw, n, 0.01f);
      Momentum<<<1, 256>>>(layer.b, layer.vb, layer.db, layer.out, 0.01f);
    }
    CHECK(cudaGetLastError());
    std::vector<float> each(static_cast<size_t>(rows));
    CHECK(cudaMemcpy(each.data(), losses, each.size() * sizeof(float), cudaMemcpyDeviceToHost));
    float loss = 0;
    for (float value : each) loss += value / static_cast<float>(rows);
    uint32_t bits = 0;
    std::memcpy(&bits, &loss, sizeof(bits));
    std::printf("step %d loss %.6f (%08" PRIx32 ")\n", step, loss, bits);
  }
  uint64_t digest = 0xcbf29ce484222325ull;
  for (const Layer& layer : layers) {
    std::vector<unsigned char> bytes(static_cast<size_t>(layer.in) * layer.out * sizeof(float));
    CHECK(cudaMemcpy(bytes.data(), layer.w, bytes.size(), cudaMemcpyDeviceToHost));
    for (unsigned char byte : bytes) digest = (digest ^ byte) * 0x100000001b3ull;
  }
  std::printf("weights %016" PRIx64 "\n", digest);
  return 0;
}
