// Code that is unloaded while values that it made are still wanted.
#include "driver.h"
using namespace trap;

// out[i] = in[i] * 3
const char kPtx[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry triple(.param .u64 out, .param .u64 in, .param .u32 n) {
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .f32 %f<3>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [out];
  ld.param.u64 %rd2, [in];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.s32 %r5, %r2, %r3, %r4;
  setp.ge.s32 %p1, %r5, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd3, %rd1;
  cvta.to.global.u64 %rd4, %rd2;
  mul.wide.s32 %rd5, %r5, 4;
  add.s64 %rd6, %rd4, %rd5;
  add.s64 %rd7, %rd3, %rd5;
  ld.global.f32 %f1, [%rd6];
  mul.f32 %f2, %f1, 0f40400000;
  st.global.f32 [%rd7], %f2;
DONE:
  ret;
}
)";

int main() {
  const auto load = Driver<PFN_cuModuleLoadData_v2000>("cuModuleLoadData", 2000);
  const auto unload = Driver<PFN_cuModuleUnload_v2000>("cuModuleUnload", 2000);
  const auto find = Driver<PFN_cuModuleGetFunction_v2000>("cuModuleGetFunction", 2000);
  const auto launch = Driver<PFN_cuLaunchKernel_v4000>("cuLaunchKernel", 4000);
  Layers layers;
  for (int round = 0; round < 3; ++round) {
    float* in = Filled(round);
    CUmodule module;
    CUfunction function;
    OK(load(&module, kPtx));
    OK(find(&function, module, "triple"));
    float* made[2];
    for (int k = 0; k < 2; ++k) {
      made[k] = Alloc();
      int n = kCount;
      float* from = k == 0 ? in : made[0];
      void* parameters[] = {&made[k], &from, &n};
      OK(launch(function, Blocks(kCount), 1, 1, 256, 1, 1, 0, nullptr, parameters, nullptr));
    }
    layers.Forward(round);
    OK(unload(module));
    layers.Backward();
    layers.Forward(round + 10);
    for (float* p : made) Print("made", p);
    layers.Backward();
    for (float* p : {in, made[0], made[1]}) OK(cudaFree(p));
  }
}
