#!/usr/bin/env python3
"""Every form of every driver function is what the headers say, and its lookup reaches the hook of that very form.

Three sources that were not made from one another have to agree: cudaTypedefs.h (names, versions, per-thread forms), from
which the hook table is generated; the exports of the toolkit's stub libcuda.so; and what cuGetProcAddress answers to a
process that runs under Tidepool.

usage: forms_test.py GEN_HOOKS CUDA_INCLUDE STUB_LIBCUDA LIBTIDEPOOL DRIVER_FOLDER
       forms_test.py --lookups LIBTIDEPOOL   (inside: rows "name version per_thread symbol" on stdin)
"""
import ctypes
import importlib.util
import os
import subprocess
import sys

PER_THREAD = 2  # CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM


def exports(library):
    text = subprocess.run(['nm', '-D', '--defined-only', library], check=True, text=True, capture_output=True).stdout
    return {line.split()[-1] for line in text.splitlines() if line.strip()}


def forms(generator, include):
    spec = importlib.util.spec_from_file_location('gen_hooks', generator)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with open(f'{include}/cudaTypedefs.h') as typedefs, open(f'{include}/cuda.h') as header:
        return [row[:4] for row in module.parse(typedefs.read(), header.read())]


def address(library, symbol):
    """Of a symbol that the library itself defines, by its own handle, and not as the program would find it."""
    try:
        return ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
    except AttributeError:
        return None


def lookups(libtidepool):
    driver = ctypes.CDLL('libcuda.so.1')
    tidepool = ctypes.CDLL(libtidepool)
    hooked = exports(libtidepool)
    get = driver.cuGetProcAddress_v2
    hook_count = answered = failures = 0
    for line in sys.stdin:
        name, version, per_thread, symbol = line.split()
        found, status = ctypes.c_void_p(), ctypes.c_int(-1)
        flags = PER_THREAD if per_thread == 'True' else 1
        result = get(name.encode(), ctypes.byref(found), int(version), ctypes.c_uint64(flags), ctypes.byref(status))
        if result != 0 or not found.value:
            continue  # the driver here does not have it: nothing to substitute
        answered += 1
        is_hook = symbol in hooked
        hook_count += is_hook
        hook = address(tidepool, symbol) if is_hook else None
        if is_hook and found.value != hook:
            print(f'{name} {version} per_thread={per_thread}: not the hook of {symbol}')
            failures += 1
        if not is_hook and any(found.value == address(tidepool, other) for other in (name, symbol) if other in hooked):
            print(f'{name} {version} per_thread={per_thread}: a hook for a form that Tidepool does not implement')
            failures += 1
    print(f'{answered} lookups answered, {hook_count} of them by hooks')
    return 1 if failures or hook_count < 100 else 0


def main():
    if sys.argv[1] == '--lookups':
        return lookups(sys.argv[2])
    generator, include, stub, libtidepool, driver = sys.argv[1:6]
    rows = forms(generator, include)
    failures = 0
    if len(rows) < 600:
        print(f'only {len(rows)} forms in cudaTypedefs.h')
        failures += 1
    if os.path.exists(stub):
        known = exports(stub)
        for name, version, per_thread, symbol in rows:
            if symbol not in known:
                print(f'{name} {version} per_thread={per_thread}: no export {symbol} in the stub library')
                failures += 1
        for symbol in sorted(s for s in exports(libtidepool) if s.startswith('cu') and s not in known):
            print(f'a hook for {symbol}, which the stub library does not export')
            failures += 1
        print(f'{len(rows)} forms, {len(known)} exports of the stub library')
    else:
        print('no stub library in this toolkit: the forms were not compared with it')
    env = dict(os.environ, LD_PRELOAD=libtidepool, LD_LIBRARY_PATH=driver, TIDEPOOL_BUDGET='64MiB')
    text = ''.join(' '.join(map(str, row)) + '\n' for row in rows)
    done = subprocess.run([sys.executable, os.path.abspath(__file__), '--lookups', libtidepool], input=text, text=True,
                          env=env, timeout=100)
    return 1 if failures or done.returncode != 0 else 0


if __name__ == '__main__':
    sys.exit(main())
