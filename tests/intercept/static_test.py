#!/usr/bin/env python3
"""A program with a static CUDA runtime reaches the hooks.

The real static runtime wants private tables of the driver (cuGetExportTable), which the driver here does not have:
cudaMalloc then ends in an error. All that comes before goes over the hooks, and is looked at: every lookup, and cuInit.

usage: static_test.py PROGRAM LIBTIDEPOOL DRIVER_FOLDER
"""
import os
import subprocess
import sys
import tempfile

PROGRAM, TIDEPOOL, DRIVER = sys.argv[1:4]


def run(preload, **variables):
    """Exit status, stdout, stderr, the driver's log, and whether Tidepool saw the driver being initialised."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, 'log')
        env = {k: v for k, v in os.environ.items() if not k.startswith('TIDEPOOL_')}
        env.update(LD_LIBRARY_PATH=DRIVER, FAKE_DRIVER_LOG=log, **variables)
        if preload:
            env['LD_PRELOAD'] = TIDEPOOL
        seen, writer = os.pipe()
        env['TIDEPOOL_SEEN_FD'] = str(writer)
        done = subprocess.run([PROGRAM], env=env, text=True, capture_output=True, timeout=60, pass_fds=[writer])
        os.close(writer)
        with os.fdopen(seen, 'rb') as pipe:
            saw = pipe.read() == b'x'
        lines = []
        if os.path.exists(log):
            with open(log) as f:
                lines = f.read().splitlines()
        return done, lines, saw


def lookups(lines):
    """Requests, without those that Tidepool makes for itself, and the objects that made them."""
    rows = [line.split(' ') for line in lines if line.startswith('lookup ')]
    return [tuple(r[1:4]) for r in rows], {r[4] for r in rows}


def check(condition, what):
    if not condition:
        print('FAILED:', what)
        check.failures += 1


check.failures = 0


def main():
    plain, plain_log, plain_saw = run(False)
    asked, by = lookups(plain_log)
    check(len(asked) > 300, f'the runtime looks up hundreds of names, not {len(asked)}')
    check('libtidepool.so' not in by and not plain_saw, 'without Tidepool nothing goes over it')
    check('cuInit' in plain_log and 'cuGetExportTable' in plain_log, 'the runtime initialises the driver')

    pooled, pooled_log, pooled_saw = run(True, TIDEPOOL_BUDGET='64MiB')
    pooled_asked, pooled_by = lookups(pooled_log)
    check(pooled_asked == asked, 'the driver is asked the same as without Tidepool')
    check(pooled_by == {'libtidepool.so'}, f'every lookup goes over the hook, not by {pooled_by}')
    check(pooled_saw, 'the runtime calls the hook of cuInit')
    check('cuInit' in pooled_log and 'cuGetExportTable' in pooled_log, 'and the hook calls the driver')
    check((pooled.returncode, pooled.stdout) == (plain.returncode, plain.stdout),
          f'the same outcome: {plain.stdout!r}, {pooled.stdout!r}')
    check(pooled.stderr == plain.stderr, f'nothing on stderr: {pooled.stderr!r}')
    if plain.stdout.startswith('cudaSuccess'):  # a runtime that does without the tables
        check('cuMemAddressReserve' in pooled_log and 'cuMemAlloc_v2' not in pooled_log, "memory is Tidepool's")

    refused, refused_log, _ = run(True, TIDEPOOL_BUDGET='8GB')
    check('cuInit' not in refused_log, 'a budget that does not parse: the driver is not initialised')
    check(refused.stderr.startswith('tidepool: TIDEPOOL_BUDGET: "8GB"') and refused.stderr.count('\n') == 1,
          f'one line says why: {refused.stderr!r}')
    check('cudaSuccess' not in refused.stdout, 'and the program gets an error')
    return 1 if check.failures else 0


if __name__ == '__main__':
    sys.exit(main())
