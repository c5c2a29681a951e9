/* Tidepool's C API, for programs that link libtidepool.so (before libcuda, so that the hooks come
 * first). Every function is thread-safe. None of them is needed: a preloaded library is driven by
 * its environment. */
#ifndef TIDEPOOL_TIDEPOOL_H_
#define TIDEPOOL_TIDEPOOL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum {
  TIDEPOOL_OK = 0,
  TIDEPOOL_ERROR_INVALID_VALUE = 1, /* a bad argument; nothing was done */
  TIDEPOOL_ERROR_TOO_LATE = 2,      /* memory is managed already */
  TIDEPOOL_ERROR_NOT_MANAGED = 3,   /* the address is not in memory that Tidepool manages */
  TIDEPOOL_ERROR_OUT_OF_MEMORY = 4  /* what is to stay resident does not fit the budget */
} tidepool_result;

/* Manages device memory from the next allocation on. `budget`: "8GiB", "512MiB", bytes, or "60%" of
 * the device's memory. Before the program's first device allocation. */
tidepool_result tidepool_start(const char* budget);

/* New allocations go to the driver again; what is managed stays so until it is freed. */
void tidepool_stop(void);

/* Names the buffer that contains `address`; the report counts memory by tag. `tag` is copied. */
tidepool_result tidepool_tag(const void* address, const char* tag);

/* Keeps the buffer that contains `address` resident until it is freed. */
tidepool_result tidepool_pin(const void* address);

/* States how kernels use their parameters, as a line of TIDEPOOL_CONFIG does (docs/config.md), from
 * the next launch on: "kernel Scatter* 0=write 1=read replayable". A statement that turns out to be
 * against what the kernel's PTX shows is refused at its launch, with a line on stderr. A line that
 * is not valid gives TIDEPOOL_ERROR_INVALID_VALUE, nothing is done, and `error` (may be NULL) holds
 * what was found and what is accepted, cut to `error_bytes` with its terminating NUL. */
tidepool_result tidepool_annotate(const char* line, char* error, size_t error_bytes);

typedef struct {
  size_t size; /* set to sizeof(tidepool_statistics) by the caller */
  uint64_t budget_bytes;
  uint64_t physical_bytes;
  uint64_t peak_physical_bytes;
  uint64_t live_bytes;
  uint64_t peak_live_bytes;
  uint64_t drops;
  uint64_t rebuilds;
  uint64_t rebuilt_ops;
  uint64_t pinned_bytes;
} tidepool_statistics;

tidepool_result tidepool_get_statistics(tidepool_statistics* statistics);

/* "major.minor.patch" */
const char* tidepool_version(void);

#ifdef __cplusplus
}
#endif

#endif /* TIDEPOOL_TIDEPOOL_H_ */
