// What relocatable.cu and relocatable_part.cu share on the device.
#pragma once

extern __device__ int shared_counter;
extern __constant__ int shared_factor;
__device__ int Combine(int a, int b);
