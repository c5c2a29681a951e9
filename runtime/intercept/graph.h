// What becomes part of a graph runs at each launch of it without being seen: the buffers that it
// names are pinned when it is captured or added, and stay so until they are freed. Thread-safe.
#pragma once

#include <cuda.h>

#include "runtime/intercept/launch.h"
#include "runtime/residency/engine.h"

namespace tidepool {

// A capture begins somewhere in the process (called before the driver's own begin). From here on
// the engine needs no event on any stream that is captured: all that it gave out is over.
void OnCaptureBegins();
// After the driver's own begin or end of a capture of this stream, where it was successful, or when
// the stream is gone.
void OnCaptureBegan(CUstream stream);
void OnCaptureEnded(CUstream stream);
// True between the two.
bool AnyCapture();
// The stream is about to wait for an event, which may make it part of a capture.
void BeforeStreamWait(CUstream stream, bool per_thread);
// A buffer that cannot be freed as long as something is captured (to wait for the device would end
// the capture): it is freed when the last capture ends.
void FreeAfterCaptures(CUdeviceptr at);

// One contiguous copy between any two places.
CUresult PinForGraph(Engine* engine, CUdeviceptr to, CUdeviceptr from);
CUresult PinForGraph(Engine* engine, const CUDA_MEMCPY3D& box);
CUresult PinForGraph(Engine* engine, CUdeviceptr filled);

// A kernel in a graph follows addresses from memory: launches of graphs have to look whether there
// may be some that were not seen.
void OnGraphFollowsPointers();
CUresult BeforeGraphLaunch(Engine* engine);

}  // namespace tidepool
