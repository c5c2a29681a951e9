// Loaded as a module by modules.cu in several forms.
struct Mixed {
  char tag;
  double weight;
  short pair[3];
};

extern "C" {
__device__ int counter = 41;
__constant__ float scale = 2.5f;

__global__ void Scale(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * scale;
}
__global__ void Count() { atomicAdd(&counter, 1); }
// Parameters whose offsets need padding.
__global__ void Layout(double* out, char a, short b, Mixed m, int c, long long d) {
  out[0] = a;
  out[1] = b;
  out[2] = m.tag;
  out[3] = m.weight;
  out[4] = m.pair[2];
  out[5] = c;
  out[6] = static_cast<double>(d);
}
}
